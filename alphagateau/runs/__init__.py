"""Runs on disk, and their ends: folder, checkpoints, log, health, signals."""
