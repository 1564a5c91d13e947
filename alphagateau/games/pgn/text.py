"""Parses PGN text leniently, game by game as written: tags, moves of the main line, their comments and NAGs.

It accepts what other programs write: nested variations, numbers with any dots or none, lines that a % or a ; opens,
games without empty lines between them, results or tags, tags in any case, indented, unquoted or several on a line. By
hand because python-chess reports neither the line of a move nor a move that it skipped as unreadable, and joins two
games without an empty line between them. Time is linear in any text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from alphagateau.games.pgn.text_files import BOUNDS, Bounds

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
WHITE_SCORES = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}  # of those that are known
NAME = r"[A-Za-z0-9][A-Za-z0-9_+#=:-]*"
TAG = re.compile(rf'\s*\[\s*({NAME})\s*"((?:[^"\\]|\\.)*)"\s*\]')
LOOSE_TAGS = (
    re.compile(rf'\s*\[\s*({NAME})\s*"(.*?)"\s*\]'),  # with quotes in its value
    re.compile(rf'\s*\[\s*({NAME})(?:\s+([^"\[\]]*))?\]'),  # without any
)
TAG_NAMES = {  # that anything depends on; programs write some of them in another case
    name.lower(): name
    for name in (
        *("Event", "Site", "Date", "Round", "White", "Black", "Result"),
        *("FEN", "SetUp", "Variant", "Termination", "Annotator"),
    )
}
EVENT = re.compile(r'\s*\[\s*Event\s+"', re.IGNORECASE)
FIRST_MOVE = re.compile(r"\s*1[\s.](?!\s*[.…])")
MAX_NAG, MAX_JUDGEMENT = 255, 6  # $1 to $6 judge a move, others the position or the game
MAX_INDENT = 256
MAX_MOVES = 10_000  # of a game; what has more is none
GLYPHS = {"!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6, "‼": 3, "⁇": 4, "⁉": 5, "⁈": 6}  # to NAGs
WORDS = {"N": 146, "TN": 146, "D": 220}  # to NAGs: a novelty, a diagram
PASSED_OVER = ("e.p.", "ep", "e.p", "ep.", "ch", "dbl", "dis", "mate", "RR")  # behind a move
TOKEN = re.compile(
    r"""\s*(?:
    (?P<comment>\{)
    |(?P<rest>;)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<bracket>\[)
    |(?P<angle><)
    |(?P<nag>\$\d+|[!?‼⁇⁉⁈]+)
    |(?P<word>[^\s(){};$!?‼⁇⁉⁈<>\[\]]+(?:(?<=[\d=])\([QRBNqrbn]\)[+#]*)?)
    |(?P<stray>\S)
    )""",
    re.VERBOSE,
)
BRACKETED = re.compile(r"\s*\[[^\[\]]*\]")
NUMBER = re.compile(r"\d+[.…]+|[.…]+|(?!00+$)\d+$")
DASHES = str.maketrans("‐‑‒–—−", "------")


@dataclass
class WrittenMove:
    """A move of the main line."""

    text: str
    line: int  # of the file, from 1
    end: int  # in the game's text, behind the move and what is attached to it
    comments: list[str] = field(default_factory=list)
    nag: int = 0  # the first
    nag_start: int = 0  # in the game's text
    nag_end: int = 0

    @property
    def comment(self) -> str:
        return " ".join(" ".join(self.comments).split())


@dataclass
class WrittenGame:
    """A game as it is written, not checked against rules."""

    number: int  # in the file, from 1
    line: int  # where it begins
    tags: dict[str, str] = field(default_factory=dict)
    moves: list[WrittenMove] = field(default_factory=list)
    result: str = ""  # after the moves; "": none
    fault: str = ""  # why it cannot be read to its end, in one sentence
    text: str = ""  # all of it, if it was to be kept
    tag_places: dict[str, tuple[int, int]] = field(default_factory=dict)  # in the text
    comment_places: list[tuple[int, int]] = field(default_factory=list)  # of the main line's, without their braces

    @property
    def is_empty(self) -> bool:
        return not (self.tags or self.moves or self.result or self.fault)


def result_of(written: WrittenGame) -> str:
    """The result of the tag, or of what ends the moves. Raises ValueError if they cannot be, or differ."""
    tag, ended = written.tags.get("Result", "").strip(), written.result
    tagged = _result(tag) or tag
    if tagged not in (*RESULTS, "?", ""):
        raise ValueError(f"result {tag[:20]!r}: expected one of {', '.join(RESULTS)}")
    if tagged in ("?", "", "*") or ended in ("", "*"):
        return next((result for result in (tagged, ended) if result in RESULTS[:3]), "*")
    if tagged != ended:
        raise ValueError(f"result {tagged!r} in its tag and {ended!r} after its moves: expected the same")
    return tagged


def _result(text: str) -> str:
    """One of RESULTS however it is written; "": it is none."""
    text = "".join(text.translate(DASHES).split()).replace("½", "1/2").replace("0.5", "1/2")
    text = "1/2-1/2" if text == "1/2" else text
    return text if text in RESULTS else ""


@lru_cache(maxsize=2**14)
def _kind(word: str) -> tuple[str, str]:
    """(result, move, nag, number or skip; the text of it behind a move number)."""
    if result := _result(word):
        return "result", result
    number = NUMBER.match(word)
    rest = word[number.end() :] if number else word
    if not rest:
        return "number", word
    if number and (result := _result(rest)):
        return "result", result
    if rest in WORDS:
        return "nag", rest
    if rest in PASSED_OVER or not (rest in ("--", "@@@@") or any(map(str.isalnum, rest))):
        return "skip", rest
    return "move", rest.translate(DASHES)


def read_games(lines: Iterable[str], bounds: Bounds = BOUNDS, keep_text: bool = False) -> Iterator[WrittenGame]:
    """Yields the games of PGN text, each as soon as the next begins, so a file of any size may stream."""
    reader = _Reader(bounds, keep_text)
    for line in lines:
        yield from reader.read(line.rstrip("\r\n"))
    yield from reader.end()


class _Tag(NamedTuple):
    """A tag, or brackets that hold none."""

    name: str  # "": it is passed over
    value: str
    end: int  # in the line
    is_wrong: bool = False


def _tag(line: str, start: int, in_tags: bool) -> _Tag:
    """Parses the [ at `start`; among moves a tag must begin a line, or be spelt as in the standard."""
    if found := TAG.match(line, start):
        return _Tag(_tag_name(found[1]), re.sub(r'\\(["\\])', r"\1", found[2]), found.end())
    is_first = start <= MAX_INDENT and not line[:start].strip()
    if is_first or in_tags:
        found = next((found for tag in LOOSE_TAGS if (found := tag.match(line, start))), None)
        if found:
            return _Tag(_tag_name(found[1]), (found[2] or "").strip().strip("“”„"), found.end())
    if is_first and not line.startswith("[%", start):
        return _Tag("", "", len(line), is_wrong=True)
    passed = BRACKETED.match(line, start)
    return _Tag("", "", passed.end() if passed else start + 1)


def _tag_name(name: str) -> str:
    return TAG_NAMES.get(name.lower(), name)


class _Reader:
    """The parser's state between lines."""

    def __init__(self, bounds: Bounds, keep_text: bool) -> None:
        self.bounds, self.keep_text = bounds, keep_text
        self.game = WrittenGame(1, 1)
        self.depth = 0  # of variations
        self.comment = 0  # the line where the open comment began; 0: there is none
        self.comment_start = 0  # in the game's text
        self.parts: list[str] = []  # of the open comment
        self.after_empty = True  # whether the line before was empty
        self.number, self.line, self.column = 0, "", 0  # of the file; the column where this game begins in the line
        self.length, self.kept = 0, []  # of the game's text before this line

    def read(self, line: str) -> Iterator[WrittenGame]:
        """Yields the games that end in a line."""
        self.number, self.line, self.column = self.number + 1, line, 0
        if self._is_anew(line):
            yield from self._next(0)
        if self.comment or not line.startswith("%"):
            yield from self._tokens(line)
        if self.keep_text and not self._is_full():
            self.kept.append(line[self.column :] + "\n")
        self.length = self._place(len(line)) + 1
        self.after_empty = not line.strip()

    def end(self) -> Iterator[WrittenGame]:
        self.line, self.column = "", 0
        yield from self._next(0)

    def _is_anew(self, line: str) -> bool:
        """Whether numbers begin anew behind an empty line, or tags do though a comment or a variation has no end."""
        begins = EVENT if self.comment else TAG if self.depth else FIRST_MOVE if self.game.moves else None
        return self.after_empty and begins is not None and begins.match(line) is not None

    def _place(self, column: int) -> int:
        """In the game's text."""
        return self.length + column - self.column

    def _is_full(self) -> bool:
        if self.length <= self.bounds.game:
            return False
        self.game.fault = self.game.fault or (
            f"it has more than {self.bounds.game:,} letters, expected a game{self.bounds.hint}"
        )
        return True

    def _next(self, column: int) -> Iterator[WrittenGame]:
        """Yields the game that has ended, if it was one; the next begins in this column."""
        game = self.game
        if self.comment:
            game.fault = game.fault or f"the comment of line {self.comment} does not end: expected a }}"
        elif self.depth:
            game.fault = game.fault or "a variation does not end: expected a )"
        self.depth, self.comment, self.parts = 0, 0, []
        if game.is_empty:
            return
        game.text = "".join([*self.kept, self.line[self.column : column]]) if self.keep_text else ""
        self.column, self.length, self.kept = column, 0, []
        self.game = WrittenGame(game.number + 1, self.number)
        yield game

    def _tokens(self, line: str) -> Iterator[WrittenGame]:
        place, last_angle = self._comment_part(line, 0), line.rfind(">")
        while token := TOKEN.match(line, place):
            kind = str(token.lastgroup)
            start, place = token.span(kind)
            if kind == "rest":
                return
            if kind == "comment":
                self.comment, self.comment_start = self.number, self._place(place)
                place = self._comment_part(line, place)
            elif kind in ("open", "close"):
                self.depth = max(0, self.depth + (1 if kind == "open" else -1))
            elif kind == "angle" and start < last_angle:
                place = line.find(">", place) + 1
            elif self.depth:
                continue
            elif kind == "bracket":
                is_behind = bool(self.game.moves or self.game.result)
                tag = _tag(line, start, not is_behind)
                if tag.name == next(iter(self.game.tags), None) or (is_behind and (tag.name or tag.is_wrong)):
                    yield from self._next(start)
                place = tag.end
                self._take_tag(tag, start)
            elif kind in ("nag", "word"):
                kind, text = _kind(token[kind]) if kind == "word" else (kind, token[kind])
                result = self.game.result
                if result and (kind in ("move", "number") or (kind == "result" and text != result)):
                    yield from self._next(start)
                self._take(kind, text, start, place)

    def _comment_part(self, line: str, place: int) -> int:
        """Reads an open comment's part of the line; returns the column behind it."""
        if not self.comment:
            return place
        end = line.find("}", place)
        if not self._is_full():
            self.parts.append(line[place:] if end < 0 else line[place:end])
        if end < 0:
            return len(line)
        if not self.depth and not self._is_full():
            if self.game.moves:
                self.game.moves[-1].comments += self.parts
            self.game.comment_places.append((self.comment_start, self._place(end)))
        self.comment, self.parts = 0, []
        return end + 1

    def _take_tag(self, tag: _Tag, start: int) -> None:
        if not (tag.name or tag.is_wrong):
            return
        if self.game.is_empty:
            self.game.line = self.number
        if tag.is_wrong:
            shown = self.line.strip()[:40]
            fault = f'line {self.number}, {shown!r}, is no tag: expected one such as [White "A name"]'
            self.game.fault = self.game.fault or fault
        elif not self._is_full():
            self.game.tags[tag.name] = tag.value
            self.game.tag_places[tag.name] = self._place(start), self._place(tag.end)

    def _take(self, kind: str, text: str, start: int, end: int) -> None:
        game = self.game
        if kind == "skip" or self._is_full():
            return
        if game.is_empty:
            game.line = self.number
        if kind == "result":
            game.result = text
        elif kind == "move" and len(game.moves) == MAX_MOVES:
            game.fault = game.fault or f"it has more than {MAX_MOVES} moves: expected a game"
        elif kind == "move":
            game.moves.append(WrittenMove(text, self.number, self._place(end)))
        elif kind == "nag":
            self._take_nag(text, start, end)

    def _take_nag(self, text: str, start: int, end: int) -> None:
        nag = GLYPHS.get(text, WORDS.get(text, 0)) if text[0] != "$" else int(text[1:5])
        moves = self.game.moves
        if nag > MAX_NAG:
            fault = f"line {self.number}, {text[:20]!r}: expected $0 to ${MAX_NAG}"
            self.game.fault = self.game.fault or fault
        elif moves:
            moves[-1].end = self._place(end)
            if not moves[-1].nag or nag <= MAX_JUDGEMENT < moves[-1].nag:
                moves[-1].nag, moves[-1].nag_start, moves[-1].nag_end = nag, self._place(start), self._place(end)
