"""Comparisons of experiments: what runs a study needs, how far each is, what they showed."""
