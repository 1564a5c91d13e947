"""Self-contained pages of a run and of a ladder."""
