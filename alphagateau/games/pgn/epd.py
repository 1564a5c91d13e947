"""Reads positions, one a line, as FEN or EPD with operations."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from alphagateau.games.notation import normalize_fen

OPERAND = re.compile(r'"((?:[^"\\]|\\.)*)"|[^\s;"]+|(?P<end>;)|(?P<open>")')
OUTSIDE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?$)|(?:^|(?<=\s))(?P<comment>#)')  # of a comment: what is quoted


class EpdLine(NamedTuple):
    """A position with its operations."""

    fen: str  # whole
    operations: dict[str, list[str]]  # operands by opcode, without quotes


def text_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, numbered from 1, without the comment that a # begins."""
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        comment = next((found.start() for found in OUTSIDE.finditer(line) if found["comment"]), len(line))
        if text := line[:comment].strip():
            yield number, text


def is_position(text: str) -> bool:
    """Whether a line begins as a FEN does."""
    return "/" in "".join(text.split(maxsplit=1)[:1])


def read_position(text: str) -> EpdLine:
    """A line's position, whose clocks may be fields, operations, or missing. Raises ValueError for an open quote."""
    fields = text.split(maxsplit=4)
    rest = fields.pop() if len(fields) > 4 else ""
    if fields and fields[-1].endswith(";"):
        fields[-1] = fields[-1].rstrip(";")
    clocks = re.match(r"(\d+|-)(?:\s+(\d+|-))?\s*(?=;|\s|$)", rest)
    found = [clock for clock in clocks.groups() if clock] if clocks else []
    operations = _operations(rest[clocks.end() :] if clocks else rest)
    for place, opcode in enumerate(("hmvc", "fmvn")):
        if not clocks and operations.get(opcode):
            found = [*found, *["0", "1"][len(found) : place], operations[opcode][0]]
    return EpdLine(normalize_fen(" ".join([*fields, *found])), operations)


def _operations(text: str) -> dict[str, list[str]]:
    """Operands by opcode."""
    operations: dict[str, list[str]] = {}
    words: list[str] = []
    for found in OPERAND.finditer(f"{text};"):
        if found["open"]:
            raise ValueError(f"{text[found.start() :][:40]!r}: the quote does not end")
        if not found["end"]:
            words.append(found[0] if found[1] is None else re.sub(r"\\(.)", r"\1", found[1]))
        elif words:
            operations.setdefault(words[0], words[1:])
            words = []
    return operations
