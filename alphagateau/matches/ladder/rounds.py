"""Plays the meetings of a ladder that are left, and writes each game as it ends.

An informative ladder begins a round while the last games of the one before are in progress. Who meets is then decided
by the results of the rounds before that one, and by what that one is expected to yield, never by a game that may or may
not have ended yet: so the pairings do not depend on how fast the players are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import LadderConfig
from alphagateau.config.records import counted
from alphagateau.games.rules import Game
from alphagateau.matches.ladder.games import StoredGame, append_game, store, tabulate
from alphagateau.matches.ladder.meetings import NumberedOpenings, meet
from alphagateau.matches.ladder.pairings import Standing, games_left, next_pairings
from alphagateau.matches.ladder.players import curves_of
from alphagateau.matches.match import play_games
from alphagateau.matches.match_games import Match, PlayedGame
from alphagateau.matches.players import Player
from alphagateau.matches.scheduler import Statistics
from alphagateau.matches.search_rows import choose_rows
from alphagateau.ratings.pairing import Pairing, PairingRules
from alphagateau.ratings.pool import Pool


class Callbacks(NamedTuple):
    """Calls of a ladder: of its progress, and of whether it goes on.

    should_stop: called all the time, ends the games in progress. should_renew: called between two rounds.
    """

    report: Callable[[str], None]
    should_stop: Callable[[], bool] = lambda: False
    should_renew: Callable[[], bool] = lambda: False


class Table(NamedTuple):
    """A board at which players sit, and what is the same for all of its games."""

    ladder: LadderConfig
    game: Game
    folder: Path
    players: list[Player]
    openings: NumberedOpenings
    protocol: str
    notes: list[str]
    pool: Pool | None = None

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the pool's players."""
        return self.pool.players if self.pool else ()

    @property
    def games_file(self) -> Path:
        return self.folder / "games.jsonl"


class Round(NamedTuple):
    """Meetings that are played at once, the number of the first one, and their games that have ended."""

    meetings: list[Match]
    first: int
    games: list[StoredGame]


@dataclass
class Sitting:
    """How far a ladder is. games: of all rounds but those in progress, of which there are two at most."""

    table: Table
    callbacks: Callbacks
    games: list[StoredGame]
    failures: dict[str, str] = field(default_factory=dict)  # name of a player that failed -> what it did
    closed: set[frozenset[str]] = field(default_factory=set)  # pairs that have played all openings
    in_progress: list[Round] = field(default_factory=list)


def play_rounds(table: Table, games: Sequence[StoredGame], callbacks: Callbacks) -> list[str]:
    """Plays what is left after these games; a sentence on each player that failed."""
    sitting, notes = Sitting(table, callbacks, list(games)), []
    while meetings := _next_meetings(sitting):
        sitting.in_progress = [Round(meetings, 0, [])]
        statistics = _play(sitting)
        left = [f"{name} left the ladder: {why}" for name, why in statistics.failures.items()]
        for note in (_pace(statistics, table.players), *left):
            callbacks.report(note)
        notes += left
        sitting.failures |= statistics.failures
        sitting.games += [game for one in sitting.in_progress for game in one.games]
        sitting.in_progress = []
    return notes


def _play(sitting: Sitting) -> Statistics:
    """Plays the first round in progress, and those that can begin before another has ended."""
    table, (first,) = sitting.table, sitting.in_progress
    num_games = sum(meeting.num_games for meeting in first.meetings)
    if may_overlap(table.ladder):
        num_games += int(min(num_games, max(games_left(table.ladder, _standing(sitting)), 0)))
    players = [player for match in first.meetings for player in (match.a, match.b)]
    rows, per_search = choose_rows(table.game, players, num_games, table.ladder.rows)
    return play_games(
        table.game,
        first.meetings,
        more=partial(_more, sitting),
        num_rows=rows,
        rows_per_search=per_search,
        on_game=partial(_keep, sitting),
        should_stop=sitting.callbacks.should_stop,
    )


def may_overlap(ladder: LadderConfig) -> bool:
    """Whether a round may begin before the last has ended; `paper` and a pool refit, and `all` has only one."""
    return ladder.matching == "informative" and not ladder.pool


def _more(sitting: Sitting, playing: frozenset[int], failures: Mapping[str, str]) -> list[Match]:
    """The matches of the next round, once all but the latest have ended; none if there is no other."""
    *before, latest = sitting.in_progress
    is_over = not (may_overlap(sitting.table.ladder) and latest.meetings)
    if is_over or any(number < latest.first for number in playing):
        return []
    sitting.games += [game for one in before for game in one.games]
    sitting.failures |= failures
    sitting.in_progress = [latest]
    meetings = _next_meetings(sitting)
    sitting.in_progress.append(Round(meetings, latest.first + len(latest.meetings), []))
    return meetings


def _next_meetings(sitting: Sitting) -> list[Match]:
    """The next round's, by the games and by what is in progress; none at the end, or if somebody wants it to stop."""
    table, callbacks = sitting.table, sitting.callbacks
    openings, ladder = table.openings, table.ladder
    planned = [meeting for one in sitting.in_progress for meeting in one.meetings]
    by_name = {p.name: p for p in table.players}
    while not (callbacks.should_stop() or callbacks.should_renew()):
        pairings = next_pairings(ladder, _standing(sitting))
        if not pairings:
            break
        met = []
        for a, b, num_games in pairings:
            met.append(meet((by_name[a], by_name[b]), num_games, sitting.games, planned, openings, ladder))
            sitting.closed |= {frozenset((a, b))} if met[-1] is None else set()
        if meetings := [meeting for meeting in met if meeting]:
            num_games = sum(meeting.num_games for meeting in meetings)
            then = f"{counted(num_games, 'game')} of {counted(len(meetings), 'pair')}"
            callbacks.report(f"{table.game.name}: {_count(sitting)}; next {then}")
            return meetings
    return []


def _standing(sitting: Sitting) -> Standing:
    players = sitting.table.players
    names = [p.name for p in players if p.name not in sitting.failures]
    meetings = [meeting for one in sitting.in_progress for meeting in one.meetings]
    planned = [Pairing(meeting.a.name, meeting.b.name, meeting.num_games) for meeting in meetings]
    curves = curves_of(players) if sitting.table.ladder.method == "history" else None
    table, rules = sitting.table, PairingRules(curves, sitting.closed, planned)
    return Standing(names, tabulate(sitting.games, players, table.members), rules, table.pool)


def _keep(sitting: Sitting, played: PlayedGame) -> None:
    """A game with a result is on disk when this returns."""
    if played.score is None:
        return
    of = next(one for one in reversed(sitting.in_progress) if played.match >= one.first)
    match = of.meetings[played.match - of.first]
    players = (match.a.key, match.b.key) if played.a_is_white else (match.b.key, match.a.key)
    of.games.append(store(played.record, players, match.numbers[played.opening], sitting.table.protocol))
    append_game(sitting.table.games_file, of.games[-1])


def _count(sitting: Sitting) -> str:
    ended = sum(len(one.games) for one in sitting.in_progress)
    num_playing = sum(meeting.num_games for one in sitting.in_progress for meeting in one.meetings) - ended
    rest = f", {num_playing} in progress" if num_playing else ""
    return f"{counted(len(sitting.games) + ended, 'game')} played{rest}"


def _pace(statistics: Statistics, players: Sequence[Player]) -> str:
    live = f", {statistics.live_fraction:.0%} of the searched rows live" if any(p.variables for p in players) else ""
    return f"{counted(statistics.moves, 'move')}, {statistics.moves_per_second:.0f} moves/s{live}"
