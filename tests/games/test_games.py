"""The games against python-chess (8x8) and Fairy-Stockfish (5x5, 6x6): endings, tables, contracts."""

from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boards import BATCH, GAMES, batched, play, single
from oracles import REASONS
from random_games import SAMPLED, Sample, sample_games

from alphagateau.games.entries import BISHOP, KNIGHT, ROOK
from alphagateau.games.notation import from_fen, outcome, to_fen, uci_to_edge
from alphagateau.games.rules import reward_and_discount
from alphagateau.games.variants import get_game
from alphagateau.training.frames import Frame


@pytest.fixture(scope="module", params=GAMES)
def sample(request) -> Sample:
    num_rows = {"chess": 64, "gardner_chess": 40, "los_alamos_chess": 40}[request.param]
    return sample_games(request.param, num_rows, num_plies=64, seed=7)


def test_random_games_agree_with_the_oracle_in_every_position(sample):
    assert sample.differences == {}
    assert sample.positions >= 2500


def test_the_random_games_meet_the_rare_rules(sample):
    at_least = {"promotion": 30, "under-promotion": 30}
    if sample.name == "chess":
        at_least |= {"castling": 30, "en passant": 10}
    assert {kind: n for kind, n in at_least.items() if sample.played[kind] < n} == {}


def test_the_random_games_meet_every_ending(sample):
    missing = [reason for reason in REASONS if not sample.endings[reason]]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chess", "gardner_chess"])
def test_many_more_random_games_agree_with_the_oracle(name):
    sample = sample_games(name, num_rows=BATCH, num_plies=80, seed=11)
    assert sample.differences == {}


@pytest.mark.slow
def test_5000_positions_of_los_alamos_chess_agree_with_the_oracle():
    """The FEN too is Fairy-Stockfish's own, after every move."""
    sample = sample_games("los_alamos_chess", num_rows=64, num_plies=80, seed=11, confirm_every=1)
    assert sample.differences == {} and sample.positions >= 5000


# Repetitions; pgx 2.6 misses the first two.


def test_threefold_that_counts_the_initial_position():
    game = get_game("chess")
    there_and_back = "g1h3 b8c6 h3g1 c6b8"
    assert outcome(game, play(game, game.start_fen, there_and_back)) == ("*", "unterminated")
    state = play(game, game.start_fen, there_and_back, there_and_back)
    assert outcome(game, state) == ("1/2-1/2", "threefold repetition")
    assert bool(state.terminated)


def test_threefold_whose_first_occurrence_followed_a_double_step_without_capture():
    game = get_game("chess")
    state = play(game, game.start_fen, "e2e4", "g8f6 g1f3 f6g8 f3g1", "g8f6 g1f3 f6g8")
    assert not state.terminated
    assert bool(play(game, game.start_fen, "e2e4", "g8f6 g1f3 f6g8 f3g1 " * 2).terminated)


def test_a_position_with_an_en_passant_capture_is_another_one():
    game = get_game("chess")
    fen = "4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1"
    shuffle = "e8e7 e1d1 e7e8 d1e1 "
    assert not play(game, fen, "e2e4", shuffle * 2).terminated  # e3 could be captured only once
    assert bool(play(game, fen, "e2e4", shuffle * 2, "e8e7").terminated)


def test_an_en_passant_capture_of_a_pinned_pawn_makes_no_other_position():
    game = get_game("chess")
    fen = "3rk3/8/8/8/3p4/8/2P5/3K4 w - - 0 1"  # the black pawn on d4 is not pinned: c3 counts
    state = play(game, fen, "c2c4")
    assert state.en_passant >= 0
    fen = "4k3/8/8/8/4p3/8/3P4/K3R3 w - - 0 1"  # this one is, by the rook: d3 does not
    shuffle = "e8e7 a1b1 e7e8 b1a1 "
    assert play(game, fen, "d2d4").en_passant == -1
    assert bool(play(game, fen, "d2d4", shuffle * 2).terminated)


def test_a_position_with_more_castling_rights_is_another_one():
    game = get_game("chess")
    fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    shuffle = "a1b1 a8b8 b1a1 b8a8 "  # the first time round, both lose the queen's side
    assert not play(game, fen, shuffle * 2, "a1b1").terminated  # once with black's right
    assert bool(play(game, fen, shuffle * 2, "a1b1 a8b8").terminated)


def test_a_repetition_is_seen_across_96_plies():
    game = get_game("chess")
    whites = ["a1b1", "b1b2", "b2a1"]  # back after 3 moves, black after 8: both after 48 plies
    blacks = ["h8g8", "g8f8", "f8f7", "f7f6", "f6g6", "g6h6", "h6h7", "h7h8"]
    moves = [(whites[i % 3], blacks[i % 8]) for i in range(48)]
    state = from_fen(game, "7k/8/8/p7/P7/8/8/K7 w - - 0 1")
    for ply, uci in enumerate(sum(moves, ())):
        assert not state.terminated, ply
        state = single("chess")(state, uci_to_edge(game, state, uci))
    assert outcome(game, state) == ("1/2-1/2", "threefold repetition")
    assert int(game.position(state).repeated) == 0xFF  # the 7 positions before occurred twice


@pytest.mark.parametrize(
    ("name", "fen", "uci", "ending"),
    [
        ("chess", "7k/8/6K1/8/8/8/8/R7 w - - 99 80", "a1a8", ("1-0", "checkmate")),
        ("chess", "7k/8/6K1/8/8/8/8/R7 w - - 99 80", "a1a7", ("1/2-1/2", "fifty moves")),
        ("chess", "7k/8/6K1/8/8/8/8/R7 w - - 98 80", "a1a7", ("*", "unterminated")),
        ("chess", "r7/8/8/8/8/6k1/8/6K1 b - - 0 256", "a8a1", ("0-1", "checkmate")),
        ("chess", "r7/8/8/8/8/6k1/8/6K1 b - - 0 256", "a8a2", ("1/2-1/2", "ply limit")),
        ("chess", "r7/8/8/8/8/6k1/8/6K1 w - - 0 256", "g1f1", ("*", "unterminated")),
        ("chess", "k7/P7/2K5/8/8/8/8/8 w - - 0 1", "c6b6", ("1/2-1/2", "stalemate")),
        ("chess", "8/8/8/8/8/4k3/3p4/3KB3 w - - 0 1", "e1d2", ("1/2-1/2", "insufficient material")),
        ("gardner_chess", "4k/5/4K/5/R4 w - - 99 80", "a1a5", ("1-0", "checkmate")),
        ("gardner_chess", "4k/5/4K/5/R4 w - - 99 80", "a1a4", ("1/2-1/2", "fifty moves")),
        ("gardner_chess", "4k/5/4K/5/R4 w - - 98 80", "a1a4", ("*", "unterminated")),
        ("gardner_chess", "r4/5/4k/5/4K b - - 0 128", "a5a1", ("0-1", "checkmate")),
        ("gardner_chess", "r4/5/4k/5/4K b - - 0 128", "a5a4", ("1/2-1/2", "ply limit")),
        ("gardner_chess", "k4/5/P1K2/5/5 w - - 0 1", "a3a4", ("*", "unterminated")),
        ("gardner_chess", "k4/P4/2K2/5/5 w - - 0 1", "c3b3", ("1/2-1/2", "stalemate")),
        ("gardner_chess", "4k/5/5/3p1/K3B w - - 0 1", "e1d2", ("1/2-1/2", "insufficient material")),
        ("los_alamos_chess", "5k/6/5K/6/6/R5 w - - 99 80", "a1a6", ("1-0", "checkmate")),
        ("los_alamos_chess", "5k/6/5K/6/6/R5 w - - 99 80", "a1a5", ("1/2-1/2", "fifty moves")),
        ("los_alamos_chess", "r5/6/6/5k/6/5K b - - 0 192", "a6a1", ("0-1", "checkmate")),
        ("los_alamos_chess", "r5/6/6/5k/6/5K b - - 0 192", "a6a2", ("1/2-1/2", "ply limit")),
        ("los_alamos_chess", "k5/P5/2K3/6/6/6 w - - 0 1", "c4b4", ("1/2-1/2", "stalemate")),
        ("los_alamos_chess", "5k/6/6/6/3p2/K1N3 w - - 0 1", "a1b1", ("*", "unterminated")),
        ("los_alamos_chess", "5k/6/6/2p3/6/K2N2 w - - 0 1", "d1c3", ("1/2-1/2", "insufficient material")),
    ],
)
def test_a_move_to_the_edge_of_a_rule(name, fen, uci, ending):
    game = get_game(name)
    state = play(game, fen, uci)
    assert outcome(game, state) == ending
    assert bool(state.terminated) == (ending[0] != "*")
    assert float(state.reward) == float(ending[1] == "checkmate")


# The contracts.


@pytest.mark.parametrize("name", GAMES)
def test_a_finished_game_stays_as_it_is_without_a_reward(name):
    game = get_game(name)
    fens = {
        "chess": ["R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "4k3/8/8/8/8/8/8/4K2R w K - 100 90"],
        "gardner_chess": ["R3k/5/4K/5/5 b - - 0 1", "4k/5/5/5/K2R1 w - - 100 90"],
        "los_alamos_chess": ["R4k/6/5K/6/6/6 b - - 0 1", "5k/6/6/6/6/K3R1 w - - 100 90"],
    }[name]
    for fen, reward in zip(fens, (1.0, 0.0), strict=True):
        over = from_fen(game, fen)
        assert bool(over.terminated) and float(over.reward) == reward
        after = single(name)(over, 0)
        assert_equal(after, over._replace(reward=jnp.float32(0)))
        assert outcome(game, after) == outcome(game, over)


def assert_equal(ours, theirs):
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.parametrize("name", GAMES)
def test_a_batch_is_what_its_rows_are_one_by_one(name):
    game, rng = get_game(name), np.random.default_rng(0)
    step, position = batched(name)
    rows = [jax.device_get(from_fen(game, fen)) for fen in SAMPLED[name]]
    edges = np.array([rng.choice(row.legal_edges[row.legal_edges >= 0]) for row in rows])
    filled = np.resize(np.arange(len(rows)), BATCH)
    after = step(jax.tree.map(lambda *x: np.stack(x)[filled], *rows), edges[filled])
    after, seen = jax.device_get((after, position(after)))
    alone = jax.jit(game.position)
    for i, row in enumerate(rows):
        one = single(name)(row, int(edges[i]))
        assert_equal(one, jax.tree.map(itemgetter(i), after))
        assert_equal(alone(one), jax.tree.map(itemgetter(i), seen))


@pytest.mark.parametrize("name", GAMES)
def test_no_state_is_weakly_typed(name):
    """A weakly typed reward of `enter` made every function of a State compile twice."""
    game = get_game(name)
    entered = from_fen(game, game.start_fen)
    after = jax.eval_shape(game.step, entered, jax.ShapeDtypeStruct((), np.int16))
    types = [
        [(x.shape, x.dtype, getattr(x, "weak_type", False)) for x in jax.tree.leaves(state)]
        for state in (game.init(), entered, after)
    ]
    assert types[0] == types[1] == types[2]


@pytest.mark.parametrize("name", GAMES)
def test_the_start_is_that_of_its_fen(name):
    game = get_game(name)
    assert to_fen(game, game.init()) == game.start_fen
    assert_equal(game.init(), from_fen(game, game.start_fen))


def test_whose_reward_and_what_discount():
    game = get_game("chess")
    before = from_fen(game, "7k/8/6K1/8/8/8/8/R7 w - - 99 80")
    mate, draw = play(game, to_fen(game, before), "a1a8"), play(game, to_fen(game, before), "a1a7")
    on = play(game, game.start_fen, "e2e4")
    assert reward_and_discount(before, mate) == (1, 0)
    assert reward_and_discount(before, draw) == (0, 0)
    assert reward_and_discount(game.init(), on) == (0, -1)
    assert reward_and_discount(on, on) == (0, 1)  # the same player again


@pytest.mark.parametrize(("name", "hint"), [("go", ""), ("gardner", ", did you mean 'gardner_chess'")])
def test_an_unknown_game_is_refused(name, hint):
    with pytest.raises(ValueError) as error:
        get_game(name)
    known = "expected 'chess', 'gardner_chess', 'los_alamos_chess' or 'chess960'"
    assert str(error.value) == f"unknown game {name!r}{hint}: {known}"


# The tables.


@pytest.mark.parametrize(
    ("name", "queens", "knights", "under"),
    [("chess", 1456, 336, 66), ("gardner_chess", 320, 96, 39), ("los_alamos_chess", 580, 160, 32)],
)
def test_edges(name, queens, knights, under):
    game = get_game(name)
    up = game.receivers % game.size - game.senders % game.size
    right = game.receivers // game.size - game.senders // game.size
    is_under = game.promotions > 0
    is_knight = (np.abs(up * right) == 2) & ~is_under
    is_queen = ((up == 0) | (right == 0) | (np.abs(up) == np.abs(right))) & ~is_under
    assert (is_queen.sum(), is_knight.sum(), is_under.sum()) == (queens, knights, under)
    assert game.num_edges == len(game.senders) == queens + knights + under
    assert (game.receivers[is_under] % game.size == game.size - 1).all()
    assert (up[is_under] == 1).all() and (np.abs(right[is_under]) <= 1).all()
    assert set(game.promotions[is_under]) == {KNIGHT, ROOK} | ({BISHOP} if "B" in game.pieces else set())
    triples = list(zip(game.receivers, game.senders, game.promotions, strict=True))
    assert triples == sorted(set(triples))
    assert len(set(game.labels)) == game.num_edges and game.labels.max() < game.num_labels


@pytest.mark.parametrize(("name", "slots"), [("gardner_chess", 118), ("los_alamos_chess", 171)])
def test_no_position_of_a_small_board_has_more_legal_moves_than_slots(name, slots):
    """All pawns become queens, and each piece has the most moves that a square allows."""
    game = get_game(name)
    up = game.receivers % game.size - game.senders % game.size
    right = game.receivers // game.size - game.senders // game.size
    is_knight = np.abs(up * right) == 2
    is_line, is_diagonal = (up == 0) | (right == 0), np.abs(up) == np.abs(right)
    is_normal = game.promotions == 0

    def most(moves) -> list[int]:
        counts = np.bincount(game.senders[moves & is_normal], minlength=game.num_squares)
        return sorted(counts.tolist(), reverse=True)

    ways = {"R": is_line, "B": is_diagonal, "N": is_knight}
    home = game.start_fen.split("/")[-1].split()[0]
    queens = most(is_line | is_diagonal)[: game.size + home.count("Q")]
    pieces = sum(most(ways[piece])[0] for piece in home if piece in ways)
    assert sum(queens) + pieces + 8 == game.max_legal_moves == slots
    assert queens[-1] > 3 * (1 + len(set("RBN") & set(game.pieces)))  # what a pawn about to promote has


@pytest.mark.parametrize(
    ("name", "frame", "state"),
    [("chess", 2048, 2048), ("gardner_chess", 600, 1400), ("los_alamos_chess", 900, 1600)],
)
def test_frames_and_states_are_small(name, frame, state):
    game = get_game(name)
    example = Frame(
        position=game.position(game.init()),
        policy_target=np.zeros(game.max_legal_moves, np.float16),
        value_target=np.float32(0),
        value_mask=np.bool_(False),
    )
    assert sum(np.asarray(x).nbytes for x in jax.tree.leaves(example)) <= frame
    assert sum(np.asarray(x).nbytes for x in jax.tree.leaves(game.init())) <= state
