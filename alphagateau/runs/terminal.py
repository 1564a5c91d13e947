"""Filters what is printed: a terminal obeys escape sequences in texts that strangers wrote.

They move, delete lines, rename the window, or answer as if typed. Names of players, tags, themes, manifests and the
output of engines may have them, and end in tables and error sentences.
"""

import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO


def visible(text: str) -> str:
    r"""The text with its line ends and tabs; other control and format characters become escapes such as \x1b."""
    if text.isprintable():
        return text
    harmless = (x.isprintable() or x in "\n\t" or unicodedata.category(x) == "Zs" for x in text)
    return "".join(x if is_harmless else ascii(x)[1:-1] for x, is_harmless in zip(text, harmless, strict=True))


def at_words(line: str, width: int) -> str:
    """The line, broken between words into lines of a width; a longer word, such as a path, stays whole."""
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


class VisibleText:
    """A text stream whose text is made `visible`; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        # rich writes to it past this filter: the escape sequences are its own, and `progress` filters its texts.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self.rich_proxied_file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def printing_visibly() -> Iterator[None]:
    """Filters standard output and standard error, where there are any, for the length of the block."""
    out, err = (stream and VisibleText(stream) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


@contextmanager
def printing_freely() -> Iterator[None]:
    """Lets a library that colours its own text past the filter of standard output."""
    with redirect_stdout(getattr(sys.stdout, "rich_proxied_file", sys.stdout)):
        yield
