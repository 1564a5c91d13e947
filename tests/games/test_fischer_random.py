"""Chess960 against python-chess: starts, castling, FENs of both spellings, perft, openings."""

import shutil

import chess
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.data.packed import Labelled, pack_labels
from alphagateau.engines.engine import Engine, EngineSetup
from alphagateau.games.notation import from_fen, from_fens, legal_moves, to_fen, uci_to_edge
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import make_openings, one_state, select_states

STOCKFISH = shutil.which("stockfish", path="/usr/games:/usr/bin:/usr/local/bin")

# From the Chess Programming Wiki's table of Chess960 perft results: FEN with files of rooks, counts by depth.
PERFT = {
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": (21, 528, 12189),
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": (21, 807, 18002),
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": (20, 479, 10471),
    "qbbnnrkr/2pp2pp/p7/1p2pp2/8/P3PP2/1PPP1KPP/QBBNNR1R w hf - 0 9": (22, 593, 13440),
}


@pytest.fixture(scope="module")
def game():
    return get_game("chess960")


@pytest.fixture(scope="module")
def steps(game):
    return jax.jit(jax.vmap(game.step))


def test_the_960_starts_are_python_chess_s(game):
    boards = [chess.Board.from_chess960_pos(number) for number in range(960)]
    states = jax.device_get(from_fens(game, [board.fen() for board in boards]))
    for row, board in enumerate(boards):
        state = one_state(states, row)
        assert to_fen(game, state) == board.fen()
        assert legal_moves(game, state).keys() == {move.uci() for move in board.legal_moves}


def test_random_games_agree_with_python_chess_in_every_position(game, steps):
    """128 games of 48 plies from drawn starts, in which a side castles once it may."""
    rng, num_games = np.random.default_rng(5), 128
    boards = [chess.Board.from_chess960_pos(int(n)) for n in rng.integers(960, size=num_games)]
    states = jax.device_get(from_fens(game, [board.fen() for board in boards]))
    positions = castled = 0
    for _ in range(48):
        edges = np.zeros(num_games, np.int32)
        for row, board in enumerate(boards):
            state, moves = one_state(states, row), [move.uci() for move in board.legal_moves]
            if state.terminated or not moves:
                continue
            positions += 1
            found = legal_moves(game, state)
            assert found.keys() == set(moves), board.fen()
            assert to_fen(game, state) == board.fen(en_passant="legal")
            castlings = [move.uci() for move in board.generate_castling_moves()]
            castled += bool(castlings)
            move = rng.choice(castlings or moves)
            edges[row] = found[str(move)]
            board.push_uci(str(move))
        states = jax.device_get(steps(states, edges))
    assert positions >= 5000 and castled >= 40


def test_a_rook_that_shields_the_king_keeps_it_from_castling(game):
    """The rook on b1 leaves, and the queen on a1 sees c1, where the king stays."""
    moves = legal_moves(game, from_fen(game, "4k3/8/8/8/8/8/8/qRK5 w B - 0 1"))
    assert "c1b1" not in moves
    assert "c1b1" in legal_moves(game, from_fen(game, "4k3/8/8/8/8/8/8/1RK5 w B - 0 1"))


def test_a_right_is_of_one_rook_where_two_stand_on_its_side(game, steps):
    """The inner rook castles; the FEN names its file, as the outer one is what Q would mean."""
    state = from_fen(game, "4k3/8/8/8/8/8/8/R1R1K3 w C - 0 1")
    assert to_fen(game, state).split()[2] == "C" and "e1c1" in legal_moves(game, state)
    after = one_state(
        jax.device_get(steps(jax.tree.map(lambda x: x[None], state), jnp.array([uci_to_edge(game, state, "a1b1")]))), 0
    )
    assert to_fen(game, after) == "4k3/8/8/8/8/8/8/1RR1K3 b C - 1 1"


def test_fens_of_both_spellings_are_one_position(game):
    shredder, plain = "nrbkqbrn/pppppppp/8/8/8/8/PPPPPPPP/NRBKQBRN w {} - 0 1".format, "KQkq"
    one, other = from_fen(game, shredder("GBgb")), from_fen(game, shredder(plain))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    with pytest.raises(ValueError, match="castling field: expected - or some of KQkq and files of rooks"):
        from_fen(game, shredder("XQkq"))


@pytest.mark.parametrize("fen", PERFT)
def test_perft_is_as_published(game, steps, fen):
    frontier = jax.tree.map(lambda x: np.asarray(x)[None], from_fen(game, fen))
    counts = []
    for _ in PERFT[fen]:
        edges = frontier.legal_edges
        counts.append(int((edges >= 0).sum()))
        if len(counts) == len(PERFT[fen]):
            break
        rows, slots = np.nonzero(edges >= 0)
        chosen = jax.tree.map(lambda x, rows=rows: x[np.pad(rows, (0, -len(rows) % 1024), mode="edge")], frontier)
        moves = np.pad(edges[rows, slots], (0, -len(rows) % 1024), mode="edge")
        parts = [jax.tree.map(lambda x, i=i: x[i : i + 1024], (chosen, moves)) for i in range(0, len(moves), 1024)]
        after = [jax.device_get(steps(states, part.astype(np.int32))) for states, part in parts]
        frontier = select_states(jax.tree.map(lambda *x: np.concatenate(x), *after), range(len(rows)))
    assert tuple(counts) == PERFT[fen]


def test_matches_begin_from_drawn_starts(game):
    openings = make_openings(game, 40, 0, seed=3)
    assert len({opening.start_fen.split()[0] for opening in openings}) > 35
    assert all(to_fen(game, state) == start_fen and not line for state, start_fen, line in openings)


@pytest.mark.skipif(STOCKFISH is None, reason="stockfish is not installed")
def test_an_engine_is_told_of_it_and_castles_onto_its_rook(game):
    engine = Engine(EngineSetup(STOCKFISH, {}, timeout=60), game)
    try:
        assert engine.options["UCI_Chess960"] == "true"
        fen = "4k3/8/8/8/8/8/8/1K4R1 w G - 0 1"
        assert engine.go(f"fen {fen}", "nodes 20", ["b1g1"]).move == "b1g1"
    finally:
        engine.close()


def test_labels_of_an_inner_rook_s_right_are_not_packed(game):
    """A row would name the outer rook, and its moves others than were labelled."""
    fens = ["4k3/8/8/8/8/8/8/R3K3 w A - 0 1", "4k3/8/8/8/8/8/8/R1R1K3 w C - 0 1"]
    boards = pack_labels(game, [Labelled(fen, fen, [], np.zeros(0, np.uint16), 0, 1) for fen in fens])
    assert len(boards.count) == 1 and boards.castling[0] == 1
