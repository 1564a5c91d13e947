"""Players that play the move they value highest: by action values, or by the value of the position after each move.

As the searchless players of Ruoss et al. (2024), section 2.3 and appendix A.4, but that a move which ends the game is
valued by rule. Values are for the player who moves, in [-1, 1].
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.games.actions import choose, over_slots
from alphagateau.games.rules import REPETITION_LIMIT, Game, reward_and_discount
from alphagateau.games.state import Array, State
from alphagateau.networks.heads import mean_of_bins
from alphagateau.networks.network import Network, Variables
from alphagateau.search.baselines import draw
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states

MOVES_PER_STATE = 8  # stepped and evaluated at a time
SUREST = 1 - 2.0**-20  # of a network's value: a mate on the board is worth more


def make_action_value_search(
    game: Game, network: Network, *, endings: str = "exact", temperature: float = 0.0, temperature_plies: int = 10
) -> Search:
    """The move whose action value is the highest, the first of several.

    endings: which moves are valued by rule and not by the network: "exact", mates 1 and all draws 0; "repetition",
    draws by a third occurrence alone, as published; "none".
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
        return play(keys, states, values, (over_slots(states, evaluation.prior_logits, ILLEGAL), evaluation.value))

    return search


def make_state_value_search(
    game: Game, network: Network, *, temperature: float = 0.0, temperature_plies: int = 10
) -> Search:
    """The move after which the network values the position lowest for the opponent, the first of several.

    A move that ends the game is worth what the rules say.
    """
    play = partial(_play, temperature=temperature, plies=temperature_plies)

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        def worth(before: State, edges: Array) -> Array:
            after = jax.vmap(game.step)(before, edges)
            reward, discount = reward_and_discount(before, after)
            _, value = evaluate_states(game, network, variables, after)
            return reward + discount * jnp.clip(value, -SUREST, SUREST)

        opinion = evaluate_states(game, network, variables, states)
        return play(keys, states, over_legal_moves(states, worth), opinion)

    return search


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
