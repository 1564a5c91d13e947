"""The ladder: players in, games on disk as they end, ratings out; the same command goes on where it was killed.

What is rated is worked out from the games on disk alone, by the players' identities (weights, search, board), so games
under different protocols are never pooled.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import LadderConfig
from alphagateau.games.pgn import GameRecord
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder_games import LadderGamesError, StoredGame, append_game, read_games, tabulate, to_records
from alphagateau.matches.ladder_meetings import Meeting, make_take_openings, meet, to_stored
from alphagateau.matches.ladder_players import list_specs, load_players
from alphagateau.matches.match import Statistics, play_games
from alphagateau.matches.player_specs import board_of
from alphagateau.matches.scheduler import PlayedGame
from alphagateau.ratings.pairing import Pairing, informative_pairings, paper_pairing, stop_reason
from alphagateau.ratings.rate import Ratings, rate
from alphagateau.ratings.results import Results


class RatedPool(NamedTuple):
    """The players of a board with their games and ratings: all that a report of them needs."""

    folder: Path
    title: str
    results: Results
    ratings: Ratings
    places: dict[str, tuple[str, int]]  # name -> (run, iteration), of those that have one
    records: list[GameRecord]
    notes: list[str]
    protocol: dict[str, str]


def play_ladder(
    ladder: LadderConfig,
    folder: Path,
    say: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[RatedPool]:
    """Plays what is left, board by board; each board's pool as it ends."""
    specs = list_specs(ladder.players, ladder.every)
    boards = [get_game(board).name for board in ladder.boards] or [board_of(specs)]
    for board in boards:
        target = folder / board if len(boards) > 1 else folder
        target.mkdir(parents=True, exist_ok=True)
        yield _play_board(ladder, specs, board, target, say, should_stop)


def _play_board(ladder, specs, board, folder, say, should_stop) -> RatedPool:
    players, notes = load_players(specs, board, ladder.simulations or None)
    for note in notes:
        say(note)
    if len(players) < 2:
        why = "; ".join(notes)
        raise LadderGamesError(f"{len(players)} players are left on {board}, expected two or more: {why}")
    games, failures = _play_rounds(ladder, get_game(board), players, folder / "games.jsonl", say, should_stop)
    return _rated_pool(ladder, board, folder, players, games, notes + failures)


def _play_rounds(ladder, game, players, path, say, should_stop) -> tuple[list[StoredGame], list[str]]:
    """Plays what is left of a board: all its games, and a sentence on each player that failed."""
    games, failures, active = read_games(path), [], list(players)
    take_openings = make_take_openings(game, ladder.openings, ladder.opening_plies, ladder.seed)
    by_name = {p.name: p for p in players}

    def keep(meetings: Sequence[Meeting], played: PlayedGame) -> None:
        if played.score is not None:
            games.append(to_stored(played, meetings))
            append_game(path, games[-1])

    while not should_stop():
        pairings = _next_pairings(ladder, [p.name for p in active], tabulate(games, players))
        if not pairings:
            break
        pairs = [((by_name[p.player], by_name[p.opponent]), p.games) for p in pairings]
        meetings = [meet(pair, num_games, games, take_openings, ladder.seed) for pair, num_games in pairs]
        say(f"{game.name}: {len(games)} games played; next {_describe(pairings)}")
        matches, on_game = [meeting.match for meeting in meetings], partial(keep, meetings)
        statistics = play_games(game, matches, num_rows=ladder.rows, on_game=on_game, should_stop=should_stop)
        say(_pace(statistics))
        for name, why in statistics.failures.items():
            failures.append(f"{name} left the ladder: {why}")
            say(failures[-1])
        active = [p for p in active if p.name not in statistics.failures]
    return games, failures


def _next_pairings(ladder: LadderConfig, names: Sequence[str], results: Results) -> list[Pairing]:
    """The meetings to play next, () at the end."""
    if len(names) < 2 or _is_enough(ladder, len(names), results):
        return []
    if ladder.matching == "informative":
        num_pairs = max(len(names) // 2, 1)
        anchor = _anchor(ladder, results)
        merged: dict[tuple[str, str], int] = {}
        for p in informative_pairings(names, results, num_pairs, ladder.games_per_pair, anchor):
            merged[p[:2]] = merged.get(p[:2], 0) + p.games
        return [Pairing(*pair, games) for pair, games in merged.items()]
    if ladder.matching == "paper":
        pairing = paper_pairing(names, results)
        return [pairing] if pairing else []
    return _missing_games(names, results, ladder.games_per_pair)


def _is_enough(ladder: LadderConfig, num_players: int, results: Results) -> bool:
    """Whether the most games or the least error that was asked for is reached."""
    limit = ladder.max_games
    if ladder.matching == "informative" and not (limit or ladder.target_error):
        limit = 20 * num_players
    if not (limit or ladder.target_error):
        return False
    ratings = rate(results, anchor=_anchor(ladder, results))
    return bool(stop_reason(ratings, limit or None, ladder.target_error or None))


def _missing_games(names: Sequence[str], results: Results, num_games: int) -> list[Pairing]:
    """What every pair has still to play."""
    played: dict[frozenset[str], int] = {}
    for row in results.rows:
        pair = frozenset(row[:2])
        played[pair] = played.get(pair, 0) + sum(row[2:5])
    pairs = itertools.combinations(names, 2)
    left = [Pairing(a, b, num_games - played.get(frozenset((a, b)), 0)) for a, b in pairs]
    return [p for p in left if p.games > 0]


def _anchor(ladder: LadderConfig, results: Results) -> str | None:
    if ladder.anchor and ladder.anchor not in results.players:
        raise LadderGamesError(f"anchor {ladder.anchor!r} is not a player: {', '.join(results.players)}")
    return ladder.anchor or None


def _rated_pool(ladder, board, folder, players, games, notes) -> RatedPool:
    results = tabulate(games, players)
    ratings = rate(results, ladder.method, _anchor(ladder, results), anchor_rating=ladder.anchor_rating)
    records = to_records(games, players, board, folder.name)
    if len(records) < len(games):
        notes = [*notes, f"{len(games) - len(records)} games of players that are not on this ladder are not counted"]
    return RatedPool(
        folder,
        f"{folder.name}: {board}",
        results,
        ratings,
        places={p.name: (p.run, p.iteration) for p in players if p.iteration is not None},
        records=records,
        notes=notes,
        protocol={"board": board, **{p.name: p.identity[1] or p.identity[0] for p in players}},
    )


def _describe(pairings: Sequence[Pairing]) -> str:
    return f"{sum(p.games for p in pairings)} games of {len(pairings)} pairs"


def _pace(statistics: Statistics) -> str:
    return (
        f"{statistics.moves} moves, {statistics.moves_per_second:.0f} moves/s, "
        f"{statistics.live_fraction:.0%} of the searched rows live"
    )
