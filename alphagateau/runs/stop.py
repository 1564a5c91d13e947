"""Requests to stop a run, by signals, deadlines or budgets."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# SIGUSR1 is Slurm's notice before the time limit; Windows has no such signal.
SIGNALS: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGUSR1") if hasattr(signal, name)
)


class StopRequest:
    """The reason to stop, once there is one; a second signal ends the process at once.

    Args:
        seconds: from now on, after which to stop.
        ask: a further reason, or None.
    """

    def __init__(self, seconds: float | None = None, ask: Callable[[], str | None] = lambda: None) -> None:
        self.ask = ask
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._seconds = seconds
        self._signal: signal.Signals | None = None

    @property
    def reason(self) -> str | None:
        """A few words, or None: go on."""
        if self._signal is not None:
            return self._signal.name
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return f"the time given ({self._seconds:g} s) is over"
        return self.ask()

    def _receive(self, numbers: socket.socket) -> None:
        """Takes the signals as they come, until the other end is closed."""
        while number := numbers.recv(1):
            if number[0] not in SIGNALS:
                continue
            is_seen = sys.stderr is not None and sys.stderr.isatty()
            if self._signal is not None:
                if is_seen:
                    os.write(2, b"\x1b[?25h\n")  # the cursor, which a bar hides
                os._exit(128 + number[0])
            self._signal = signal.Signals(number[0])
            if is_seen:  # what is in progress may take a minute
                print("stopping after what is in progress; a second Ctrl-C ends it at once", file=sys.stderr)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes the signals for the length of the block.

        A thread receives them, as a handler of Python's would wait for the device call or compilation in progress. By
        sockets, as Windows wakes nothing else up.
        """
        numbers, waker = socket.socketpair()
        waker.setblocking(False)
        thread = threading.Thread(target=self._receive, args=(numbers,), daemon=True)
        thread.start()
        waker_before = signal.set_wakeup_fd(waker.fileno())
        before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(waker_before)
            waker.close()
            thread.join()
            numbers.close()


def parse_duration(text: str) -> float:
    """Seconds of "90", "45s", "30m", "3h" or "2d". Raises ValueError in one sentence."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is not a duration: expected a number with s, m, h or d, such as 3h")
    return seconds
