"""Chessformer against its plain twin, number by number, and what it must respect on every board."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import chess
import chessformer_reference as plain
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boards import play
from tiny_checkpoints import SMALL, save_tiny

from alphagateau import config
from alphagateau.config import ConfigError
from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.actions import random_positions
from alphagateau.games.symmetry import mirror_edges, mirror_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.chessformer.encoder import Encoder, layer_weights, mish, rms_norm
from alphagateau.networks.chessformer.relative_attention import attend, attention_weights, spread
from alphagateau.networks.chessformer.square_tokens import embed_attacks, embed_tokens
from alphagateau.networks.make_network import make_network
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.training.resume import load_weights
from alphagateau.training.trainer import make_trainer

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"
TINY: dict[str, Any] = {"hidden_size": 8, "num_blocks": 2, "num_heads": 2, "ffn_size": 12}
GAMES = ("gardner_chess", "los_alamos_chess", "chess")
HEADS: dict[str, Any] = {
    "value_head": "wdl",
    "action_values": True,
    "num_bins": 3,
    "reply_head": True,
    "moves_left_head": True,
    "soft_policy_head": True,
    "search_value_head": True,
    "short_term_head": True,
    "categorical_values": True,
}
# As in the code of the paper: weights of squares, values from joined tokens, all heads that are trained there.
AS_PUBLISHED: dict[str, Any] = {
    "position": "shaw",
    "square_embedding": "absolute",
    "value_pooling": "flatten",
    "value_head": "wdl",
    "moves_left_head": True,
    "soft_policy_head": True,
    "search_value_head": True,
    "short_term_head": True,
}
CF_6M = ChessformerConfig(hidden_size=256, num_blocks=8, num_heads=8, ffn_size=256, **AS_PUBLISHED)
CF_240M = ChessformerConfig(
    hidden_size=1024, num_blocks=15, num_heads=32, ffn_size=4096, categorical_values=True, **AS_PUBLISHED
)


def stirred(variables):
    """The same tree with tables, biases and gains that are not 0 and 1."""
    leaves, tree = jax.tree.flatten(variables)
    keys = jax.random.split(jax.random.key(7), len(leaves))
    moved = [x + 0.3 * jax.random.normal(k, x.shape, x.dtype) for x, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, moved)


def in_numpy(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def shapes_of(game_name, chosen):
    network = make_network(get_game(game_name), chosen)
    return jax.eval_shape(network.init, jax.random.key(0))["params"]


def num_parameters(game_name, chosen):
    return sum(x.size for x in jax.tree.leaves(shapes_of(game_name, chosen)))


@pytest.mark.parametrize(
    "position",
    [
        pytest.param("absolute", marks=pytest.mark.whole),
        "bias",
        pytest.param("shaw_kv", marks=pytest.mark.whole),
        "shaw",
    ],
)
def test_each_position_scheme_equals_the_equations_as_printed(position, gardner):
    chosen = ChessformerConfig(**TINY, position=position)
    network = make_network(gardner, chosen)
    variables, positions = stirred(network.init(jax.random.key(1))), random_positions(gardner, 2)
    found, statistics = jax.jit(network.apply)(variables, positions)
    assert statistics == {} and dict(found.extra) == {}
    for i in range(2):
        one = jax.tree.map(lambda x, i=i: np.asarray(x[i]), positions)
        logits, value = plain.evaluate(gardner, chosen, in_numpy(variables["params"]), one)
        np.testing.assert_allclose(found.prior_logits[i], logits, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.value[i], value, rtol=1e-4, atol=1e-4)


def test_tokens_are_leelas_numbers():
    """Start of chess: own king 5, four rights, 1; then after a double step, castling lost and a repetition."""
    game = get_game("chess")
    kernel = jnp.eye(112)
    params = {"kernel": kernel, "bias": jnp.zeros(112)}
    states = [game.init(), play(game, game.start_fen, "e2e4 a7a6 e4e5 d7d5"), play(game, game.start_fen, *SHUFFLE)]
    positions = jax.tree.map(lambda *x: jnp.stack(x), *map(game.position, states))
    found = embed_tokens(params, game, positions).reshape(3, 64, 112)
    for i in range(3):
        want = plain.tokens(game, jax.tree.map(lambda x, i=i: np.asarray(x[i]), positions))
        np.testing.assert_allclose(found[i], want, atol=1e-6)
    king = np.flatnonzero(found[0, 4 * 8])
    assert king.tolist() == [5, 104, 105, 106, 107, 111]
    assert np.flatnonzero(found[1, :, 108]).tolist() == [3 * 8 + 5] and found[2, 0, 12] == 1
    small = get_game("gardner_chess")
    position = jax.tree.map(lambda x: x[None], small.position(small.init()))
    assert np.flatnonzero(embed_tokens(params, small, position)[4 * 5]).tolist() == [5, 111]


SHUFFLE = ["g1f3", "g8f6", "f3g1", "f6g8"]


@pytest.mark.parametrize("mover", "wb")
def test_squares_say_who_attacks_them(mover):
    """Of each side the kind of the least attacker and how many there are, by python-chess, seen by the mover."""
    game, board = get_game("chess"), chess.Board(f"3r2k1/5ppp/2n1b3/8/3P1B2/2NQ2P1/4PPKP/3R4 {mover} - - 0 1")
    positions = jax.tree.map(lambda x: x[None], game.position(play(game, board.fen())))
    found = embed_attacks(jnp.eye(48), game, positions).reshape(8, 8, 2, 6, 4)  # file, rank, side, least, number
    worth = {chess.PAWN: 1, chess.KNIGHT: 2, chess.BISHOP: 2, chess.ROOK: 3, chess.QUEEN: 4, chess.KING: 5}
    for square in chess.SQUARES:
        rank = chess.square_rank(square) if mover == "w" else 7 - chess.square_rank(square)
        for side, color in enumerate((board.turn, not board.turn)):
            attackers = [worth[board.piece_type_at(a)] for a in board.attackers(color, square)]
            want = np.zeros((6, 4))
            want[min(attackers, default=0), min(len(attackers), 3)] = 1
            np.testing.assert_array_equal(found[chess.square_file(square), rank, side], want, chess.square_name(square))


def test_shaw_attention_of_two_squares_by_hand():
    """The vectors of both offsets, and half a bias: equations (6), (7) and (5)."""
    q, k, v = (jnp.float32(x).reshape(1, 1, 2, 2) for x in ([[1, 0], [0, 1]], [[1, 1], [0, 2]], [[1, 0], [0, 1]]))
    pairs = {
        "A_Q": [[[0, 0], [1, 1]], [[1, 0], [0, 0]]],
        "A_K": [[[0, 0], [1, 0]], [[0, -1], [0, 0]]],
        "A_V": [[[0, 0], [2, 0]], [[0, -2], [0, 0]]],
    }
    places = {name: jnp.float32(x)[None] for name, x in pairs.items()}
    places["A_QK"] = (places["A_Q"] * places["A_K"]).sum(axis=-1)
    w = attention_weights(q, k, places, "float32")[0, 0]
    np.testing.assert_allclose(w, [[0.107042, 0.892958], [0.330238, 0.669762]], atol=1e-6)
    z = attend(q, k, v, places, "float32")[0, 0]
    np.testing.assert_allclose(z, [[1.892958, 0.892958], [0.330238, 0.009285]], atol=1e-6)
    bias = {"D": jnp.float32([[[0, 0.5], [0, 0]]])}
    np.testing.assert_allclose(attention_weights(q, k, bias, "float32")[0, 0, 0, 1], 0.448408, atol=1e-6)


@pytest.mark.parametrize("tables", [(), ("D",), ("A_K", "A_V"), ("A_Q", "A_K", "A_V", "A_QK")], ids=" ".join)
def test_the_gradient_of_attention_is_that_of_its_equations(tables):
    """By hand in the code, by JAX of equations (6) and (7) here; 2 positions, 3 heads, 4 squares, 2 numbers."""
    shapes = dict.fromkeys("qkv", (2, 3, 4, 2)) | dict.fromkeys(tables, (3, 4, 4, 2))
    shapes |= {name: (3, 4, 4) for name in ("D", "A_QK") if name in tables}
    keys = jax.random.split(jax.random.key(0), len(shapes))
    inputs = {name: jax.random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items(), strict=True)}
    weights = jnp.cos(jnp.arange(2.0 * 3 * 4 * 2)).reshape(2, 3, 4, 2)

    def printed(x):
        keys_of_pairs = x["k"][:, :, None] + x.get("A_K", 0.0)
        e = (x["q"][:, :, :, None] * keys_of_pairs).sum(-1) + (x["k"][:, :, None] * x.get("A_Q", 0.0)).sum(-1)
        w = jax.nn.softmax((e + x.get("A_QK", 0.0)) / np.sqrt(2) + x.get("D", 0.0))
        return (weights * (w[..., None] * (x["v"][:, :, None] + x.get("A_V", 0.0))).sum(-2)).sum()

    def ours(x):
        places = {name: x[name] for name in tables}
        return (weights * attend(x["q"], x["k"], x["v"], places, "float32")).sum()

    found, want = (jax.jit(jax.value_and_grad(f))(inputs) for f in (ours, printed))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, want)


@pytest.mark.parametrize("size", [5, 8])
def test_tables_are_read_at_the_offset_of_two_squares(size):
    """Row 15 (7 + files) + 7 + ranks of the key to the query; b2 -> c4 is 95 on both boards."""
    rows = spread(jnp.arange(225.0).reshape(1, 15, 15), size)[0]
    file, rank = np.divmod(np.arange(size * size), size)
    want = 15 * (7 + file[:, None] - file) + 7 + rank[:, None] - rank
    np.testing.assert_array_equal(rows, want)
    assert rows[size + 1, 2 * size + 3] == 95
    assert len(np.unique(rows)) == {5: 81, 8: 225}[size]


def test_the_gradient_of_a_table_is_a_sum_over_its_pairs():
    weights = jnp.cos(jnp.arange(2.0 * 25 * 25 * 3)).reshape(2, 25, 25, 3)
    gradient = jax.grad(lambda table: (weights * spread(table, 5)).sum())(jnp.zeros((2, 15, 15, 3)))
    want = np.zeros((2, 15, 15, 3))
    for i in range(25):
        for j in range(25):
            want[:, 7 + i // 5 - j // 5, 7 + i % 5 - j % 5] += weights[:, i, j]
    np.testing.assert_allclose(gradient, want, atol=1e-4)
    assert (np.abs(want).sum(axis=(0, 3)) == 0).sum() == 144  # what a 5x5 board never meets


def test_activations_by_hand():
    np.testing.assert_allclose(mish(jnp.float32([1, -1, 0, 30])), [0.8650984, -0.3034015, 0, 30], rtol=1e-6)
    x = jnp.linspace(-30, 30, 61)
    by_parts = jax.grad(lambda x: (x * jnp.tanh(jax.nn.softplus(x))).sum())(x)
    np.testing.assert_allclose(jax.grad(lambda x: mish(x).sum())(x), by_parts, atol=1e-5)
    g, y = jnp.float32([1, 2]), jnp.float32([[3, 4]])
    np.testing.assert_allclose(rms_norm(g, y), [[3 / 12.5**0.5, 8 / 12.5**0.5]], rtol=1e-5)
    printed = jax.grad(lambda g, y: jnp.sin(g * y * jax.lax.rsqrt((y**2).mean() + 1e-5)).sum(), (0, 1))(g, y)
    found = jax.grad(lambda g, y: jnp.sin(rms_norm(g, y)).sum(), (0, 1))(g, y)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, printed)


def test_deepnorm_is_that_of_an_encoder():
    net = Encoder(5, ChessformerConfig(num_blocks=4, hidden_size=8, num_heads=2, ffn_size=8, position="bias"))
    np.testing.assert_allclose([net.alpha, net.beta], [1.68179, 0.42045], atol=1e-5)
    drawn = {name: np.asarray(w.initializer(jax.random.key(0), (400, 400), jnp.float32)).var() * 400
             for name, w in layer_weights(net).items() if name.startswith("W")}  # fmt: skip
    np.testing.assert_allclose([drawn["W_Q"], drawn["W_K"]], 1, rtol=0.02)
    np.testing.assert_allclose([drawn["W_V"], drawn["W_O"], drawn["W1"], drawn["W2"]], 0.42045, rtol=0.02)


def test_sizes_are_the_published_ones():
    """Lc0 learns four promotion offsets a policy head where three are enough: 256 weights less, twice."""
    assert num_parameters("chess", CF_6M) == 6_014_088 - 2 * 256
    assert round(num_parameters("chess", CF_240M) / 1e6) == 206
    relative = {"hidden_size": 256, "num_blocks": 8, "num_heads": 8, "ffn_size": 256}
    tables = [shapes_of("chess", ChessformerConfig(**relative, position=p))["block0"] for p in ("bias", "shaw")]
    assert tables[0]["D"].size == 8 * 225
    assert [tables[1][name].size for name in ("A_Q", "A_K", "A_V")] == [225 * 256] * 3


@pytest.mark.parametrize("changes", [{}, HEADS, {"attacks": True}], ids=["plain", "all heads", "attacks"])
def test_one_tree_plays_every_board(changes):
    trees = [jax.tree.map(lambda x: x.shape, shapes_of(name, ChessformerConfig(**TINY, **changes))) for name in GAMES]
    assert trees[0] == trees[1] == trees[2]


@pytest.mark.parametrize(
    "changes", [{"position": "absolute"}, {"square_embedding": "absolute"}, {"value_pooling": "flatten"}]
)
def test_weights_of_squares_belong_to_one_board(changes):
    chosen = ChessformerConfig(**TINY, **changes)
    assert ChessformerConfig(**TINY).plays_every_board and not chosen.plays_every_board
    small, large = (jax.tree.map(lambda x: x.shape, shapes_of(name, chosen)) for name in ("gardner_chess", "chess"))
    assert small != large


@pytest.mark.whole
def test_weights_of_5x5_play_8x8_and_the_far_rows_had_no_gradient(gardner):
    """After a gradient on 5x5 the far rows of every table are 0; the same variables evaluate 8x8."""
    chosen = ChessformerConfig(**TINY | {"num_blocks": 1})
    network, positions = make_network(gardner, chosen), random_positions(gardner, 2)
    variables = stirred(network.init(jax.random.key(1)))

    def loss(params):
        found, _ = network.apply({"params": params}, positions, True)
        return jnp.sin(found.prior_logits).sum() + found.value.sum()

    gradient = jax.jit(jax.grad(loss))(variables["params"])
    for name in ("A_Q", "A_K", "A_V"):
        rows = np.abs(gradient["block0"][name]).sum(axis=(0, 3))
        assert (rows == 0).sum() == 144 and (rows[3:12, 3:12] > 0).all()
    assert not np.abs(gradient["squares"]["shift"][:, 5:]).any() and gradient["squares"]["shift"][:, :5].all()
    large = get_game("chess")
    found, _ = jax.jit(make_network(large, chosen).apply)(variables, random_positions(large, 2))
    assert np.isfinite(found.prior_logits).all() and np.isfinite(found.value).all()


def mirrored(params):
    """The weights that see the mirror image as these see a position: file offsets and the two side edges change."""
    new = jax.tree.map(lambda x: x, params)  # a copy of its dicts
    for name, tree in params.items():
        if name.startswith("block"):
            new[name] |= {table: tree[table][:, ::-1] for table in ("A_Q", "A_K", "A_V")}
    new["squares"] = {name: table[jnp.array([1, 0, 2, 3])] for name, table in params["squares"].items()}
    return new


@pytest.mark.parametrize("attacks", [False, True])
def test_mirrored_tables_see_a_mirrored_board_as_tables_see_the_board(attacks, gardner):
    network, positions = make_network(gardner, ChessformerConfig(**TINY, attacks=attacks)), random_positions(gardner, 2)
    params = stirred(network.init(jax.random.key(1)))["params"]
    evaluate = jax.jit(network.apply)
    found, _ = evaluate({"params": params}, positions)
    images = mirror_positions(gardner, positions)
    image, _ = evaluate({"params": mirrored(params)}, images)
    np.testing.assert_allclose(image.prior_logits[:, mirror_edges(gardner)], found.prior_logits, atol=1e-4)
    np.testing.assert_allclose(image.value, found.value, atol=1e-5)
    other, _ = evaluate({"params": params}, images)
    assert np.abs(other.value - found.value).max() > 1e-3


@pytest.mark.whole
def test_all_heads_say_what_they_are_for(gardner):
    network = make_network(gardner, ChessformerConfig(**TINY, **HEADS))
    variables, positions = network.init(jax.random.key(0)), random_positions(gardner, 3)
    found, _ = jax.jit(network.apply)(variables, positions)
    edges, slots = gardner.num_edges, gardner.max_legal_moves
    assert {name: x.shape for name, x in found.extra.items()} == {
        "wdl_logits": (3, 3),
        "action_value_logits": (3, slots, 3),
        "reply_logits": (3, edges),
        "soft_logits": (3, edges),
        "moves_left": (3,),
        **{f"{name}{of}": (3, 32) if of == "_bins" else (3,) for name in ("search_value", "short_term")
           for of in ("", "_error", "_bins")},
    }  # fmt: skip
    assert (found.extra["moves_left"] > 0).all() and (found.extra["short_term_error"] > 0).all()
    win, _, loss = jax.nn.softmax(found.extra["wdl_logits"]).T
    np.testing.assert_allclose(found.value, win - loss, atol=1e-6)


def test_other_heads_leave_the_first_weights_of_the_rest_as_they_are(gardner):
    few, many = (make_network(gardner, ChessformerConfig(**TINY, **h)).init(jax.random.key(3)) for h in ({}, HEADS))
    few, many = few["params"], many["params"]
    few["heads"]["value"].pop("out"), many["heads"]["value"].pop("out")  # of one number, of three
    names = {jax.tree_util.keystr(path): x for path, x in jax.tree_util.tree_leaves_with_path(many)}
    for path, x in jax.tree_util.tree_leaves_with_path(few):
        np.testing.assert_array_equal(x, names[jax.tree_util.keystr(path)])
    assert not np.array_equal(few["block0"]["W_Q"], few["block1"]["W_Q"])  # equal shapes, other numbers


def test_an_action_value_is_of_its_squares(gardner):
    """Whatever leaves the encoder: the values of the legal edges, edge by edge."""
    from alphagateau.networks.chessformer.heads import action_values, make_square_heads

    net = make_square_heads(gardner, ChessformerConfig(**TINY, action_values=True, num_bins=2))
    params = stirred(
        make_network(gardner, ChessformerConfig(**TINY, **HEADS | {"num_bins": 2})).init(jax.random.key(0))
    )
    params, p = params["params"]["heads"]["action_values"], jax.random.normal(jax.random.key(1), (2, 25, 8))
    last_rank = np.flatnonzero(gardner.promotions)
    legal = np.zeros((2, gardner.num_edges), bool)
    legal[0, [3, last_rank[0]]] = legal[1, 7] = True
    found = action_values(net, params, p, jnp.asarray(legal))
    params = in_numpy(params)
    for board, slot, edge in ((0, 0, 3), (0, 1, last_rank[0]), (1, 0, 7)):
        x = plain.dense(params["sender"], p[board, gardner.senders[edge]])
        x = x + plain.dense(params["receiver"], p[board, gardner.receivers[edge]])
        if gardner.promotions[edge]:
            x = x + params["promotion"][gardner.promotions[edge] - 2]
        np.testing.assert_allclose(found[board, slot], plain.dense(params["out"], plain.mish(x)), rtol=1e-4, atol=1e-5)


def test_training_in_chunks_is_for_attention_without_vectors_of_offsets(gardner):
    for position, want in (("absolute", 16), ("bias", 16), ("shaw", 1), ("shaw_kv", 1)):
        chosen = ChessformerConfig(hidden_size=2**16, position=position)
        assert make_network(gardner, chosen).num_chunks(64) == want


@pytest.mark.whole
def test_a_run_on_8x8_begins_with_weights_of_5x5(tmp_path):
    """As --init-from does, on one board and on two, all weights as they were; another width is refused."""
    found = save_tiny(tmp_path / "small" / "checkpoints", "gardner_chess", ChessformerConfig)
    options = {"game": "chess", "network": ChessformerConfig(**SMALL)}
    experiment = dataclasses.replace(config.load(SMOKE), **options)
    selfplay = dataclasses.replace(experiment.selfplay, num_games=16, boards="gardner_chess 1, chess 1")
    mixed = dataclasses.replace(experiment, game="gardner_chess", selfplay=selfplay)
    saved = make_network(get_game("gardner_chess"), options["network"]).init(jax.random.key(0))
    for wanted in (experiment, mixed):
        jax.tree.map(np.testing.assert_array_equal, load_weights(make_trainer(wanted, make_mesh(8)), found), saved)
    wide = dataclasses.replace(experiment, network=ChessformerConfig(**SMALL | {"hidden_size": 12}))
    with pytest.raises(CheckpointError, match="does not fit"):
        load_weights(make_trainer(wide, make_mesh(8)), found)


def test_experiments_of_published_sizes_name_them():
    assert config.load(SMOKE.with_name("chessformer_6m.toml")).network == CF_6M


@pytest.mark.whole
def test_bfloat16_changes_little(gardner):
    exact, rough = (make_network(gardner, ChessformerConfig(**TINY, dtype=d)) for d in ("float32", "bfloat16"))
    variables, positions = exact.init(jax.random.key(0)), random_positions(gardner, 16)
    a, b = (jax.jit(network.apply)(variables, positions)[0] for network in (exact, rough))
    assert b.prior_logits.dtype == jnp.float32
    assert 0 < float(jnp.abs(a.prior_logits - b.prior_logits).max()) < 0.1
    assert float(jnp.abs(a.value - b.value).max()) < 0.05


def test_a_program_of_bfloat16_made_beside_a_gpu_runs_on_the_cpu(gardner, monkeypatch):
    """As the UCI option Device has it. Only the name of the usual device is pretended."""
    network = make_network(gardner, ChessformerConfig(**TINY, dtype="bfloat16"))
    variables, positions = network.init(jax.random.key(0)), random_positions(gardner, 4)
    expected = jax.jit(network.apply)(variables, positions)[0].value
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    network = make_network(gardner, ChessformerConfig(**TINY, dtype="bfloat16"))
    found = jax.jit(network.apply)(variables, positions)[0].value
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_heads_that_do_not_divide_the_width_or_have_no_values_are_refused():
    with pytest.raises(ConfigError, match=r"network.hidden_size \(30\) must be divisible by 4, network.num_heads"):
        ChessformerConfig(hidden_size=30)
    with pytest.raises(ConfigError, match=r"network.categorical_values needs network.search_value_head or network.sho"):
        ChessformerConfig(categorical_values=True)
    assert dataclasses.replace(CF_6M, hidden_size=8).num_heads == 8
    assert math.isclose(Encoder(8, CF_6M).beta, 0.35355, abs_tol=1e-5)
