"""Finds a player's moves in a batch of states: one device call, or one answer of an engine."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagateau.distributed.mesh import BY_FIRST, REPLICATED, per_device
from alphagateau.games.notation import uci_to_edge
from alphagateau.games.pgn.pgn import MoveNote
from alphagateau.games.rules import Game
from alphagateau.games.scores import white_score
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import one_state, step_states
from alphagateau.matches.players import Player, Reply
from alphagateau.matches.specs import PlayerError
from alphagateau.networks.network import Variables
from alphagateau.search.search import MAX_VALUE, Search

UNSOUND = "its search is not sound: a move is not legal, or its search_value is not from -1 to 1"


class FoundMoves(NamedTuple):
    """A player's moves in B games."""

    edges: np.ndarray  # int16 [B]
    after: State  # numpy [B]
    notes: list[MoveNote]  # [B]
    nodes: np.ndarray  # float32 [B], positions visited for each; NaN: not counted


def key_of(parts: Array) -> Array:
    """The random key of uint32 [k]: a seed, and the numbers that are folded into it."""
    key = jax.random.key(parts[0])
    for number in parts[1:]:
        key = jax.random.fold_in(key, number)
    return key


@contextmanager
def engine_failures() -> Iterator[None]:
    """Raises PlayerError in the place of JAX's error where an engine failed that a search calls."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # of what a callback raised its text alone is left
        if (failure := re.search(r"\bPlayerError: (.+)", str(error))) is None:
            raise
        raise PlayerError(failure[1]) from None


@lru_cache(maxsize=64)
def compiled_search(game_name: str, search: Search, mesh: Mesh) -> Callable[..., FoundMoves]:
    """(variables, key parts uint32 [rows, 3], states [rows]) -> FoundMoves of all rows.

    The parts are (seed, game, ply): a row's key comes from them alone. Raises PlayerError if an engine that the search
    calls fails, and as `check_found`.
    """
    game = get_game(game_name)

    @jax.jit
    @per_device(mesh, (REPLICATED, BY_FIRST, BY_FIRST), BY_FIRST)
    def search_and_step(variables: Variables, key_parts: Array, states: State) -> tuple[Array, State, Array, Array]:
        found = search(variables, jax.vmap(key_of)(key_parts), states)
        counted = found.num_nodes
        nodes = jnp.full_like(found.search_value, jnp.nan) if counted is None else counted.astype(jnp.float32)
        return found.edge, jax.vmap(game.step)(states, found.edge), found.search_value, nodes

    def find(variables: Variables, key_parts: np.ndarray, states: State) -> FoundMoves:
        with engine_failures():
            edges, after, values, nodes = jax.device_get(search_and_step(variables, key_parts, states))
        check_found(states, edges, values)
        rows = zip(values.tolist(), states.color.tolist(), strict=True)
        notes = [MoveNote(white_score(value, color == 0) if variables else None) for value, color in rows]
        return FoundMoves(edges, after, notes, nodes)

    return find


def check_found(states: State, edges: np.ndarray, values: np.ndarray) -> None:
    """Raises PlayerError unless a search's moves in B states are legal, and its values [B] from -1 to 1."""
    if not ((edges >= 0) & (states.legal_edges == edges[:, None]).any(axis=1) & (np.abs(values) <= MAX_VALUE)).all():
        raise PlayerError(UNSOUND)


def move_on_host(game: Game, player: Player, start_fen: str, moves: tuple[str, ...], before: State) -> FoundMoves:
    """The player's move in the State [1]. Raises PlayerError."""
    assert player.move
    reply = player.move(start_fen, moves)
    reply = reply if isinstance(reply, Reply) else Reply(reply)
    try:
        edge = np.array([uci_to_edge(game, one_state(before, 0), reply.move)], np.int16)
    except ValueError as error:
        raise PlayerError(f"{player.name} broke the rules: {error}") from None
    nodes = np.array([np.nan if reply.nodes is None else reply.nodes], np.float32)
    return FoundMoves(edge, step_states(game, before, edge), [reply.note], nodes)
