"""Frames from labelled positions on disk, and held-out loss."""
