"""The ladder: players, pairings, rounds, games on disk, protocol."""
