"""The metrics log, Aim beside it, and progress on the terminal."""
