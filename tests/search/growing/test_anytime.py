"""The anytime search: known mates and draws, its bookkeeping, the subtree it keeps, and that it repeats itself."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from mctx._src.seq_halving import get_sequence_of_considered_visits

from alphagateau.games.notation import edge_to_uci, from_fen, uci_to_edge
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.search.growing.anytime import grow_once, is_done, make_evaluate, make_root_evaluate, start_tree
from alphagateau.search.growing.tree import (
    BATCH,
    Sigma,
    Tree,
    advance,
    branches_of,
    improved_policy,
    make_tree,
    pack,
    proof_of,
    set_worth,
)
from alphagateau.search.growing.tree_lines import hashfull, lines, root_value
from alphagateau.search.search import ILLEGAL, SearchOutput

MATE_IN_ONE = "k4/5/1K3/5/4R w - - 0 1"
MATES_IN_TWO = ["k4/5/2K2/5/4R w - - 0 1", "1k3/5/K4/5/4R w - - 0 1", "k4/5/2KQ1/5/5 w - - 0 1"]
MATED = "k4/1Q3/K4/4p/5 b - - 0 1"


@pytest.fixture(scope="module")
def evaluate(gardner: Game, stub_network):
    return make_evaluate(gardner, stub_network(gardner))


@pytest.fixture(scope="module")
def variables(gardner: Game):
    return {"prior_logits": jnp.zeros(gardner.num_edges), "material": jnp.float32(0.1)}


@pytest.fixture
def tree(gardner: Game, evaluate, variables) -> Tree:
    return make_tree(gardner, evaluate, variables, 4096)


def grow(tree: Tree, num_leaves: int) -> int:
    """Runs up to `num_leaves` simulations, fewer if the tree is done. Returns how many."""
    done = 0
    while done < num_leaves and not is_done(tree):
        done += grow_once(tree, min(BATCH, num_leaves - done), num_leaves)
    return done


def visit_counts(tree: Tree) -> dict[int, int]:
    """Visits of the root's moves by edge, best first."""
    return {line.edges[0]: line.visits for line in lines(tree, 999)}


def best(game: Game, tree: Tree, fen: str) -> str:
    return edge_to_uci(game, from_fen(game, fen), lines(tree, 1)[0].edges[0])


def check_sums(tree: Tree) -> None:
    """A branch's visits are one of its own node and those below it, and no virtual loss is left."""
    for node in range(tree.num_nodes):
        here = branches_of(tree, node)
        is_taken = tree.visits[here] > 0
        assert (tree.visits[here] >= 0).all() and tree.priors[here].sum() == pytest.approx(1, abs=1e-5)
        assert (np.diff(tree.priors[here]) <= 0).all() and is_taken.tolist() == sorted(is_taken, reverse=True)
        assert tree.taken[node] == is_taken.sum()
        assert tree.taken_priors[node] == pytest.approx(tree.priors[here][is_taken].sum(), abs=1e-5)
        assert tree.node_visits[node] == 1 + tree.visits[here].sum()
        assert tree.node_totals[node] == pytest.approx(tree.values[node] + tree.totals[here].sum(), abs=1e-4)
        means = np.where(
            np.isnan(tree.worth[here]), tree.totals[here] / np.maximum(tree.visits[here], 1), tree.worth[here]
        )
        assert (tree.tries[here] == tree.visits[here]).all() and tree.node_tries[node] == tree.visits[here].sum()
        assert tree.means[here][is_taken].tolist() == pytest.approx(means[is_taken].tolist(), abs=1e-5)
        assert (np.abs(tree.totals[here]) <= tree.visits[here] + 1e-6).all()
        for branch in range(here.start, here.stop):
            child = tree.children[branch]
            if child >= 0 and np.isnan(tree.worth[branch]):
                below = branches_of(tree, int(child))
                assert tree.visits[branch] == 1 + tree.visits[below].sum()
                total = tree.discounts[child] * (tree.values[child] + tree.totals[below].sum())
                assert tree.totals[branch] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("values", [None, 0.999])
def test_the_move_of_a_search_is_played_whatever_the_priors_or_equal_values_say(gardner: Game, tree: Tree, values):
    """The move of the highest prior was, and of equal values the first, not a finisher's choice."""

    def search(variables, keys, states) -> SearchOutput:
        logits = jnp.where(states.legal_edges >= 0, -jnp.arange(gardner.max_legal_moves, dtype=jnp.float32), ILLEGAL)
        worth = None if values is None else jnp.where(states.legal_edges >= 0, values, -jnp.inf)
        found = SearchOutput(states.legal_edges[:, 3], jnp.exp(logits), logits, jnp.zeros(1), jnp.zeros(1))
        return found._replace(move_values=worth)

    start_tree(tree, gardner.init(), evaluate=make_root_evaluate(search))
    assert lines(tree, 1)[0].edges == (int(gardner.init().legal_edges[3]),)


def test_a_move_that_a_search_has_not_looked_at_has_the_positions_value(gardner: Game, tree: Tree):
    """-inf is no number of JSON, so the page could not read what was found."""

    def search(variables, keys, states) -> SearchOutput:
        logits = jnp.where(states.legal_edges >= 0, 0.0, ILLEGAL)
        worth = jnp.where(jnp.arange(gardner.max_legal_moves) == 3, 0.5, -jnp.inf)[None]
        found = SearchOutput(states.legal_edges[:, 3], jnp.exp(logits), logits, jnp.zeros(1), jnp.full(1, 0.25))
        return found._replace(move_values=worth)

    start_tree(tree, gardner.init(), evaluate=make_root_evaluate(search))
    assert sorted({line.value for line in lines(tree, 9)}) == [0.25, 0.5]


def test_the_value_of_a_search_whose_move_is_not_legal_is_none(gardner: Game, tree: Tree):
    """The move of the highest prior was played in its place, without a word."""

    def search(variables, keys, states) -> SearchOutput:
        logits = jnp.where(states.legal_edges >= 0, 0.0, ILLEGAL)
        return SearchOutput(jnp.zeros(1, jnp.int16), jnp.exp(logits), logits, jnp.zeros(1), jnp.zeros(1))

    start_tree(tree, gardner.init(), evaluate=make_root_evaluate(search))
    assert np.isnan(tree.values[0])


def test_a_tree_of_the_start(gardner: Game, tree: Tree):
    start_tree(tree, gardner.init())
    assert root_value(tree) == 0 and set(visit_counts(tree).values()) == {0}
    assert grow(tree, 100) == 100
    counts = visit_counts(tree)
    assert sum(counts.values()) == 100 and len(counts) == 7
    assert tree.num_nodes <= 101 and 0 < hashfull(tree) < 100
    check_sums(tree)
    found = lines(tree, 3)
    assert found[0].visits >= max(counts.values()) / 2 and found[0].mate is None and len(found[0].edges) > 1
    assert list(counts) == [line.edges[0] for line in lines(tree, 9)]


def test_one_batch_evaluates_as_many_leaves_as_it_can(gardner: Game, tree: Tree):
    start_tree(tree, gardner.init())
    assert grow(tree, 5) == 5 and tree.num_nodes == 6  # 7 moves of equal prior: no two descents meet
    assert set(visit_counts(tree).values()) == {0, 1}


@pytest.mark.parametrize(("fen", "plies"), [(MATE_IN_ONE, 1), *((fen, 3) for fen in MATES_IN_TWO)])
def test_a_mate_is_proven_with_its_distance(gardner: Game, tree: Tree, fen: str, plies: int):
    start_tree(tree, from_fen(gardner, fen))
    grow(tree, 3000)
    proof = proof_of(tree, 0)
    assert proof is not None and proof.worth == 1 and proof.plies >= plies
    (line,) = lines(tree, 1)
    assert line.mate == proof.plies and line.value == 1 and root_value(tree) == 1
    assert is_done(tree) and grow(tree, 16) == 0


def test_who_is_being_mated_holds_out(gardner: Game, tree: Tree):
    state = from_fen(gardner, MATE_IN_ONE)
    after = jax.jit(gardner.step)(state, uci_to_edge(gardner, state, "e1e4"))
    start_tree(tree, after)
    grow(tree, 2000)
    proof = proof_of(tree, 0)
    assert proof is not None and proof.worth == -1 and lines(tree, 1)[0].mate == -proof.plies
    assert all(line.mate is not None and line.mate < 0 for line in lines(tree, 9))


def test_a_finished_game_has_no_moves(gardner: Game, tree: Tree):
    start_tree(tree, from_fen(gardner, MATED))
    assert grow(tree, 16) == 0 and lines(tree, 1) == []


def test_material_is_taken(gardner: Game, tree: Tree):
    fen = "k4/5/q4/1P3/4K w - - 0 1"
    start_tree(tree, from_fen(gardner, fen))
    grow(tree, 400)
    assert best(gardner, tree, fen) == "b2a3" and root_value(tree) > 0


def test_a_draw_that_is_proven_saves_a_lost_game(gardner: Game, tree: Tree):
    """A rook down, or its capture: two kings are left. It had one visit, and the move with the most was played."""
    fen = "1k3/1R3/5/5/4K b - - 0 1"
    start_tree(tree, from_fen(gardner, fen))
    grow(tree, 64)
    assert best(gardner, tree, fen) == "b5b4" and root_value(tree) == 0


def test_the_same_search_finds_the_same(gardner: Game, tree: Tree, evaluate, variables):
    found = []
    for one in (tree, tree, make_tree(gardner, evaluate, variables, 1000)):
        start_tree(one, gardner.init())
        grow(one, 300)
        found.append((visit_counts(one), lines(one, 5)))
    assert found[0] == found[1] == found[2]


def test_the_subtree_is_kept(gardner: Game, tree: Tree):
    start_tree(tree, gardner.init())
    grow(tree, 600)
    moves = lines(tree, 1)[0].edges[:2]
    line, nodes = lines(tree, 1)[0], tree.num_nodes
    assert advance(tree, moves)
    assert lines(tree, 1)[0].edges == line.edges[2:]
    kept = lines(tree, 9), root_value(tree), visit_counts(tree)
    pack(tree)
    check_sums(tree)
    assert 0 < tree.num_nodes < nodes and (lines(tree, 9), root_value(tree), visit_counts(tree)) == kept
    step, state = jax.jit(gardner.step), gardner.init()
    for edge in moves:
        state = step(state, edge)
    for stored, expected in zip(tree.states, state, strict=True):
        assert (stored[0] == np.asarray(expected)).all()
    grow(tree, 200)
    check_sums(tree)


@pytest.mark.parametrize("num_leaves", [3, 16, 200])
@pytest.mark.parametrize("sigma", [{}, {"value_scale": 0.5, "maxvisit_init": 20.0, "rescale_values": False}])
def test_the_improved_policy_is_that_of_mctx(gardner: Game, tree: Tree, num_leaves: int, sigma: dict[str, Any]):
    tree.sigma = Sigma(**sigma)
    start_tree(tree, from_fen(gardner, "k4/5/q4/1P3/4K w - - 0 1"))
    grow(tree, num_leaves)
    here = branches_of(tree, 0)
    assert np.isnan(tree.worth[here]).all()
    like_mctx = SimpleNamespace(
        qvalues=lambda node: jnp.asarray(tree.means[here]),
        children_visits=jnp.asarray(tree.visits[here])[None],
        raw_values=jnp.asarray(tree.values[:1]),
        children_prior_logits=jnp.log(jnp.asarray(tree.priors[here]))[None],
    )
    qvalues = mctx.qtransform_completed_by_mix_value(like_mctx, jnp.int32(0), **sigma)  # pyright: ignore[reportArgumentType]
    expected = jax.nn.softmax(like_mctx.children_prior_logits[0] + qvalues)
    assert improved_policy(tree, 0) == pytest.approx(np.asarray(expected), abs=1e-4)


def test_what_is_proven_lost_has_no_part_in_the_improved_policy(gardner: Game, tree: Tree):
    """It set the scale: beside a network's optimism the one move left had no weight, and lost ones were searched."""
    start_tree(tree, gardner.init())
    here = branches_of(tree, 0)
    tree.visits[here], tree.means[here.start], tree.values[0] = [2000, 2, 2, 2, 2, 2, 2], 0.0, 0.8
    tree.taken[0], tree.taken_priors[0], tree.node_visits[0], tree.is_stale[0] = 7, 1.0, 1 + 2012, True
    for branch in range(here.start + 1, here.stop):
        set_worth(tree, branch, -1.0, 2)
    assert improved_policy(tree, 0).tolist() == [1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("total", [4, 16, 64, 100])
def test_a_number_of_simulations_is_shared_out_as_by_mctx(gardner: Game, tree: Tree, total: int):
    start_tree(tree, gardner.init())
    assert grow(tree, total) == total
    expected = [0] * 7
    for visits in get_sequence_of_considered_visits(7, total):
        expected[expected.index(visits)] += 1
    assert sorted(visit_counts(tree).values()) == sorted(expected)


def test_a_search_without_end_halves_with_each_call_and_fills_it(gardner: Game, tree: Tree):
    """16 leaves over 7 moves, then over 3 of them and twice over 2."""
    start_tree(tree, gardner.init())
    seen = []
    for _ in range(8):
        before, left = visit_counts(tree), BATCH
        while left:
            left -= grow_once(tree, left)
        seen.append(sum(count > before[edge] for edge, count in visit_counts(tree).items()))
    assert seen == [7, 3, 2, 2] * 2


def test_a_move_has_one_leaf_in_a_call_and_more_as_it_is_visited(gardner: Game, tree: Tree):
    """7 moves have 19 visits each, then 3 of them 44 more: two leaves in a call from 16 visits on."""
    start_tree(tree, gardner.init())
    done = [grow_once(tree, BATCH, 400) for _ in range(28)]
    assert done[:24] == [7] * 16 + [14, 7] + [6] * 6 and done[-1] == 9, done


def test_a_move_that_was_never_tried_has_no_subtree(gardner: Game, tree: Tree):
    start_tree(tree, gardner.init())
    edge = next(iter(visit_counts(tree)))
    assert not advance(tree, [edge]) and not advance(tree, [-5]) and advance(tree, [])


def test_only_allowed_moves_are_tried(gardner: Game, tree: Tree):
    state = from_fen(gardner, MATE_IN_ONE)
    edge = uci_to_edge(gardner, state, "b3c3")
    start_tree(tree, state, [edge])
    grow(tree, 100)
    assert set(visit_counts(tree)) == {edge} and [line.edges[0] for line in lines(tree, 5)] == [edge]


def test_a_full_tree_grows_no_more(gardner: Game, evaluate, variables):
    tree = make_tree(gardner, evaluate, variables, 100)
    start_tree(tree, gardner.init())
    assert 50 < grow(tree, 10_000) < 10_000 and is_done(tree)
    assert tree.num_nodes <= 100 and 800 < hashfull(tree) <= 1000
    assert lines(tree, 1)[0].visits > 0


def test_a_game_that_a_rule_has_ended_still_has_a_move(gardner: Game, tree: Tree):
    start_tree(tree, from_fen(gardner, "k4/5/2KQ1/5/5 w - - 100 80"))
    grow(tree, 64)
    proof = proof_of(tree, 0)
    assert proof is not None and proof.worth == 0 and lines(tree, 1)[0].mate is None


@pytest.mark.slow
def test_a_mate_on_eight_by_eight(stub_network):
    game = get_game("chess")
    network = stub_network(game)
    tree = make_tree(game, make_evaluate(game, network), network.init(None), 8192)
    start_tree(tree, from_fen(game, "6k1/5ppp/8/8/8/8/8/K3R3 w - - 0 1"))
    grow(tree, 50 * BATCH)
    assert lines(tree, 1)[0].mate == 1
