"""Carries `stop` and `ponderhit` from the thread that reads them to the one that searches."""

import threading
import time
from dataclasses import dataclass, field


@dataclass(eq=False)
class Signals:
    """Of one `go`."""

    is_endless: bool  # `go infinite` and `go ponder`: no limit counts until `woken`
    is_ponder: bool
    stopped: threading.Event = field(default_factory=threading.Event)  # the answer is due
    woken: threading.Event = field(default_factory=threading.Event)
    hit_at: float = 0.0  # when the player's own clock began to run, by time.monotonic()

    def stop(self) -> None:
        self.stopped.set()
        self.woken.set()

    def hit(self) -> None:
        """The opponent has made the move that was pondered on."""
        if self.is_ponder:
            self.hit_at, self.is_endless = time.monotonic(), False
            self.woken.set()
