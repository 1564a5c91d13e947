"""The networks: the fast GATEAU against the plain one, equation by equation, and what a network must respect."""

import dataclasses
import os
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.config import NETWORKS
from alphagateau.config.records import key, num, record
from alphagateau.config.registers import Architecture, NetworkConfig
from alphagateau.games.actions import random_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.alphazero.network import MOVE_PLANES, places_on_every_board
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.chunks import num_cores
from alphagateau.networks.gateau import network as gateau
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.gateau.reference import ReferenceLayer, make_reference
from alphagateau.networks.layers import normalize_rows
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Evaluation, Network
from alphagateau.networks.tokens.config import TokenTransformerConfig

GAMES = ("gardner_chess", "los_alamos_chess", "chess")
TINY = GateauConfig(hidden_size=8, num_blocks=2)


def stirred(variables):
    """The same tree with statistics and biases that are not 0 and 1."""
    leaves, tree = jax.tree.flatten(variables)
    keys = jax.random.split(jax.random.key(7), len(leaves))
    moved = [x + 0.1 * jax.random.uniform(k, x.shape, x.dtype) for x, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, moved)


def loss_and_gradient(network, train):
    def loss(params, rest, positions):
        evaluation, statistics = network.apply({"params": params, **rest}, positions, train)
        logits, value, _ = evaluation
        weights = jnp.cos(jnp.arange(logits.size).reshape(logits.shape))
        total = (weights * logits).mean() + (value * jnp.arange(1, len(value) + 1)).mean()
        return total, (evaluation, statistics)

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


CLOSE = {"float32": 1e-5, "float64": 1e-12}


@pytest.mark.parametrize(
    ("name", "num_blocks", "message", "train", "dtype"),
    [
        ("chess", 1, "edge", False, "float32"),
        pytest.param("gardner_chess", 3, "edge", True, "float64", marks=pytest.mark.whole),
        slow("gardner_chess", 1, "updated_edge", False, "float32"),
        slow("gardner_chess", 2, "edge", False, "float64"),
        slow("gardner_chess", 2, "updated_edge", True, "float64"),
        slow("chess", 2, "edge", True, "float64"),
        slow("chess", 2, "updated_edge", False, "float64"),
        slow("chess", 2, "updated_edge", True, "float64"),
    ],
)
def test_the_fast_network_equals_the_plain_one_in_value_and_gradient(
    name, num_blocks, message, train, dtype, monkeypatch
):
    """Deep ones in float64: float32's roundings grow with depth, differ by machine, and would hide small errors."""
    monkeypatch.setattr(gateau, "chunk_size", lambda *_: 2)  # 8 positions are four chunks
    game = get_game(name)
    config = SimpleNamespace(**vars(TINY) | {"num_blocks": num_blocks, "message": message, "dtype": dtype})
    with jax.enable_x64(dtype == "float64"):
        fast, plain = make_gateau(game, config), make_reference(game, config)
        variables = stirred(fast.init(jax.random.key(2)))  # by key 1 a ReLU's input is 0 within rounding
        variables = jax.tree.map(lambda x: x.astype(dtype), variables)
        params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}
        positions = random_positions(game, 8)
        (_, got), got_gradient = loss_and_gradient(fast, train)(params, rest, positions)
        (_, want), want_gradient = loss_and_gradient(plain, train)(params, rest, positions)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves((got, got_gradient)), jax.tree.leaves((want, want_gradient)), strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=CLOSE[dtype], atol=CLOSE[dtype])


def test_nodes_may_attend_to_the_edges_out_of_them_as_the_plain_network_does():
    game, config = get_game("gardner_chess"), dataclasses.replace(TINY, num_blocks=1, neighbors="outgoing")
    fast, plain = make_gateau(game, config), make_reference(game, config)
    variables, positions = stirred(fast.init(jax.random.key(1))), random_positions(game, 2)
    got, want = (jax.jit(network.apply)(variables, positions)[0] for network in (fast, plain))
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    incoming = jax.jit(make_gateau(game, dataclasses.replace(config, neighbors="incoming")).apply)
    assert abs(incoming(variables, positions)[0].prior_logits - got.prior_logits).max() > 1e-3


FOUR_BLOCKS = [
    GateauConfig(hidden_size=8, num_blocks=4),
    ChessformerConfig(hidden_size=8, num_blocks=4, num_heads=2, ffn_size=8),
    TokenTransformerConfig(hidden_size=8, num_blocks=4, num_heads=2),
]


@pytest.mark.whole
@pytest.mark.parametrize("config", FOUR_BLOCKS, ids=lambda config: config.architecture)
def test_a_rematerialized_network_says_and_learns_the_same_and_keeps_less(config, monkeypatch):
    """On one chunk, as accelerators have it; memory is what XLA plans for value and gradient."""
    monkeypatch.setattr(gateau, "chunk_size", lambda *_: 64)
    game = get_game("gardner_chess")
    networks = [make_network(game, dataclasses.replace(config, rematerialize=again)) for again in (False, True)]
    variables, positions = networks[0].init(jax.random.key(1)), random_positions(game, 64)
    operands = variables["params"], {k: v for k, v in variables.items() if k != "params"}, positions
    programs = [loss_and_gradient(network, True).lower(*operands).compile() for network in networks]
    kept, again = (program(*operands) for program in programs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), kept, again)
    kept_bytes, again_bytes = (program.memory_analysis().temp_size_in_bytes for program in programs)
    assert again_bytes < 0.6 * kept_bytes


@pytest.mark.slow
@pytest.mark.parametrize("normalization", ["layer", "rms", "ghost"])
def test_the_other_normalisations_equal_the_plain_ones_in_value_and_gradient(normalization):
    game, config = get_game("gardner_chess"), dataclasses.replace(TINY, num_blocks=1, normalization=normalization)
    fast, plain = make_gateau(game, config), make_reference(game, config)
    variables = stirred(fast.init(jax.random.key(1)))
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}
    positions = random_positions(game, 4)
    got, want = (loss_and_gradient(network, True)(params, rest, positions) for network in (fast, plain))
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_ghost_batch_is_alone_beside_those_of_other_devices():
    game, config = get_game("gardner_chess"), dataclasses.replace(TINY, num_blocks=1, normalization="ghost")
    network = make_gateau(game, config)
    variables, positions = network.init(jax.random.key(1)), random_positions(game, 8)
    halves = jax.tree.map(lambda x: x.reshape(2, 4, *x.shape[1:]), positions)
    both, _ = jax.vmap(lambda half: network.apply(variables, half, True, "devices"), axis_name="devices")(halves)
    for i in range(2):
        alone, _ = network.apply(variables, jax.tree.map(lambda x, i=i: x[i], halves), True)
        np.testing.assert_allclose(both.prior_logits[i], alone.prior_logits, atol=1e-5)
        np.testing.assert_allclose(both.value[i], alone.value, atol=1e-5)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_rows_are_normalized_as_flax_does_in_value_and_gradient(kind):
    module = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[kind]()
    x = 3 * jax.random.normal(jax.random.key(0), (7, 5)) + 1
    params = stirred(module.init(jax.random.key(1), x)["params"])
    weights = jnp.cos(jnp.arange(x.size)).reshape(x.shape)
    plain = jax.value_and_grad(lambda p, x: (weights * nn.relu(module.apply({"params": p}, x))).sum(), (0, 1))
    ours = jax.value_and_grad(lambda p, x: jnp.vdot(weights, normalize_rows(kind, p, x)), (0, 1))
    for a, b in zip(jax.tree.leaves(ours(params, x)), jax.tree.leaves(plain(params, x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_training_in_chunks_is_for_normalisations_without_statistics_of_the_batch():
    game = get_game("gardner_chess")
    sizes = {"batch": 1, "ghost": 4, "layer": 64, "rms": 64}
    for kind, num_chunks in sizes.items():
        config = dataclasses.replace(TINY, normalization=kind, ghost_size=16, hidden_size=2**16)
        assert make_gateau(game, config).num_chunks(64) == num_chunks
    with pytest.raises(ValueError, match=r"ghost_size \(16\) must divide a device's batch of 40 positions"):
        make_gateau(game, dataclasses.replace(TINY, normalization="ghost")).num_chunks(40)


def test_a_batch_in_chunks_equals_each_position_alone():
    game = get_game("gardner_chess")
    network = make_gateau(game, dataclasses.replace(TINY, num_blocks=1))
    variables = stirred(network.init(jax.random.key(1)))
    positions = random_positions(game, 70)
    evaluate = jax.jit(lambda positions: network.apply(variables, positions, False)[0])
    together = evaluate(positions)
    apart = [evaluate(jax.tree.map(lambda x, i=i: x[i : i + 1], positions)) for i in (0, 33, 69)]
    for i, one in zip((0, 33, 69), apart, strict=True):
        np.testing.assert_allclose(together.prior_logits[i], one.prior_logits[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(together.value[i], one.value[0], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_batch_statistics_along_an_axis_are_those_of_the_whole_batch():
    game = get_game("gardner_chess")
    network = make_gateau(game, dataclasses.replace(TINY, num_blocks=3))
    variables, positions = stirred(network.init(jax.random.key(1))), random_positions(game, 8)
    want, statistics = jax.jit(lambda positions: network.apply(variables, positions, True))(positions)
    parts = jax.tree.map(lambda x: x.reshape(2, 4, *x.shape[1:]), positions)
    train = jax.vmap(lambda part: network.apply(variables, part, True, "parts"), axis_name="parts")
    got, of_parts = jax.jit(train)(parts)
    np.testing.assert_allclose(got.prior_logits.reshape(8, -1), want.prior_logits, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got.value.reshape(-1), want.value, rtol=1e-5, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[1], b, rtol=1e-5, atol=1e-5), of_parts, statistics)


def shapes_of(network):
    return jax.tree.map(lambda x: x.shape, jax.eval_shape(network.init, jax.random.key(0)))


EVERY_BOARD = [TINY, AlphaZeroConfig(hidden_size=8, num_blocks=1, readout="squares", value_head="wdl")]


@pytest.mark.parametrize("config", EVERY_BOARD, ids=lambda config: config.architecture)
def test_no_parameter_depends_on_the_board(config):
    small, other, large = (shapes_of(make_network(get_game(name), config)) for name in GAMES)
    assert small == other == large and config.plays_every_board
    assert not dataclasses.replace(EVERY_BOARD[1], readout="dense").plays_every_board


def test_a_move_has_the_same_plane_of_the_cnn_on_every_board():
    """b2 -> c4 and a pawn's plain step on 5x5, 6x6 and 8x8; no two moves of a square share a plane."""
    found = []
    for game in map(get_game, GAMES):
        places = places_on_every_board(game)
        assert len(set(places.tolist())) == game.num_edges
        for step in (1 + 1j * 2, 1j):
            start, end = (int(at.real) * game.size + int(at.imag) for at in (1 + 1j, 1 + 1j + step))
            is_move = (game.senders == start) & (game.receivers == end) & (game.promotions == 0)
            (place,) = places[is_move].tolist()
            found.append(divmod(place, len(MOVE_PLANES))[1])
    assert len(MOVE_PLANES) == 73 and found[:2] == found[2:4] == found[4:]
    assert [MOVE_PLANES[plane] for plane in found[:2]] == [(1, 2, 0), (0, 1, 0)]


def test_planes_at_squares_are_read_where_the_piece_stands():
    """With convolutions that see one square only, a pawn that leaves changes the logits of its square's moves alone."""
    game = get_game("gardner_chess")
    config = AlphaZeroConfig(hidden_size=8, num_blocks=1, readout="squares", normalization="layer")
    network, pawn = make_network(game, config), 6
    params = network.init(jax.random.key(0))["params"]
    for name in ("Conv_0", "Conv_1", "Conv_2"):
        params[name]["kernel"] = (
            params[name]["kernel"] * np.eye(3)[1][:, None, None, None] * np.eye(3)[1][:, None, None]
        )
    position = jax.tree.map(lambda x: x[None], game.position(game.init()))
    emptied = position._replace(boards=position.boards.at[:, :, pawn].set(0))
    one, other = (network.apply({"params": params}, p)[0].prior_logits[0] for p in (position, emptied))
    np.testing.assert_array_equal(one != other, game.senders == pawn)


def test_sizes_are_the_papers():
    game, paper = get_game("chess"), GateauConfig()
    gateau = jax.eval_shape(make_network(game, paper).init, jax.random.key(0))["params"]
    assert 1.0e6 < sum(x.size for x in jax.tree.leaves(gateau)) < 1.1e6
    layer = gateau["block0_gateau1"]
    assert sum(x.size for x in jax.tree.leaves(layer)) == 6 * 128**2 + 128
    cnn = AlphaZeroConfig()
    baseline = jax.eval_shape(make_network(game, cnn).init, jax.random.key(0))["params"]
    assert 2.0e6 < sum(x.size for x in jax.tree.leaves(baseline)) < 2.4e6


def test_a_layer_on_two_nodes_by_hand():
    """K = 1. Two edges run to node 0, from 0 and from 1; equations (4) to (6) with numbers one can check."""
    import jraph

    w = {"W_u": 1.0, "W_v": 2.0, "W_e": 3.0, "W_0": 4.0, "W_h": 5.0, "W_g": 6.0, "a": 1.0}
    params = {"params": {name: jnp.full((1, 1), value) for name, value in w.items()}}
    graph = jraph.GraphsTuple(
        nodes=jnp.array([[1.0], [-1.0]]),
        edges=jnp.array([[0.5], [1.0]]),
        senders=jnp.array([0, 1]),
        receivers=jnp.array([0, 0]),
        n_node=jnp.array([2]),
        n_edge=jnp.array([2]),
        globals=None,
    )
    out = ReferenceLayer(1, "edge").apply(params, graph)
    # (4): 1 * 1 + 3 * 0.5 + 2 * 1 = 4.5 and 1 * 1 + 3 * 1 + 2 * -1 = 2
    np.testing.assert_allclose(out.edges, [[4.5], [2.0]], rtol=1e-6)
    # (5): softmax(4.5, 2); (6): 4 * 1 + alpha_0 (5 * 1 + 6 * 0.5) + alpha_1 (5 * -1 + 6 * 1)
    alpha = np.exp([4.5, 2.0]) / np.exp([4.5, 2.0]).sum()
    np.testing.assert_allclose(out.nodes, [[4 + alpha @ [8.0, 1.0]], [-4.0]], rtol=1e-5)


def test_the_policy_is_equivariant_to_the_numbering_of_the_graph():
    """Nodes and edges of the graph renumbered: the edge logits move along, the value stays."""
    import jraph

    rng = np.random.default_rng(0)
    nodes, edges, k = 6, 20, 4
    senders, receivers = rng.integers(0, nodes, (2, edges))
    node_of, edge_of = rng.permutation(nodes), rng.permutation(edges)  # new place -> old
    place = np.argsort(node_of)
    h, g = rng.normal(size=(nodes, k)), rng.normal(size=(edges, k))

    def graph(h, g, senders, receivers):
        return jraph.GraphsTuple(
            nodes=jnp.float32(h),
            edges=jnp.float32(g),
            senders=jnp.asarray(senders),
            receivers=jnp.asarray(receivers),
            n_node=jnp.array([nodes]),
            n_edge=jnp.array([edges]),
            globals=None,
        )

    layer = ReferenceLayer(k, "edge")
    first = graph(h, g, senders, receivers)
    variables = layer.init(jax.random.key(0), first)
    second = graph(h[node_of], g[edge_of], place[senders[edge_of]], place[receivers[edge_of]])
    a, b = layer.apply(variables, first), layer.apply(variables, second)
    np.testing.assert_allclose(a.nodes[node_of], b.nodes, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a.edges[edge_of], b.edges, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("architecture", [pytest.param("gateau", marks=pytest.mark.whole), "alphazero"])
def test_training_moves_the_statistics_and_inference_does_not(architecture):
    game = get_game("gardner_chess")
    network = make_network(game, NETWORKS[architecture].config(hidden_size=8, num_blocks=2))
    variables = network.init(jax.random.key(0))
    positions = random_positions(game, 8)
    evaluation, same = network.apply(variables, positions, False)
    assert evaluation.prior_logits.shape == (8, game.num_edges) and evaluation.value.shape == (8,)
    assert bool((jnp.abs(evaluation.value) <= 1).all())
    jax.tree.map(np.testing.assert_array_equal, same, {"batch_stats": variables["batch_stats"]})
    _, moved = network.apply(variables, positions, True)
    pairs = zip(jax.tree.leaves(same), jax.tree.leaves(moved), strict=True)
    assert any(bool((a != b).any()) for a, b in pairs)


def test_a_network_without_history_sees_the_present_alone():
    game = get_game("gardner_chess")
    config = AlphaZeroConfig(hidden_size=8, num_blocks=1)
    seeing, blind = (make_network(game, dataclasses.replace(config, history=h)) for h in (True, False))
    variables, positions = seeing.init(jax.random.key(0)), random_positions(game, 8)
    assert int(jnp.abs(positions.boards[:, 1:]).sum()) > 0
    alone = positions._replace(boards=positions.boards.at[:, 1:].set(0), repeated=0 * positions.repeated)
    found = blind.apply(variables, positions)[0]
    np.testing.assert_array_equal(found.prior_logits, seeing.apply(variables, alone)[0].prior_logits)
    assert (found.prior_logits != seeing.apply(variables, positions)[0].prior_logits).any()


@pytest.mark.whole
def test_bfloat16_changes_little():
    game = get_game("gardner_chess")
    exact, rough = (make_gateau(game, dataclasses.replace(TINY, dtype=d)) for d in ("float32", "bfloat16"))
    variables = exact.init(jax.random.key(0))
    positions = random_positions(game, 16)
    a, b = (network.apply(variables, positions, False)[0] for network in (exact, rough))
    assert b.prior_logits.dtype == jnp.float32
    assert 0 < float(jnp.abs(a.prior_logits - b.prior_logits).max()) < 0.1
    assert float(jnp.abs(a.value - b.value).max()) < 0.05


@record
class MaterialConfig(NetworkConfig):
    """Keys of the toy architecture below."""

    history = True
    architecture: str = key("", default="material")
    scale: float = num("", default=0.25)


def make_material(game, config):
    """The value is the tanh of a learnt weight times (own pieces - theirs); win, draw and loss are an extra output."""

    def init(key):
        del key
        return {"params": {"scale": jnp.float32(config.scale)}}

    def apply(variables, positions, train=False, axis_name=None):
        del train, axis_name
        score = variables["params"]["scale"] * jnp.sign(positions.boards[:, 0]).sum(axis=-1)
        logits = jnp.zeros((len(score), game.num_edges))
        return Evaluation(logits, jnp.tanh(score), {"win_draw_loss": jnp.stack([score, 0 * score, -score], axis=1)}), {}

    return Network(init, apply)


def test_a_new_architecture_is_registered_and_may_have_extra_outputs(monkeypatch):
    monkeypatch.setitem(NETWORKS._entries, "material", Architecture("material", MaterialConfig, make_material))
    game = get_game("gardner_chess")
    network = make_network(game, MaterialConfig())
    variables, positions = network.init(jax.random.key(0)), random_positions(game, 8)
    evaluation = jax.jit(network.apply)(variables, positions)[0]
    assert evaluation.prior_logits.shape == (8, game.num_edges) and set(evaluation.extra) == {"win_draw_loss"}
    score = 0.25 * np.sign(positions.boards[:, 0]).sum(axis=-1)
    assert score.any()
    np.testing.assert_allclose(evaluation.extra["win_draw_loss"][:, 0], score)

    def of_the_win(params):
        return network.apply({"params": params}, positions)[0].extra["win_draw_loss"][:, 0].sum()

    gradient = jax.jit(jax.grad(of_the_win))(variables["params"])
    np.testing.assert_allclose(gradient["scale"], score.sum() / 0.25)


def test_an_architecture_that_is_not_registered_is_named():
    with pytest.raises(ValueError, match=r'architecture must be one of "gateau", "alphazero", .*, got "material"'):
        make_network(get_game("gardner_chess"), MaterialConfig())


def test_a_network_without_extra_outputs_has_none():
    evaluation = jax.jit(lambda x: Evaluation(x, x))(jnp.zeros(2))
    assert dict(evaluation.extra) == {} and len(jax.tree.leaves(evaluation)) == 2


def test_cores_are_counted_where_the_system_knows_no_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert num_cores() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert num_cores() == 1
