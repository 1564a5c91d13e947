"""Players: a network with its search, or what moves on the host."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import NetworkConfig
from alphagateau.games.pgn.pgn import Identity, MoveNote
from alphagateau.networks.network import Variables
from alphagateau.search.baselines import make_random_search
from alphagateau.search.search import Search

NO_WEIGHTS: Variables = {}


class Reply(NamedTuple):
    """A move in UCI of a player on the host, and what is known of it."""

    move: str
    note: MoveNote = MoveNote()
    nodes: int | None = None  # positions visited, if they are counted


Move = Callable[[str, Sequence[str]], str | Reply]


class Player(NamedTuple):
    """A network with its search on the devices, or what moves on the host, such as an engine.

    Players with the same `search` object share one compiled program. One without variables is no network, and has no
    opinion of a position. `move(start_fen, moves)` answers the UCI moves of a game with one more, or with a Reply;
    `num_workers` threads may call it at once. It may raise PlayerError, and then plays no more.
    """

    name: str
    search: Search | None = None  # None: it moves on the host
    variables: Variables = NO_WEIGHTS
    identity: Identity = Identity()
    move: Move | None = None
    num_workers: int = 1
    close: Callable[[], None] = lambda: None  # frees what it holds; it can then not play
    key: tuple[str, ...] = ()  # (weights hash or engine, search, board): two with the same one are the same player
    has_noise: bool = False  # its games may differ though they began alike
    folder: Path | None = None  # of its run
    also: tuple[tuple[Path, int], ...] = ()  # other runs and iterations with these weights and this search
    network: NetworkConfig | None = None  # None: it has none


@lru_cache
def random_player() -> Player:
    """The random mover."""
    return Player("random", make_random_search(), NO_WEIGHTS, Identity(search="random"))
