"""Times Giraffe's features against a step of the game, and minimax search against plain recursion."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import chess
import jax
import jax.numpy as jnp

from alphagateau.distributed.mesh import BY_FIRST, REPLICATED, make_mesh, per_device, shardings
from alphagateau.games.actions import random_positions
from alphagateau.games.attacks import PIECE_VALUES
from alphagateau.games.notation import board_edges, board_outcome
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.games.variants import get_game
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.networks.giraffe.features import piece_features
from alphagateau.networks.make_network import make_network
from alphagateau.search.minimax.config import ProbabilityConfig
from alphagateau.search.minimax.minimax import make_minimax_search
from alphagateau.training.selfplay.selfplay import start_games
from throughput.games import our_step
from throughput.ratios import Row, board_name, compare, in_turns, make_row

BATCH = 1024  # positions whose features are computed together, as games of `our_step`


class Size(NamedTuple):
    """A search of many games on each device, with the target of nodes/s as a multiple of plain recursion's."""

    game: str
    num_games: int
    num_nodes: int
    threshold: float  # of plain recursion, for about as large a tree
    target: float


SIZES = (
    Size("gardner_chess", 64, 256, 0.1, 4.0),
    Size("chess", 16, 512, 0.06, 2.0),
)


def feature_rows(rounds: int) -> Iterator[Row]:
    """Rows of the features of a batch as a multiple of a step of the game."""
    for size in SIZES:
        game = get_game(size.game)
        positions, features = random_positions(game, BATCH), jax.jit(lambda p, game=game: piece_features(game, p))
        calls = {"fast": lambda: features(positions), "plain": our_step(game)}  # noqa: B023
        yield compare(
            f"Giraffe's features, {board_name(game)}, batch {BATCH}, by a step", in_turns(calls, rounds), -1.5
        )


def plain_minimax(
    game: Game, board: chess.Board, threshold: float, probability: float = 1.0, captures_left: int = 6
) -> tuple[float, int]:
    """(value for the player to move, nodes) by plain recursion, the reference of `minimax_rows`.

    Lines less probable than `threshold` are followed by good captures alone. The evaluation counts material.
    """
    if board_outcome(game, board, 1)[0] != "*":
        return -float(board.is_checkmate()), 1
    is_leaf = probability < threshold
    best, num_nodes = material_value(board) if is_leaf else -1.0, 1
    moves = [chess.Move.from_uci(uci) for uci in board_edges(game, board).values()]
    for move in moves:
        if is_leaf and not (captures_left and is_good_capture(board, move)):
            continue
        board.push(move)
        value, count = plain_minimax(game, board, threshold, probability / len(moves), captures_left - is_leaf)
        board.pop()
        best, num_nodes = max(best, -value), num_nodes + count
    return best, num_nodes


def material_value(board: chess.Board) -> float:
    """In [-1, 1], for the player to move: an evaluation that costs next to nothing."""
    total = sum(
        int(PIECE_VALUES[kind]) * (len(board.pieces(kind, board.turn)) - len(board.pieces(kind, not board.turn)))
        for kind in range(chess.PAWN, chess.KING)
    )
    return total / 10_000


def is_good_capture(board: chess.Board, move: chess.Move) -> bool:
    """Whether a move takes a piece of at least its own worth, or an undefended one."""
    if not board.is_capture(move):
        return False
    victim = board.piece_type_at(move.to_square) or chess.PAWN
    is_defended = board.is_attacked_by(not board.turn, move.to_square)
    return bool(PIECE_VALUES[victim] >= PIECE_VALUES[board.piece_type_at(move.from_square)] or not is_defended)


def make_calls(game: Game, size: Size) -> tuple[Callable[[], jax.Array], Callable[[], int]]:
    """(the search of many games on each device with Giraffe's network, plain recursion of one); both return nodes."""
    mesh = make_mesh(jax.device_count())
    network = make_network(game, GiraffeConfig())
    variables = network.init(jax.random.key(0))
    search = make_minimax_search(game, network, ProbabilityConfig(num_nodes=size.num_nodes, split="uniform"))
    states: State = start_games(game, size.num_games * mesh.size)
    states = jax.device_put(states, shardings(mesh, BY_FIRST))
    keys = jnp.zeros(size.num_games)

    @jax.jit
    @per_device(mesh, (REPLICATED, BY_FIRST), BY_FIRST)
    def count_nodes(variables, states):
        return search(variables, keys, states).num_nodes

    board = game.board_class(game.start_fen)
    return lambda: count_nodes(variables, states), lambda: plain_minimax(game, board, size.threshold)[1]


def minimax_rows(rounds: int) -> Iterator[Row]:
    """Rows of the features, then of nodes/s of the search against plain recursion that counts material."""
    yield from feature_rows(rounds)
    for size in SIZES:
        game = get_game(size.game)
        fast, slow = make_calls(game, size)
        fast_nodes, slow_nodes = int(fast().sum()), slow()
        seconds = in_turns({"fast": fast, "plain": slow}, rounds)
        paces = {"fast": [fast_nodes / s for s in seconds["fast"]], "plain": [slow_nodes / s for s in seconds["plain"]]}
        ratios = [a / b for a, b in zip(paces["fast"], paces["plain"], strict=True)]
        games = f"{size.num_games} games of {size.num_nodes} a device, {jax.device_count()} devices"
        name = f"minimax nodes/s, {board_name(game)}, {games}, against plain recursion"
        yield make_row(name, (paces["fast"], paces["plain"]), ratios, size.target, "1/s")
