"""The Search: a function from States to moves, improved policies and values."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float32, Int16, Int32

from alphagateau.games.actions import edges_to_slots
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network, Variables

# The logit of an empty slot; finite, so that sums of logits are.
ILLEGAL = float(jnp.finfo(jnp.float32).min)
MAX_VALUE = 1.001  # that a sound search finds: 1, and what rounding adds


class SearchOutput(NamedTuple):
    """The results of a search of B States; slots are those of `State.legal_edges`."""

    edge: Int16[Array, "*B"]  # the move to play; -1 where there is no legal move
    action_weights: Float32[Array, "*B S"]  # the improved policy, 0 on empty slots
    prior_logits: Float32[Array, "*B S"]  # of the network, ILLEGAL on empty slots
    value: Float32[Array, "*B"]  # of the root by the network, for the player to move
    search_value: Float32[Array, "*B"]  # of the root by the search, for the player to move
    leaf: State | None = None  # [B], the last of the principal variation; None: the search has none
    move_values: Float32[Array, "*B S"] | None = None  # for the player to move, -inf on empty slots
    num_nodes: Int32[Array, "*B"] | None = None  # positions visited, the root too; None: not counted


# (variables, keys [B], states [B]) -> SearchOutput. A player is a network's variables and a Search.
Search = Callable[[Variables, Array, State], SearchOutput]


def evaluate_states(game: Game, network: Network, variables: Variables, states: State) -> tuple[Array, Array]:
    """The network's (logits over slots [B, S], value [B]); the value of a finished game is 0."""
    evaluation, _ = network.apply(variables, jax.vmap(game.position)(states), False)
    logits = edges_to_slots(states, evaluation.prior_logits, ILLEGAL)
    return logits, jnp.where(states.terminated, 0.0, evaluation.value)


def softmax_over_legal(logits: Array) -> Array:
    """The policy [B, S] of logits over slots, 0 on empty slots."""
    return jnp.where(logits == ILLEGAL, 0.0, jax.nn.softmax(logits))
