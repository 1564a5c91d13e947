"""Turns plain data into the numbers, cells and rows that templates/parts.html draws."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

UNKNOWN = "–"
MAX_NUMBER = 1e100  # what is larger is not shown, nor drawn
IN_LATEX = str.maketrans(
    {c: rf"\{c}" for c in "#$%&_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "±": r"$\pm$"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)
MAX_CROSS_PLAYERS = 40  # a wider table is not read


class Cell(NamedTuple):
    """A table cell: shown as `text`, sorted by `order` (None: by text; NaN: last)."""

    text: str
    order: float | None = None
    tone: str = ""  # "good", "bad" or none


class Table(NamedTuple):
    """A table that a click on its header sorts; cells with an order stand to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class CrossCell(NamedTuple):
    """Points of a player against an opponent; strength: how far from half of them, 0 to 1."""

    points: float
    games: int
    tone: str
    strength: float
    hint: str


class CrossTable(NamedTuple):
    """The points of each player (row) against each other (column); None: they did not meet."""

    players: Sequence[str]
    rows: Sequence[Sequence[CrossCell | None]]
    num_players: int  # those left out counted too


def number(value: float) -> str:
    """Four digits or all of an integer: 12,345, 0.1234, 1.2e-05; UNKNOWN if it is not finite."""
    if not abs(value) < MAX_NUMBER:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.4g}"


def key_values(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """(name, value) as texts; names within a mapping are joined by dots, items of a list by commas."""
    rows = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            rows += key_values(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            rows.append((f"{prefix}{key}", ", ".join(map(_shown, value)) or UNKNOWN))
        else:
            rows.append((f"{prefix}{key}", _shown(value)))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return UNKNOWN if value is None or value == "" else str(value)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table of Cell, str, int, float or None, unknown cells aligned as the rest of their column.

    Raises ValueError for a row that is not as long as the header.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    columns = [column for _, *column in zip(header, *cells, strict=True)]
    is_number = [any(cell.order is not None and math.isfinite(cell.order) for cell in column) for column in columns]
    rows = [[c if n else c._replace(order=None) for c, n in zip(row, is_number, strict=True)] for row in cells]
    return Table(header, rows)


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell(UNKNOWN, math.nan)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(_shown(value))
    return Cell(_shown(value), value if abs(value) < MAX_NUMBER else math.nan)


def in_form(value: float, form: str) -> str:
    """A number in a format such as "+.0f", what rounds to 0 without a sign of its own: never -0."""
    plain = form.removeprefix("+")
    return f"{value:{'+' * (plain != form)}z{plain}}"


def number_cell(value: float, form: str, tone: str = "") -> Cell:
    """A number in a format of its own; UNKNOWN, and sorted last, if it is not finite."""
    return Cell(in_form(value, form) if math.isfinite(value) else UNKNOWN, value, tone)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows, the header first, whose cells are Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]])


def latex_table(rows: Sequence[Sequence[str]]) -> str:
    """Plain texts, the header first, as a tabular of the package booktabs; all but the second column flush right."""
    header, *lines = (" & ".join(cell.translate(IN_LATEX) for cell in row) + r" \\" for row in rows)
    begin = rf"\begin{{tabular}}{{rl{'r' * (len(rows[0]) - 2)}}}"
    return "\n".join([begin, r"\toprule", header, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}"])


def in_markdown(text: str) -> str:
    """A plain text as Markdown of a table's cell."""
    return re.sub(r"([\\`*$&<>\[\]|~]|\b_|_\b)", r"\\\1", text)


def cross_table(players: Sequence[str], pairs: Iterable[Sequence[Any]]) -> CrossTable:
    """Points of the first MAX_CROSS_PLAYERS of `players` against one another.

    `pairs`: rows that begin with player, opponent, wins, draws, losses; rows of the same pair add up.
    """
    shown = players[:MAX_CROSS_PLAYERS]
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for player, opponent, wins, draws, losses, *_ in pairs:
        counts[player, opponent].update(won=wins, drawn=draws, lost=losses)
        counts[opponent, player].update(won=losses, drawn=draws, lost=wins)
    rows = [[_cross_cell(player, other, counts[player, other]) for other in shown] for player in shown]
    return CrossTable(shown, rows, len(players))


def _cross_cell(player: str, opponent: str, counts: Counter[str]) -> CrossCell | None:
    games = counts.total()
    if not games:
        return None
    points = counts["won"] + counts["drawn"] / 2
    hint = f"{player} against {opponent}: {counts['won']} won, {counts['drawn']} drawn, {counts['lost']} lost"
    tone = "good" if 2 * points >= games else "bad"
    return CrossCell(points, games, tone, abs(2 * points / games - 1), hint)
