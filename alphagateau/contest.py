"""What matches are made of: players, the openings they meet on, and the games that come out."""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from alphagateau.games import Game, get_game
from alphagateau.networks import Network
from alphagateau.openings import Openings
from alphagateau.pgn import GameRecord
from alphagateau.search import Search, make_policy_search, make_random_search
from alphagateau.types import Variables


class PlayerError(RuntimeError):
    """A player cannot go on: it crashed, hangs or broke the rules; one sentence naming it."""


class Player(NamedTuple):
    """A network with its search. Players with the same `search` object share one compiled program."""

    name: str
    search: Search
    variables: Variables


class HostPlayer(NamedTuple):
    """A player asked for one move at a time on the host, such as an engine.

    `move(start_fen, moves)` answers the UCI moves of a game with one more; `num_workers` threads may
    call it at once. It may raise PlayerError, and then plays no more.
    """

    name: str
    move: Callable[[str, Sequence[str]], str]
    num_workers: int = 1
    close: Callable[[], None] = lambda: None  # frees what it holds; it can then not play


AnyPlayer = Player | HostPlayer


class Match(NamedTuple):
    """Two players and the openings that they play, both ways."""

    a: AnyPlayer
    b: AnyPlayer
    openings: Openings
    seed: int = 0  # a game draws from this, its number and its ply, and from nothing else
    done: Collection[int] = ()  # games not to play again: 2 * opening, + 1 where a is black


class PlayedGame(NamedTuple):
    """A game that was begun."""

    match: int  # number of its match, in the order given, from 0
    opening: int  # number of its opening in the match, from 0
    a_is_white: bool
    score: float | None  # for a: 1, 1/2, 0; None: no result, and `record.termination` says why
    record: GameRecord  # with the opening's moves


@lru_cache
def random_player() -> Player:
    """The random mover."""
    return Player("random", make_random_search(), {})


def policy_player(game: Game, network: Network, variables: Variables, name: str) -> Player:
    """A network without search: it plays the move of the highest prior."""
    return Player(name, _policy_search(game.name, network), variables)


@lru_cache
def _policy_search(game_name: str, network: Network) -> Search:
    return make_policy_search(get_game(game_name), network)
