"""Minimax search: equal to plain recursion on python-chess's boards, and what a tree must not depend on."""

import math
from functools import cache
from typing import NamedTuple

import chess
import jax
import jax.numpy as jnp
import minimax_reference as plain
import numpy as np
import pytest
from oracles import codes_of
from random_games import random_records

from alphagateau.games.notation import edge_to_uci, from_fens, to_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.games.variants import get_game
from alphagateau.networks.network import Evaluation, Network
from alphagateau.search.minimax.config import DepthConfig, ProbabilityConfig
from alphagateau.search.minimax.minimax import MAIN_SHARE, make_minimax_search
from alphagateau.search.search import Search

QUIET = 2  # plies of quiescence
ROWS = 24


class Case(NamedTuple):
    """A board and the limits of its trees."""

    game: str
    threshold: float = 0.0
    depth: int | None = None
    split: str = "uniform"
    num_nodes: int = 1500


SMALL = Case("gardner_chess", threshold=0.1, num_nodes=600)


@cache
def weights(game_name: str) -> tuple[np.ndarray, np.ndarray]:
    """([13, N] of a piece on a square, [E] of an edge): an evaluation in which hardly two positions are alike."""
    game, rng = get_game(game_name), np.random.default_rng(0)
    return rng.normal(0, 0.15, (13, game.num_squares)), rng.normal(0, 1.0, game.num_edges)


def network(game: Game) -> Network:
    of_pieces, of_edges = (jnp.asarray(x, jnp.float32) for x in weights(game.name))

    def apply(variables, positions, train=False):
        codes = positions.boards[:, 0].astype(jnp.int32) + 6
        total = of_pieces[codes, jnp.arange(game.num_squares)].sum(axis=-1)
        return Evaluation(jnp.broadcast_to(of_edges, (len(total), game.num_edges)), jnp.tanh(total)), {}

    return Network(lambda key: {}, apply)


def rules(case: Case) -> plain.Rules:
    of_pieces, of_edges = weights(case.game)

    def evaluate(board: chess.Board) -> float:
        codes = np.array(codes_of(board.fen(), board.turn)) + 6
        return math.tanh(of_pieces[codes, np.arange(len(codes))].sum())

    def shares(board: chess.Board, edges) -> list[float]:
        logits = of_edges[list(edges)] if case.split == "prior" else np.zeros(len(edges))
        exp = np.exp(logits - logits.max())
        return (exp / exp.sum()).tolist()

    return plain.Rules(evaluate, shares, case.depth, case.threshold, QUIET)


@cache
def searching(case: Case) -> Search:
    game = get_game(case.game)
    if case.depth is None:
        config = ProbabilityConfig(
            num_nodes=case.num_nodes, threshold=case.threshold, split=case.split, quiescence_plies=QUIET
        )
    else:
        config = DepthConfig(depth=case.depth, num_nodes=case.num_nodes, quiescence_plies=QUIET)
    return jax.jit(make_minimax_search(game, network(game), config))


def positions(game: Game, number: int, seed: int) -> list[str]:
    """One of each of so many random games."""
    rng, fens = np.random.default_rng(seed), []
    for record in random_records(game, number, seed):
        board = game.board_class(record.start_fen)
        for uci in record.moves[: rng.integers(len(record.moves))]:
            board.push_uci(uci)
        fens.append(board.fen(en_passant="fen"))
    return fens


def row_of(states: State, row: int) -> State:
    return jax.tree.map(lambda x: np.asarray(x)[row], states)


def differences(case: Case, fens: list[str]) -> tuple[list, int]:
    """(where the two searches differ, how many positions were compared: those whose tree had room)."""
    game, given, differ, num_compared = get_game(case.game), rules(case), [], 0
    for first in range(0, len(fens), ROWS):
        part = fens[first : first + ROWS]
        states = from_fens(game, [part[i % len(part)] for i in range(ROWS)])
        found = jax.device_get(searching(case)({}, jnp.zeros(ROWS), states))
        for row, fen in enumerate(part):
            if found.num_nodes[row] >= MAIN_SHARE * case.num_nodes:
                continue
            want = plain.search(game, given, game.board_class(fen))
            board = game.board_class(fen)
            for uci in want.line:
                board.push_uci(uci)
            value = math.copysign(1, want.value) if abs(want.value) > 0.9801 else want.value
            edge = int(found.edge[row])
            ours = (edge_to_uci(game, row_of(states, row), edge), to_fen(game, row_of(found.leaf, row)))
            ours = (*ours, int(found.num_nodes[row]), round(float(found.search_value[row]), 4))
            theirs = (want.line[0], board.fen(en_passant="legal"), want.num_nodes, round(value, 4))
            close = abs(ours[3] - theirs[3]) < 2e-4
            differ += [] if ours[:3] == theirs[:3] and close else [(fen, ours, theirs)]
            num_compared += 1
    return differ, num_compared


CASES = [
    SMALL,
    pytest.param(Case("gardner_chess", threshold=0.05, split="prior"), marks=pytest.mark.slow),
    pytest.param(Case("gardner_chess", depth=2), marks=pytest.mark.slow),
    pytest.param(Case("chess", threshold=0.06), marks=pytest.mark.whole),
]


@pytest.mark.parametrize("case", CASES)
def test_value_move_line_and_nodes_equal_plain_recursion(case):
    differ, num_compared = differences(case, positions(get_game(case.game), ROWS // 2, 5))
    assert not differ and num_compared > ROWS // 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        SMALL._replace(num_nodes=3000),
        Case("gardner_chess", depth=2, num_nodes=3000),
        Case("chess", threshold=0.06),
    ],
)
def test_they_are_equal_on_hundreds_of_positions(case):
    differ, num_compared = differences(case, positions(get_game(case.game), 500, 6))
    assert not differ and num_compared > 400


def test_no_game_depends_on_another(gardner):
    """Nor on its row, though some of the trees fill their room."""
    states = from_fens(gardner, positions(gardner, ROWS, 5))
    found = searching(SMALL)({}, jnp.zeros(ROWS), states)
    turned = searching(SMALL)({}, jnp.zeros(ROWS), jax.tree.map(lambda x: x[::-1], states))
    assert found.num_nodes is not None
    for name in ("edge", "search_value", "num_nodes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(turned, name)[::-1])
    assert int(found.num_nodes.max()) <= SMALL.num_nodes and (found.num_nodes > 500).any()


def test_the_nearest_mate_is_played_and_is_worth_1(gardner):
    """Both promotions on d5 mate; the first edge of those is played. The loser's value is -1."""
    fens = ["1k3/p2P1/2K2/P4/5 w - - 0 20", "1k1Q1/p4/2K2/P4/5 b - - 0 20"]
    states = from_fens(gardner, [fens[i % 2] for i in range(ROWS)])
    found = searching(SMALL)({}, jnp.zeros(ROWS), states)
    assert found.leaf is not None and bool(found.leaf.terminated[0]) and float(found.search_value[0]) == 1
    assert edge_to_uci(gardner, row_of(states, 0), found.edge[0]) in ("d4d5q", "d4d5r")
    assert float(found.action_weights[0].sum()) == 1
    assert bool(states.terminated[1]) and int(found.edge[1]) == -1 and float(found.action_weights[1].sum()) == 0


@pytest.mark.whole
def test_a_policy_splits_the_tree_of_any_network(gardner, tiny):
    """GATEAU's own policy decides what is looked at: other lines than with equal shares, as many nodes."""
    states = from_fens(gardner, positions(gardner, 4, 5))
    found = {}
    for split in ("prior", "uniform"):
        search = make_minimax_search(
            gardner, tiny.network, ProbabilityConfig(num_nodes=150, split=split, temperature=0.1)
        )
        found[split] = jax.jit(search)(tiny.variables, jnp.zeros(4), states)
        assert bool((jnp.abs(found[split].search_value) <= 1).all())
        np.testing.assert_allclose(found[split].action_weights.sum(axis=-1), 1.0, rtol=1e-5)
    assert (found["prior"].search_value != found["uniform"].search_value).any()
