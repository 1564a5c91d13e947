"""Legal moves by perft, rule by rule, and in positions that no game reaches."""

from operator import itemgetter

import jax
import numpy as np
import pytest
from boards import (
    BATCH,
    CASTLING_AND_PROMOTION,
    GAMES,
    KIWIPETE,
    PROMOTIONS,
    batched,
    legal_of,
    play,
)
from oracles import Line

from alphagateau.games.notation import from_fen, legal_moves, outcome, to_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.games.variants import get_game


def count_lines(game: Game, fen: str, depth: int) -> int:
    """Perft: lines of `depth` moves; equal positions are walked once, and counted."""
    step, _ = batched(game.name)
    level = jax.tree.map(lambda x: np.asarray(x)[None], from_fen(game, fen))
    counts = np.ones(1, np.int64)
    for _ in range(depth - 1):
        parents, slots = np.nonzero(level.legal_edges >= 0)
        edges = level.legal_edges[parents, slots]
        after = step_many(step, jax.tree.map(itemgetter(parents), level), edges)
        words = [after.boards[:, 0], after.castling, after.en_passant[:, None]]
        _, first, same = np.unique(np.concatenate(words, axis=1), axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(same.reshape(-1), counts[parents]).astype(np.int64)
        level = jax.tree.map(itemgetter(first), after)
    return int((counts * (level.legal_edges >= 0).sum(axis=1)).sum())


def step_many(step, states: State, edges: np.ndarray) -> State:
    """Any number of rows, as many at a time as `step` was compiled for."""
    chunks = []
    for start in range(0, len(edges), BATCH):
        rows = np.resize(np.arange(start, min(start + BATCH, len(edges))), BATCH)  # fills the last
        chunks.append(jax.device_get(step(jax.tree.map(itemgetter(rows), states), edges[rows])))
    return jax.tree.map(lambda *x: np.concatenate(x)[: len(edges)], *chunks)


PERFT = [  # 8x8 from chessprogramming.org/Perft_Results; 5x5 from Fairy-Stockfish 11.1, 6x6 from pyffish 0.0.90
    ("chess", get_game("chess").start_fen, [20, 400, 8902]),
    ("chess", KIWIPETE, [48, 2039, 97862]),
    ("chess", "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2812]),
    ("chess", CASTLING_AND_PROMOTION, [6, 264, 9467]),
    ("chess", "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1486]),
    ("chess", PROMOTIONS, [24, 496, 9483]),
    ("gardner_chess", get_game("gardner_chess").start_fen, [7, 53, 506, 4775, 52512]),
    ("gardner_chess", "2k2/P3P/5/p3p/2K2 w - - 0 1", [11, 87, 857, 8106]),
    ("gardner_chess", "n1k1r/P3P/5/p3p/R1K1N b - - 0 1", [7, 53, 496, 4955]),
    ("los_alamos_chess", get_game("los_alamos_chess").start_fen, [10, 100, 1212, 14332]),
    ("los_alamos_chess", "2k3/P4P/6/6/p4p/2K3 w - - 0 1", [10, 70, 726, 7129]),
    ("los_alamos_chess", "n1k2r/P4P/6/6/p4p/R2K1N b - - 0 1", [9, 86, 1002, 12327]),
]
DEEP_PERFT = [
    ("chess", get_game("chess").start_fen, 4, 197281),
    ("chess", KIWIPETE, 4, 4085603),
    ("chess", "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 5, 674624),
    ("chess", CASTLING_AND_PROMOTION, 4, 422333),
    ("chess", "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 3, 62379),
    ("chess", PROMOTIONS, 4, 182838),
    ("gardner_chess", get_game("gardner_chess").start_fen, 6, 572874),
    ("gardner_chess", "2k2/P3P/5/p3p/2K2 w - - 0 1", 5, 78729),
    ("gardner_chess", "n1k1r/P3P/5/p3p/R1K1N b - - 0 1", 5, 52280),
    ("los_alamos_chess", get_game("los_alamos_chess").start_fen, 5, 191846),
    ("los_alamos_chess", "2k3/P4P/6/6/p4p/2K3 w - - 0 1", 5, 79704),
]


@pytest.mark.parametrize(("name", "fen", "published"), PERFT)
def test_perft(name, fen, published):
    game = get_game(name)
    counted = [count_lines(game, fen, depth) for depth in range(1, len(published) + 1)]
    assert counted == published


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fen", "depth", "published"), DEEP_PERFT)
def test_deep_perft(name, fen, depth, published):
    assert count_lines(get_game(name), fen, depth) == published


@pytest.mark.parametrize(
    ("name", "pieces", "is_dead"),
    [
        ("chess", "4k3/8/8/8/8/8/8/4K3", True),
        ("chess", "4k3/8/8/8/8/8/8/4KN2", True),
        ("chess", "4kn2/8/8/8/8/8/8/4K3", True),
        ("chess", "4k3/8/8/8/8/8/8/4KNN1", False),
        ("chess", "4kn2/8/8/8/8/8/8/4KN2", False),
        ("chess", "4kb2/8/8/8/8/8/8/2B1K3", True),  # both bishops on dark squares
        ("chess", "4kb2/8/8/8/8/8/8/4KB2", False),
        ("chess", "4kb2/8/8/8/8/B1B5/8/B1B1K3", True),
        ("chess", "4kb2/8/8/8/8/8/8/4KN2", False),
        ("chess", "4kp2/8/8/8/8/8/8/4K3", None),
        ("gardner_chess", "4k/5/5/5/K4", True),
        ("gardner_chess", "4k/5/5/5/KN3", True),
        ("gardner_chess", "3nk/5/5/5/KN3", False),
        ("gardner_chess", "3bk/5/5/5/KB3", True),  # both on light squares
        ("gardner_chess", "3bk/5/5/5/K1B2", False),
        ("gardner_chess", "4k/5/5/5/KB1B1", True),
        ("gardner_chess", "4k/5/5/5/KNN2", False),
        ("los_alamos_chess", "5k/6/6/6/6/K5", True),
        ("los_alamos_chess", "5k/6/6/6/6/KN4", True),
        ("los_alamos_chess", "4nk/6/6/6/6/K5", True),
        ("los_alamos_chess", "4nk/6/6/6/6/KN4", False),
        ("los_alamos_chess", "5k/6/6/6/6/KNN3", False),
        ("los_alamos_chess", "5k/6/6/6/6/KR4", False),
    ],
)
def test_insufficient_material(name, pieces, is_dead):
    game = get_game(name)
    fen = f"{pieces} w - - 0 1"
    if is_dead is None:
        with pytest.raises(ValueError, match="a pawn is on a first or last rank"):
            from_fen(game, fen)
        return
    assert bool(from_fen(game, fen).terminated) == is_dead
    assert (Line(name, fen).say().reason == "insufficient material") == is_dead


# Castling and en passant, each rule that programs get wrong.


@pytest.mark.parametrize(
    ("fen", "castlings"),
    [
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1g1", "e1c1"}),
        ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1", set()),
        ("4k3/8/8/8/8/8/8/RN2K1NR w KQ - 0 1", set()),  # a piece between
        ("4kr2/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1c1"}),  # through check
        ("4k1r1/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1c1"}),  # into check
        ("4r1k1/8/8/8/8/8/8/R3K2R w KQ - 0 1", set()),  # out of check
        ("1r2k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1g1", "e1c1"}),  # only the rook passes b1
        ("r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1", {"e8g8", "e8c8"}),
        ("r3k2r/8/8/8/8/8/8/3RK3 b kq - 0 1", {"e8g8"}),
        ("r3k2r/6P1/8/8/8/8/8/4K3 b kq - 0 1", {"e8c8"}),  # a pawn attacks f8
    ],
)
def test_castling(fen, castlings):
    game = get_game("chess")
    kings = {"e1g1", "e1c1", "e8g8", "e8c8"}
    assert legal_of(game, fen) & kings == castlings


def test_a_rook_captured_at_home_takes_the_right_with_it():
    game = get_game("chess")
    fen = "4k3/8/8/8/8/8/6b1/R3K2R b KQ - 0 1"
    assert to_fen(game, play(game, fen, "g2h1")).split()[2] == "Q"
    another = play(game, fen, "g2h1 a1a2 e8e7 a2h2 e7e8 h2h1 e8e7")  # a rook again, but not that one
    assert "e1g1" not in legal_moves(game, another)
    promoted = play(game, "r3k3/1P6/8/8/8/8/8/4K3 w q - 0 1", "b7a8n")
    assert to_fen(game, promoted).split()[2] == "-"


@pytest.mark.parametrize(
    ("fen", "uci", "is_legal"),
    [
        ("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", "e4d3", False),  # both pawns leave the rank
        ("8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1", "e4d3", True),  # takes the checking pawn
        ("4k3/8/8/8/4pP2/8/8/K3R3 b - f3 0 1", "e4f3", False),  # pinned on its file
        ("8/6k1/8/8/3pP3/8/1B6/4K3 b - e3 0 1", "d4e3", False),  # pinned on a diagonal
        ("8/6k1/8/8/3Pp3/8/1B6/4K3 b - d3 0 1", "e4d3", False),  # opens the diagonal
        ("4k3/8/8/pP6/8/8/8/4K3 w - a6 0 1", "b5a6", True),
        ("4k3/8/8/P6p/6P1/8/8/4K3 b - g3 0 1", "h5g4", True),  # an ordinary capture; no wrap to a3
    ],
)
def test_en_passant(fen, uci, is_legal):
    game = get_game("chess")
    assert (uci in legal_of(game, fen)) == is_legal
    assert legal_of(game, fen) == Line("chess", fen).say().legal


def scattered(name: str, rng: np.random.Generator) -> str:
    """A FEN of pieces strewn over the board, often impossible."""
    size = get_game(name).size
    board = np.full((size, size), ".")
    num_pieces = int(rng.integers(3, 4 * size))
    spots = rng.permutation(size * size)[: num_pieces + 2]
    for i, spot in enumerate(spots):
        rank, file = divmod(int(spot), size)
        officers = [letter for letter in "QRBN" if letter in get_game(name).pieces]
        some = officers if rank in (0, size - 1) else [*"PPPP", *officers]
        piece = "K" if i < 2 else str(rng.choice(some))
        board[rank, file] = piece if (i < 1 or (i > 1 and rng.random() < 0.5)) else piece.lower()
    rows = ["".join(row) for row in board]
    for n in range(size, 0, -1):
        rows = [row.replace("." * n, str(n)) for row in rows]
    return f"{'/'.join(rows)} {rng.choice(['w', 'b'])} - - 0 1"


def check_scattered(name: str, number: int, seed: int) -> None:
    game, rng = get_game(name), np.random.default_rng(seed)
    compared = 0
    while compared < number:
        fen = scattered(name, rng)
        try:
            state = from_fen(game, fen)
        except ValueError:
            continue
        said = Line(name, fen).say()
        assert set(legal_moves(game, state)) == said.legal, fen
        assert outcome(game, state)[1] == said.reason, fen
        assert to_fen(game, state) == said.fen
        compared += 1


@pytest.mark.parametrize("name", GAMES)
def test_positions_that_no_game_reaches_have_the_same_moves(name):
    check_scattered(name, number=200, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_many_positions_that_no_game_reaches_have_the_same_moves(name):
    check_scattered(name, number=5000, seed=5)
