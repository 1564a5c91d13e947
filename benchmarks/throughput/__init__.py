"""What `benchmarks/bench.py` times: games, networks, search, training, reading labels."""
