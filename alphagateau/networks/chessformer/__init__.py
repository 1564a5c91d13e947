"""Chessformer, the transformer on squares: keys, square tokens, encoder, attention, heads."""
