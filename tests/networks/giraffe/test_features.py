"""Giraffe's features: equal to a slow twin by python-chess on positions of every board, and worked numbers."""

from functools import cache

import jax
import numpy as np
import pytest
from boards import GAMES
from random_games import random_records
from slow_features import features

from alphagateau.games.notation import from_fens, to_board
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.giraffe.features import group_sizes, piece_features

ROWS = 200  # positions of a device call
SIZES = {"chess": (19, 216, 128), "gardner_chess": (15, 130, 50)}
ODD = {  # positions with what random games seldom bring: several queens, doubled and tripled pawns, few pieces
    "chess": [
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b Kq - 3 9",
        "4k3/P1P1P3/P1P1P3/7P/7P/7P/7P/QQ2K1QQ w - - 0 40",
        "8/p1p5/p6k/p7/p5p1/p5p1/K5p1/8 b - - 0 40",
        "1R6/4k2R/8/2B4N/n4b2/2r2B2/3NR1K1/r6r b - - 0 40",
        "N6k/N7/N7/8/8/7b/7b/K6b b - - 0 40",
    ],
    "gardner_chess": ["QQ3/P1Pk1/P4/P4/K3q w - - 0 40", "k1rr1/ppn1p/2n2/4B/K1B1N b - - 0 40"],
    "los_alamos_chess": ["QQ4/P1P1k1/P5/P4r/P4r/1K2qr w - - 0 40", "k1rr2/ppn2p/2n3/pp1RN1/3N2/K4N b - - 0 40"],
}


def played_fens(game: Game, number: int) -> list[str]:
    """Positions of random games, every third."""
    found = []
    for record in random_records(game, number // 10, 7):
        board = game.board_class(record.start_fen)
        for ply, uci in enumerate(record.moves):
            board.push_uci(uci)
            if ply % 3 == 0:
                found.append(board.fen(en_passant="fen"))
    return found[:number]


@cache
def compiled(name: str):
    """(States to Positions, Positions to Groups) of ROWS, one program for all tests."""
    game = get_game(name)
    return jax.jit(jax.vmap(game.position)), jax.jit(lambda positions: piece_features(game, positions))


def found(game: Game, fens: list[str]):
    """(States, Groups) of at most ROWS positions, on the host."""
    position, groups = compiled(game.name)
    states = from_fens(game, [fens[i % len(fens)] for i in range(ROWS)])
    return jax.device_get((states, groups(position(states))))


def compare(game: Game, fens: list[str]) -> None:
    states, ours = found(game, fens)
    for row, fen in enumerate(fens):
        board = to_board(game, jax.tree.map(lambda x, row=row: x[row], states))
        for got, want in zip(ours, features(game, board), strict=True):
            np.testing.assert_allclose(got[row], want, atol=1e-6, err_msg=fen)


@pytest.mark.parametrize("name", ["chess", "gardner_chess", pytest.param("los_alamos_chess", marks=pytest.mark.whole)])
def test_features_equal_the_slow_ones(name):
    game = get_game(name)
    compare(game, (ODD[name] + played_fens(game, ROWS))[:ROWS])


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_features_equal_the_slow_ones_on_thousands_of_positions(name):
    game = get_game(name)
    fens = played_fens(game, 5000)
    for first in range(0, len(fens), ROWS):
        compare(game, fens[first : first + ROWS])


@pytest.mark.parametrize("name", SIZES)
def test_the_groups_are_as_large_as_published(name):
    assert group_sizes(get_game(name)) == SIZES[name]


def test_features_of_the_first_position():
    """Worked by hand: the rook on a1 reaches b1 and a2, both safe; the queen has five safe squares."""
    game = get_game("chess")
    _, (_, pieces, squares) = found(game, [game.start_fen])
    pieces, white = pieces[0], squares[0, :64].reshape(8, 8)  # [file, rank]
    first_rook = 80 + 28
    np.testing.assert_allclose(pieces[first_rook : first_rook + 10], [1, 0, 0, 1 / 7, 0, 1 / 7, 0, 2 / 16, 0, 0])
    assert pieces[80 + 11] == pytest.approx(5 / 16)
    assert white[0, 2] == pytest.approx(0.7167, abs=1e-4) and white[4, 0] == pytest.approx(0.4250)


def test_black_to_move_sees_the_same_board_from_whites_side():
    """A position and itself with the other side to move differ in one feature."""
    fens = ["1k1n1/p4/2P2/4P/1K1R1 w - - 0 9", "1k1n1/p4/2P2/4P/1K1R1 b - - 0 9"]
    _, groups = found(get_game("gardner_chess"), fens)
    white, black = np.concatenate(groups, axis=-1)[:2]
    assert np.flatnonzero(white != black).tolist() == [10]
