"""Batch statistics of each board's own."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from alphagateau.config import ConfigError
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import with_board_statistics
from alphagateau.networks.network import Network


def counting_network() -> Network:
    """It says its weight and how often its statistics were moved, and moves them if it is trained."""

    def apply(variables, positions, train=False, axis_name=None):
        seen = variables["batch_stats"]["seen"]
        return (variables["params"]["w"], seen), {"batch_stats": {"seen": seen + train}}

    return Network(lambda key: {"params": {"w": jnp.float32(7)}, "batch_stats": {"seen": jnp.int32(0)}}, apply)


def on(board: str) -> Network:
    game: Any = SimpleNamespace(name=board)
    return with_board_statistics(counting_network(), game, ("small", "large"))


def test_a_board_moves_its_own_statistics_and_reads_no_others():
    variables = on("small").init(jax.random.key(0))
    _, moved = on("large").apply(variables, None, True)
    variables |= moved
    assert variables["statistics"] == {"small": {"batch_stats": {"seen": 0}}, "large": {"batch_stats": {"seen": 1}}}
    assert on("large").apply(variables, None)[0] == (7, 1)
    assert on("small").apply(variables, None)[0] == (7, 0)
    assert on("unseen").apply(variables, None)[0] == (7, 0)  # as on the first board


def test_the_same_tree_is_made_on_every_board():
    trees = [jax.tree.structure(on(board).init(jax.random.key(0))) for board in ("small", "large", "unseen")]
    assert trees[0] == trees[1] == trees[2]


def test_what_keeps_no_batch_statistics_is_refused():
    assert (
        GateauConfig(board_statistics="a,b").statistics_boards
        == GateauConfig(board_statistics="a, b").statistics_boards
    )
    with pytest.raises(ConfigError, match='must be "batch" or "ghost" for network'):
        GateauConfig(board_statistics="a, b", normalization="layer")
