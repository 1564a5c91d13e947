"""Plays the move of highest value: by action values, or by the value of the position after each move.

These are the searchless players of Ruoss et al. (2024), section 2.3 and appendix A.4, except that a move which ends the
game is valued by the rules. Values are for the player who moves, in [-1, 1].
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edge_at, edges_to_slots
from alphagateau.games.rules import REPETITION_LIMIT, Game, reward_and_discount
from alphagateau.games.state import Array, Position, State
from alphagateau.networks.heads import SIGMA_BINS, mean_of_bins
from alphagateau.networks.network import Network, Variables
from alphagateau.search.baselines import sample_slots
from alphagateau.search.config import ActionValueConfig, StateValueConfig
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states

# (Positions [B], candidate edges int16 [B, NUM_CANDIDATES]) -> int32 [B], the edge to play, -1: the best by value. A
# row without candidates has edges -1.
TieBreak = Callable[[Position, Any], Any]
NUM_CANDIDATES = 5  # best moves, which must all be winning for a tie break
WINNING_SHARE = 0.995  # of the probability that a sure win is decoded to: a move from there on is winning

MOVES_PER_STATE = 8  # stepped and evaluated at a time
MAX_VALUE = 1 - 2.0**-20  # of a network: a mate on the board is worth more


def make_action_value_search(
    game: Game, network: Network, config: ActionValueConfig, tie_break: TieBreak | None = None
) -> Search:
    """Searches for the move of highest action value, the first of several.

    `config.endings` are the moves that the rules value in place of the network: "exact", mates (1) and all draws (0);
    "repetition", draws by a third occurrence alone, as published; "none". `tie_break` chooses on the host among the
    best moves where all are winning and none mates.
    """
    rule_value_fn = {"exact": _any_end, "repetition": _third_occurrence, "none": None}[config.endings]

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        evaluation, _ = network.apply(variables, jax.vmap(game.position)(states), False)
        logits = evaluation.extra.get("action_value_logits")
        if logits is None:
            raise ValueError("the network has no action values: expected network.action_values = true")
        values = jnp.clip(2 * mean_of_bins(logits) - 1, -MAX_VALUE, MAX_VALUE)
        values = jnp.where(states.legal_edges >= 0, values, -jnp.inf)
        if rule_value_fn:
            exact = map_legal_moves(states, lambda before, edges: rule_value_fn(jax.vmap(game.step)(before, edges)))
            values = jnp.where(jnp.isfinite(exact), exact, values)
        root = edges_to_slots(states, evaluation.prior_logits, ILLEGAL), evaluation.value
        num_legal = (states.legal_edges >= 0).sum(axis=-1)
        nodes = num_legal if network.values_one_move else jnp.ones_like(num_legal)
        output = _play(config, keys, states, values, root, nodes)
        return break_ties(game, tie_break, states, output, logits.shape[-1]) if tie_break else output

    return search


def make_state_value_search(
    game: Game, network: Network, config: StateValueConfig, tie_break: TieBreak | None = None
) -> Search:
    """Searches for the first move whose next position has the lowest value for the opponent; the rules value an end."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        def move_value(before: State, edges: Array) -> Array:
            after = jax.vmap(game.step)(before, edges)
            reward, discount = reward_and_discount(before, after)
            _, value = evaluate_states(game, network, variables, after)
            return reward + discount * jnp.clip(value, -MAX_VALUE, MAX_VALUE)

        evaluation, _ = network.apply(variables, jax.vmap(game.position)(states), False)
        value = jnp.where(states.terminated, 0.0, evaluation.value)
        root = edges_to_slots(states, evaluation.prior_logits, ILLEGAL), value
        values = map_legal_moves(states, move_value)
        output = _play(config, keys, states, values, root, 1 + (states.legal_edges >= 0).sum(axis=-1))
        logits = evaluation.extra.get("value_logits", evaluation.value[:, None])
        return break_ties(game, tie_break, states, output, logits.shape[-1]) if tie_break else output

    return search


def break_ties(game: Game, tie_break: TieBreak, states: State, output: SearchOutput, num_bins: int) -> SearchOutput:
    """The output with edges by `tie_break` where the best moves, of values of `num_bins` bins, all win."""
    assert output.move_values is not None
    threshold = 2 * winning_probability(num_bins) - 1
    best, slots = jax.lax.top_k(output.move_values, NUM_CANDIDATES)
    is_won = ((best >= threshold) | jnp.isneginf(best)).all(axis=-1) & (best[:, 0] < 1) & (best[:, 0] >= threshold)
    candidates = jnp.take_along_axis(states.legal_edges, slots, axis=-1)
    candidates = jnp.where(is_won[:, None] & jnp.isfinite(best), candidates, -1)
    shape = jax.ShapeDtypeStruct(is_won.shape, jnp.int32)
    chosen = jax.pure_callback(tie_break, shape, jax.vmap(game.position)(states), candidates)
    return output._replace(edge=jnp.where(chosen >= 0, chosen, output.edge).astype(output.edge.dtype))


def winning_probability(num_bins: int) -> float:
    """The probability from which a move counts as winning; HL-Gauss of 32 bins decodes a sure win to 0.978, not 1."""
    below = [math.erf((edge - num_bins) / (SIGMA_BINS * math.sqrt(2))) for edge in range(num_bins + 1)]
    shares = [(high - low) / (below[-1] - below[0]) for low, high in pairwise(below)]
    decoded = sum(share * (place + 0.5) / num_bins for place, share in enumerate(shares))
    return WINNING_SHARE * (decoded if num_bins > 1 else 1.0)


def map_legal_moves(states: State, value_fn: Callable[[State, Array], Array]) -> Array:
    """float32 [B, S]: value_fn(states [R] before, edges [R]) of every legal move, -inf on empty slots.

    Most slots are empty, so legal moves are gathered and evaluated R = MOVES_PER_STATE * B at a time.
    """
    batch, num_slots = states.legal_edges.shape
    edges, rows = states.legal_edges.reshape(-1), MOVES_PER_STATE * batch
    is_move = edges >= 0
    (places,) = jnp.nonzero(is_move, size=edges.size + -edges.size % rows, fill_value=edges.size)

    def some_moves(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        start, values = carry
        here = jax.lax.dynamic_slice(places, (start,), (rows,))
        move = jnp.minimum(here, edges.size - 1)
        new = value_fn(jax.tree.map(lambda x: x[move // num_slots], states), edges[move])
        return start + rows, values.at[here].set(new, mode="drop")

    empty = jnp.full(edges.size, -jnp.inf, jnp.float32)
    _, values = jax.lax.while_loop(lambda carry: carry[0] < is_move.sum(), some_moves, (jnp.int32(0), empty))
    return values.reshape(batch, num_slots)


def _any_end(after: State) -> Array:
    """The reward of a finished game for the player who moved last, -inf of a game in progress."""
    return jnp.where(after.terminated, after.reward, -jnp.inf)


def _third_occurrence(after: State) -> Array:
    """0 if the position has occurred three times, else -inf."""
    occurrences = (after.keys == after.keys[:, :1]).all(axis=-1).sum(axis=-1)
    return jnp.where(occurrences >= REPETITION_LIMIT, 0.0, -jnp.inf)


def _play(
    config: ActionValueConfig | StateValueConfig,
    keys: Array,
    states: State,
    values: Array,
    root: tuple[Array, Array],
    num_nodes: Array,
) -> SearchOutput:
    """The move of highest value, or a sampled one, by `values` [B, S]; `root`: the network's prior logits and value."""
    probabilities = (values + 1) / 2
    slot, weights = sample_slots(keys, states, probabilities, config.temperature, config.temperature_plies)
    is_over = states.terminated | (states.legal_edges[:, 0] < 0)
    best = jnp.where(is_over, 0.0, values.max(axis=-1))
    return SearchOutput(edge_at(states, slot), weights, *root, best, move_values=values, num_nodes=num_nodes)
