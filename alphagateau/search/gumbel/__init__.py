"""Gumbel MuZero search in batched trees: mctx's search with a backup of its own."""
