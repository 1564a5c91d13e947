"""Replays games by the rules of `rules.py`, many at once on the device.

Shapes are fixed, so that a game of any length compiles nothing new: ROWS games go on by PLIES plies a call.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.notation import edges_by_uci, from_fens
from alphagateau.games.pgn.pgn import GameRecord, Replayed, RuleCheck, replay
from alphagateau.games.pgn.text import WrittenGame
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State, pad_rows
from alphagateau.games.symmetry import select
from alphagateau.games.variants import get_game

ROWS, PLIES = 64, 32
NONE, OFF_BOARD = -1, -2  # the edge of no move, and of a move that has none


class Plies(NamedTuple):
    """T moves of B games by the rules."""

    is_legal: Array  # bool [T, B]; True where there is no move
    is_over: Array  # bool [T, B], whether the game is over after the move; False where there is none
    before: State  # [T, B], as if the game went on


def check_games(games: Iterable[WrittenGame], with_states: bool = False) -> Iterator[Replayed]:
    """Plays games of any boards twice, by python-chess and by the rules of `rules.py`; ROWS games are held at once."""
    left = iter(games)
    while batch := list(map(replay, islice(left, ROWS))):
        for name in {one.record.game for one in batch if one.record}:
            records = {i: one.record for i, one in enumerate(batch) if one.record and one.record.game == name}
            checks = check_records(get_game(name), list(records.values()), with_states)
            for (i, record), check in zip(records.items(), checks, strict=True):
                batch[i] = _judged(batch[i], record, check)
        yield from batch


def _judged(replayed: Replayed, record: GameRecord, check: RuleCheck) -> Replayed:
    if not check.illegal:
        return replayed._replace(check=check)
    uci = record.moves[check.illegal - 1]
    fault = f"move {check.illegal}, {uci!r}, is not one by the rules of {record.game}: expected a legal move"
    return replayed._replace(record=None, fault=fault, ply=check.illegal)


def check_records(game: Game, records: Sequence[GameRecord], with_states: bool = False) -> list[RuleCheck]:
    """The RuleChecks of up to ROWS games of one board, whose moves python-chess has found legal."""
    edges = np.full((max((len(r.moves) for r in records), default=0) // PLIES * PLIES + PLIES, ROWS), NONE, np.int16)
    for row, record in enumerate(records):
        edges[: len(record.moves), row] = [
            edges_by_uci(game.name, (ply % 2 == 0) == record.white_begins).get(uci.removesuffix("q"), OFF_BOARD)
            for ply, uci in enumerate(record.moves)
        ]
    states, parts = from_fens(game, pad_rows([record.start_fen for record in records], ROWS)), []
    for first in range(0, len(edges), PLIES):
        states, plies = _compiled(game.name)(states, edges[first : first + PLIES])
        parts.append(jax.device_get(plies if with_states else plies._replace(before=None)))
    whole = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return [_ruling(whole, row, len(record.moves)) for row, record in enumerate(records)]


def _ruling(plies: Plies, row: int, count: int) -> RuleCheck:
    illegal, over = (np.flatnonzero(x[:, row]) + 1 for x in (~plies.is_legal, plies.is_over))
    states = None if plies.before is None else jax.tree.map(lambda x: x[: count + 1, row], plies.before)
    first_illegal, first_over = (int(found[0]) if len(found) else 0 for found in (illegal, over))
    return RuleCheck(first_illegal, first_over, states)


@lru_cache
def _compiled(game_name: str):
    """(States [B], edges [T, B]) -> (States after them, Plies)."""
    game = get_game(game_name)

    def one_ply(states: State, edges: Array) -> tuple[State, Plies]:
        states = states._replace(terminated=jnp.zeros_like(states.terminated))
        is_move = edges != NONE
        after = select(is_move, jax.vmap(game.step)(states, jnp.maximum(edges, 0)), states)
        is_legal = (states.legal_edges == edges[:, None]).any(axis=-1) | ~is_move
        return after, Plies(is_legal, after.terminated & is_move, states)

    return jax.jit(lambda states, edges: jax.lax.scan(one_ply, states, edges))
