"""Plays a game against a checkpoint at the terminal."""

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Iterator
from typing import Annotated, Literal

import tyro

from alphagateau.cli.arguments import usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.streams import open_input

TREE_MEGABYTES = 256


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play against a network at the terminal.

    Type moves as Nf3 or g1f3; `help` lists the other commands. Options follow the checkpoint: `?search=action_value`,
    `state_value` or `policy` plays without search, `?search=probability&nodes=1000` or `depth` by minimax.

    Example: alphagateau play checkpoints/quickstart --side black
    """

    path: tyro.conf.Positional[str]
    """a checkpoint, or a run for its newest one"""
    side: Literal["white", "black"] = "white"
    """your color"""
    simulations: int = 200
    """search simulations of each of its moves; 0: the move of its highest prior"""
    game: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """the board; None: the one it learnt on"""
    platform: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """kind of device"""


def run(arguments: Arguments) -> int:
    """Plays until `quit` or the end of input."""
    open_input("play")
    from alphagateau.distributed.mesh import choose_platform
    from alphagateau.games.variants import get_game
    from alphagateau.matches.specs import name_of
    from alphagateau.play.opponents import find_player, identity_of
    from alphagateau.play.terminal import Setup, converse, fit
    from alphagateau.play.thinking import make_thinker

    choose_platform(arguments.platform)
    use_compilation_cache()
    player = find_player(arguments.path)
    found = player.found
    with usage_errors("--game"):
        game = get_game(arguments.game or found.manifest["game"])
    print(f"compiling for {game.name}", flush=True)
    thinker = make_thinker(player, game.name, TREE_MEGABYTES)
    identity = identity_of(player, arguments.simulations)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a person's Ctrl-C leaves a move, or the game
    setup = Setup(arguments.side == "white", arguments.simulations, name_of(found), identity)
    with contextlib.suppress(KeyboardInterrupt):
        for text in converse(thinker, setup, typed()):
            print(fit(text, sys.stdout.encoding or "ascii"), flush=True)
    return 0


def typed() -> Iterator[str]:
    """The typed lines, up to the end of input."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, so that input() has the arrow keys
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            yield input("> ")
    print()
