"""Plays matches between two players and counts wins, draws and losses."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from alphagateau.distributed.mesh import AXIS
from alphagateau.games.pgn.pgn import to_pgn
from alphagateau.games.rules import Game
from alphagateau.matches.match_games import Match, PlayedGame
from alphagateau.matches.players import Player
from alphagateau.matches.scheduler import More, Sizes, Statistics, advance, close, open_scheduler
from alphagateau.matches.search_rows import CPU_ROWS, choose_rows, choose_searches_at_once
from alphagateau.ratings.sprt import pentanomial


class MatchResult(NamedTuple):
    """How a match ended; wins, draws, losses and points are a's, of finished games only."""

    wins: int
    draws: int
    losses: int
    unfinished: int  # games that have no result
    pentanomial: tuple[int, ...]  # [5], openings that gave a 0, 1/2, 1, 3/2, 2 points
    tested: tuple[int, ...]  # [5], of these, those that `is_decided` saw last
    records: list[PlayedGame]  # in the order they ended; those without a result last
    nodes: tuple[float, float]  # positions that a and b visited a move, mean; NaN: not counted
    statistics: Statistics

    def __repr__(self) -> str:  # without the games, for notebooks
        return f"MatchResult(wins={self.wins}, draws={self.draws}, losses={self.losses}, unfinished={self.unfinished})"


def play_games(
    game: Game,
    matches: Sequence[Match],
    *,
    more: More = lambda matches, failures: (),
    num_rows: int = 0,
    rows_per_search: int | Sequence[int] | None = None,
    on_game: Callable[[PlayedGame], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Statistics:
    """Plays many matches at once, with up to `num_rows` games in progress; 0: as many as `choose_rows` finds.

    `on_game` gets each game as it ends. When all games were begun and a place is free, `more` is called for further
    matches, at once and after each game that ended; they are numbered on. `rows_per_search` is what
    `choose_rows` finds unless given, rounded up to a multiple of this host's devices, which share each
    search; of several, a search has the fewest that hold the games which wait for its player. The games in progress
    when `should_stop` is true, or a player fails, are handed over without results.
    """
    begun, mesh = time.perf_counter(), Mesh(np.array(jax.local_devices()), (AXIS,))
    if rows_per_search is None:
        num_games = sum(match.num_games for match in matches)
        players = [player for match in matches for player in (match.a, match.b)]
        num_rows, rows_per_search = choose_rows(game, players, num_games, num_rows)
    widths = [rows_per_search] if isinstance(rows_per_search, int) else rows_per_search
    widths = sorted({width + -width % mesh.size for width in widths}, reverse=True)
    sizes = Sizes(num_rows or CPU_ROWS, tuple(widths), choose_searches_at_once())
    scheduler = open_scheduler(game, matches, mesh, sizes, on_game or (lambda played: None), more)
    try:
        while not (should_stop and should_stop()) and advance(scheduler):
            pass
    finally:
        close(scheduler, "stopped")
    scheduler.statistics.seconds = time.perf_counter() - begun
    return scheduler.statistics


def play_match(
    game: Game,
    match: Match,
    *,
    num_rows: int = 0,
    rows_per_search: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    is_decided: Callable[[tuple[int, ...]], bool] | None = None,
) -> MatchResult:
    """Plays every opening twice, with colors swapped.

    `is_decided(pentanomial)`, a sequential test such as `ratings.sprt`, may end the match early. It sees openings 0 to
    n - 1, for the largest n such that all of these are finished: short games must not count before long ones. A player
    that fails raises nothing: its games have no result, and `failures` has what it did. The rest is as in
    `play_games`.
    """
    records: list[PlayedGame] = []
    tested: list[float] = []  # points of openings 0, 1, 2, ...
    scores: dict[int, list[float]] = {}  # opening -> of its games
    is_over = False

    def take(played: PlayedGame) -> None:
        nonlocal is_over
        records.append(played)
        if played.score is not None:
            scores.setdefault(played.opening, []).append(played.score)
        if is_over or is_decided is None:
            return
        num_before = len(tested)
        while len(scores.get(len(tested), ())) == 2:
            tested.append(sum(scores[len(tested)]))
        is_over = len(tested) > num_before and is_decided(pentanomial(tested))

    statistics = play_games(
        game,
        [match],
        num_rows=num_rows,
        rows_per_search=rows_per_search,
        on_game=take,
        should_stop=lambda: is_over or (should_stop is not None and should_stop()),
    )
    points = [played.score for played in records if played.score is not None]
    return MatchResult(
        wins=points.count(1.0),
        draws=points.count(0.5),
        losses=points.count(0.0),
        unfinished=match.num_games - len(points),
        pentanomial=pentanomial(sum(both) for both in scores.values() if len(both) == 2),
        tested=pentanomial(tested),
        records=records,
        nodes=(_nodes_of(statistics, match.a), _nodes_of(statistics, match.b)),
        statistics=statistics,
    )


def _nodes_of(statistics: Statistics, player: Player) -> float:
    name = player.name, player.identity.search
    moves = statistics.counted_moves[name]
    return float(statistics.visited[name] / moves) if moves else math.nan


def games_to_pgn(records: Iterable[PlayedGame], event: str) -> str:
    """The games of a match in the order of its openings, whichever ended first."""
    order = sorted(records, key=lambda played: (played.match, played.opening, not played.a_is_white))
    tagged = [replace(played.record, headers={"Event": event, **played.record.headers}) for played in order]
    return "".join(map(to_pgn, tagged))
