"""Openings of a ladder by number, from a file or of random plies."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from alphagateau.games.rules import Game
from alphagateau.matches.openings import Opening, Openings, one_state, random_openings, read_openings, stack_openings


@dataclass
class NumberedOpenings:
    """Openings by their numbers; `name` identifies them, whoever makes them."""

    name: str
    source: Iterator[Opening]
    made: list[Opening] = field(default_factory=list)
    is_whole: bool = False  # `source` has no more
    notes: tuple[str, ...] = ()  # what was passed over, a sentence each


def open_openings(game: Game, path: str, num_plies: int, seed: int) -> NumberedOpenings:
    """The openings of the file `path`, or without one random ones, none made yet. Raises ValueError, OSError."""
    if path:
        found = read_openings(game, path)
        states = (one_state(found.states, row) for row in range(len(found)))
        rows = list(zip(states, found.start_fens, found.lines, strict=True))
        text = "\n".join(" ".join([fen, *line]) for _, fen, line in rows)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return NumberedOpenings(f"a file's, SHA-256 {digest}", iter(rows), notes=found.notes)
    made = ((state, game.start_fen, line) for state, line in random_openings(game, num_plies, seed))
    return NumberedOpenings(f"{num_plies} random plies, seed {seed}" if num_plies else "the start position", made)


def count_openings(openings: NumberedOpenings, most: int) -> int:
    """How many there are, counted up to `most`; no more than these are made."""
    num_missing = most - len(openings.made)
    if num_missing > 0 and not openings.is_whole:
        openings.made += itertools.islice(openings.source, num_missing)
        openings.is_whole = len(openings.made) < most
    return min(len(openings.made), most)


def take_openings(openings: NumberedOpenings, numbers: Sequence[int]) -> Openings:
    """The openings of these numbers; after the last one they begin anew."""
    count_openings(openings, max(numbers) + 1)
    return stack_openings(openings.made[number % len(openings.made)] for number in numbers)
