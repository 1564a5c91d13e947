"""Gumbel search: mates, exact endings, signs, legality, independence of the batch, what its tree holds."""

import math
from functools import cache, partial
from typing import NamedTuple
from unittest import mock

import chess
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx
import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.games.notation import board_from_fen, edge_to_uci, from_fen, legal_moves, to_board
from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import State, stack_rows
from alphagateau.games.variants import get_game
from alphagateau.search.baselines import make_policy_search, make_random_search
from alphagateau.search.config import PolicyConfig
from alphagateau.search.gumbel import batched_mctx, levels
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.gumbel.gumbel import make_gumbel_search
from alphagateau.search.search import ILLEGAL, evaluate_states
from alphagateau.training.selfplay.selfplay import start_games

GAMES = ["gardner_chess", "chess"]
BATCH, SIMULATIONS, CONSIDERED = 8, 128, 64  # one compiled search a board serves every test

MATES = {  # (board, moves to mate): positions with white to move; black's are their mirror images
    ("gardner_chess", 1): [
        "r3k/pppbp/2P1p/PPPQ1/RNB1K w - - 1 5",
        "4k/2pbp/2P2/pR2K/1RBQ1 w - - 2 12",
        "rk1B1/p4/P3B/PpK2/1R3 w - - 1 21",
        "1N1k1/2p2/b1Q1p/P3P/n3K w - - 2 16",
    ],
    ("gardner_chess", 2): [
        "3k1/5/1P1K1/5/5 w - - 0 1",  # 1. b4 Ke5 2. b5=Q#
        "4k/4P/p3b/3NK/5 w - - 0 1",  # a quiet move first
        "3k1/1Pp2/3Kp/2P2/5 w - - 0 1",
        "2R2/2q2/5/2K2/4k w - - 0 1",
    ],
    ("chess", 1): [
        "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1",  # the back rank
        "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4",  # the scholar's mate
        "6nr/5Ppk/6pp/8/8/8/8/6K1 w - - 0 1",  # only an under-promotion mates
        "3k4/8/8/8/8/4R3/2R5/R3K3 w Q - 0 1",  # castling mates too
    ],
    ("chess", 2): [
        "k1K5/3P4/8/4p1P1/1p6/8/8/8 w - - 0 1",  # a promotion
        "8/2p5/8/8/8/r5K1/Q7/7k w - - 0 1",
        "7k/8/4P2K/8/8/8/8/8 w - - 0 1",
        "k7/8/K2P4/8/8/8/8/8 w - - 0 1",
    ],
}
EXACT = {  # (position, a move that ends the game, its worth for the player who makes it)
    "gardner_chess": [
        ("r3k/pppbp/2P1p/PPPQ1/RNB1K w - - 1 5", "d2d4", 1.0),
        ("rn2k/pbQqp/1P2P/P2P1/R3K b - - 1 8", "d4d2", 1.0),
        ("k4/5/4Q/5/2K2 w - - 0 1", "e3b3", 0.0),  # stalemate
        ("4k/5/5/r4/K4 w - - 0 1", "a1a2", 0.0),  # bare kings
        ("3rk/5/5/5/K2R1 w - - 99 90", "a1a2", 0.0),  # fifty moves
        ("3rk/5/5/5/K2R1 b - - 0 128", "e5e4", 0.0),  # the ply limit
    ],
    "chess": [
        ("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1", "d1d8", 1.0),
        ("3r2k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1", "d8d1", 1.0),
        ("7k/5K2/8/6Q1/8/8/8/8 w - - 0 1", "g5g6", 0.0),
        ("7k/8/8/8/8/8/r7/K7 w - - 0 1", "a1a2", 0.0),
        ("3r3k/8/8/8/8/8/8/K2R4 w - - 99 90", "a1a2", 0.0),
        ("3r3k/8/8/8/8/8/8/K2R4 b - - 0 256", "h8h7", 0.0),
    ],
}
FINISHED = {  # mated, stalemated, drawn by the fifty-move rule with moves left, drawn by bare kings
    "gardner_chess": [
        "3Qk/4P/4K/5/5 b - - 0 1",
        "k4/5/1Q3/5/2K2 b - - 0 1",
        "3rk/5/5/5/K2R1 w - - 100 90",
        "4k/5/5/5/K4 w - - 0 1",
    ],
    "chess": [
        "3R2k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1",
        "7k/5K2/6Q1/8/8/8/8/8 b - - 0 1",
        "3r3k/8/8/8/8/8/8/K2R4 w - - 100 90",
        "7k/8/8/8/8/8/8/K7 w - - 0 1",
    ],
}
LIVE = {
    "gardner_chess": [get_game("gardner_chess").start_fen, *MATES["gardner_chess", 2][:3]],
    "chess": [
        "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",  # 218 moves: every slot is in use
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/8/8/1k6/2Pp4/8/8/4K3 b - c3 0 1",  # en passant out of check
        "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",  # promotions
    ],
}


class Found(NamedTuple):
    """What a search found: SearchOutput of B rows, and mctx's tree."""

    edge: np.ndarray
    action_weights: np.ndarray
    prior_logits: np.ndarray
    value: np.ndarray
    search_value: np.ndarray
    tree: mctx.Tree


class Searcher:
    """The search of one board with the stub network, compiled once."""

    def __init__(self, game: Game, network, batch_by: str = "level") -> None:
        self.game, self.network, self.batch_by, self.run = game, network, batch_by, jax.jit(self._search_with_tree)

    def _search_with_tree(self, variables, keys, states, gumbel_scale):
        config = GumbelConfig(
            num_simulations=SIMULATIONS, max_num_considered_actions=CONSIDERED, batch_by=self.batch_by
        )
        object.__setattr__(config, "gumbel_scale", gumbel_scale)  # traced, so that one program has every scale
        search = make_gumbel_search(self.game, self.network, config)
        module = {"level": levels, "leaf": batched_mctx}[self.batch_by]
        trees, tree_search = [], module.search
        with mock.patch.object(module, "search", lambda *a, **k: trees.append(tree_search(*a, **k)) or trees[0]):
            found = search(variables, keys, states)
        return Found(*found[:5], tree=trees[0])

    def variables(self, logits=0.0, material=0.0):
        return {
            "prior_logits": np.broadcast_to(np.float32(logits), self.game.num_edges),
            "material": np.float32(material),
        }

    def __call__(self, states: State, *, seed=0, keys=None, scale=0.0, **variables) -> Found:
        keys = jax.random.split(jax.random.key(seed), BATCH) if keys is None else keys
        found = self.run(self.variables(**variables), keys, states, np.float32(scale))
        return jax.device_get(found)


@pytest.fixture(scope="module", params=["level", "leaf"])
def searchers(request, stub_network) -> dict[str, Searcher]:
    return {name: Searcher(get_game(name), stub_network(get_game(name)), request.param) for name in GAMES}


def states_of(game: Game, fens: list[str]) -> State:
    """A batch: the positions, over and over until there are BATCH."""
    rows = [jax.device_get(from_fen(game, fen)) for fen in fens]
    return stack_rows([rows[i % len(rows)] for i in range(BATCH)])


def row_of(tree, row: int):
    return jax.tree.map(lambda x: x[row], tree)


def mirrored(fen: str) -> str:
    """The same position with the colors exchanged."""
    pieces, side, castling, _, *numbers = fen.split()
    rows = "/".join(reversed(pieces.split("/"))).swapcase()
    return " ".join([rows, "wb"[side == "w"], "".join(sorted(castling.swapcase())), "-", *numbers])


def mating_moves(board: chess.Board, num_moves: int) -> set[str]:
    """python-chess's word: the moves that force mate in at most `num_moves`."""
    found = set()
    for move in list(board.legal_moves):
        board.push(move)
        replies = list(board.legal_moves)
        goes_on = bool(replies) and num_moves > 1
        if board.is_checkmate() or (goes_on and all(_loses(board, x, num_moves) for x in replies)):
            found.add(move.uci())
        board.pop()
    return found


def _loses(board: chess.Board, reply: chess.Move, num_moves: int) -> bool:
    board.push(reply)
    loses = bool(mating_moves(board, num_moves - 1))
    board.pop()
    return loses


# Mates.


@pytest.mark.parametrize("prior", ["uniform", "opposite"])
@pytest.mark.parametrize("name, num_moves", MATES)
def test_a_forced_mate_is_found(searchers, name, num_moves, prior):
    game = get_game(name)
    fens = MATES[name, num_moves] + [mirrored(fen) for fen in MATES[name, num_moves]]
    for fen in fens:
        states, board = states_of(game, [fen]), board_from_fen(game, fen)
        solutions, moves = mating_moves(board, num_moves), legal_moves(game, row_of(states, 0))
        assert 0 < len(solutions) <= 2 < len(moves)
        assert num_moves == 1 or not mating_moves(board, num_moves - 1)
        logits = np.zeros(game.num_edges)
        if prior == "opposite":
            logits[[moves[uci] for uci in solutions]] = -3.0
        found = searchers[name](states, logits=logits)
        assert edge_to_uci(game, row_of(states, 0), found.edge[0]) in solutions, fen
        slots = np.isin(states.legal_edges[0], [moves[uci] for uci in solutions])
        assert found.action_weights[0, slots].sum() > 0.5


# Endings and signs.


@pytest.mark.parametrize("name", GAMES)
def test_a_move_that_ends_the_game_has_the_exact_value(searchers, name):
    game = get_game(name)
    states = states_of(game, [fen for fen, _, _ in EXACT[name]])
    found = searchers[name](states, material=0.05)
    for row, (fen, uci, value) in enumerate(EXACT[name]):
        edge = legal_moves(game, row_of(states, row))[uci]
        slot = states.legal_edges[row].tolist().index(edge)
        tree = row_of(found.tree, row)
        assert tree.children_visits[0, slot] > 0, fen
        assert tree.children_rewards[0, slot] == value, fen
        assert tree.children_discounts[0, slot] == 0, fen
        q = tree.children_rewards[0, slot] + tree.children_discounts[0, slot] * tree.children_values[0, slot]
        assert q == value, fen


@pytest.mark.parametrize("name", GAMES)
def test_the_search_gives_its_own_value_of_the_root(searchers, name):
    """The mean of what its simulations found, beside what the network says before it."""
    found = searchers[name](states_of(get_game(name), [fen for fen, _, _ in EXACT[name]]), material=0.05)
    np.testing.assert_array_equal(found.search_value, found.tree.node_values[:, 0])
    np.testing.assert_array_equal(found.value, found.tree.raw_values[:, 0])
    assert (found.search_value != found.value).any()


@pytest.mark.parametrize("name", GAMES)
def test_what_the_opponent_has_is_worth_its_negative(searchers, name):
    """A child seen once is worth minus the network's value of it, which is for the player to move there."""
    states = states_of(get_game(name), [fen for fen, _, _ in EXACT[name]])
    tree = searchers[name](states, material=0.05).tree
    checked = 0
    for row in range(BATCH):
        for node in range(SIMULATIONS + 1):
            for slot in np.flatnonzero(tree.children_visits[row, node] == 1):
                child = tree.children_index[row, node, slot]
                if tree.embeddings.terminated[row, child]:
                    continue
                expected = np.tanh(0.05 * tree.embeddings.boards[row, child, 0].sum(dtype=np.float32))
                assert tree.embeddings.color[row, child] != tree.embeddings.color[row, node]
                assert tree.children_discounts[row, node, slot] == -1
                assert tree.children_rewards[row, node, slot] == 0
                np.testing.assert_allclose(tree.children_values[row, node, slot], expected, rtol=1e-5)
                checked += 1
    assert checked > 100


def test_a_move_that_allows_mate_is_refuted(searchers, gardner):
    """1... Ka1 allows 2. Rxa4#; the other three moves do not, but the prior likes them less."""
    states = states_of(gardner, ["5/p1R2/5/k4/2K2 b - - 0 1"])
    edge = legal_moves(gardner, row_of(states, 0))["a2a1"]
    slot = states.legal_edges[0].tolist().index(edge)
    prior = np.where(np.arange(gardner.num_edges) == edge, 2.0, 0.0)
    found = searchers[gardner.name](states, logits=prior)
    assert found.edge[0] != edge
    assert -1 <= found.tree.summary().qvalues[0, slot] < -0.25
    assert found.action_weights[0, slot] < 0.1


def test_reward_and_discount_follow_the_player_who_moved(gardner):
    live = jax.device_get(gardner.init())
    other = live._replace(color=np.int8(1))
    mate = other._replace(terminated=np.bool_(True), reward=np.float32(1))
    draw = other._replace(terminated=np.bool_(True))
    assert reward_and_discount(live, other) == (0, -1)
    assert reward_and_discount(live, live) == (0, 1)  # a game in which a player moves twice
    assert reward_and_discount(live, mate) == (1, 0)
    assert reward_and_discount(live, draw) == (0, 0)


# Finished roots, legality, independence.


def check_legality(game: Game, states: State, found: Found) -> None:
    """Moves and weights are legal by python-chess and notation, on live rows and finished ones."""
    for row in range(BATCH):
        state = row_of(states, row)
        legal = state.legal_edges >= 0
        weights = found.action_weights[row]
        assert (weights[~legal] == 0).all() and (weights >= 0).all()
        assert (found.prior_logits[row, ~legal] == ILLEGAL).all()
        assert math.isclose(weights.sum(), float(legal.any()), abs_tol=1e-5)
        edge = int(found.edge[row])
        if not legal.any():
            assert edge == -1
            continue
        assert edge in legal_moves(game, state).values()
        uci = edge_to_uci(game, state, edge)
        assert uci in {move.uci() for move in to_board(game, state).legal_moves}


@pytest.mark.parametrize("name", GAMES)
def test_a_finished_root_is_harmless(searchers, name):
    """Live rows find the same with finished neighbours as with live ones; finished ones find nothing, finitely."""
    game = get_game(name)
    mixed = states_of(game, [fen for pair in zip(LIVE[name], FINISHED[name], strict=True) for fen in pair])
    live = states_of(game, [fen for fen in LIVE[name] for _ in range(2)])
    finished = np.arange(BATCH) % 2 == 1
    assert (mixed.terminated == finished).all() and not live.terminated.any()
    logits = np.random.default_rng(0).normal(size=game.num_edges)
    options = {"logits": logits, "material": 0.1, "scale": 1.0}
    beside_finished, beside_live = (searchers[name](x, **options) for x in (mixed, live))
    for one, other in zip(beside_finished[:4], beside_live[:4], strict=True):
        np.testing.assert_array_equal(one[~finished], other[~finished])
    check_legality(game, mixed, beside_finished)
    check_legality(game, live, beside_live)
    assert (beside_finished.value[finished] == 0).all()
    tree = beside_finished.tree
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((beside_finished[:4], tree.node_values)))
    assert (tree.node_values[finished] == 0).all()


@pytest.mark.parametrize("name", GAMES)
def test_a_search_depends_on_its_own_key_and_state_alone(searchers, name):
    game = get_game(name)
    states = states_of(game, LIVE[name] + MATES[name, 1])
    keys = jax.random.split(jax.random.key(5), BATCH)
    logits = np.random.default_rng(1).normal(size=game.num_edges)
    order = np.array([3, 0, 7, 1, 6, 2, 5, 4])
    found = searchers[name](states, keys=keys, logits=logits, material=0.1, scale=1.0)
    moved = searchers[name](row_of(states, order), keys=keys[order], logits=logits, material=0.1, scale=1.0)
    np.testing.assert_array_equal(moved.edge, found.edge[order])
    np.testing.assert_array_equal(moved.tree.children_visits, found.tree.children_visits[order])
    np.testing.assert_allclose(moved.action_weights, found.action_weights[order], atol=1e-6)


def test_the_noise_is_the_keys(searchers, gardner):
    states = states_of(gardner, [gardner.start_fen])
    noisy = [searchers[gardner.name](states, seed=seed, scale=1.0).edge for seed in (1, 1, 2)]
    assert (noisy[0] == noisy[1]).all() and (noisy[0] != noisy[2]).any()
    assert len(set(noisy[0].tolist())) > 1  # rows with the same state and other keys
    still = [searchers[gardner.name](states, seed=seed).edge for seed in (1, 2)]
    assert len(set(np.concatenate(still).tolist())) == 1


@cache
def random_walk(name: str):
    """(key, plies) -> BATCH games of so many random moves, some of them finished."""
    game, search = get_game(name), make_random_search()

    @jax.jit
    def walk(key, num_plies):
        def move(ply, states):
            keys = jax.random.split(jax.random.fold_in(key, ply), BATCH)
            return jax.vmap(game.step)(states, search({}, keys, states).edge)

        return jax.lax.fori_loop(0, num_plies, move, start_games(game, BATCH))

    return walk


RANDOM_POSITIONS = {
    "seed": st.integers(0, 2**31 - 1),
    "num_plies": st.integers(0, 150),
    "spread": st.sampled_from([0.0, 1.0, 5.0]),  # of the prior logits
    "scale": st.sampled_from([0.0, 1.0]),  # of the Gumbel noise
}


def check_random_positions(searcher: Searcher, seed, num_plies, spread, scale) -> None:
    game = searcher.game
    states = jax.device_get(random_walk(game.name)(jax.random.key(seed), num_plies))
    logits = spread * np.random.default_rng(seed).normal(size=game.num_edges)
    found = searcher(states, seed=seed, logits=logits, material=0.1, scale=scale)
    check_legality(game, states, found)


@fuzzed(8)
@given(**RANDOM_POSITIONS)
def test_no_search_returns_an_illegal_move(searchers, seed, num_plies, spread, scale):
    check_random_positions(searchers["gardner_chess"], seed, num_plies, spread, scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
@fuzzed(100)
@given(**RANDOM_POSITIONS)
def test_no_search_of_many_positions_returns_an_illegal_move(searchers, name, seed, num_plies, spread, scale):
    check_random_positions(searchers[name], seed, num_plies, spread, scale)


# Equal to mctx, and what the tree holds.


def test_one_leaf_a_call_equals_mctx_with_the_same_noise(stub_network, gardner):
    game, searcher = gardner, Searcher(gardner, stub_network(gardner), "leaf")

    def recurrent(variables, key, slot, states):
        del key
        edge = states.legal_edges[jnp.arange(BATCH), slot]
        after = jax.vmap(game.step)(states, edge)
        logits, value = evaluate_states(game, searcher.network, variables, after)
        reward, discount = reward_and_discount(states, after)
        step = mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return step, after

    @jax.jit
    def mctx_policy(variables, states, noise, gumbel_scale):
        logits, value = evaluate_states(game, searcher.network, variables, states)
        with mock.patch("jax.random.gumbel", lambda key, shape, dtype: noise):
            return mctx.gumbel_muzero_policy(
                variables,
                jax.random.key(0),
                mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states),
                recurrent,
                SIMULATIONS,
                invalid_actions=states.legal_edges < 0,
                max_num_considered_actions=CONSIDERED,
                gumbel_scale=gumbel_scale,
            )

    states = states_of(game, LIVE[game.name] + MATES[game.name, 1])
    keys = jax.random.split(jax.random.key(3), BATCH)
    noise = jax.vmap(lambda key: jax.random.gumbel(key, (game.max_legal_moves,)))(keys)
    logits = np.random.default_rng(2).normal(size=game.num_edges)
    variables = searcher.variables(logits, 0.1)
    for scale in (0.0, 1.0):
        ours = searcher(states, keys=keys, logits=logits, material=0.1, scale=scale)
        theirs = mctx_policy(variables, states, noise, np.float32(scale))
        np.testing.assert_array_equal(ours.edge, states.legal_edges[np.arange(BATCH), theirs.action])
        np.testing.assert_array_equal(ours.tree.children_visits, theirs.search_tree.children_visits)
        np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-6)


def root_moves(tree, row: int) -> list[int]:
    """The move of the root that each node 1, 2, ... lies below."""
    found: list[int] = []
    for node in range(1, SIMULATIONS + 1):
        parent = tree.parents[row, node]
        found.append(found[parent - 1] if parent > 0 else tree.action_from_parent[row, node])
    return found


@pytest.mark.parametrize("name", GAMES)
def test_a_level_at_a_time_visits_what_one_leaf_a_call_visits(stub_network, name):
    """At each level's end, up to the first halving that ranks otherwise; in nearly all games to the last."""
    game = get_game(name)
    states = states_of(game, LIVE[name] + MATES[name, 1])
    by_level, by_leaf = (
        Searcher(game, stub_network(game), kind)(
            states, logits=np.random.default_rng(2).normal(size=game.num_edges), material=0.1, scale=1.0
        )
        for kind in ("level", "leaf")
    )
    num_equal = 0
    for row in range(BATCH):
        considered = min(int((states.legal_edges[row] >= 0).sum()), CONSIDERED)
        table = levels.make_levels(CONSIDERED, SIMULATIONS)
        widths, firsts = table.widths[considered], table.firsts[considered]
        one, other = root_moves(by_level.tree, row), root_moves(by_leaf.tree, row)
        for level in range(table.counts[considered]):
            part = slice(firsts[level], firsts[level] + widths[level])
            assert len(set(one[part])) == widths[level]
            if set(one[part]) != set(other[part]):
                assert level == 0 or widths[level] < widths[level - 1]
                break
        else:
            num_equal += 1
            assert by_level.edge[row] == by_leaf.edge[row]
            np.testing.assert_array_equal(by_level.tree.children_visits[row, 0], by_leaf.tree.children_visits[row, 0])
            np.testing.assert_allclose(by_level.search_value[row], by_leaf.search_value[row], atol=1e-6)
            np.testing.assert_allclose(by_level.action_weights[row], by_leaf.action_weights[row], atol=1e-6)
    assert num_equal >= BATCH - 2


def test_a_forced_move_is_not_searched(searchers, gardner):
    """1... Kb5 is the only move of the first position."""
    states = states_of(gardner, ["k4/2R2/5/5/2K2 b - - 0 1", gardner.start_fen])
    found = searchers[gardner.name](states)
    num_legal, visits = (states.legal_edges >= 0).sum(axis=1), found.tree.children_visits[:, 0].sum(axis=-1)
    assert num_legal.tolist() == [1, 7] * (BATCH // 2)
    searched = 0 if searchers[gardner.name].batch_by == "level" else SIMULATIONS
    assert visits.tolist() == [searched, SIMULATIONS] * (BATCH // 2)
    assert found.edge[0] == states.legal_edges[0, 0] and found.action_weights[0, 0] == 1


@pytest.mark.parametrize("name, limit", [("gardner_chess", 1500), ("chess", 2000)])
def test_the_tree_carries_no_float_observation(searchers, name, limit):
    """A node's State is small and its floats are single numbers; pgx's chess state alone holds 30 KB of them."""
    game, searcher = get_game(name), searchers[name]
    keys = jax.random.split(jax.random.key(0), BATCH)
    tree = jax.eval_shape(searcher.run, searcher.variables(), keys, start_games(game, BATCH), jnp.float32(0)).tree
    leaves = jax.tree.leaves(tree.embeddings)
    assert all(leaf.shape[:2] == (BATCH, SIMULATIONS + 1) for leaf in leaves)
    floats = [leaf.shape[2:] for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert floats == [()]  # the reward
    assert sum(leaf.dtype.itemsize * math.prod(leaf.shape[2:]) for leaf in leaves) <= limit
    observation = jax.eval_shape(pgx.make(name).init, jax.random.key(0)).observation
    assert observation.size * observation.dtype.itemsize > 5 * limit


# The players without a tree.


def test_the_policy_search_plays_the_best_legal_prior(gardner, stub_network):
    states = states_of(gardner, LIVE[gardner.name] + FINISHED[gardner.name])
    logits = np.random.default_rng(4).normal(size=gardner.num_edges).astype(np.float32)
    variables = {"prior_logits": logits, "material": 0.0}
    search = jax.jit(make_policy_search(gardner, stub_network(gardner), PolicyConfig()))
    found = jax.device_get(search(variables, None, states))
    for row in range(BATCH):
        legal = [edge for edge in states.legal_edges[row] if edge >= 0]
        best = max(legal, key=lambda edge: logits[edge], default=-1)
        assert found.edge[row] == best
        expected = np.exp(logits[legal]) / np.exp(logits[legal]).sum()
        np.testing.assert_allclose(found.action_weights[row, : len(legal)], expected, rtol=1e-5)
        assert (found.action_weights[row, len(legal) :] == 0).all()


def test_the_random_mover_is_uniform_over_the_legal_moves(gardner):
    """7 moves, 4000 draws: a count has mean 571 and standard deviation 22.1; 5 of those are allowed."""
    states = jax.device_get(jax.jit(partial(start_games, gardner, 4000))())
    found = jax.jit(make_random_search())({}, jax.random.split(jax.random.key(0), 4000), states)
    edges, counts = np.unique(found.edge, return_counts=True)
    assert set(edges.tolist()) == set(legal_moves(gardner, row_of(states, 0)).values())
    assert abs(counts - 4000 / 7).max() < 5 * 22.1
    np.testing.assert_allclose(found.action_weights[0, :7], 1 / 7, rtol=1e-6)
