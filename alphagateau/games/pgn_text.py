"""The text of PGN in, its games out one by one as they are written: tags, moves of the main line, what is said of them.

It takes what the programs of others write: comments over many lines and with tags in them, variations within
variations, NAGs and !?, numbers with any dots or none, lines that a % or a ; opens, games without empty lines between
them, without results or without tags. By hand because python-chess says neither at which line a move stands nor that it
skipped one that it could not read, and takes two games without an empty line between them for one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

NAME = r"[A-Za-z0-9][A-Za-z0-9_+#=:-]*"
STRICT_TAGS = re.compile(rf'\s*(?:\[\s*{NAME}\s+"(?:[^"\\]|\\.)*"\s*\]\s*)+')
STRICT_TAG = re.compile(rf'\[\s*({NAME})\s+"((?:[^"\\]|\\.)*)"\s*\]')
LOOSE_TAG = re.compile(rf'\s*\[\s*({NAME})\s+"(.*)"\s*\]\s*')  # with quotes in its value
DRAW = "1/2-1/2"
MAX_NAG = 255
MAX_MOVES = 10_000  # of a game; what has more is none
TOKEN = re.compile(
    r"""(?P<comment>\{)
    |(?P<rest>;)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<nag>\$\d+|[!?]+)
    |(?P<result>(?:1-0|0-1|1/2(?:-1/2)?|½-½|\*)(?![^\s(){};]))
    |(?P<skip>e\.?p\.?(?!\w)|-/?\+(?=[\s(){};]|$)|<[^>]*>|\}|[^\w\s(){};$!?*<-][^\w\s(){};$!?*<]*(?=\s|$))
    |(?P<number>\d+\s*[.…]+|\d+(?=[\s(){};]|$)|[.…]+)
    |(?P<move>[^\s(){};$!?]+)""",
    re.VERBOSE,
)
GLYPHS = {"!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6}  # to NAGs
DASHES = str.maketrans("–—−", "---")


@dataclass
class WrittenMove:
    """A move of the main line."""

    text: str
    line: int  # of the file, from 1
    comment: str = ""
    nag: int = 0  # the first


@dataclass
class WrittenGame:
    """A game as it is written; nothing of it has been checked against rules."""

    number: int  # in the file, from 1
    line: int  # where it begins
    tags: dict[str, str] = field(default_factory=dict)
    moves: list[WrittenMove] = field(default_factory=list)
    result: str = ""  # after the moves; "": none
    fault: str = ""  # why it cannot be read to its end, in one sentence

    @property
    def is_empty(self) -> bool:
        return not (self.tags or self.moves or self.result or self.fault)


@dataclass
class _Reader:
    """Where the reading stands."""

    game: WrittenGame
    depth: int = 0  # of variations
    comment: int = 0  # the line where the open comment began; 0: there is none
    text: str = ""  # of the open comment
    after_empty: bool = True  # whether the line before was empty


def read_games(lines: Iterable[str]) -> Iterator[WrittenGame]:
    """The games of PGN text; a game is given out as soon as the next begins, so a file of any size may stream."""
    reader = _Reader(WrittenGame(1, 1))
    for number, line in enumerate(lines, 1):
        line = line.lstrip("\ufeff") if number == 1 else line
        yield from _read_line(reader, line.rstrip("\r\n"), number)
        reader.after_empty = not line.strip()
    yield from _next_game(reader, 0)


def _read_line(reader: _Reader, line: str, number: int) -> Iterator[WrittenGame]:
    is_open = reader.comment or reader.depth
    if is_open and not (reader.after_empty and line.startswith('[Event "')):
        yield from _read_moves(reader, line, number)
    elif line.lstrip().startswith("["):
        if is_open:
            yield from _next_game(reader, number)
        yield from _read_tags(reader, line, number)
    elif not line.startswith("%"):
        yield from _read_moves(reader, line, number)


def _next_game(reader: _Reader, line: int) -> Iterator[WrittenGame]:
    """The game that has ended, if it was one; the next begins at `line`."""
    game = reader.game
    if reader.comment:
        game.fault = game.fault or f"the comment of line {reader.comment} does not end: expected a }}"
    elif reader.depth:
        game.fault = game.fault or "a variation does not end: expected a )"
    reader.depth = reader.comment = 0
    if not game.is_empty:
        yield game
    reader.game = WrittenGame(game.number + (not game.is_empty), line)


def _read_tags(reader: _Reader, line: str, number: int) -> Iterator[WrittenGame]:
    if STRICT_TAGS.fullmatch(line):
        found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in STRICT_TAG.findall(line)}
    else:
        loose = LOOSE_TAG.fullmatch(line)
        found = {loose[1]: loose[2]} if loose else {}
    game = reader.game
    if game.moves or game.result or set(found) & set(game.tags):
        yield from _next_game(reader, number)
    if reader.game.is_empty:
        reader.game.line = number
    reader.game.tags |= found
    if not found:
        fault = f'line {number}, {line.strip()[:40]!r}, is no tag: expected one such as [White "A name"]'
        reader.game.fault = reader.game.fault or fault


def _read_moves(reader: _Reader, line: str, number: int) -> Iterator[WrittenGame]:
    """A line of moves, or of a comment that goes on."""
    place = 0
    while True:
        if reader.comment:
            end = line.find("}", place)
            reader.text += (line[place:] if end < 0 else line[place:end]) + " "
            if end < 0:
                return
            _add_comment(reader)
            place = end + 1
        token = TOKEN.search(line, place)
        if token is None:
            return
        place = token.end()
        kind, text = str(token.lastgroup), token[0].translate(DASHES)
        if kind == "comment":
            reader.comment, reader.text = number, ""
        elif kind == "rest":
            return
        elif kind in ("open", "close"):
            reader.depth = max(0, reader.depth + (1 if kind == "open" else -1))
        elif not reader.depth and kind != "skip":
            if _begins_game(reader, kind, text):
                yield from _next_game(reader, number)
            _take(reader.game, kind, text, number)


def _begins_game(reader: _Reader, kind: str, text: str) -> bool:
    """Whether a token is of another game: after a result, or where the numbers begin anew after an empty line."""
    game = reader.game
    is_anew = reader.after_empty and kind == "number" and re.fullmatch(r"1\s*\.?", text) is not None
    return bool(game.result or (is_anew and game.moves))


def _take(game: WrittenGame, kind: str, text: str, number: int) -> None:
    if game.is_empty:
        game.line = number
    if kind == "result":
        game.result = text if text in ("1-0", "0-1", "*") else DRAW
    elif kind == "move" and len(game.moves) == MAX_MOVES:
        game.fault = game.fault or f"it has more than {MAX_MOVES} moves: expected a game"
    elif kind == "move":
        game.moves.append(WrittenMove(text, number))
    elif kind == "nag":
        nag = GLYPHS.get(text, 0) if text[0] != "$" else int(text[1:5])
        if nag > MAX_NAG:
            game.fault = game.fault or f"line {number}, {text[:20]!r}: expected $0 to ${MAX_NAG}"
        elif game.moves and not game.moves[-1].nag:
            game.moves[-1].nag = nag


def _add_comment(reader: _Reader) -> None:
    """The comment that has ended, to the move before it."""
    reader.comment = 0
    moves = reader.game.moves
    if moves and not reader.depth:
        moves[-1].comment = " ".join(f"{moves[-1].comment} {reader.text}".split())
