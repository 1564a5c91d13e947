"""Environments of other libraries, played by the rules of `games`."""
