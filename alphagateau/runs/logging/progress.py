"""Reports progress on the terminal, and times the phases of an iteration."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from alphagateau.runs.terminal import at_words, printing_visibly, visible

# The metrics in the line of an iteration: a format, then their names.
SHOWN = (
    ("policy {:.3f}", "train/policy_loss"),
    ("value {:.3f}", "train/value_loss"),
    ("entropy {:.2f}", "train/policy_entropy"),
    ("games {:.0f} ({:.0%} drawn)", "selfplay/games", "selfplay/draw_rate"),
    ("{:.0f} moves/s", "selfplay/moves_per_second"),
)
JOULES, COMPILE = "joules", "compile"  # beside the seconds of each phase


class VisibleConsole(Console):
    """rich's console, whose texts are `visible` and no markup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


class Reporter:
    """Reports a run's progress: a live bar on a terminal, and a line an iteration."""

    def __init__(self, is_quiet: bool = False) -> None:
        # The stream of now: while a bar is shown, rich puts one of its own into the place of standard error.
        self.console = VisibleConsole(file=sys.stderr, quiet=is_quiet)
        self._progress: Progress | None = None
        self._task: Any = None

    @contextmanager
    def running(self, done: int, total: int) -> Iterator[None]:
        """Shows `done` of `total` iterations until the block ends."""
        if self.console.quiet or not self.console.is_terminal:
            yield
            return
        # The last, so that a program that is long compiled is no standstill.
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        with Progress(*columns, console=self.console) as progress, printing_visibly():
            self._progress = progress
            self._task = progress.add_task("starting", total=total, completed=done)
            yield
        self._progress = None

    def phase(self, text: str, done: float) -> None:
        """Shows the phase in progress; `done` iterations, in fractions."""
        if self._progress is not None:
            self._progress.update(self._task, description=text, completed=done)

    def say(self, text: str) -> None:
        """One line, wrapped between words where a terminal is narrower."""
        say(text, self.console)

    def iteration(self, iteration: int, total: int, values: Mapping[str, float], left: float) -> None:
        """Prints one line on a finished iteration; `left`: seconds still to go."""
        shown = [text.format(*(values[name] for name in names)) for text, *names in SHOWN if {*names} <= {*values}]
        parts = [f"iteration {iteration}/{total}", *shown, f"{timedelta(seconds=round(left))} left"]
        self.say("  ".join(part.replace(" ", "\xa0") for part in parts))  # a number stays with its unit


class TimeLeft:
    """Estimates the seconds that a run has left, from its iterations after the first, which compiles."""

    def __init__(self, iteration: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._first = clock, iteration + 1
        self._since = iteration, clock()

    def seconds(self, iteration: int, total: int) -> float:
        """Seconds from the end of `iteration` to that of `total`; by the first alone until there is another."""
        (since, began), now = self._since, self._clock()
        if iteration == self._first:
            self._since = iteration, now
        return (now - began) / (iteration - since) * (total - iteration)


class Timer:
    """Seconds spent under each name since the last `take`, those `before` included.

    Those of a name within another are its own alone.

    meter: returns the joules used since its last call; their sum stands under JOULES.
    """

    def __init__(self, before: Mapping[str, float], meter: Callable[[], float] | None = None) -> None:
        self._seconds = dict(before)
        self._meter = meter
        self._within = 0.0  # seconds of the names within the one in progress

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start, before, self._within = time.perf_counter(), self._within, 0.0
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds - self._within
            self._within = before + seconds
            if self._meter is not None:
                self._seconds[JOULES] = self._seconds.get(JOULES, 0.0) + self._meter()

    def take(self) -> dict[str, float]:
        taken, self._seconds = self._seconds, {}
        return taken


def say(text: str, console: VisibleConsole | None = None) -> None:
    """Prints a line on standard output, or on `console`, wrapped between words where a terminal is narrower.

    At a no-break space it is not wrapped, and a space is printed.
    """
    console = console or VisibleConsole()
    shown = at_words(text, console.width) if console.is_terminal else text
    console.print(shown.replace("\xa0", " "), highlight=False, soft_wrap=True)


def print_results(
    title: str,
    columns: Sequence[str | Column],
    rows: Iterable[Sequence[Any] | None],
    width: int = 120,
    *,
    is_narrow: bool = False,
) -> None:
    """Prints a table of results on standard output, as wide as the terminal, or `width` where there is none.

    Args:
        columns: of a name alone, the first is flush left and the others are flush right; if no name is given, the
            table has no header.
        rows: their cells; None is a line between two rows.
        is_narrow: columns are one space apart, without lines.
    """
    named = [Column(c, justify="right" if i else "left") if isinstance(c, str) else c for i, c in enumerate(columns)]
    for column in named:
        column.overflow = "fold"  # an ellipsis would make two runs one
    table = Table(*named, title=title, title_justify="left", show_header=any(column.header for column in named))
    if is_narrow:
        table.box, table.padding = SIMPLE_HEAD, 0
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*map(str, row))
    console = VisibleConsole()
    (console if console.is_terminal else VisibleConsole(width=width)).print(table)


def warn(text: str) -> None:
    """Prints one line on standard error, before any run has a Reporter."""
    print(text, file=sys.stderr)
