"""The compiled functions of the games that several tests share, and positions worth a name."""

from functools import cache

import jax

from alphagateau.games.entries import GAMES as REGISTERED
from alphagateau.games.notation import from_fen, legal_moves, uci_to_edge
from alphagateau.games.rules import Game
from alphagateau.games.small_boards import board_class
from alphagateau.games.state import State
from alphagateau.games.variants import get_game

GAMES = [name for name in REGISTERED if name != "chess960"]  # whose tests are games/test_fischer_random.py
GardnerBoard, LosAlamosBoard = board_class("gardner_chess"), board_class("los_alamos_chess")
BATCH = 256  # every batched call has this many rows, so that each game compiles one step

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
CASTLING_AND_PROMOTION = "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1"
PROMOTIONS = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"


@cache
def batched(name: str):
    """(step, position) of a batch, compiled once."""
    game = get_game(name)
    return jax.jit(jax.vmap(game.step)), jax.jit(jax.vmap(game.position))


@cache
def single(name: str):
    return jax.jit(get_game(name).step)


def play(game: Game, fen: str, *moves: str) -> State:
    state = from_fen(game, fen)
    for uci in " ".join(moves).split():
        state = single(game.name)(state, uci_to_edge(game, state, uci))
    return state


def legal_of(game: Game, fen: str, *moves: str) -> set[str]:
    return set(legal_moves(game, play(game, fen, *moves)))
