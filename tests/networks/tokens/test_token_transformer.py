"""The token transformer: its published sizes, the published forward pass, and what its heads say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.config import ConfigError
from alphagateau.games.actions import edges_by_slot, legal_edge_mask, random_positions
from alphagateau.games.symmetry import mirror_edges, mirror_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import average_mirrors, make_network
from alphagateau.networks.network import Network, Variables
from alphagateau.networks.tokens import network as token_transformer
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.networks.tokens.tokenizer import action_tokens, position_tokens

SILENT: dict[str, Any] = {"policy_head": False, "value_head": "none"}
TINY: dict[str, Any] = {"hidden_size": 8, "num_blocks": 2, "num_heads": 2, "num_bins": 4}
HEADS: dict[str, dict[str, Any]] = {
    "av": {**SILENT, "action_values": True},
    "sv": {**SILENT, "value_head": "bins"},
    "bc": {**SILENT, "policy_head": True},
    "all": {"policy_head": True, "value_head": "bins", "action_values": True},
}
BATCH = 8


def num_parameters(game, config) -> int:
    shapes = jax.eval_shape(make_network(game, config).init, jax.random.key(0))
    return sum(x.size for x in jax.tree.leaves(shapes))


@pytest.mark.parametrize(
    ("size", "expected"),
    [("402k", 402_624), ("small", 1_329_408), ("9M", 8_954_240), ("136M", 136_479_872), ("270M", 270_730_368)],
)
def test_sizes_have_as_many_parameters_as_published(size, expected):
    """Of a network of action values or state values, K = 128."""
    game = get_game("chess")
    for heads in ("av", "sv"):
        assert num_parameters(game, TokenTransformerConfig(size=size, **HEADS[heads])) == expected


def test_a_head_of_the_policy_has_an_output_a_move():
    """1968 d + 79 d + L (16 d^2 + 4 d) + 2 d + (d + 1) 1968, with d = 64, L = 4."""
    trunk = 1968 * 64 + 79 * 64 + 4 * (16 * 64**2 + 4 * 64) + 2 * 64
    assert num_parameters(get_game("chess"), TokenTransformerConfig(**HEADS["bc"])) == trunk + 65 * 1968
    changed = TokenTransformerConfig(size="9M", hidden_size=64, num_blocks=4, num_heads=2, **HEADS["bc"])
    assert num_parameters(get_game("chess"), changed) == trunk + 65 * 1968


def published(params: Variables, num_heads: int, head: str, tokens: np.ndarray) -> np.ndarray:
    """The published decoder on sequences [R, T] that begin with 0: every place of every block, one head at a time."""

    def norm(w, x):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * w["scale"] + w["bias"]

    def softmax(x):
        x = np.exp(x - x.max(-1, keepdims=True))
        return x / x.sum(-1, keepdims=True)

    params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    h = params["embed_tokens"][tokens]
    h = h * np.sqrt(h.shape[-1]) + params["embed_places"][: tokens.shape[1]]
    for i in range(sum(name.startswith("block") for name in params)):
        w = params[f"block{i}"]
        x = norm(w["norm_attention"], h)
        q, k, v = (np.split(x @ w[name], num_heads, axis=-1) for name in ("W_q", "W_k", "W_v"))
        pairs = zip(q, k, v, strict=True)
        mixed = [softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])) @ v for q, k, v in pairs]
        h = h + np.concatenate(mixed, axis=-1) @ w["W_o"]
        x = norm(w["norm_hidden"], h)
        gate = x @ w["W_1"]
        h = h + (gate / (1 + np.exp(-gate)) * (x @ w["W_2"])) @ w["W_3"]
    return norm(params["norm_last"], h)[:, -1] @ params[head]["kernel"] + params[head]["bias"]


@pytest.fixture(scope="module")
def positions(gardner):
    return random_positions(gardner, BATCH)


@pytest.fixture(scope="module")
def all_heads(gardner) -> tuple[Network, Variables]:
    """A network with the three heads, and weights that are larger than at first, so that places differ."""
    network = make_network(gardner, TokenTransformerConfig(**TINY, **HEADS["all"]))
    variables = network.init(jax.random.key(0))
    return network, jax.tree.map(lambda x: x + 0.3 * jax.random.normal(jax.random.key(x.size), x.shape), variables)


def test_the_network_is_the_published_one(gardner, positions, all_heads, monkeypatch):
    """All legal moves of eight boards, three a chunk; the last chunk is not full."""
    monkeypatch.setattr(token_transformer, "sequences_at_a_time", lambda *_, **__: 3)
    network, variables = all_heads
    evaluation, statistics = jax.jit(network.apply)(variables, positions)
    assert not statistics
    legal, params = np.asarray(legal_edge_mask(gardner, positions)), variables["params"]
    actions = np.asarray(action_tokens(gardner, positions))
    tokens = np.pad(position_tokens(gardner, positions), [(0, 0), (1, 0)])
    close = {"rtol": 1e-4, "atol": 1e-4}
    policy = np.take_along_axis(published(params, 2, "policy", tokens), actions, axis=1)
    np.testing.assert_allclose(evaluation.prior_logits, policy, **close)
    values = published(params, 2, "value_bins", tokens)
    np.testing.assert_allclose(evaluation.extra["value_logits"], values, **close)
    shares = np.exp(values) / np.exp(values).sum(-1, keepdims=True)
    np.testing.assert_allclose(evaluation.value, 2 * shares @ [0.125, 0.375, 0.625, 0.875] - 1, **close)
    assert legal.sum() > 3 * BATCH and legal.sum() % 3
    for board in range(BATCH):
        edges = np.flatnonzero(legal[board])
        sequences = np.column_stack([np.repeat(tokens[board][None], len(edges), 0), actions[board, edges]])
        found = evaluation.extra["action_value_logits"][board]
        np.testing.assert_allclose(found[: len(edges)], published(params, 2, "action_values", sequences), **close)
        assert not found[len(edges) :].any()


def test_one_move_a_board_is_valued_as_among_all(gardner, positions, all_heads):
    network, variables = all_heads
    assert network.values_one_move
    every = jax.jit(network.apply)(variables, positions)[0].extra["action_value_logits"]
    num_legal = legal_edge_mask(gardner, positions).sum(axis=-1)
    slots = jnp.clip(jnp.arange(BATCH), 0, jnp.maximum(num_legal - 1, 0))[:, None]
    one = jax.jit(lambda v, p, s: network.apply(v, p, True, None, s)[0])(variables, positions, slots)
    expected = np.take_along_axis(np.asarray(every), np.asarray(slots)[..., None], axis=1)
    has_move = np.asarray(num_legal) > 0
    np.testing.assert_allclose(one.extra["action_value_logits"][has_move], expected[has_move], rtol=1e-4, atol=1e-5)
    in_training = jax.jit(lambda v, p: network.apply(v, p, True)[0])(variables, positions)
    assert set(in_training.extra) == {"value_logits"}


def test_what_a_network_of_action_values_alone_says(gardner, positions, all_heads):
    """The prior is softmax(q / 0.05), the value 2 max q - 1; a board without a legal move is worth 0."""
    network = make_network(gardner, TokenTransformerConfig(**TINY, **HEADS["av"]))
    variables = {"params": {k: v for k, v in all_heads[1]["params"].items() if k not in ("policy", "value_bins")}}
    stuck = positions._replace(legal=positions.legal.at[0].set(0))
    evaluation = jax.jit(network.apply)(variables, stuck)[0]
    q = jax.nn.softmax(evaluation.extra["action_value_logits"]) @ jnp.array([0.125, 0.375, 0.625, 0.875])
    edges = np.asarray(edges_by_slot(legal_edge_mask(gardner, stuck), gardner.max_legal_moves))
    assert evaluation.value[0] == 0 and (edges[0] == gardner.num_edges).all()
    for board in np.flatnonzero(edges[:, 0] < gardner.num_edges):
        legal = edges[board][edges[board] < gardner.num_edges]
        values = np.asarray(q[board, : len(legal)])
        np.testing.assert_allclose(evaluation.value[board], 2 * values.max() - 1, atol=1e-6)
        np.testing.assert_allclose(evaluation.prior_logits[board, legal], values / 0.05, rtol=1e-5)


@pytest.mark.parametrize("heads", ["sv", "bc"])
def test_what_a_network_does_not_know_is_even(gardner, positions, heads):
    network = make_network(gardner, TokenTransformerConfig(**TINY, **HEADS[heads]))
    evaluation = jax.jit(network.apply)(network.init(jax.random.key(0)), positions)[0]
    assert bool(evaluation.value.any()) is (heads == "sv") and bool(evaluation.prior_logits.any()) is (heads == "bc")
    assert not network.values_one_move


def test_the_past_is_not_seen_and_mirrors_can_be_averaged(gardner, positions, all_heads):
    network, variables = all_heads
    assert int(jnp.abs(positions.boards[:, 1:]).sum()) > 0
    alone = positions._replace(boards=positions.boards.at[:, 1:].set(0), repeated=0 * positions.repeated)
    found, same = (jax.jit(network.apply)(variables, p)[0] for p in (positions, alone))
    np.testing.assert_array_equal(found.value, same.value)
    averaged = jax.jit(average_mirrors(gardner, network).apply)
    here, there = (averaged(variables, p)[0] for p in (positions, mirror_positions(gardner, positions)))
    np.testing.assert_allclose(here.value, there.value, atol=1e-5)
    np.testing.assert_allclose(here.prior_logits[:, mirror_edges(gardner)], there.prior_logits, atol=1e-4)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"num_heads": 3}, r"network.num_heads \(3\) must divide 64, network.hidden_size"),
        (SILENT, "network.policy_head, value_head or action_values must be there: the network says nothing"),
        ({"size": "10M"}, 'size must be one of "402k", "small", "9M", "136M", "270M", got "10M"'),
    ],
)
def test_networks_that_cannot_be_are_refused(keys, said):
    with pytest.raises(ConfigError, match=said):
        TokenTransformerConfig(**keys)
