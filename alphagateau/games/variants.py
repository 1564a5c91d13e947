"""The games by name: each is made of its entry once, when it is first used."""

import dataclasses
from difflib import get_close_matches
from functools import lru_cache

from alphagateau.games.entries import GAMES
from alphagateau.games.rules import Game, make_game

MOST_PLIES = 2**15 - 1  # that a State counts


@lru_cache
def get_game(name: str) -> Game:
    """The Game called `name`; ValueError, in one sentence with the names, if there is none."""
    if name not in GAMES:
        *others, last = map(repr, GAMES)
        close = [f", did you mean {match!r}" for match in get_close_matches(name, GAMES, n=1)]
        raise ValueError(f"unknown game {name!r}{''.join(close)}: expected {', '.join(others)} or {last}")
    return make_game(GAMES[name])


@lru_cache
def get_endless_game(name: str) -> Game:
    """The same without a limit of plies: of games that others referee."""
    get_game(name)
    return make_game(dataclasses.replace(GAMES[name], max_plies=MOST_PLIES))
