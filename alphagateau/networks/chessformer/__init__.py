"""Chessformer, the transformer on squares: square tokens, encoder, relative attention, heads."""
