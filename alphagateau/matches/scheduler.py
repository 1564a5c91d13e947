"""Plays many matches at once: players and openings in, games out as they end, each opening with both colors.

The games in progress lie on the host, where each waits for its player to move. One device call is one search
of one player over a few of the games that wait for it, the player first for whom most wait: so rows are filled
whatever the pairings, and nobody's network sees a position that it is not to play. The place of a finished
game goes to the next one at once. While the device searches, the host does its books and asks the engines.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alphagateau.distributed.mesh import BY_FIRST, REPLICATED, per_device
from alphagateau.games.notation import edge_to_uci, outcome, uci_to_edge
from alphagateau.games.pgn import GameRecord
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import Openings, one_state, select_states, step_states
from alphagateau.matches.players import AnyPlayer, HostPlayer, Player, PlayerError
from alphagateau.networks.network import Variables
from alphagateau.search.search import Search

WHITE_SCORES = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}


class Match(NamedTuple):
    """Two players and the openings that they play, both ways."""

    a: AnyPlayer
    b: AnyPlayer
    openings: Openings
    seed: int = 0  # a game draws from this, its number and its ply, and from nothing else
    done: Collection[int] = ()  # games not to play again: 2 * opening, + 1 where a is black


class PlayedGame(NamedTuple):
    """A game that was begun."""

    match: int  # number of its match, in the order given, from 0
    opening: int  # number of its opening in the match, from 0
    a_is_white: bool
    score: float | None  # for a: 1, 1/2, 0; None: no result, and `record.termination` says why
    record: GameRecord  # with the opening's moves


class Live(NamedTuple):
    """A game in progress, or about to be."""

    match_number: int
    match: Match
    number: int  # in its match: 2 * opening, + 1 where a is black
    moves: list[str]  # so far, in UCI

    @property
    def players(self) -> tuple[AnyPlayer, AnyPlayer]:
        """White and black."""
        a, b = self.match.a, self.match.b
        return (b, a) if self.number % 2 else (a, b)

    @property
    def start_fen(self) -> str:
        return self.match.openings.start_fens[self.number // 2]


@dataclass
class Seat:
    """A player while it has games."""

    player: AnyPlayer
    num_games: int = 0
    waiting: list[int] = field(default_factory=list)  # places where a Player is to move
    variables: Variables | None = None  # on every device
    workers: ThreadPoolExecutor | None = None  # of a HostPlayer


class Call(NamedTuple):
    """Moves that a worker is looking for: a device's search, or a host player's answer."""

    player: AnyPlayer
    places: list[int]
    games: list[Live]


@dataclass
class Counts:
    """What has been done; `warm` is what each search's first call took, which may compile it."""

    moves: int = 0
    rows: int = 0
    live_rows: int = 0
    unfinished: int = 0
    warm_moves: int = 0
    warm_seconds: float = 0.0


@dataclass
class Hall:
    """Everything in progress. A place is a number below num_rows, and holds a game or is free."""

    game: Game
    mesh: Mesh
    rows_per_search: int
    searches_at_once: int
    supply: Iterator[Live]
    on_game: Callable[[PlayedGame], None]
    on_failure: Callable[[str, str], None]
    boards: State  # numpy [num_rows]
    free: list[int]
    workers: ThreadPoolExecutor  # of searches
    live: dict[int, Live] = field(default_factory=dict)
    seats: dict[tuple[int, ...], Seat] = field(default_factory=dict)
    calls: dict[Future, Call] = field(default_factory=dict)  # result: edges [B], States after [B]
    failures: dict[str, str] = field(default_factory=dict)
    warm: set[Search] = field(default_factory=set)  # searches that were called
    counts: Counts = field(default_factory=Counts)


def open_hall(game: Game, matches: Iterable[Match], mesh: Mesh, num_rows: int, searches_at_once: int, **rest) -> Hall:
    """An empty hall; `advance` plays."""
    return Hall(
        game=game,
        mesh=mesh,
        searches_at_once=searches_at_once,
        supply=_games_of(matches),
        boards=jax.tree.map(lambda x: np.zeros((num_rows, *x.shape), x.dtype), game.init()),
        free=list(reversed(range(num_rows))),
        workers=ThreadPoolExecutor(searches_at_once),
        **rest,
    )


def _games_of(matches: Iterable[Match]) -> Iterator[Live]:
    for match_number, match in enumerate(matches):
        for number in range(2 * len(match.openings)):
            if number not in match.done:
                yield Live(match_number, match, number, list(match.openings.lines[number // 2]))


def advance(hall: Hall) -> bool:
    """Does what is to be done next; False: nothing is left."""
    _seat_games(hall)
    if not hall.live:
        return False
    _take_moves(hall, timeout=0)
    seat = max(hall.seats.values(), key=lambda seat: len(seat.waiting), default=None)
    num_waiting = len(seat.waiting) if seat else 0
    num_searches = sum(isinstance(call.player, Player) for call in hall.calls.values())
    is_due = num_waiting >= (hall.rows_per_search if hall.calls else 1)
    if seat and is_due and num_searches < hall.searches_at_once:
        _start_search(hall, seat)
    elif hall.calls:
        _take_moves(hall, timeout=None)
    return True


def close(hall: Hall, why: str) -> None:
    """Ends what is in progress, without results."""
    for place in list(hall.live):
        _end_game(hall, place, why)
    hall.workers.shutdown(cancel_futures=True)


def _seat_games(hall: Hall) -> None:
    """Gives the free places to the next games."""
    while hall.free and (live := next(hall.supply, None)):
        if any(player.name in hall.failures for player in live.players):
            hall.counts.unfinished += 1
            continue
        place = hall.free.pop()
        hall.live[place] = live
        for player in live.players:
            hall.seats.setdefault(_key_of(player), Seat(player)).num_games += 1
        _write(hall, [place], select_states(live.match.openings.states, [live.number // 2]))
        _await_move(hall, place)


def _key_of(player: AnyPlayer) -> tuple[int, ...]:
    """The same for players that are one; good as long as a seat holds the player."""
    if isinstance(player, HostPlayer):
        return (id(player.move),)
    return id(player.search), id(player.variables)


def _write(hall: Hall, places: list[int], states: State) -> None:
    for x, rows in zip(hall.boards, states, strict=True):
        x[places] = rows


def _await_move(hall: Hall, place: int) -> None:
    live = hall.live[place]
    seat = hall.seats[_key_of(live.players[hall.boards.color[place]])]
    if isinstance(seat.player, HostPlayer):
        seat.workers = seat.workers or ThreadPoolExecutor(seat.player.num_workers)
        before, moves = select_states(hall.boards, [place]), tuple(live.moves)
        answer = seat.workers.submit(_ask, hall.game, seat.player, live.start_fen, moves, before)
        hall.calls[answer] = Call(seat.player, [place], [live])
    else:
        seat.waiting.append(place)


def _ask(
    game: Game, player: HostPlayer, start_fen: str, moves: tuple[str, ...], before: State
) -> tuple[np.ndarray, State]:
    """The player's edge [1] in the State [1], and the State after it. Raises PlayerError."""
    uci = player.move(start_fen, moves)
    try:
        edge = np.array([uci_to_edge(game, one_state(before, 0), uci)], np.int16)
    except ValueError as error:
        raise PlayerError(f"{player.name} broke the rules: {error}") from None
    return edge, step_states(game, before, edge)


@lru_cache(maxsize=64)
def _compiled_search(game_name: str, search: Search, mesh: Mesh) -> Callable:
    """(variables, draws uint32 [rows, 3], states [rows]) -> (edges [rows], states after [rows]), numpy."""
    game = get_game(game_name)

    def key_of(draw: Array) -> Array:
        key = jax.random.fold_in(jax.random.key(draw[0]), draw[1])
        return jax.random.fold_in(key, draw[2])

    @jax.jit
    @per_device(mesh, (REPLICATED, BY_FIRST, BY_FIRST), BY_FIRST)
    def search_and_step(variables: Variables, draws: Array, states: State) -> tuple[Array, State]:
        edges = search(variables, jax.vmap(key_of)(draws), states).edge
        return edges, jax.vmap(game.step)(states, edges)

    return lambda *arguments: jax.device_get(search_and_step(*arguments))


def _start_search(hall: Hall, seat: Seat) -> None:
    """One device call, for the games that are least far on; rows left over repeat the first."""
    begun, player, counts = time.perf_counter(), seat.player, hall.counts
    assert isinstance(player, Player)
    seat.waiting.sort(key=lambda place: hall.boards.ply[place])
    places, seat.waiting = seat.waiting[: hall.rows_per_search], seat.waiting[hall.rows_per_search :]
    rows = places + places[:1] * (hall.rows_per_search - len(places))
    states = select_states(hall.boards, rows)
    games = [hall.live[place] for place in rows]
    draws = [[live.match.seed % 2**32 for live in games], [live.number for live in games], states.ply]
    if seat.variables is None:
        seat.variables = jax.device_put(player.variables, NamedSharding(hall.mesh, REPLICATED))
    search = _compiled_search(hall.game.name, player.search, hall.mesh)
    found = hall.workers.submit(search, seat.variables, np.array(draws).T.astype(np.uint32), states)
    hall.calls[found] = Call(player, places, games[: len(places)])
    counts.rows += len(rows)
    counts.live_rows += len(places)
    if player.search not in hall.warm:
        hall.warm.add(player.search)
        wait([found])
        counts.warm_seconds += time.perf_counter() - begun
        counts.warm_moves += len(places)


def _take_moves(hall: Hall, timeout: float | None) -> None:
    """Plays the moves that were found; without a timeout waits for some."""
    for found in wait(hall.calls, timeout, FIRST_COMPLETED).done:
        call = hall.calls.pop(found, None)
        if call is None:  # given up with its seat
            continue
        try:
            edges, after = found.result()
        except PlayerError as error:
            _fail(hall, call.player, str(error))
            continue
        # A place holds another game by now if a player of the one that was searched has failed.
        games = enumerate(zip(call.places, call.games, strict=True))
        rows = [row for row, (place, live) in games if hall.live.get(place) is live]
        _move(hall, [call.places[row] for row in rows], edges[rows], select_states(after, rows))


def _move(hall: Hall, places: list[int], edges: np.ndarray, after: State) -> None:
    """The games at `places` [B] go along edges [B] to the States `after` [B]."""
    for place, edge in zip(places, edges.tolist(), strict=True):
        state = hall.boards._replace(boards=hall.boards.boards[place], color=hall.boards.color[place])
        hall.live[place].moves.append(edge_to_uci(hall.game, state, edge))
    hall.counts.moves += len(places)
    _write(hall, places, after)
    for place in places:
        if hall.boards.terminated[place]:
            _end_game(hall, place)
        else:
            _await_move(hall, place)


def _fail(hall: Hall, player: AnyPlayer, why: str) -> None:
    """The player's games end without results, and it is given no more."""
    hall.failures[player.name] = why
    hall.on_failure(player.name, why)
    for place, live in list(hall.live.items()):
        if player.name in [one.name for one in live.players]:
            _end_game(hall, place, why)


def _end_game(hall: Hall, place: int, why: str | None = None) -> None:
    """Hands over a game with its result, or without one for the reason given, and frees its place."""
    live, state = hall.live.pop(place), one_state(hall.boards, place)
    result, reason = ("*", why) if why else outcome(hall.game, state)
    hall.free.append(place)
    for player in live.players:
        _leave(hall, player, place)
    opening, is_swapped = divmod(live.number, 2)
    headers = {
        "White": live.players[0].name,
        "Black": live.players[1].name,
        "Round": f"{opening + 1}.{is_swapped + 1}",
    }
    record = GameRecord(hall.game.name, live.start_fen, tuple(live.moves), result, reason, headers)
    score = WHITE_SCORES.get(result)
    hall.counts.unfinished += score is None
    score = 1 - score if score is not None and is_swapped else score
    hall.on_game(PlayedGame(live.match_number, opening, not is_swapped, score, record))


def _leave(hall: Hall, player: AnyPlayer, place: int) -> None:
    """A game of the player's is over; a seat without games is given up."""
    seat = hall.seats[_key_of(player)]
    seat.num_games -= 1
    if place in seat.waiting:
        seat.waiting.remove(place)
    if seat.num_games == 0:
        del hall.seats[_key_of(player)]
        if seat.workers:
            seat.workers.shutdown(wait=False, cancel_futures=True)
            kept = [item for item in hall.calls.items() if item[1].player is not seat.player]
            hall.calls = dict(kept)
