"""Reads text files of other programs, plain or compressed, in the usual encodings, up to a bound.

PGN, EPD, openings, puzzles and tables of results are read by it.
"""

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

MEGABYTES = 1024  # of a file, unpacked, unless an option raises it


class Bounds(NamedTuple):
    """Upper bounds on what is read."""

    file: int  # letters, unpacked
    line: int  # letters
    game: int  # letters of a game of PGN
    hint: str = ""  # how to raise them, at the end of a refusal


class TextFileError(ValueError):
    """A file that cannot be read; one sentence naming it."""


def bounds_of(megabytes: int = MEGABYTES, hint: str = "") -> Bounds:
    """A line or a game may fill a 64th of the file."""
    return Bounds(megabytes * 2**20, megabytes * 2**14, megabytes * 2**14, hint)


BOUNDS = bounds_of()


def _open_zstandard(file: BinaryIO) -> BinaryIO:
    import pyarrow  # takes a while, and most files are plain

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")  # pyright: ignore


OPENERS: dict[bytes, Any] = {  # by the file's first bytes
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstandard,
    **{bytes([first]) + b"\x2a\x4d\x18": _open_zstandard for first in range(0x50, 0x60)},  # skippable, as of pzstd
}
PADDING = {0: None, 0x1A: None}  # what some programs fill a file up with


def read_lines(name: str | os.PathLike[str], bounds: Bounds = BOUNDS) -> Iterator[str]:
    r"""The lines of a file, each with its "\n", or of standard input for "-".

    The text is UTF-16 if it looks so; of other text each line is UTF-8 or else Latin-1. Byte order marks and NULs are
    left out. Raises TextFileError.
    """
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            packed = io.BufferedReader(file)  # pyright: ignore[reportArgumentType]
            yield from _lines(name, io.BufferedReader(_unpacked(name, packed)), bounds)  # pyright: ignore
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise TextFileError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _unpacked(name: object, file: io.BufferedReader) -> BinaryIO:
    first = file.peek(8)
    if first.startswith(b"PK\x03\x04"):
        raise TextFileError(f"{name} is a ZIP archive, expected text: unpack it first")
    opener = next((opener for start, opener in OPENERS.items() if first.startswith(start)), None)
    return opener(file) if opener else file


def _lines(name: object, file: io.BufferedReader, bounds: Bounds) -> Iterator[str]:
    encoding = _encoding(file.peek(256)[:256])
    text = io.TextIOWrapper(file, encoding=encoding, errors="replace")  # a line ends as anywhere
    number, left = 0, bounds.file
    while line := text.readline(bounds.line + 1):
        number, left = number + 1, left - len(line)
        if left < 0:
            raise TextFileError(f"{name} has more than {bounds.file >> 20} MB of text, unpacked{bounds.hint}")
        if len(line) > bounds.line:
            raise TextFileError(
                f"{name}, line {number} has more than {bounds.line:,} letters, expected text{bounds.hint}"
            )
        if encoding == "latin-1" and not line.isascii():
            with suppress(UnicodeDecodeError):  # then it is Latin-1
                line = line.encode("latin-1").decode("utf-8")
        line = line.lstrip("\ufeff") if number == 1 else line
        yield line.translate(PADDING) if "\0" in line or "\x1a" in line else line


def _encoding(first: bytes) -> str:
    """The encoding of text that begins so; UTF-8 and Latin-1 are told apart line by line."""
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    evens, odds = first[::2], first[1::2]
    if len(odds) > 1 and not evens.count(0) and odds.count(0) > len(odds) // 2:
        return "utf-16-le"
    if len(odds) > 1 and not odds.count(0) and evens.count(0) > len(evens) // 2:
        return "utf-16-be"
    return "latin-1"
