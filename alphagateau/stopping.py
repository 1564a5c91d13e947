"""When a run is asked to stop: signals and deadlines in, one reason out."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)  # SIGUSR1: Slurm's notice before the time limit


class StopRequest:
    """Says why to stop, once somebody asked; a second signal ends the process at once."""

    def __init__(self, seconds: float | None = None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._seconds = seconds
        self._signal: signal.Signals | None = None

    @property
    def reason(self) -> str | None:
        """None: go on."""
        if self._signal is not None:
            return self._signal.name
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return f"the time given ({self._seconds:g} s) is over"
        return None

    def _hear(self, number: int, frame) -> None:
        del frame
        if self._signal is not None:
            os._exit(128 + number)
        self._signal = signal.Signals(number)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes the signals for the length of the block."""
        before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


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
