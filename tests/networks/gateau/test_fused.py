"""The fused kernels, interpreted on a CPU, against the plain network."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.config.records import ConfigError
from alphagateau.games.actions import random_positions
from alphagateau.games.variants import get_game
from alphagateau.networks import trained
from alphagateau.networks.gateau import fused_layer, kernel
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.groups import BLOCK, make_groups
from alphagateau.networks.gateau.kernel import make_gateau_by_kernel
from alphagateau.networks.gateau.network import block_variables, make_gateau
from alphagateau.runs.newest import newest_checkpoint

GAMES = ("gardner_chess", "los_alamos_chess", "chess")
SMALL = GateauConfig(hidden_size=16, num_blocks=1)
ROUNDED = GateauConfig(hidden_size=16, num_blocks=1, dtype="bfloat16")


def stirred(variables, seed=7):
    """The same tree, every leaf moved: statistics and biases that are not 0 and 1."""
    leaves, tree = jax.tree.flatten(variables)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    return jax.tree.unflatten(
        tree, [x + 0.1 * jax.random.uniform(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
    )


def both(game, config, variables, positions):
    """Evaluations by the fused kernels and by the plain network."""
    networks = (make_gateau_by_kernel(game, dataclasses.replace(config, kernel=name)) for name in ("fused", "xla"))
    return [jax.jit(network.apply)(variables, positions)[0] for network in networks]


@pytest.mark.parametrize("neighbors", ["incoming", "outgoing"])
@pytest.mark.parametrize(("name", "tile_receivers"), list(zip(GAMES, (4, 4, 2), strict=True)))
def test_each_edge_has_one_place_beside_all_edges_into_its_receiver(name, tile_receivers, neighbors):
    game = get_game(name)
    groups = make_groups(game, neighbors)
    to, source = (game.receivers, game.senders) if neighbors == "incoming" else (game.senders, game.receivers)
    assert groups.senders.shape == (len(groups.nodes) // tile_receivers, 64)
    np.testing.assert_array_equal(groups.edges[groups.edge_places], np.arange(game.num_edges))
    np.testing.assert_array_equal(groups.nodes[groups.node_places], np.arange(game.num_squares))
    assert (groups.edges >= 0).sum() == game.num_edges
    assert (groups.nodes >= 0).sum() == game.num_squares
    tile = groups.edge_places // 64
    for node in range(game.num_squares):
        assert set(tile[to == node]) == {groups.node_places[node] // tile_receivers}
    senders, receivers = groups.senders.reshape(-1), groups.receivers.reshape(-1)
    np.testing.assert_array_equal(senders[groups.edge_places], groups.node_places[source])
    np.testing.assert_array_equal(receivers[groups.edge_places], groups.node_places[to] % BLOCK)
    assert set(senders[groups.edges < 0]) == set(receivers[groups.edges < 0]) == {-1}


@pytest.mark.parametrize(
    ("name", "keys", "close"),
    [
        ("gardner_chess", {"reply_head": True}, 1e-5),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (
                    "los_alamos_chess",
                    {"normalization": "ghost", "message": "updated_edge", "neighbors": "outgoing"},
                    1e-5,
                ),
                ("gardner_chess", {"normalization": "rms", "num_blocks": 2}, 1e-5),
                ("gardner_chess", {"normalization": "layer", "action_values": True, "moves_left_head": True}, 1e-5),
                ("chess", {"normalization": "rms", "value_head": "wdl"}, 1e-5),
            ]
        ),
    ],
)
def test_the_fused_network_says_what_the_plain_one_says(name, keys, close):
    game, config = get_game(name), dataclasses.replace(SMALL, **keys)
    variables = stirred(make_gateau(game, config).init(jax.random.key(1)))
    found, expected = both(game, config, variables, random_positions(game, 5))
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=close, atol=close)


@pytest.mark.whole
@pytest.mark.parametrize("name", GAMES)
def test_a_trained_network_says_the_same_of_many_positions(name):
    game = get_game(name)
    checkpoint = newest_checkpoint(Path(__file__).parents[3] / "checkpoints" / "gardner_labelled_gateau")
    variables = trained.load_weights(checkpoint, name)
    found, expected = both(game, trained.network_config(checkpoint), variables, random_positions(game, 50))
    np.testing.assert_allclose(found.prior_logits, expected.prior_logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-4, atol=1e-4)


def test_nothing_of_padding_reaches_a_result():
    game = get_game("gardner_chess")
    variables = stirred(make_gateau(game, SMALL).init(jax.random.key(1)))
    groups = make_groups(game, "incoming")
    of_block = block_variables(variables, 0)
    h = jax.random.normal(jax.random.key(2), (2, len(groups.nodes), 16))
    g = jax.random.normal(jax.random.key(3), (2, len(groups.edges), 16))
    layer = jax.jit(lambda h, g: fused_layer.fused_layer(groups, SMALL, of_block, 1, (h, g), (h, g)))
    poisoned = layer(h, jnp.where(groups.edges[:, None] >= 0, g, jnp.nan))
    for a, b, places in zip(poisoned, layer(h, g), (groups.node_places, groups.edge_places), strict=True):
        assert np.isfinite(a[:, places]).all()
        np.testing.assert_array_equal(a[:, places], b[:, places])


def test_the_plain_network_is_trained(gardner):
    config = dataclasses.replace(SMALL, normalization="rms")
    networks = [make_gateau_by_kernel(gardner, dataclasses.replace(config, kernel=name)) for name in ("fused", "xla")]
    variables, positions = networks[0].init(jax.random.key(1)), random_positions(gardner, 2)
    programs = [str(jax.make_jaxpr(lambda v, n=n: n.apply(v, positions, True))(variables)) for n in networks]
    assert programs[0] == programs[1]
    assert "pallas_call" not in programs[0]


@pytest.fixture
def on_gpu(monkeypatch):
    """JAX says that there is a GPU, and nothing has been compared on it."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    kernel.is_right_here.cache_clear()
    yield
    kernel.is_right_here.cache_clear()


def test_a_gpu_without_triton_is_told_and_has_the_plain_network(on_gpu, gardner, monkeypatch, capsys):
    def differ(*_):
        raise ImportError("no Triton\nand more")

    monkeypatch.setattr(kernel, "error_of_fused", differ)
    assert not kernel.uses_fused(gardner, ROUNDED)
    assert capsys.readouterr().err == (
        "GATEAU uses XLA's kernels, as the fused ones do not run here (ImportError: no Triton)\n"
    )


@pytest.mark.parametrize("ratio", [2.5, float("nan")])
def test_kernels_that_err_are_told_and_left(on_gpu, gardner, ratio, monkeypatch, capsys):
    monkeypatch.setattr(kernel, "error_of_fused", lambda *_: ratio)
    assert not kernel.uses_fused(gardner, ROUNDED)
    assert f"as the fused ones err {ratio:.3g} times as much here, expected at most 2\n" in capsys.readouterr().err


def test_a_cpu_beside_a_gpu_runs_the_plain_network(on_gpu, gardner, monkeypatch):
    monkeypatch.setattr(kernel, "error_of_fused", lambda *_: 1.0)
    config = dataclasses.replace(ROUNDED, normalization="rms")
    auto, plain = make_gateau_by_kernel(gardner, config), make_gateau(gardner, config)
    variables, positions = auto.init(jax.random.key(1)), random_positions(gardner, 2)
    found, expected = (jax.jit(network.apply)(variables, positions)[0] for network in (auto, plain))
    np.testing.assert_array_equal(found.prior_logits, expected.prior_logits)


def test_auto_takes_right_kernels_where_they_were_measured(on_gpu, gardner, monkeypatch):
    compared = []
    monkeypatch.setattr(kernel, "error_of_fused", lambda *given: compared.append(given) or 1.0)
    for num_blocks in (1, 3):
        assert kernel.uses_fused(gardner, dataclasses.replace(ROUNDED, num_blocks=num_blocks))
    assert compared == [("gardner_chess", ROUNDED)]
    assert not kernel.uses_fused(gardner, SMALL)
    assert not kernel.uses_fused(gardner, dataclasses.replace(ROUNDED, hidden_size=24))


def test_one_of_several_processes_does_not_choose(on_gpu, gardner, monkeypatch):
    monkeypatch.setattr(kernel, "error_of_fused", lambda *_: 1.0)
    assert kernel.uses_fused(gardner, ROUNDED)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert not kernel.uses_fused(gardner, ROUNDED)


def test_the_kernels_are_compared_while_a_network_is_traced(monkeypatch):
    """Interpreted here, of four positions: the comparison runs at once, inside another program's trace."""
    monkeypatch.setattr(kernel, "POSITIONS", 4)
    kernel.is_right_here.cache_clear()

    def program(x):
        assert kernel.is_right_here("gardner_chess", ROUNDED)
        return x

    jax.jit(program)(jnp.zeros(1))
    kernel.is_right_here.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [{}, {"dtype": "bfloat16"}, {"dtype": "bfloat16", "normalization": "layer", "message": "updated_edge"}],
)
def test_right_kernels_err_as_the_plain_network_does_and_wrong_ones_more(keys, monkeypatch):
    monkeypatch.setattr(kernel, "POSITIONS", 4)
    config = dataclasses.replace(SMALL, num_blocks=3, **keys)
    assert kernel.error_of_fused("gardner_chess", config) <= kernel.WORSE
    monkeypatch.setattr(fused_layer, "LEAKY_SLOPE", -1.0)
    assert kernel.error_of_fused("gardner_chess", config) > kernel.WORSE


def test_auto_is_the_plain_network_on_a_cpu_and_for_odd_widths(gardner):
    assert not kernel.uses_fused(gardner, ROUNDED)
    assert not dataclasses.replace(SMALL, hidden_size=24).can_fuse


def test_a_width_without_kernels_is_refused():
    with pytest.raises(ConfigError, match=r"needs a network\.hidden_size of 16, 32, 64 or 128, got 24"):
        GateauConfig(hidden_size=24, kernel="fused")
