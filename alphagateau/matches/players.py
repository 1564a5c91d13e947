"""Players: a network with its search, or whatever answers moves on the host; and how their specs are written."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from alphagateau.games.pgn.pgn import Identity, MoveNote
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.network import Network, Variables
from alphagateau.search.baselines import make_policy_search, make_random_search
from alphagateau.search.search import Search


class PlayerError(RuntimeError):
    """A player cannot go on: it crashed, hangs or broke the rules; one sentence naming it."""


class SpecError(PlayerError, ValueError):
    """There is no player as a spec asks for it; one sentence naming it."""


class Player(NamedTuple):
    """A network with its search. Players with the same `search` object share one compiled program.

    One without variables is no network, and has no opinion of a position.
    """

    name: str
    search: Search
    variables: Variables
    identity: Identity = Identity()


class Reply(NamedTuple):
    """A HostPlayer's move in UCI, and what is known of it."""

    move: str
    note: MoveNote = MoveNote()
    nodes: int | None = None  # positions looked at, if it says


class HostPlayer(NamedTuple):
    """A player asked for one move at a time on the host, such as an engine.

    `move(start_fen, moves)` answers the UCI moves of a game with one more, or with a Reply; `num_workers` threads may
    call it at once. It may raise PlayerError, and then plays no more.
    """

    name: str
    move: Callable[[str, Sequence[str]], str | Reply]
    num_workers: int = 1
    close: Callable[[], None] = lambda: None  # frees what it holds; it can then not play
    identity: Identity = Identity()


AnyPlayer = Player | HostPlayer


@lru_cache
def random_player() -> Player:
    """The random mover."""
    return Player("random", make_random_search(), {}, Identity(search="random"))


def policy_player(game: Game, network: Network, variables: Variables, name: str) -> Player:
    """A network without search: it plays the move of the highest prior."""
    return Player(name, _policy_search(game.name, network), variables)


@lru_cache
def _policy_search(game_name: str, network: Network) -> Search:
    return make_policy_search(get_game(game_name), network)


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """("PATH", options) of "PATH?a=1&b=2". Raises SpecError."""
    path, _, query = spec.partition("?")
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = (text.strip() for text in part.partition("="))
        if not name or not value or name in options:
            raise SpecError(f"player {spec!r}: {part!r} was given, expected options such as nodes=50, each once")
        options[name] = value
    return path, options


def parse_count(spec: str, name: str, text: str) -> int:
    """The number that an option of `spec` gives. Raises SpecError."""
    if not re.fullmatch("0{0,9}[1-9][0-9]{0,8}", text):
        raise SpecError(f"player {spec!r}: {name} is {text!r}, expected a whole number above 0")
    return int(text)
