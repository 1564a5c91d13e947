"""Closes connections of the board's server whose client sends no whole request, or does not read the answer."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 64
PATIENCE = 10.0  # seconds for a whole request, and for a full buffer to be read


class BoundedConnection(H11Protocol):
    """uvicorn's connection, which waits for its client PATIENCE seconds at most.

    uvicorn itself bounds only the time between two requests. Where MAX_CONNECTIONS are open, a new one takes the place
    of the one that has waited longest for a request, so that no number of half-sent requests keeps a page from loading.
    """

    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) >= MAX_CONNECTIONS:
            self._close_longest_waiting()
        self._set_timer()

    def handle_events(self) -> None:
        super().handle_events()
        self._set_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._set_timer()

    def _close_longest_waiting(self) -> None:
        waiting = [(c.timer.when(), c) for c in self.connections if isinstance(c, BoundedConnection) and c.timer]
        if waiting:
            _, longest = min(waiting, key=lambda pair: pair[0])
            self.connections.discard(longest)  # at once: several may be accepted before asyncio reports its loss
            longest.transport.abort()

    def _set_timer(self) -> None:
        """Runs while the server waits for its client; a part of a request does not start it anew."""
        is_waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) or self.flow.write_paused
        if is_waiting and self.timer is None:
            self.timer = self.loop.call_later(PATIENCE, self.transport.abort)
        elif not is_waiting and self.timer:
            self.timer.cancel()
            self.timer = None
