"""Benchmarks of `alphagateau bench`: games, networks, search, training, reading labels."""
