"""Search: variables, keys and States in, moves and improved policies out. Gumbel MuZero over legal-move slots.

An action inside the tree is a slot: an index into the node's own list of legal edges. A tree over S slots (118 on
5x5, 218 on 8x8) is several times smaller than one over all edges, and a node holds a State and no observation.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx

from alphagateau.games import Game, reward_and_discount
from alphagateau.networks import Network
from alphagateau.types import Array, State, Variables

# The logit of an empty slot; finite, so that sums of logits stay finite.
ILLEGAL = jnp.finfo(jnp.float32).min


class SearchOutput(NamedTuple):
    """What a search says of B States; slots are those of `State.legal_edges`."""

    edge: Array  # int16 [B], the move to play; -1 where there is no legal move
    action_weights: Array  # float32 [B, S], the improved policy, 0 on empty slots
    prior_logits: Array  # float32 [B, S], the network's, ILLEGAL on empty slots
    value: Array  # float32 [B], the network's value of the root, for the player to move


# (variables, keys [B], states [B]) -> SearchOutput. A player is a network's variables and such a function.
Search = Callable[[Variables, Array, State], SearchOutput]


def evaluate_states(game: Game, network: Network, variables: Variables, states: State) -> tuple[Array, Array]:
    """The network's (logits over slots [B, S], value [B]); a finished game is worth 0 to come."""
    evaluation, _ = network.apply(variables, jax.vmap(game.position)(states), False)
    slots = states.legal_edges.astype(jnp.int32)
    logits = jnp.take_along_axis(evaluation.prior_logits, jnp.maximum(slots, 0), axis=-1)
    value = jnp.where(states.terminated, 0.0, evaluation.value)
    return jnp.where(slots >= 0, logits, ILLEGAL), value


def choose(states: State, slot: Array) -> Array:
    """The edge int16 [B] in `slot` [B] of each State."""
    return jnp.take_along_axis(states.legal_edges, slot[:, None], axis=-1)[:, 0]


def make_gumbel_search(
    game: Game,
    network: Network,
    *,
    num_simulations: int,
    max_num_considered_actions: int = 16,
    gumbel_scale: float = 1.0,
) -> Search:
    """Gumbel MuZero (Danihelka et al. 2022) with the real game as its model.

    Each game's noise comes from its own key, so what a game does depends neither on the other games of its batch
    nor on the device it is on. With `gumbel_scale` 0 the search is deterministic, for matches.
    """
    select_root = partial(
        mctx.gumbel_muzero_root_action_selection,
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
    )

    def recurrent_fn(variables, key, slot, states):
        del key
        after = jax.vmap(game.step)(states, choose(states, slot))
        reward, discount = reward_and_discount(states, after)
        logits, value = evaluate_states(game, network, variables, after)
        step = mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return step, after

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        logits, value = evaluate_states(game, network, variables, states)
        illegal = states.legal_edges < 0
        slots = (logits.shape[-1],)
        gumbel = gumbel_scale * jax.vmap(lambda key: jax.random.gumbel(key, slots))(keys)
        tree = mctx.search(
            variables,
            jax.random.key(0),  # nothing below draws from it
            root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            recurrent_fn=recurrent_fn,  # pyright: ignore[reportArgumentType]
            root_action_selection_fn=select_root,
            interior_action_selection_fn=mctx.gumbel_muzero_interior_action_selection,
            num_simulations=num_simulations,
            invalid_actions=illegal.astype(jnp.float32),
            extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=gumbel),
        )
        visits = tree.summary().visit_counts
        qvalues = jax.vmap(mctx.qtransform_completed_by_mix_value, (0, None))(tree, tree.ROOT_INDEX)
        is_best = (visits == visits.max(axis=-1, keepdims=True)) & ~illegal
        slot = jnp.argmax(jnp.where(is_best, gumbel + logits + qvalues, -jnp.inf), axis=-1)
        weights = jax.nn.softmax(jnp.where(illegal, ILLEGAL, logits + qvalues))
        return SearchOutput(choose(states, slot), jnp.where(illegal, 0.0, weights), logits, value)

    return search


def make_policy_search(game: Game, network: Network) -> Search:
    """No search: the move with the network's highest prior."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del keys
        logits, value = evaluate_states(game, network, variables, states)
        edge = choose(states, logits.argmax(axis=-1))
        return SearchOutput(edge, _softmax_over_legal(logits), logits, value)

    return search


def make_random_search() -> Search:
    """The random mover: each legal move is as likely as any other."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del variables
        logits = jnp.where(states.legal_edges >= 0, 0.0, ILLEGAL)
        slot = jax.vmap(jax.random.categorical)(keys, logits)
        value = jnp.zeros(logits.shape[0])
        return SearchOutput(choose(states, slot), _softmax_over_legal(logits), logits, value)

    return search


def _softmax_over_legal(logits: Array) -> Array:
    return jnp.where(logits == ILLEGAL, 0.0, jax.nn.softmax(logits))
