"""What a run leaves on disk, and what stops it: folder, checkpoints, log, health, signals."""
