"""Games of a match: openings and colors to play, and the record of each game."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from alphagateau.games.pgn.pgn import GameRecord, MoveNote, player_tags
from alphagateau.games.pgn.text import WHITE_SCORES
from alphagateau.games.rules import Game
from alphagateau.matches.openings import Opening
from alphagateau.matches.players import Player


class Match(NamedTuple):
    """Two players and the openings that they play, both ways."""

    a: Player
    b: Player
    openings: Sequence[Opening]
    seed: int = 0  # a game's keys come from this, its opening's number, its colors and its ply, and from nothing else
    done: Collection[int] = ()  # games not to play again: 2 * opening, + 1 where a is black
    numbers: Sequence[int] = ()  # of the openings, for the keys of their games; (): 0, 1, 2, ...

    @property
    def num_games(self) -> int:
        """Games to play."""
        return 2 * len(self.openings) - len(self.done)


class PlayedGame(NamedTuple):
    """A game that was begun."""

    match: int  # number of its match, in the order given, from 0
    opening: int  # number of its opening in the match, from 0
    a_is_white: bool
    score: float | None  # for a: 1, 1/2, 0; None: no result, and `record.termination` has the reason
    record: GameRecord  # with the opening's moves


class LiveGame(NamedTuple):
    """A game in progress, or about to be."""

    match_number: int
    match: Match
    number: int  # in its match: 2 * opening, + 1 where a is black
    moves: list[str]  # so far, in UCI
    notes: list[MoveNote]  # of the same

    @property
    def players(self) -> tuple[Player, Player]:
        """White and black."""
        a, b = self.match.a, self.match.b
        return (b, a) if self.number % 2 else (a, b)

    @property
    def key_number(self) -> int:
        """The number in its random keys: its own, or of the opening's number where the match has one."""
        opening, is_swapped = divmod(self.number, 2)
        return 2 * (self.match.numbers[opening] if self.match.numbers else opening) + is_swapped

    @property
    def opening(self) -> Opening:
        return self.match.openings[self.number // 2]


def games_of(matches: Sequence[Match], first_number: int = 0) -> Iterator[LiveGame]:
    """Those to play, in order; the first match has this number."""
    for match_number, match in enumerate(matches, first_number):
        for number in range(2 * len(match.openings)):
            if number not in match.done:
                line = match.openings[number // 2].line
                yield LiveGame(match_number, match, number, list(line), [MoveNote()] * len(line))


def to_played(game: Game, live: LiveGame, result: str, reason: str) -> PlayedGame:
    """A game that is over, or was broken off (`*`)."""
    opening, is_swapped = divmod(live.number, 2)
    white, black = live.players
    headers = {"Date": f"{date.today():%Y.%m.%d}", "Round": f"{opening + 1}.{is_swapped + 1}"}
    headers |= player_tags("White", white.name, white.identity) | player_tags("Black", black.name, black.identity)
    record = GameRecord(
        game.name, live.opening.start_fen, tuple(live.moves), result, reason, headers, tuple(live.notes)
    )
    score = WHITE_SCORES.get(result)
    score = 1 - score if score is not None and is_swapped else score
    return PlayedGame(live.match_number, opening, not is_swapped, score, record)
