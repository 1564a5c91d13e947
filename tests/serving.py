"""The board's server in a thread, for tests that ask it over a socket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from alphagateau.commands.board import listen
from alphagateau.play.board.server import make_server
from alphagateau.play.opponents import player_of
from alphagateau.runs.checkpoint import Checkpoint


@contextmanager
def serving(found: list[Checkpoint]) -> Iterator[int]:
    """The port of a server in a thread."""
    with listen(0) as listener:
        server = make_server(list(map(player_of, found)), listener)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=60)
            assert not thread.is_alive()
