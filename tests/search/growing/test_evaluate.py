"""How leaves reach the network: in which batches, and each position once where nothing of its past is seen."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.games.notation import from_fen, to_fen
from alphagateau.games.rules import Game
from alphagateau.networks.network import Evaluation, Network
from alphagateau.search.growing.anytime import grow, start_tree
from alphagateau.search.growing.evaluate import SIZES, batch_sizes, make_evaluate, whole_batch
from alphagateau.search.growing.tree import Tree, make_tree
from alphagateau.search.growing.tree_lines import lines, root_value, visit_counts

KINGS_AND_PAWN = "k4/5/5/P4/4K w - - 0 1"  # many ways to each position


class Counted:
    """An evaluation that counts the rows asked for, and the sizes that the network was compiled for."""

    def __init__(self, game: Game, sizes_of: Any = batch_sizes):
        self.rows: list[int] = []
        self.compiled: list[int] = []

        def counted_sizes(num_rows: int) -> list[int]:
            self.rows.append(num_rows)
            return sizes_of(num_rows)

        def apply(variables, positions, train=False):
            self.compiled.append(len(positions.color))
            past = positions.boards[:, :2].astype(jnp.float32).sum(axis=-1)
            value = jnp.tanh(variables["now"] * past[:, 0] + variables["before"] * past[:, 1])
            return Evaluation(jnp.zeros((len(value), game.num_edges)), value), {}

        self.evaluate = make_evaluate(game, Network(lambda key: {}, apply), counted_sizes)

    def tree(self, game: Game, sees_history: bool, before: float = 0.0) -> Tree:
        variables = {"now": jnp.float32(0.02), "before": jnp.float32(before)}
        return make_tree(game, self.evaluate, variables, 4096, sees_history)


@pytest.fixture(scope="module")
def counted(gardner: Game) -> Counted:
    return Counted(gardner)


def search(tree: Tree, state, num_leaves: int) -> tuple:
    start_tree(tree, state)
    done = grow(tree, num_leaves)
    return done, tree.num_nodes, visit_counts(tree), lines(tree, 9), root_value(tree)


def fens(game: Game, tree: Tree) -> list[str]:
    """Of all nodes, with their clocks."""
    return [to_fen(game, jax.tree.map(lambda x, node=node: x[node], tree.states)) for node in range(tree.num_nodes)]


def test_rows_are_split_into_few_sizes_with_little_padding():
    expected = {0: [], 1: [1], 2: [1, 1], 3: [4], 5: [4, 1], 7: [8], 9: [8, 1], 12: [8, 4], 13: [8, 4, 1], 14: [16]}
    assert {rows: batch_sizes(rows) for rows in expected} == expected
    for rows in range(1, 17):
        assert rows <= sum(batch_sizes(rows)) <= max(rows + 1, 1.2 * rows)
        assert whole_batch(rows) == [16]


def test_a_search_of_the_start_evaluates_what_it_needs_and_no_more(gardner: Game):
    """The root, 7 moves, and then batches of 16; all were padded to 16 rows."""
    counted = Counted(gardner)
    tree = counted.tree(gardner, sees_history=True)
    start_tree(tree, gardner.init())
    assert (grow(tree, 7), grow(tree, 18)) == (7, 18)
    assert counted.rows == [1, 7, 16, 2]
    assert sorted(counted.compiled) == [1, 8, 16]  # once each


def test_each_size_is_compiled_once(gardner: Game):
    counted = Counted(gardner)
    for rows in [*range(1, 17), *range(1, 17)]:
        states = jax.tree.map(lambda x, rows=rows: np.repeat(np.asarray(x)[None], rows, axis=0), gardner.init())
        leaves = counted.evaluate({"now": jnp.float32(0), "before": jnp.float32(0)}, states, None, None)
        assert leaves.prior_logits.shape == (rows, gardner.max_legal_moves)
    assert sorted(counted.compiled) == sorted(SIZES)


def test_without_history_each_position_of_a_search_is_evaluated_once(gardner: Game, counted: Counted):
    tree = counted.tree(gardner, sees_history=False)
    for _ in range(2):  # a new search begins anew
        counted.rows.clear()
        search(tree, from_fen(gardner, KINGS_AND_PAWN), 300)
        found = fens(gardner, tree)
        assert len(set(found)) < 0.7 * len(found)
        assert sum(counted.rows) == len(set(found))


def test_known_evaluations_change_no_search(gardner: Game, counted: Counted):
    for fen in (gardner.start_fen, KINGS_AND_PAWN, "k4/5/q4/1P3/4K w - - 0 1"):
        state = from_fen(gardner, fen)
        with_known, without = (search(counted.tree(gardner, sees), state, 300) for sees in (False, True))
        assert with_known == without


def test_a_network_that_sees_history_evaluates_every_node(gardner: Game, counted: Counted):
    tree = counted.tree(gardner, sees_history=True, before=0.3)
    counted.rows.clear()
    search(tree, from_fen(gardner, KINGS_AND_PAWN), 300)
    assert sum(counted.rows) >= tree.num_nodes > len(set(fens(gardner, tree)))
    past = tree.states.boards[:, :2].astype(np.float32).sum(axis=-1)
    expected = np.tanh(np.float32(0.02) * past[:, 0] + np.float32(0.3) * past[:, 1])
    assert tree.values[: tree.num_nodes] == pytest.approx(expected[: tree.num_nodes], abs=1e-6)


def test_known_evaluations_are_bounded(gardner: Game, counted: Counted, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("alphagateau.search.growing.evaluate.MOST_KNOWN", 40)
    tree, most = counted.tree(gardner, sees_history=False), 0
    start_tree(tree, from_fen(gardner, KINGS_AND_PAWN))
    for _ in range(20):
        grow(tree, 16)
        assert tree.known is not None
        most = max(most, len(tree.known))
    assert 40 <= most <= 40 + 16


def test_a_clock_that_has_run_on_is_another_position(gardner: Game, counted: Counted):
    """A network sees plies and plies without progress, so that equal boards are not enough."""
    tree, known = counted.tree(gardner, sees_history=False), {}
    for clocks in ("0 1", "0 1", "2 1", "0 2"):
        state = from_fen(gardner, f"k4/5/5/P4/4K w - - {clocks}")
        counted.evaluate(tree.variables, jax.tree.map(lambda x: np.asarray(x)[None], state), None, known)
    assert len(known) == 3
