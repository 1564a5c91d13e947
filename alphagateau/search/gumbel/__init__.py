"""Gumbel MuZero search in batched trees: keys, mctx's search with its own backup."""
