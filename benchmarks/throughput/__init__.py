"""What `alphagateau bench` times: games, networks, search, training, reading labels."""
