"""`alphagateau uci`: a checkpoint in, a UCI engine on standard input and output."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Literal

import tyro

from alphagateau.commands.arguments import parse
from alphagateau.commands.compilation import use_compilation_cache
from alphagateau.commands.typed_input import open_input


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play as a UCI engine, for a chess GUI.

    The board is chosen by the option UCI_Variant: chess unless the network plays no other board than its own. Without
    limits, `go` takes as many simulations as the option Simulations says; `go depth D` takes 2 ** (D + 3). Temperature
    is in hundredths, Hash in megabytes, Move Overhead in milliseconds. With `?search=action_value`, `state_value` or
    `policy` behind the checkpoint it plays without search, with `?search=probability&nodes=1000` or `depth` by minimax
    of so many positions, as a run that was trained by minimax does without being told.

    Example: alphagateau uci checkpoints/quickstart
    """

    path: tyro.conf.Positional[str]
    """a checkpoint, or a run: its newest one"""
    platform: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """device kind to run on"""


def write(text: str) -> None:
    """A whole line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(words: Sequence[str]) -> int:
    """Serves until `quit` or the end of input."""
    arguments, lines_in = parse(Arguments, words, "uci"), open_input("uci")
    from alphagateau.distributed.mesh import choose_platform
    from alphagateau.play.asked_players import find_player
    from alphagateau.play.uci import serve
    from alphagateau.runs.checkpoint import WEIGHTS, verify

    choose_platform(arguments.platform)
    use_compilation_cache()
    found = find_player(arguments.path)
    verify(found, WEIGHTS)
    try:
        thread = serve(found, lines_in, write)
    except KeyboardInterrupt:
        os._exit(0)
    if thread.is_alive():  # compiling: nothing else would end it
        os._exit(0)
    return 0
