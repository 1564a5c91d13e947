"""How far long work is in, a line on standard error now and then out."""

import sys
import time
from collections.abc import Callable

TELL_SECONDS = 10


def make_reporter(total: int, what: str, name: str = "") -> Callable[[int], None]:
    """Called with how many of `total` are done."""
    last = time.monotonic()

    def tell(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= TELL_SECONDS:
            last = time.monotonic()
            print(f"{name}{': ' if name else ''}{done:,} of {total:,} {what}", file=sys.stderr)

    return tell
