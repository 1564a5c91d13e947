"""`alphagateau board`: one or two checkpoints in, a page to play against them and to see what they think."""

import dataclasses
import os
import socket
from collections.abc import Sequence

import tyro

from alphagateau.cli.arguments import UsageError, parse
from alphagateau.cli.compilation import use_compilation_cache

HOST = "127.0.0.1"  # nobody else's business: there is no other choice


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play against a network in the browser, and see what it thinks.

    A second checkpoint may play the first. With `?search=action_value`, `state_value` or `policy` behind it one plays
    without search, with `?search=probability&nodes=1000` or `depth` by minimax. The page is for this machine only;
    Ctrl-C ends it.

    Example: alphagateau board checkpoints/quickstart
    """

    paths: tyro.conf.Positional[tuple[str, ...]]
    """one or two of: a checkpoint, or a run: its newest one"""
    port: int = 8642
    """where the page is; 0: any port that is free"""


def run(words: Sequence[str]) -> int:
    """Serves until it is interrupted."""
    arguments = parse(Arguments, words, "board")
    if not 1 <= len(arguments.paths) <= 2:
        raise UsageError(f"board takes one or two checkpoints, got {len(arguments.paths)}")
    if arguments.port > 65535:
        raise UsageError(f"--port must be 0 to 65535, got {arguments.port}")
    use_compilation_cache()
    from alphagateau.networks.trained import load_weights
    from alphagateau.play.asked_players import find_player
    from alphagateau.play.board.server import make_server

    found = [find_player(path) for path in arguments.paths]
    for checkpoint in found:
        load_weights(checkpoint, checkpoint.manifest["game"])  # what cannot play is refused here
    with listen(arguments.port) as listener:
        server = make_server(found, listener)
        print(f"http://{HOST}:{listener.getsockname()[1]}  (Ctrl-C ends it)", flush=True)
        # Nothing is kept, so that there is nothing to finish; and a network may be compiling, which nothing else ends.
        server.handle_exit = lambda sig, frame: os._exit(0)
        server.run(sockets=[listener])
    return 0


def listen(port: int) -> socket.socket:
    """A socket that listens at this port of this machine. Raises UsageError if another program has it."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"port {port} cannot be had ({error.strerror}): choose another by --port") from None
