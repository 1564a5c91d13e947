"""One ply of search: the policy prior * exp(scale * value), the best one near the prior (Grill et al. 2020)."""

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edge_at
from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.networks.network import Network
from alphagateau.search.move_values import map_legal_moves
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states, softmax_over_legal


def make_one_ply(game: Game, network: Network, config, tie_break) -> Search:
    """Makes the search of a OnePlyConfig."""

    def search(variables, keys, states) -> SearchOutput:
        def move_value(before, edges):
            after = jax.vmap(game.step)(before, edges)
            reward, discount = reward_and_discount(before, after)
            return reward + discount * evaluate_states(game, network, variables, after)[1]

        prior_logits, value = evaluate_states(game, network, variables, states)
        is_legal = states.legal_edges >= 0
        move_values = map_legal_moves(states, move_value)  # [B, S] for the player to move, -inf on empty slots
        scores = jnp.where(is_legal, jax.nn.log_softmax(prior_logits) + config.value_scale * move_values, ILLEGAL)
        weights = softmax_over_legal(scores)
        slots = scores.argmax(axis=-1)
        if config.temperature:
            logits = jnp.where(is_legal, scores / config.temperature, ILLEGAL)
            slots = jax.vmap(jax.random.categorical)(keys, logits)
        search_value = (weights * jnp.where(is_legal, move_values, 0.0)).sum(axis=-1)
        num_nodes = 1 + is_legal.sum(axis=-1)
        edge = edge_at(states, slots)
        return SearchOutput(edge, weights, prior_logits, value, search_value, None, move_values, num_nodes)

    return search
