"""Openings of a ladder by number, and its meetings: a match of the next openings of a pair."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from alphagateau.config import LadderConfig
from alphagateau.games.rules import Game
from alphagateau.matches.ladder.games import StoredGame
from alphagateau.matches.match_games import Match
from alphagateau.matches.openings import Opening, random_openings, read_openings
from alphagateau.matches.players import Player


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
        found, notes = read_openings(game, path)
        text = "\n".join(" ".join([fen, *line]) for _, fen, line in found)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return NumberedOpenings(f"a file's, SHA-256 {digest}", iter(found), notes=notes)
    name = f"{num_plies} random plies, seed {seed}" if num_plies or game.is_fischer_random else "the start position"
    return NumberedOpenings(name, random_openings(game, num_plies, seed))


def count_openings(openings: NumberedOpenings, most: int) -> int:
    """How many there are, counted up to `most`; no more than these are made."""
    num_missing = most - len(openings.made)
    if num_missing > 0 and not openings.is_whole:
        openings.made += itertools.islice(openings.source, num_missing)
        openings.is_whole = len(openings.made) < most
    return min(len(openings.made), most)


def take_openings(openings: NumberedOpenings, numbers: Sequence[int]) -> list[Opening]:
    """The openings of these numbers; after the last one they begin anew."""
    count_openings(openings, max(numbers) + 1)
    return [openings.made[number % len(openings.made)] for number in numbers]


def part_of(ladder: LadderConfig) -> tuple[int, int]:
    """(the part of the openings that is played here, 0 the first; how many there are)."""
    which, _, parts = ladder.part.partition("/")
    return int(which) - 1, int(parts)


def meet(
    pair: tuple[Player, Player],
    num_games: int,
    games: Sequence[StoredGame],
    planned: Sequence[Match],
    openings: NumberedOpenings,
    ladder: LadderConfig,
) -> Match | None:
    """The pair's next openings with a game that is neither played nor planned; None if there are no more.

    A pair with noise may repeat openings, as its games differ. The match has at most `num_games` games, but both games
    of one opening at least; its `numbers` are those of the ladder's openings.
    """
    a, b = pair
    both = {a.key, b.key}
    known = {(g.opening, g.white == a.key) for g in games if {g.white, g.black} == both}
    for met in (met for met in planned if {met.a.key, met.b.key} == both):
        known |= set(itertools.product(met.numbers, (True, False)))
    numbers, done, num_missing = [], [], 0
    for number in itertools.count(*part_of(ladder)):
        if num_missing >= num_games or not (is_random(pair) or count_openings(openings, number + 1) > number):
            break
        played = [(number, a_is_white) in known for a_is_white in (True, False)]
        if numbers and num_missing + played.count(False) > num_games:
            break
        if not all(played):
            done += [2 * len(numbers) + k for k, is_played in enumerate(played) if is_played]
            numbers.append(number)
            num_missing += played.count(False)
    if not numbers:
        return None
    return Match(a, b, take_openings(openings, numbers), ladder.seed, done, numbers)


def is_random(pair: Sequence[Player]) -> bool:
    """Whether two games of the pair may differ though they began alike."""
    return any(player.has_noise for player in pair)
