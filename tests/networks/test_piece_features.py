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
from alphagateau.networks.piece_features import group_sizes, piece_features

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
def compiled(name: str, from_mover: bool):
    game = get_game(name)
    return jax.jit(lambda positions: piece_features(game, positions, from_mover))


def found(game: Game, positions, from_mover: bool = False):
    """Groups, on the host."""
    return jax.device_get(compiled(game.name, from_mover)(positions))


def compare(game: Game, fens: list[str]) -> None:
    states = from_fens(game, fens)
    positions = jax.jit(jax.vmap(game.position))(states)
    ours = found(game, positions)
    states = jax.device_get(states)
    for row, fen in enumerate(fens):
        board = to_board(game, jax.tree.map(lambda x, row=row: x[row], states))
        for got, want in zip(ours, features(game, board), strict=True):
            np.testing.assert_allclose(got[row], want, atol=1e-6, err_msg=fen)


@pytest.mark.parametrize("name", GAMES)
def test_features_equal_the_slow_ones(name):
    game = get_game(name)
    compare(game, (ODD[name] + played_fens(game, 200))[:200])


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_features_equal_the_slow_ones_on_thousands_of_positions(name):
    game = get_game(name)
    compare(game, played_fens(game, 5000))


@pytest.mark.parametrize("name", SIZES)
def test_the_groups_are_as_large_as_published(name):
    assert group_sizes(get_game(name)) == SIZES[name]


def test_features_of_the_first_position():
    """Worked by hand: the rook on a1 reaches b1 and a2, both safe; the queen has five safe squares."""
    game = get_game("chess")
    position = jax.tree.map(lambda x: x[None], game.position(game.init()))
    _, pieces, squares = (np.asarray(x[0]) for x in found(game, position))
    first_rook = 80 + 28
    np.testing.assert_allclose(pieces[first_rook : first_rook + 10], [1, 0, 0, 1 / 7, 0, 1 / 7, 0, 2 / 16, 0, 0])
    assert pieces[80 + 11] == pytest.approx(5 / 16)
    white = squares[:64].reshape(8, 8)  # [file, rank]
    assert white[0, 2] == pytest.approx(0.7167, abs=1e-4) and white[4, 0] == pytest.approx(0.4250)


def test_black_to_move_sees_the_same_board_from_whites_side():
    """A position and itself with the other side to move differ in one feature; seen by the mover, in most."""
    game = get_game("gardner_chess")
    fens = ["1k1n1/p4/2P2/4P/1K1R1 w - - 0 9", "1k1n1/p4/2P2/4P/1K1R1 b - - 0 9"]
    positions = jax.jit(jax.vmap(game.position))(from_fens(game, fens))
    white, black = np.concatenate(found(game, positions), axis=-1)
    assert np.flatnonzero(white != black).tolist() == [10]
    white, black = np.concatenate(found(game, positions, True), axis=-1)
    assert (white != black).sum() > 20
