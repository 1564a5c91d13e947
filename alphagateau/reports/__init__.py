"""Self-contained pages of a run, a ladder and a study."""
