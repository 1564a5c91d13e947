"""Play against a network: a UCI engine and a board at the terminal."""
