"""Plays without a tree: the move of highest prior, and uniformly random moves."""

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edge_at
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network, Variables
from alphagateau.search.config import PolicyConfig
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states, softmax_over_legal


def make_policy_search(game: Game, network: Network, config: PolicyConfig, tie_break: None = None) -> Search:
    """Plays the move of highest prior; in the first plies samples by softmax(logit / temperature)."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        logits, value = evaluate_states(game, network, variables, states)
        slot, _ = sample_slots(keys, states, logits, config.temperature, config.temperature_plies)
        edge = edge_at(states, slot)
        nodes = jnp.ones(edge.shape, jnp.int32)
        return SearchOutput(edge, softmax_over_legal(logits), logits, value, value, num_nodes=nodes)

    return search


def make_random_search(*_: object) -> Search:
    """Samples a legal move uniformly; needs none of what other searches are made of."""

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del variables
        logits = jnp.where(states.legal_edges >= 0, 0.0, ILLEGAL)
        slot = jax.vmap(jax.random.categorical)(keys, logits)
        value, nodes = jnp.zeros(len(logits)), jnp.zeros(len(logits), jnp.int32)
        return SearchOutput(edge_at(states, slot), softmax_over_legal(logits), logits, value, value, num_nodes=nodes)

    return search


def sample_slots(keys: Array, states: State, scores: Array, temperature: float, plies: int) -> tuple[Array, Array]:
    """(slot [B], weights [B, S]): sampled by softmax(score / temperature) before ply `plies`, then the highest score.

    The first of equal scores is the highest; temperature 0 samples nothing. Empty slots must have the lowest scores.
    """
    best = scores.argmax(axis=-1)
    weights = jnp.where(states.legal_edges >= 0, jax.nn.one_hot(best, scores.shape[-1]), 0.0)
    if not temperature:
        return best, weights
    logits = jnp.where(states.legal_edges >= 0, scores / temperature, ILLEGAL)
    is_early = states.ply < plies
    sampled = jax.vmap(jax.random.categorical)(keys, logits)
    weights = jnp.where(is_early[:, None], softmax_over_legal(logits), weights)
    return jnp.where(is_early, sampled, best), weights
