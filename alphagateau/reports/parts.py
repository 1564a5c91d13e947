"""Turns plain data into the parts of one self-contained HTML page; every text is escaped on its way in."""

import base64
import hashlib
import html
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple, NewType

Html = NewType("Html", str)  # markup in which every text from outside went through `text`

UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
UNKNOWN = "–"
MAX_NUMBER = 1e100  # what is larger is not shown, nor drawn
MAX_CROSS_PLAYERS = 40  # a wider table is not read


class Section(NamedTuple):
    """A part of a page under a heading of its own."""

    title: str
    body: Html


class Cell(NamedTuple):
    """A table cell: shown as `text`, sorted by `order` (None: by text; NaN: last), `hint` on hover."""

    text: str
    order: float | None = None
    hint: str = ""
    tone: str = ""  # "good", "bad" or none


def text(value: object) -> Html:
    """A value as text, fit for an element or a quoted attribute; U+FFFD for characters that HTML forbids."""
    return Html(html.escape(UNSHOWABLE.sub("\ufffd", str(value))))


def breakable(value: object) -> Html:
    """Text that a narrow column may also break after a slash or an underscore that is not near either end."""
    return Html(re.sub("(?<=.{10}[/_])(?=.{4})", "<wbr>", text(value)))


def number(value: float) -> str:
    """Four digits or all of an integer: 12,345, 0.1234, 1.2e-05; UNKNOWN if it is not finite."""
    if not abs(value) < MAX_NUMBER:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def page(title: str, sections: Sequence[Section], subtitle: str = "") -> str:
    """The whole page; sections with an empty body are left out. It may hold one game viewer."""
    shown = [section for section in sections if section.body]
    links = "".join(f'<a href="#s{i}">{text(s.title)}</a>' for i, s in enumerate(shown))
    body = "".join(f'<section id="s{i}"><h2>{text(s.title)}</h2>{s.body}</section>' for i, s in enumerate(shown))
    script = _static("page.js")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{_static('page.css')}</style></head><body>"
        f"<header><h1>{text(title)}</h1><p>{text(subtitle)}</p><nav>{links}</nav></header>"
        f"<main>{body}</main><footer>Written by alphagateau.</footer>"
        f"<script>{script}</script></body></html>\n"
    )


def _policy(script: str) -> str:
    """Content security policy: nothing from the network, no script but this one, were an escape missing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _static(name: str) -> str:
    return resources.files("alphagateau.reports").joinpath(name).read_text(encoding="utf-8")


def join(*parts: Html) -> Html:
    """Parts one after another."""
    return Html("".join(parts))


def paragraph(value: object) -> Html:
    return Html(f"<p>{text(value)}</p>")


def folded(title: str, body: Html) -> Html:
    """A part that a click unfolds; on paper it is unfolded."""
    return Html(f"<details><summary>{text(title)}</summary>{body}</details>")


def notes(sentences: Iterable[str]) -> Html:
    """A list of sentences; nothing if there are none."""
    items = "".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
    return Html(f'<ul class="notes">{items}</ul>' if items else "")


def key_values(values: Mapping[str, Any]) -> Html:
    """Names and what they are; a mapping within has its names joined by dots, a list its items by commas."""
    items = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in _flatten(values))
    return Html(f'<dl class="facts">{items}</dl>' if items else "")


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", ", ".join(map(_shown, value)) or UNKNOWN
        else:
            yield f"{prefix}{key}", _shown(value)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return UNKNOWN if value is None or value == "" else str(value)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Html:
    """A table that a click on its header sorts. Cells are Cell, str, int, float or None; numbers go right.

    Raises ValueError for a row that is not as long as the header.
    """
    lines = []
    for row in rows:
        cells = [_cell(value) for value in row]
        if len(cells) != len(header):
            raise ValueError(f"a table row has {len(cells)} cells: expected {len(header)}")
        lines.append([_td(cell) for cell in cells])
    heads = "".join(f'<th scope="col"><button>{text(name)}</button></th>' for name in header)
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return _scrolled(f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>')


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell(UNKNOWN, math.nan)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(_shown(value), value if is_number else None)


def _td(cell: Cell) -> str:
    order = "" if cell.order is None else f' data-order="{float(cell.order):.9g}"'
    hint = f' title="{text(cell.hint)}"' if cell.hint else ""
    tone = f' class="{text(cell.tone)}"' if cell.tone else ""
    return f"<td{order}{hint}{tone}>{breakable(cell.text)}</td>"


def _scrolled(markup: str) -> Html:
    """A wide table scrolls by itself, not with the page."""
    return Html(f'<div class="scroll" tabindex="0">{markup}</div>')


def cross_table(players: Sequence[str], pairs: Iterable[tuple[str, str, int, int, int]]) -> Html:
    """Points of each player (row) against each other (column), the first MAX_CROSS_PLAYERS of `players`.

    `pairs`: rows that begin with player, opponent, wins, draws, losses; rows of the same pair add up.
    """
    shown = players[:MAX_CROSS_PLAYERS]
    counts: dict[tuple[str, str], tuple[int, int, int]] = {}
    for player, opponent, wins, draws, losses, *_ in pairs:
        sides = ((player, opponent, wins, losses), (opponent, player, losses, wins))
        for one, other, won, lost in sides:
            so_far = counts.get((one, other), (0, 0, 0))
            counts[one, other] = (so_far[0] + won, so_far[1] + draws, so_far[2] + lost)
    heads = "".join(f'<th scope="col" title="{text(name)}">{i}</th>' for i, name in enumerate(shown, 1))
    body = "".join(
        f'<tr><th scope="row" title="{text(player)}"><span>{i}</span> {text(player)}</th>'
        + "".join(_cross_cell(player, other, counts.get((player, other))) for other in shown)
        + "</tr>"
        for i, player in enumerate(shown, 1)
    )
    left_out = len(players) - len(shown)
    more = paragraph(f"The first {len(shown)} of {len(players)} players.") if left_out else Html("")
    head = f"<thead><tr><th></th>{heads}</tr></thead>"
    return join(_scrolled(f'<table class="cross">{head}<tbody>{body}</tbody></table>'), more)


def _cross_cell(player: str, opponent: str, counts: tuple[int, int, int] | None) -> str:
    if player == opponent:
        return '<td class="self"></td>'
    if counts is None or not sum(counts):
        return "<td></td>"
    wins, draws, losses = counts
    games, points = sum(counts), wins + draws / 2
    hint = f"{player} against {opponent}: {wins} won, {draws} drawn, {losses} lost"
    tone, strength = "good" if 2 * points >= games else "bad", abs(2 * points / games - 1)
    return (
        f'<td class="{tone}" style="--strength:{strength:.2f}" title="{text(hint)}">'
        f"{points:g}<small>/{games}</small></td>"
    )
