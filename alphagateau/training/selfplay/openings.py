"""Samples openings: first positions of games after a few random moves."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edge_at
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.symmetry import select
from alphagateau.training.keys import OPENING, fold_in_rows


class RandomOpenings(NamedTuple):
    """A share of games that begin after random moves, which make no frames."""

    share: float  # of the games
    max_plies: int  # random moves, 1 to this many


def make_first_states(
    game: Game, openings: RandomOpenings | None, start: State, key: Array, rows: Array
) -> Callable[[Array], State]:
    """Keys [B] -> States [B]: `start` [B] or, by key, the opening of each of `rows`, drawn once; `key` is PLAY's."""
    if openings is None:
        return lambda keys: start
    opened = sample_openings(game, start, fold_in_rows(jax.random.fold_in(key, OPENING), rows), openings.max_plies)
    return lambda keys: select(jax.vmap(jax.random.bernoulli, (0, None))(keys, openings.share), opened, start)


def sample_openings(game: Game, start: State, keys: Array, max_plies: int, min_plies: int = 1) -> State:
    """States [B] after `min_plies` to `max_plies` random legal moves from `start` [B], or `start` if they end the game.

    Past positions are seen but do not count as occurrences, as in a game that begins with the opening's FEN.
    """

    def draw_length(key: Array) -> Array:
        return jax.random.randint(jax.random.fold_in(key, max_plies), (), min_plies, max_plies + 1)

    lengths = jax.vmap(draw_length)(keys)

    def one_ply(states: State, ply: Array) -> tuple[State, None]:
        slots = states.legal_edges.shape[-1:]
        draws = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, ply), slots))(keys)
        slot = jnp.argmax(jnp.where(states.legal_edges >= 0, draws, -1.0), axis=-1)
        return select(ply < lengths, jax.vmap(game.step)(states, edge_at(states, slot)), states), None

    states, _ = jax.lax.scan(one_ply, start, jnp.arange(max_plies))
    return select(states.terminated, start, states._replace(keys=states.keys.at[:, 1:].set(0)))
