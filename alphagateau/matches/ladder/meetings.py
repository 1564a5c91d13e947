"""Meetings of a ladder: the next openings of a pair, as a match."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from alphagateau.games.pgn.pgn import write_note
from alphagateau.matches.ladder.games import StoredGame
from alphagateau.matches.ladder.openings import NumberedOpenings, count_openings, take_openings
from alphagateau.matches.match_games import Match, PlayedGame
from alphagateau.matches.players import Player


class Meeting(NamedTuple):
    """A match of two players, and which of the ladder's openings it plays."""

    a: Player
    b: Player
    match: Match
    openings: tuple[int, ...]

    @property
    def num_games(self) -> int:
        """Games still to play."""
        return 2 * len(self.match.openings) - len(self.match.done)


class OpeningsPart(NamedTuple):
    """From which openings a meeting takes its own: those of every `num_parts`-th number, from `part` on."""

    openings: NumberedOpenings
    seed: int
    part: int = 0
    num_parts: int = 1


def meet(
    pair: tuple[Player, Player],
    num_games: int,
    games: Sequence[StoredGame],
    part: OpeningsPart,
    planned: Sequence[Meeting] = (),
) -> Meeting | None:
    """The pair's next openings with a game that is neither played nor planned; None if there are no more.

    A pair with noise may repeat openings, as its games differ. The meeting has at most `num_games` games, but both
    games of one opening at least.
    """
    a, b = pair
    both = {a.key, b.key}
    known = {(g.opening, g.white == a.key) for g in games if {g.white, g.black} == both}
    for met in (met for met in planned if {met.a.key, met.b.key} == both):
        known |= set(itertools.product(met.openings, (True, False)))
    numbers, done, num_missing = [], [], 0
    for number in itertools.count(part.part, part.num_parts):
        if num_missing >= num_games or not (is_random(pair) or count_openings(part.openings, number + 1) > number):
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
    openings = take_openings(part.openings, numbers)
    return Meeting(a, b, Match(a, b, openings, part.seed, done, numbers), tuple(numbers))


def is_random(pair: Sequence[Player]) -> bool:
    """Whether two games of the pair may differ though they began alike."""
    return any(player.has_noise for player in pair)


def to_stored(played: PlayedGame, meeting: Meeting, protocol: str) -> StoredGame:
    """A finished game of this meeting's match."""
    a, b = meeting.a.key, meeting.b.key
    record = played.record
    return StoredGame(
        white=a if played.a_is_white else b,
        black=b if played.a_is_white else a,
        opening=meeting.openings[played.opening],
        result=record.result,
        termination=record.termination,
        start_fen=record.start_fen,
        moves=tuple(record.moves),
        comments=tuple(map(write_note, record.notes)),
        protocol=protocol,
        date=record.headers.get("Date", ""),
    )
