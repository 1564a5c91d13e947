"""Searches of one form: Gumbel MuZero, minimax, move values, baselines; and a tree for play by the clock."""
