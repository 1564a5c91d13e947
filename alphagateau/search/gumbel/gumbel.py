"""Gumbel MuZero search over legal-move slots.

An action of the tree is a slot: an index into the node's own list of legal edges. A tree over S slots (118 on 5x5, 218
on 8x8) is several times smaller than one over all edges. A node stores a State and no observation.
"""

# pyright: reportCallIssue=false
# mctx's records are dataclasses of chex, whose constructors pyright does not see.

from functools import partial

import jax
import jax.numpy as jnp
import mctx
from mctx._src.search import instantiate_tree_from_root

from alphagateau.games.actions import edge_at
from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network, Variables
from alphagateau.search.gumbel import batched_mctx, levels
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states, softmax_over_legal


def make_gumbel_search(game: Game, network: Network, config: GumbelConfig, tie_break: None = None) -> Search:
    """Makes Gumbel MuZero (Danihelka et al. 2022) with the rules of the game as its model.

    Each game's noise comes from its own key, so its search depends neither on the other games of the batch nor on the
    device. `gumbel_scale` 0 makes the search deterministic, for matches. `batch_by` "leaf" evaluates one leaf a game a
    call, as mctx does, and "level" two, packed from levels.
    """
    qtransform = partial(  # the paper's sigma, its equation 8
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale,
        maxvisit_init=config.maxvisit_init,
        rescale_values=config.rescale_values,
    )
    select_root = partial(
        mctx.gumbel_muzero_root_action_selection,
        num_simulations=config.num_simulations,
        max_num_considered_actions=config.max_num_considered_actions,
        qtransform=qtransform,
    )
    select_interior = partial(mctx.gumbel_muzero_interior_action_selection, qtransform=qtransform)

    def recurrent_fn(variables, key, slot, states):
        del key
        after = jax.vmap(game.step)(states, edge_at(states, slot))
        reward, discount = reward_and_discount(states, after)
        logits, value = evaluate_states(game, network, variables, after)
        step = mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return step, after

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        logits, value = evaluate_states(game, network, variables, states)
        illegal = states.legal_edges < 0
        slots = (logits.shape[-1],)
        gumbel = config.gumbel_scale * jax.vmap(lambda key: jax.random.gumbel(key, slots))(keys)
        tree = instantiate_tree_from_root(
            mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
            config.num_simulations,
            root_invalid_actions=illegal.astype(jnp.float32),
            extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=gumbel),
        )
        if config.batch_by == "level":
            most = config.max_num_considered_actions
            tree = levels.search(variables, tree, recurrent_fn, select_interior, qtransform, most)
        else:
            tree = batched_mctx.search(variables, tree, recurrent_fn, select_root, select_interior)
        summary = tree.summary()
        visits = summary.visit_counts
        qvalues = jax.vmap(qtransform, (0, None))(tree, tree.ROOT_INDEX)
        is_best = (visits == visits.max(axis=-1, keepdims=True)) & ~illegal
        slot = jnp.argmax(jnp.where(is_best, gumbel + logits + qvalues, -jnp.inf), axis=-1)
        weights = softmax_over_legal(jnp.where(illegal, ILLEGAL, logits + qvalues))
        nodes = visits.sum(axis=-1).astype(jnp.int32) + 1
        return SearchOutput(edge_at(states, slot), weights, logits, value, jnp.asarray(summary.value), num_nodes=nodes)

    return search
