"""Command lines of other programs, on every system."""

import pytest

from alphagateau.runs.programs import split_command


@pytest.mark.parametrize(
    ("command", "is_windows", "words"),
    [
        ("/usr/games/stockfish -x 'a b'", False, ["/usr/games/stockfish", "-x", "a b"]),
        (r"C:\engines\stockfish.exe -x", True, [r"C:\engines\stockfish.exe", "-x"]),
        (r'"C:\Program Files\stockfish.exe" -x', True, [r"C:\Program Files\stockfish.exe", "-x"]),
    ],
)
def test_the_words_of_a_command(command, is_windows, words):
    assert split_command(command, is_windows) == words
