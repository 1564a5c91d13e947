"""Players that do not search: the network's first choice, and the random mover."""

import jax
import jax.numpy as jnp

from alphagateau.games.actions import choose
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network, Variables
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states, softmax_over_legal


def make_policy_search(game: Game, network: Network) -> Search:
    """No search: the move with the network's highest prior."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del keys
        logits, value = evaluate_states(game, network, variables, states)
        edge = choose(states, logits.argmax(axis=-1))
        return SearchOutput(
            edge, softmax_over_legal(logits), logits, value, value, num_nodes=jnp.ones(edge.shape, jnp.int32)
        )

    return search


def make_random_search() -> Search:
    """The random mover: each legal move is as likely as any other."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del variables
        logits = jnp.where(states.legal_edges >= 0, 0.0, ILLEGAL)
        slot = jax.vmap(jax.random.categorical)(keys, logits)
        value = jnp.zeros(logits.shape[0])
        nodes = jnp.zeros(logits.shape[0], jnp.int32)
        return SearchOutput(choose(states, slot), softmax_over_legal(logits), logits, value, value, num_nodes=nodes)

    return search
