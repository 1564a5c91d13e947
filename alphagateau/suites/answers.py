"""Finds a player's moves in positions: a network's a batch at a time on the devices, an engine's one at a time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alphagateau.distributed.mesh import AXIS, BY_FIRST, REPLICATED, per_device
from alphagateau.games.notation import edge_to_uci, from_fens, to_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import State, pad_rows
from alphagateau.matches.find_moves import UNSOUND, engine_failures, key_of
from alphagateau.matches.openings import one_state, select_states
from alphagateau.matches.players import Player, Reply
from alphagateau.matches.specs import PlayerError
from alphagateau.networks.network import Variables
from alphagateau.search.search import MAX_VALUE, Search, SearchOutput

ROWS = 64  # positions of a device call


class Positions(NamedTuple):
    """R positions to move in; a network sees their States, an engine the games that led to them."""

    key_parts: np.ndarray  # uint32 [R, 2 or more]: what the key of each is made of, the seed first
    states: Callable[[Sequence[int]], State]  # of some rows
    line: Callable[[int], tuple[str, Sequence[str]]]  # (start FEN, UCI moves) of a row


class Answers(NamedTuple):
    """A player's moves in some of the positions."""

    rows: list[int]
    moves: list[str]  # UCI, "" where there is none
    nodes: list[float]  # positions visited; NaN: not counted
    output: SearchOutput | None  # numpy [rows], without the last position of the line; None: an engine's


def key_parts_of(seed: int, *numbers: Sequence[int]) -> np.ndarray:
    """The key parts [R, 1 + len(numbers)] of a seed and of numbers [R]."""
    return np.array([[seed % 2**32] * len(numbers[0]), *numbers]).T.astype(np.uint32)


def positions_of_fens(game: Game, fens: Sequence[str], seed: int) -> Positions:
    """Positions without a past."""

    def states_of(rows: Sequence[int]) -> State:
        return from_fens(game, [fens[row] for row in rows])

    return Positions(key_parts_of(seed, range(len(fens))), states_of, lambda row: (fens[row], ()))


def positions_of_states(game: Game, states: State, seed: int) -> Positions:
    """The positions of numpy States [R]; an engine sees them without their past."""
    return Positions(
        key_parts_of(seed, range(len(states.ply))),
        lambda rows: select_states(states, rows),
        lambda row: (to_fen(game, one_state(states, row)), ()),
    )


def find_answers(game: Game, player: Player, positions: Positions, num_rows: int = ROWS) -> Iterator[Answers]:
    """The player's moves, in the order of the positions, as they are found. Raises PlayerError."""
    return _move_on_host(player, positions) if player.search is None else _search(game, player, positions, num_rows)


def _search(game: Game, player: Player, positions: Positions, num_rows: int) -> Iterator[Answers]:
    mesh, count = Mesh(np.array(jax.local_devices()), (AXIS,)), len(positions.key_parts)
    assert player.search
    search, num_rows = _compiled(player.search, mesh), num_rows + -num_rows % mesh.size
    variables = jax.device_put(player.variables, NamedSharding(mesh, REPLICATED))
    for first in range(0, count, num_rows):
        rows = list(range(first, min(first + num_rows, count)))
        padded = pad_rows(rows, num_rows)
        states = jax.device_get(positions.states(padded))
        with engine_failures():
            output = jax.device_get(search(variables, positions.key_parts[padded], states))
        output = select_states(output, range(len(rows)))
        if not (np.abs(output.search_value) <= MAX_VALUE).all():
            raise PlayerError(f"{player.name}: {UNSOUND}")
        edges = enumerate(output.edge.tolist())
        moves = [edge_to_uci(game, one_state(states, i), edge) if edge >= 0 else "" for i, edge in edges]
        nodes = [np.nan] * len(rows) if output.num_nodes is None else output.num_nodes.astype(float).tolist()
        yield Answers(rows, moves, nodes, output)


@lru_cache(maxsize=64)
def _compiled(search: Search, mesh: Mesh) -> Callable[[Variables, np.ndarray, State], SearchOutput]:
    @jax.jit
    @per_device(mesh, (REPLICATED, BY_FIRST, BY_FIRST), BY_FIRST)
    def search_rows(variables: Variables, key_parts: jax.Array, states: State) -> SearchOutput:
        return search(variables, jax.vmap(key_of)(key_parts), states)._replace(leaf=None)

    return search_rows


def _move_on_host(player: Player, positions: Positions) -> Iterator[Answers]:
    def play(row: int) -> Answers:
        assert player.move
        reply = player.move(*positions.line(row))
        reply = reply if isinstance(reply, Reply) else Reply(reply)
        return Answers([row], [reply.move], [np.nan if reply.nodes is None else reply.nodes], None)

    with ThreadPoolExecutor(player.num_workers) as pool:
        yield from pool.map(play, range(len(positions.key_parts)))
