"""Labelled positions: boards gathered from games, engines' scores of them, and the files of both."""
