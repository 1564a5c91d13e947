"""Players that play the move they value highest: by action values, or by the value of the position after each move.

As the searchless players of Ruoss et al. (2024), section 2.3 and appendix A.4, but that a move which ends the game is
valued by rule. Values are for the player who moves, in [-1, 1].
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.actions import choose, over_slots
from alphagateau.games.rules import REPETITION_LIMIT, Game, reward_and_discount
from alphagateau.games.state import Array, Position, State
from alphagateau.networks.heads import SIGMA_BINS, mean_of_bins
from alphagateau.networks.network import Network, Variables
from alphagateau.search.baselines import draw
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states

# (Positions [B], edges int16 [B, TOP]) -> int32 [B], the edge to play in the place of the best, -1: none. Rows whose
# edges are -1 are not asked about; further ones may be -1 too.
Finish = Callable[[Position, Any], Any]
TOP = 5  # moves that must all be as good as won
AS_GOOD_AS_WON = 0.995  # of the probability of winning that a sure win is decoded to

MOVES_PER_STATE = 8  # stepped and evaluated at a time
SUREST = 1 - 2.0**-20  # of a network's value: a mate on the board is worth more


def make_action_value_search(
    game: Game,
    network: Network,
    *,
    endings: str = "exact",
    temperature: float = 0.0,
    temperature_plies: int = 10,
    finish: Finish | None = None,
) -> Search:
    """The move whose action value is the highest, the first of several.

    endings: which moves are valued by rule and not by the network: "exact", mates 1 and all draws 0; "repetition",
    draws by a third occurrence alone, as published; "none". finish: asked on the host which of the best moves wins,
    where all of them are as good as won and none mates.
    """
    by_rule = {"exact": _any_end, "repetition": _third_occurrence, "none": None}[endings]
    play = partial(_play, temperature=temperature, plies=temperature_plies)

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        evaluation, _ = network.apply(variables, jax.vmap(game.position)(states), False)
        logits = evaluation.extra.get("action_value_logits")
        if logits is None:
            raise ValueError("the network has no action values: expected network.action_values = true")
        values = jnp.where(states.legal_edges >= 0, from_probability(mean_of_bins(logits)), -jnp.inf)
        if by_rule:
            known = over_legal_moves(states, lambda before, edges: by_rule(jax.vmap(game.step)(before, edges)))
            values = jnp.where(jnp.isfinite(known), known, values)
        opinion = over_slots(states, evaluation.prior_logits, ILLEGAL), evaluation.value
        num_legal = (states.legal_edges >= 0).sum(axis=-1)
        nodes = num_legal if network.values_one_move else jnp.ones_like(num_legal)
        found = play(keys, states, values, opinion)._replace(num_nodes=nodes)
        if finish is None:
            return found
        least = 2 * sure_win(logits.shape[-1]) - 1
        return found._replace(edge=finished(game, finish, states, values, found.edge, least))

    return search


def make_state_value_search(
    game: Game,
    network: Network,
    *,
    temperature: float = 0.0,
    temperature_plies: int = 10,
    finish: Finish | None = None,
) -> Search:
    """The move after which the network values the position lowest for the opponent, the first of several.

    A move that ends the game is worth what the rules say. finish: as of `make_action_value_search`.
    """
    play = partial(_play, temperature=temperature, plies=temperature_plies)

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        def worth(before: State, edges: Array) -> Array:
            after = jax.vmap(game.step)(before, edges)
            reward, discount = reward_and_discount(before, after)
            _, value = evaluate_states(game, network, variables, after)
            return reward + discount * jnp.clip(value, -SUREST, SUREST)

        evaluation, _ = network.apply(variables, jax.vmap(game.position)(states), False)
        value = jnp.where(states.terminated, 0.0, evaluation.value)
        opinion = over_slots(states, evaluation.prior_logits, ILLEGAL), value
        values = over_legal_moves(states, worth)
        found = play(keys, states, values, opinion)
        found = found._replace(num_nodes=1 + (states.legal_edges >= 0).sum(axis=-1))
        if finish is None:
            return found
        logits = evaluation.extra.get("value_logits")
        least = 2 * sure_win(1 if logits is None else logits.shape[-1]) - 1
        return found._replace(edge=finished(game, finish, states, values, found.edge, least))

    return search


def finished(game: Game, finish: Finish, states: State, values: Array, edge: Array, least: float) -> Array:
    """The edges [B] with those that `finish` chooses where the TOP highest `values` [B, S] are `least` or more."""
    worth, slots = jax.lax.top_k(values, TOP)
    is_won = ((worth >= least) | jnp.isneginf(worth)).all(axis=-1) & (worth[:, 0] < 1) & (worth[:, 0] >= least)
    candidates = jnp.take_along_axis(states.legal_edges, slots, axis=-1)
    candidates = jnp.where(is_won[:, None] & jnp.isfinite(worth), candidates, -1)
    shape = jax.ShapeDtypeStruct(is_won.shape, jnp.int32)
    chosen = jax.pure_callback(finish, shape, jax.vmap(game.position)(states), candidates)
    return jnp.where(chosen >= 0, chosen, edge).astype(edge.dtype)


def sure_win(num_bins: int) -> float:
    """The probability from which a move is as good as won, of values in so many bins.

    A distribution that fits HL-Gauss's of a sure win is decoded to less than 1, to 0.978 in 32 bins.
    """
    below = [math.erf((edge - num_bins) / (SIGMA_BINS * math.sqrt(2))) for edge in range(num_bins + 1)]
    shares = [(high - low) / (below[-1] - below[0]) for low, high in pairwise(below)]
    decoded = sum(share * (place + 0.5) / num_bins for place, share in enumerate(shares))
    return AS_GOOD_AS_WON * (decoded if num_bins > 1 else 1.0)


def from_probability(q: Array) -> Array:
    """The value in [-1, 1] that a probability of winning is, a little off both ends."""
    return jnp.clip(2 * q - 1, -SUREST, SUREST)


def to_probability(value: Array) -> Array:
    """The way back."""
    return (value + 1) / 2


def over_legal_moves(states: State, worth: Callable[[State, Array], Array]) -> Array:
    """float32 [B, S]: worth(states [R] before, edges [R]) of every legal move, -inf on empty slots.

    Most of the S slots of most States are empty, so the moves are gathered, and R = MOVES_PER_STATE * B done at a time.
    """
    batch, num_slots = states.legal_edges.shape
    edges, rows = states.legal_edges.reshape(-1), MOVES_PER_STATE * batch
    is_move = edges >= 0
    (places,) = jnp.nonzero(is_move, size=edges.size + -edges.size % rows, fill_value=edges.size)

    def some_moves(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        start, found = carry
        here = jax.lax.dynamic_slice(places, (start,), (rows,))
        move = jnp.minimum(here, edges.size - 1)
        values = worth(jax.tree.map(lambda x: x[move // num_slots], states), edges[move])
        return start + rows, found.at[here].set(values, mode="drop")

    nothing = jnp.full(edges.size, -jnp.inf, jnp.float32)
    _, found = jax.lax.while_loop(lambda carry: carry[0] < is_move.sum(), some_moves, (jnp.int32(0), nothing))
    return found.reshape(batch, num_slots)


def _any_end(after: State) -> Array:
    """What a finished game is worth to who moved last; -inf if it goes on."""
    return jnp.where(after.terminated, after.reward, -jnp.inf)


def _third_occurrence(after: State) -> Array:
    """0 if the position has occurred three times, else -inf."""
    occurrences = (after.keys == after.keys[:, :1]).all(axis=-1).sum(axis=-1)
    return jnp.where(occurrences >= REPETITION_LIMIT, 0.0, -jnp.inf)


def _play(
    keys: Array, states: State, values: Array, opinion: tuple[Array, Array], temperature: float, plies: int
) -> SearchOutput:
    """The move of the highest of `values` [B, S], or one drawn; `opinion`: the network's prior logits and value."""
    slot, weights = draw(keys, states, to_probability(values), temperature, plies)
    is_over = states.terminated | (states.legal_edges[:, 0] < 0)
    best = jnp.where(is_over, 0.0, values.max(axis=-1))
    return SearchOutput(choose(states, slot), weights, *opinion, best, move_values=values)
