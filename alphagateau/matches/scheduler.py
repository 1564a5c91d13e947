"""Plays many matches at once, each opening with both colors, and yields games as they end.

The games in progress lie on the host, where each waits for its player to move. One device call is one search by one
player over some of the games that wait for it; the player with the most waiting games goes first. So rows are filled
whatever the pairings, and no network sees a position in which its player is not to move. The place of a finished
game goes to the next one at once. While the device searches, the host does its books and calls the engines.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alphagateau.distributed.mesh import REPLICATED
from alphagateau.games.notation import edge_to_uci, outcome
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.matches.find_moves import FoundMoves, compiled_search, move_on_host
from alphagateau.matches.match_games import LiveGame, Match, PlayedGame, games_of, to_played
from alphagateau.matches.openings import one_state, select_states
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerError
from alphagateau.networks.network import Variables
from alphagateau.search.search import Search

WAIT_SECONDS = 0.1  # for moves, after which a request to stop is noticed
# What else there is to play, by the numbers of the matches in progress and by who has failed, with what it did.
More = Callable[[frozenset[int], Mapping[str, str]], Sequence[Match]]


class Sizes(NamedTuple):
    """How much is done at a time."""

    num_rows: int  # games in progress
    rows_per_search: tuple[int, ...]  # the widest first; a search has the fewest rows that hold what waits
    searches_at_once: int


@dataclass
class PlayerQueue:
    """A player with games in progress, and the games that wait for its search."""

    player: Player
    num_games: int = 0
    waiting: list[int] = field(default_factory=list)  # places of games that wait for its search
    variables: Variables | None = None  # on every device
    workers: ThreadPoolExecutor | None = None  # of a player on the host


class Call(NamedTuple):
    """Moves that a worker is looking for: a device's search, or a host player's answer."""

    player: Player
    places: list[int]
    games: list[LiveGame]


@dataclass
class Statistics:
    """How the playing goes; `warm` is what each search's first call took, which may compile it."""

    moves: int = 0
    seconds: float = 0.0  # once it has ended
    rows: int = 0  # searched
    live_rows: int = 0  # of these, those that belonged to live games
    failures: dict[str, str] = field(default_factory=dict)  # name of a player that failed -> what it did
    warm_moves: int = 0
    warm_seconds: float = 0.0
    visited: Counter[tuple[str, str]] = field(default_factory=Counter)  # name, search -> positions visited
    counted_moves: Counter[tuple[str, str]] = field(default_factory=Counter)  # the moves with counts

    @property
    def moves_per_second(self) -> float:
        """Without the warm ones."""
        return max(self.moves - self.warm_moves, 0) / max(self.seconds - self.warm_seconds, 1e-9)

    @property
    def live_fraction(self) -> float:
        """Of the rows searched."""
        return self.live_rows / self.rows if self.rows else 1.0


@dataclass
class Scheduler:
    """Everything in progress. A place is a number below num_rows, with a game or free."""

    game: Game
    mesh: Mesh
    sizes: Sizes
    to_start: Iterator[LiveGame]
    num_matches: int
    more: More
    on_game: Callable[[PlayedGame], None]
    boards: State  # numpy [num_rows]
    free: list[int]
    workers: ThreadPoolExecutor  # of searches
    live: dict[int, LiveGame] = field(default_factory=dict)
    queues: dict[tuple[int, ...], PlayerQueue] = field(default_factory=dict)
    calls: dict[Future[FoundMoves], Call] = field(default_factory=dict)
    warm: set[tuple[Search, int]] = field(default_factory=set)  # searches that were called, with their rows
    statistics: Statistics = field(default_factory=Statistics)
    first_new: int = 0  # number of the first match of the newest batch
    may_have_more: bool = True  # whether to ask for more matches: a game has ended since the last time


def open_scheduler(
    game: Game, matches: Sequence[Match], mesh: Mesh, sizes: Sizes, on_game: Callable[[PlayedGame], None], more: More
) -> Scheduler:
    """Nothing in progress yet; `advance` plays."""
    boards = jax.tree.map(lambda x: np.zeros((sizes.num_rows, *x.shape), x.dtype), game.init())
    free, workers = list(reversed(range(sizes.num_rows))), ThreadPoolExecutor(sizes.searches_at_once)
    return Scheduler(game, mesh, sizes, games_of(matches), len(matches), more, on_game, boards, free, workers)


def advance(scheduler: Scheduler) -> bool:
    """Does what is to be done next, or waits for moves up to WAIT_SECONDS; False: nothing is left."""
    _start_games(scheduler)
    if not scheduler.live:
        return False
    _take_moves(scheduler, timeout=0)
    longest = max(scheduler.queues.values(), key=lambda queue: len(queue.waiting), default=None)
    num_waiting = len(longest.waiting) if longest else 0
    num_searches = sum(call.player.search is not None for call in scheduler.calls.values())
    is_due = num_waiting >= (scheduler.sizes.rows_per_search[0] if scheduler.calls else 1)
    if longest and is_due and num_searches < scheduler.sizes.searches_at_once:
        _start_search(scheduler, longest)
    elif scheduler.calls:
        _take_moves(scheduler, timeout=WAIT_SECONDS)
    return True


def close(scheduler: Scheduler, why: str) -> None:
    """Ends what is in progress, without results."""
    for place in list(scheduler.live):
        _end_game(scheduler, place, why)
    scheduler.workers.shutdown(cancel_futures=True)


def _start_games(scheduler: Scheduler) -> None:
    while scheduler.free and (live := _next_game(scheduler)):
        if any(player.name in scheduler.statistics.failures for player in live.players):
            continue
        place = scheduler.free.pop()
        scheduler.live[place] = live
        for player in live.players:
            scheduler.queues.setdefault(_key_of(player), PlayerQueue(player)).num_games += 1
        _write(scheduler, [place], live.opening.state)
        _await_move(scheduler, place)


def _next_game(scheduler: Scheduler) -> LiveGame | None:
    """The next to start; after the last one `more` is called, and again when a game has ended."""
    live = next(scheduler.to_start, None)
    if live is None and scheduler.may_have_more:
        scheduler.may_have_more = False
        matches = frozenset(one.match_number for one in scheduler.live.values())
        found = scheduler.more(matches, scheduler.statistics.failures)
        scheduler.to_start = games_of(found, scheduler.num_matches)
        scheduler.first_new = scheduler.num_matches if found else scheduler.first_new
        scheduler.num_matches += len(found)
        live = next(scheduler.to_start, None)
    return live


def _key_of(player: Player) -> tuple[int, ...]:
    """Equal for players that share a search and weights; valid while the queue keeps the player alive."""
    if player.move:
        return (id(player.move),)
    return id(player.search), id(player.variables)


def _write(scheduler: Scheduler, places: list[int], states: State) -> None:
    for x, rows in zip(scheduler.boards, states, strict=True):
        x[places] = rows


def _await_move(scheduler: Scheduler, place: int) -> None:
    """Calls the player that is to move, if it moves on the host, or lets the game wait for a search."""
    live = scheduler.live[place]
    queue = scheduler.queues[_key_of(live.players[scheduler.boards.color[place]])]
    if queue.player.move:
        queue.workers = queue.workers or ThreadPoolExecutor(queue.player.num_workers)
        before, moves = select_states(scheduler.boards, [place]), tuple(live.moves)
        answer = queue.workers.submit(move_on_host, scheduler.game, queue.player, live.opening.start_fen, moves, before)
        scheduler.calls[answer] = Call(queue.player, [place], [live])
    else:
        queue.waiting.append(place)


def _start_search(scheduler: Scheduler, queue: PlayerQueue) -> None:
    """One device call for the waiting games of the fewest plies; those of the newest matches come after all others.

    Unused rows are copies of the first game, whose results are ignored.
    """
    begun, player, widths = time.perf_counter(), queue.player, scheduler.sizes.rows_per_search
    ply = scheduler.boards.ply
    num_rows = min((width for width in widths if width >= len(queue.waiting)), default=widths[0])
    assert player.search
    queue.waiting.sort(key=lambda place: (scheduler.live[place].match_number >= scheduler.first_new, ply[place]))
    places, queue.waiting = queue.waiting[:num_rows], queue.waiting[num_rows:]
    rows = places + places[:1] * (num_rows - len(places))
    states = select_states(scheduler.boards, rows)
    games = [scheduler.live[place] for place in rows]
    key_parts = [[live.match.seed % 2**32 for live in games], [live.key_number for live in games], states.ply]
    if queue.variables is None:
        queue.variables = jax.device_put(player.variables, NamedSharding(scheduler.mesh, REPLICATED))
    search = compiled_search(scheduler.game.name, player.search, scheduler.mesh)
    found = scheduler.workers.submit(search, queue.variables, np.array(key_parts).T.astype(np.uint32), states)
    scheduler.calls[found] = Call(player, places, games[: len(places)])
    scheduler.statistics.rows += len(rows)
    scheduler.statistics.live_rows += len(places)
    if (player.search, num_rows) not in scheduler.warm:
        scheduler.warm.add((player.search, num_rows))
        wait([found])
        scheduler.statistics.warm_seconds += time.perf_counter() - begun
        scheduler.statistics.warm_moves += len(places)


def _take_moves(scheduler: Scheduler, timeout: float) -> None:
    """Plays the moves that were found; waits for some up to `timeout` seconds."""
    for found in wait(scheduler.calls, timeout, FIRST_COMPLETED).done:
        call = scheduler.calls.pop(found, None)
        if call is None:  # given up with its queue
            continue
        try:
            made = found.result()
        except PlayerError as error:
            _fail(scheduler, call.player, str(error))
            continue
        # If a player of a searched game has failed meanwhile, another game is at its place.
        games = enumerate(zip(call.places, call.games, strict=True))
        rows = [row for row, (place, live) in games if scheduler.live.get(place) is live]
        notes = [made.notes[row] for row in rows]
        chosen = FoundMoves(made.edges[rows], select_states(made.after, rows), notes, made.nodes[rows])
        player = call.player.name, call.player.identity.search
        scheduler.statistics.visited[player] += np.nansum(chosen.nodes)
        scheduler.statistics.counted_moves[player] += np.isfinite(chosen.nodes).sum()
        _move(scheduler, [call.places[row] for row in rows], chosen)


def _move(scheduler: Scheduler, places: list[int], made: FoundMoves) -> None:
    boards = scheduler.boards
    for place, edge, note in zip(places, made.edges.tolist(), made.notes, strict=True):
        state = boards._replace(boards=boards.boards[place], color=boards.color[place])
        scheduler.live[place].moves.append(edge_to_uci(scheduler.game, state, edge))
        scheduler.live[place].notes.append(note)
    scheduler.statistics.moves += len(places)
    _write(scheduler, places, made.after)
    for place in places:
        if boards.terminated[place]:
            _end_game(scheduler, place)
        else:
            _await_move(scheduler, place)


def _fail(scheduler: Scheduler, player: Player, why: str) -> None:
    """The player's games end without results, and it is given no more."""
    scheduler.statistics.failures[player.name] = why
    for place, live in list(scheduler.live.items()):
        if player.name in [one.name for one in live.players]:
            _end_game(scheduler, place, why)


def _end_game(scheduler: Scheduler, place: int, why: str | None = None) -> None:
    """Hands over a game with its result, or without one for the reason given, and frees its place."""
    live, state = scheduler.live.pop(place), one_state(scheduler.boards, place)
    result, reason = ("*", why) if why else outcome(scheduler.game, state)
    scheduler.free.append(place)
    scheduler.may_have_more = True
    for player in live.players:
        _leave(scheduler, player, place)
    scheduler.on_game(to_played(scheduler.game, live, result, reason))


def _leave(scheduler: Scheduler, player: Player, place: int) -> None:
    """A game of the player's is over; a queue without games is given up."""
    queue = scheduler.queues[_key_of(player)]
    queue.num_games -= 1
    if place in queue.waiting:
        queue.waiting.remove(place)
    if queue.num_games == 0:
        del scheduler.queues[_key_of(player)]
        if queue.workers:
            queue.workers.shutdown(wait=False, cancel_futures=True)
            kept = [item for item in scheduler.calls.items() if item[1].player is not queue.player]
            scheduler.calls = dict(kept)
