"""Giraffe's evaluation and move networks: keys, features of pieces, the two networks."""
