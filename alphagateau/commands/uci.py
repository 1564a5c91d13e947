"""Serves a checkpoint as a UCI engine on standard input and output."""

import dataclasses
import os
import signal
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

import tyro

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.streams import open_input

if TYPE_CHECKING:  # imported with JAX, which --help and a typo must not wait for
    from alphagateau.runs.checkpoint import Checkpoint


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play as a UCI engine, for a chess GUI.

    The option UCI_Variant, or UCI_Chess960, chooses the board: chess, unless the network plays its own board only.
    Without limits `go` takes Simulations simulations; `go depth D` takes 2 ** (D + 3). Temperature is in
    hundredths, Hash in megabytes, Move Overhead in milliseconds; UCI_Elo is one of the levels at which the network
    was measured. Options follow the checkpoint: `?search=action_value`, `state_value` or `policy` plays without
    search, `?search=probability&nodes=1000` or `depth` by minimax, the default of runs trained by it.

    Example: alphagateau uci checkpoints/quickstart
    """

    path: tyro.conf.Positional[str]
    """a checkpoint, or a run for its newest one"""
    platform: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """kind of device"""


def checked_lines(found: "Checkpoint", lines: Iterable[str]) -> Iterator[str]:
    """The lines; the weights are read before the first that needs them, so that the greeting waits for nothing.

    Raises CheckpointError for weights that cannot play, which a GUI would only notice by the absence of moves.
    """
    from alphagateau.networks.trained import load_weights

    is_checked = False
    for line in lines:
        if not is_checked and not {"isready", "go", "position", "ucinewgame"}.isdisjoint(line.split()):
            load_weights(found, found.manifest["game"])
            is_checked = True
        yield line


def run(arguments: Arguments) -> int:
    """Serves until `quit` or the end of input."""
    lines_in = open_input("uci")
    from alphagateau.distributed.mesh import choose_platform
    from alphagateau.play.opponents import find_player
    from alphagateau.play.uci.engine import serve

    choose_platform(arguments.platform)
    use_compilation_cache()
    player = find_player(arguments.path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = serve(player, checked_lines(player.found, lines_in), partial(print, flush=True))
    except KeyboardInterrupt:
        os._exit(0)
    if thread.is_alive():  # compiling: nothing else would end it
        os._exit(0)
    return 0
