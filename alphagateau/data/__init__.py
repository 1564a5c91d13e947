"""Labelled positions: boards gathered from games, what engines say of them, and the files that hold both."""
