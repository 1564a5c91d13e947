"""The ladder: games between many players, kept on disk as they end, and their ratings; a killed one continues.

What is rated is worked out from the games on disk alone, by the players' identities (weights, search, board) and the
protocol of the games, so games under different protocols are never pooled.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import LadderConfig
from alphagateau.config.records import counted
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.rules import RULES_VERSION
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder.games import (
    LadderGamesError,
    StoredGame,
    of_players,
    read_games,
    read_records,
    tabulate,
    to_records,
    to_results,
)
from alphagateau.matches.ladder.meetings import open_openings
from alphagateau.matches.ladder.pairings import check_openings
from alphagateau.matches.ladder.players import curves_of, load_players
from alphagateau.matches.ladder.pool_files import GAMES, OPENINGS, find_pool, read_pool, seat_members, write_pool
from alphagateau.matches.ladder.protocol import merge_games, of_protocol, with_protocols, write_protocol
from alphagateau.matches.ladder.rounds import Callbacks, Table, play_rounds
from alphagateau.matches.specs import PlayerSpec, board_of, read_spec
from alphagateau.ratings.curves import Curves
from alphagateau.ratings.pool import rate_by_pool
from alphagateau.ratings.rate import UCI_ELO, Ratings, levels_of, rate
from alphagateau.ratings.results import Results
from alphagateau.ratings.results_files import find_replays


class MissingPlayers(LadderGamesError):
    """Nobody to play with, or no anchor; one sentence."""


class RatedPool(NamedTuple):
    """The players of a board with their games and ratings: all that a report of them needs."""

    table: Table
    title: str
    results: Results
    ratings: Ratings
    curves: Curves
    records: list[GameRecord]
    notes: list[str]

    @property
    def protocol(self) -> dict[str, str]:
        """The protocol of the games by what a reader calls its parts."""
        table, pool = self.table, self.table.ladder.pool
        return {
            "board": table.game.name,
            "openings": table.openings.name,
            "ply limit": str(table.game.max_plies),
            "rules version": str(RULES_VERSION),
            **({"reference pool": pool} if pool else {}),
        }


def play_ladder(
    ladder: LadderConfig, specs: Sequence[PlayerSpec], folder: Path, callbacks: Callbacks
) -> Iterator[RatedPool]:
    """Plays what is left, board by board; each board's pool as it ends."""
    for board, target in _boards(ladder, specs, folder):
        with _seated(ladder, specs, board, target, callbacks) as table:
            notes = [*table.openings.notes, *check_openings(ladder, table.openings, table.players)]
            games, others = _counted(table)
            for note in [*notes, *others]:
                callbacks.report(note)
            table.games_file.touch()  # by which the folder is known as a ladder's before its first game
            failures = play_rounds(table, games, callbacks)
            yield (rated := _rated_pool(table, [*notes, *failures]))
            if ladder.make_pool and not callbacks.should_stop():
                write_pool(target, rated.ratings, table, [spec.text for spec in specs])


def merge_ladders(
    ladder: LadderConfig, specs: Sequence[PlayerSpec], folder: Path, sources: Sequence[Path], callbacks: Callbacks
) -> Iterator[RatedPool]:
    """Takes up the games of other ladders, and plays none; each board's pool."""
    for board, target in _boards(ladder, specs, folder):
        with _seated(ladder, specs, board, target, callbacks) as table:
            merged = merge_games(table.games_file, sources, board, table.protocol, table.openings)
            for note in [*merged, *_counted(table)[1]]:
                callbacks.report(note)
            yield _rated_pool(table, [])


def _boards(ladder: LadderConfig, specs: Sequence[PlayerSpec], folder: Path) -> Iterator[tuple[str, Path]]:
    own = ladder.boards or [read_pool(find_pool(ladder.pool))[0].board if ladder.pool else board_of(specs)]
    boards = [get_game(board).name for board in own]
    for board in boards:
        target = folder / board if len(boards) > 1 else folder
        target.mkdir(parents=True, exist_ok=True)
        yield board, target


@contextmanager
def _seated(
    ladder: LadderConfig, specs: Sequence[PlayerSpec], board: str, folder: Path, callbacks: Callbacks
) -> Iterator[Table]:
    """The table; engines run until the block ends."""
    game, known, pool, openings_file, here, notes = get_game(board), None, None, ladder.openings, [], []
    if ladder.pool:
        known, pool = read_pool(place := find_pool(ladder.pool), board)
        if place.resolve() == folder.resolve():
            raise LadderGamesError(f"{folder} is the pool's own folder: write somewhere else by --out")
        theirs, openings_file = [*map(read_spec, known.specs)], str(place / OPENINGS)
        here, notes = load_players(theirs, board, known.simulations or None, known.gumbel_scale)
    players, more = load_players(specs, board, ladder.simulations or None, ladder.gumbel_scale)
    notes += more
    try:
        if known:
            players = seat_members(known.members, here, players, notes)
        for note in notes:
            callbacks.report(note)
        names, why = [p.name for p in players], "".join(f"; {note}" for note in notes)
        if len(players) < 2:
            left = "1 player is" if len(players) == 1 else f"{len(players)} players are"
            raise MissingPlayers(f"{left} left on {board}, expected two or more{why}")
        has_anchor = ladder.anchor in ("", *names) or (ladder.anchor == UCI_ELO and levels_of(names))
        if not has_anchor:
            raise MissingPlayers(f"anchor {ladder.anchor!r} is not a player on {board}: {', '.join(names)}{why}")
        openings = open_openings(game, openings_file, ladder.opening_plies, ladder.seed)
        protocol = write_protocol(game, openings)
        if known and protocol != known.protocol:
            raise LadderGamesError(f"pool {ladder.pool}: its games have another protocol ({known.protocol})")
        yield Table(ladder, game, folder, players, openings, protocol, notes, pool)
    finally:
        for one in players:
            one.close()


def _counted(table: Table) -> tuple[list[StoredGame], list[str]]:
    """The games on disk that count, and a sentence on each kind of the others."""
    games = with_protocols(read_games(table.games_file), table.protocol, table.openings)
    found, others = of_protocol(games, table.protocol)
    known, strangers = of_players(found, table.players)
    members = {p.key for p in table.players if p.name in table.members}
    told = [game for game in known if not {game.white, game.black} <= members]  # the pool has theirs
    if left := len(known) - len(told):
        others.append(f"{counted(left, 'game')} between members of the pool: kept, not counted")
    return told, [*others, *strangers]


def _rated_pool(table: Table, notes: Sequence[str]) -> RatedPool:
    ladder, players = table.ladder, table.players
    games, others = _counted(table)
    results = tabulate(games, players, table.members)
    curves = curves_of([player for player in players if player.name not in table.members])
    if table.pool:
        alike = find_replays(to_results([*_games_of_members(table), *games], players))
        alike = tuple(one for one in alike if not {*one[:2]} <= {*table.members})
        ratings = rate_by_pool(replace(results, alike=alike), table.pool)
    else:
        ratings = rate(results, ladder.method, ladder.anchor or None, anchor_rating=ladder.anchor_rating, curves=curves)
    name = (table.folder.parent if len(ladder.boards) > 1 else table.folder).resolve().name
    records = to_records(games, players, table.game.name, name)
    title, notes = f"{name}: {table.game.name}", [*table.notes, *notes, *others]
    return RatedPool(table, title, results, ratings, curves, records, notes)


def _games_of_members(table: Table) -> list[StoredGame]:
    """The pool's own games, where an engine is a newcomer: one of its levels may be a member's."""
    if not any("uci" in p.key for p in table.players if table.pool and p.name not in table.members):
        return []
    path = find_pool(table.ladder.pool) / GAMES
    games, _ = of_players(read_records(path) if path.is_file() else [], table.players)
    return [game._replace(protocol=table.protocol) for game in games]
