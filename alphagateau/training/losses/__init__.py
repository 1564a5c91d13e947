"""Losses: policy and value, auxiliary heads, labels; terms and measures they share."""
