"""Minimax by probability or to a depth: a pool of nodes, quiescence, values and principal variations."""
