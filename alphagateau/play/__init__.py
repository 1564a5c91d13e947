"""Play against a network: a UCI engine, a board in the browser and one at the terminal."""
