"""A file of PGN in, its lines out as they are needed: plain or compressed, UTF-8 or Latin-1."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

REFUSED = {
    b"PK\x03\x04": "a ZIP archive, expected PGN: unpack it first",
    b"\xff\xfe": "UTF-16, expected UTF-8 or Latin-1",
    b"\xfe\xff": "UTF-16, expected UTF-8 or Latin-1",
}


def _open_zstandard(file: BinaryIO) -> BinaryIO:
    import pyarrow  # takes a while, and most files are plain

    return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(file), "zstd"))  # pyright: ignore


OPENERS = {  # by the file's first bytes
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstandard,
}


class PgnFileError(ValueError):
    """A file that cannot be read; one sentence naming it."""


def read_lines(name: str) -> Iterator[str]:
    """The lines of a file, or of standard input for "-". Raises PgnFileError."""
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            for line in _unpacked(name, io.BufferedReader(file)):  # pyright: ignore[reportArgumentType]
                yield _decoded(line)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise PgnFileError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _unpacked(name: str, file: io.BufferedReader) -> BinaryIO:
    first = file.peek(8)
    for start, what in REFUSED.items():
        if first.startswith(start):
            raise PgnFileError(f"{name} is {what}")
    opener = next((opener for start, opener in OPENERS.items() if first.startswith(start)), None)
    return opener(file) if opener else file  # pyright: ignore[reportReturnType]


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")
