"""Minimax over likely moves or to a depth: keys, a pool of nodes, quiescence, lines."""
