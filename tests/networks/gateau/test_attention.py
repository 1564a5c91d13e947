"""The attention of edges, against what the plain network attends to."""

import dataclasses

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from alphagateau.games.actions import random_positions
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.gateau.attention import make_attention
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.graph import graphs_tuple
from alphagateau.networks.gateau.reference import ReferenceLayer, ReferenceNetwork
from alphagateau.networks.make_network import make_network


def plain_attention(game: Game, config: GateauConfig, variables, positions) -> list[np.ndarray]:
    """Equation (5) on the edges g' that each layer of the plain network gives: [B * E] a layer."""
    module = ReferenceNetwork(config)
    graph = graphs_tuple(game, positions)
    keep = {"capture_intermediates": lambda part, _: isinstance(part, ReferenceLayer), "mutable": ["intermediates"]}
    _, kept = jax.jit(lambda variables: module.apply(variables, graph, False, **keep))(variables)
    found = []
    for name in [f"block{i}_gateau{half}" for i in range(config.num_blocks) for half in (1, 2)]:
        (out,) = kept["intermediates"][name]["__call__"]
        logits = jax.nn.leaky_relu(out.edges @ variables["params"][name]["a"], 0.2)
        found.append(np.asarray(jraph.segment_softmax(logits, graph.receivers, len(graph.nodes)))[:, 0])
    return found


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gardner_chess", {"num_blocks": 2, "message": "updated_edge"}),
        pytest.param("chess", {"num_blocks": 1, "normalization": "layer"}, marks=pytest.mark.whole),
    ],
)
def test_attention_is_that_of_the_plain_network(name, changes):
    game, config = get_game(name), dataclasses.replace(GateauConfig(hidden_size=8), **changes)
    variables = make_network(game, config).init(jax.random.key(1))
    keys = iter(jax.random.split(jax.random.key(7), len(jax.tree.leaves(variables))))
    variables = jax.tree.map(lambda x: x + 0.1 * jax.random.uniform(next(keys), x.shape), variables)
    positions = random_positions(game, 3)
    attention = make_attention(game, config)
    assert attention is not None
    got = jax.jit(attention)(variables, positions)
    want = np.stack(plain_attention(game, config, variables, positions)).reshape(-1, 3, game.num_edges)
    assert got.shape == (3, 2 * config.num_blocks, game.num_edges)
    np.testing.assert_allclose(got, want.swapaxes(0, 1), rtol=1e-4, atol=1e-6)
    into = jnp.zeros((3, 2 * config.num_blocks, game.num_squares)).at[..., game.receivers].add(got)
    np.testing.assert_allclose(into, 1, rtol=1e-5)


def test_a_network_without_edges_attends_to_none():
    assert make_attention(get_game("gardner_chess"), AlphaZeroConfig()) is None
