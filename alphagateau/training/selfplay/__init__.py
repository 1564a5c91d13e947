"""Frames from self-play: games, targets, the frame window, several boards in one run."""
