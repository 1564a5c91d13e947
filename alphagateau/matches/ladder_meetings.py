"""The meetings of a ladder: a pair and the games it has played in, the match of its next openings out."""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from alphagateau.games.pgn import write_note
from alphagateau.games.rules import Game
from alphagateau.matches.ladder_games import LadderGamesError, StoredGame
from alphagateau.matches.openings import Openings, make_openings, read_openings
from alphagateau.matches.player_specs import RatedPlayer
from alphagateau.matches.scheduler import Match, PlayedGame

TakeOpenings = Callable[[Sequence[int]], Openings]  # by their numbers


class Meeting(NamedTuple):
    """A match of two players, and which of the ladder's openings it plays."""

    a: RatedPlayer
    b: RatedPlayer
    match: Match
    openings: tuple[int, ...]


def make_take_openings(game: Game, path: str, num_plies: int, seed: int) -> TakeOpenings:
    """The openings of a file, or without one as many random ones as are asked for, the first always the same."""
    if not path:
        made = lru_cache(lambda size: make_openings(game, size, num_plies, seed))
        return lambda numbers: made(1 << max(*numbers, 63).bit_length()).select(numbers)
    openings = read_openings(game, path)

    def take(numbers: Sequence[int]) -> Openings:
        if len(openings) <= max(numbers):
            num_needed = max(numbers) + 1
            raise LadderGamesError(f"{path} holds {len(openings)} openings, {num_needed} are needed for this pair")
        return openings.select(numbers)

    return take


def meet(
    pair: tuple[RatedPlayer, RatedPlayer],
    num_games: int,
    games: Sequence[StoredGame],
    take_openings: TakeOpenings,
    seed: int,
) -> Meeting:
    """The pair's next openings of which a game is missing."""
    a, b = pair
    known = {(g.opening, g.white == a.identity) for g in games if {g.white, g.black} == {a.identity, b.identity}}
    numbers, done, num_missing = [], [], 0
    for number in itertools.count():
        if num_missing >= num_games:
            break
        played = [(number, a_is_white) in known for a_is_white in (True, False)]
        if not all(played):
            done += [2 * len(numbers) + k for k, is_played in enumerate(played) if is_played]
            numbers.append(number)
            num_missing += played.count(False)
    return Meeting(a, b, Match(a.player, b.player, take_openings(numbers), seed, done), tuple(numbers))


def to_stored(played: PlayedGame, meetings: Sequence[Meeting]) -> StoredGame:
    """A finished game of these meetings' matches."""
    meeting = meetings[played.match]
    a, b = meeting.a.identity, meeting.b.identity
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
    )
