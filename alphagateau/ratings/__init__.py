"""Ratings from results: Bradley-Terry, weighted least squares, pairing, sequential tests."""
