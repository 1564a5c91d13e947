"""Serves a page to play against checkpoints and to see their evaluations."""

import dataclasses
import os
import socket
from typing import Annotated

import tyro

from alphagateau.cli.arguments import UsageError, number
from alphagateau.cli.compilation import use_compilation_cache

HOST = "127.0.0.1"  # this machine alone, without a choice


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play against a network in the browser, and see its evaluations.

    A second checkpoint may play the first. Options follow a checkpoint: `?search=action_value`, `state_value` or
    `policy` plays without search, `?search=probability&nodes=1000` or `depth` by minimax. The page is for this machine
    only; Ctrl-C ends it.

    Example: alphagateau board checkpoints/quickstart
    """

    paths: tyro.conf.Positional[tuple[str, ...]]
    """one or two checkpoints or runs; of a run, its newest checkpoint"""
    port: Annotated[int, number(int, 0, 65535)] = 8642
    """port of the page; 0: any that is free"""


def run(arguments: Arguments) -> int:
    """Serves until it is interrupted."""
    if not 1 <= len(arguments.paths) <= 2:
        raise UsageError(f"board takes one or two checkpoints, got {len(arguments.paths)}")
    use_compilation_cache()
    from alphagateau.networks.trained import load_weights
    from alphagateau.play.board.server import make_server
    from alphagateau.play.opponents import find_player

    players = [find_player(path) for path in arguments.paths]
    for player in players:
        load_weights(player.found, player.found.manifest["game"])  # what cannot play is refused here
    with listen(arguments.port) as listener:
        server = make_server(players, listener)
        print(f"http://{HOST}:{listener.getsockname()[1]}  (Ctrl-C ends it)", flush=True)
        # Nothing has to be saved, and a compilation in progress would not end otherwise.
        server.handle_exit = lambda sig, frame: os._exit(0)
        server.run(sockets=[listener])
    return 0


def listen(port: int) -> socket.socket:
    """A socket that listens at this port. Raises UsageError if another program uses it."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another by --port") from None
