"""What the gradient of a network hands to XLA: no more for more blocks, and how much more than the plain network's."""

from functools import cache

import jax
import jax.numpy as jnp
import pytest

from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.gateau.reference import make_reference

MAKERS = {"ours": make_gateau, "plain": make_reference}


@cache
def operations(name: str, num_blocks: int, batch: int = 64) -> int:
    """StableHLO operations of a gradient on 5x5 boards at quickstart size; those of a shared function count once."""
    game = get_game("gardner_chess")
    network = MAKERS[name](game, GateauConfig(hidden_size=32, num_blocks=num_blocks))

    def loss(params, rest, positions):
        evaluation, statistics = network.apply({"params": params, **rest}, positions, True)
        return jnp.square(evaluation.prior_logits).mean() + jnp.square(evaluation.value).mean(), statistics

    def inputs():
        position = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), game.position(game.init()))
        variables = network.init(jax.random.key(0))
        return variables.pop("params"), variables, position

    lowered = jax.jit(jax.value_and_grad(loss, has_aux=True)).lower(*jax.eval_shape(inputs))
    return lowered.as_text().count(" = ")


def test_more_blocks_are_no_more_to_compile():
    assert operations("ours", 4) < 1.1 * operations("ours", 2)


@pytest.mark.parametrize(("num_blocks", "bound"), [(2, 3.7), (4, 2.3)])
def test_unrolled_sums_cost_a_bounded_multiple_of_the_plain_network(num_blocks, bound):
    assert operations("ours", num_blocks) < bound * operations("plain", num_blocks)
