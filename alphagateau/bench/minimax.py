"""Giraffe's features and the minimax search, as rows of `alphagateau bench`: against a step, and plain recursion."""

import statistics
from collections.abc import Callable, Iterator
from typing import NamedTuple

import chess
import jax
import jax.numpy as jnp

from alphagateau.bench.games import our_step
from alphagateau.bench.ratios import Row, compare, in_turns, random_positions
from alphagateau.config import GiraffeConfig
from alphagateau.distributed.mesh import BY_FIRST, REPLICATED, make_mesh, per_device, shardings
from alphagateau.games.attacks import WORTH
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.games.variants import get_game
from alphagateau.networks.giraffe.features import piece_features
from alphagateau.networks.make_network import make_network
from alphagateau.search import minimax_reference as plain
from alphagateau.search.minimax.minimax import make_minimax_search
from alphagateau.training.selfplay.selfplay import start_games

BATCH = 1024  # positions whose features are computed together, as games of `our_step`


class Size(NamedTuple):
    """A search of many games on each device, and how many times the nodes/s of plain recursion it is to have."""

    game: str
    board: str
    num_games: int
    num_nodes: int
    threshold: float  # of the plain one, about as large a tree
    target: float


SIZES = (
    Size("gardner_chess", "5x5", 64, 256, 0.1, 4.0),
    Size("chess", "8x8", 16, 512, 0.06, 2.0),
)


def feature_rows(rounds: int) -> Iterator[Row]:
    """The features of a position as a multiple of a step of the game."""
    for size in SIZES:
        game = get_game(size.game)
        positions, features = random_positions(game, BATCH), jax.jit(lambda p, game=game: piece_features(game, p))
        calls = {"fast": lambda: features(positions), "plain": our_step(game)}  # noqa: B023
        yield compare(f"Giraffe's features, {size.board}, batch {BATCH}, by a step", in_turns(calls, rounds), -1.5)


def counting_material(board: chess.Board) -> float:
    """In [-1, 1], for the player to move: an evaluation that costs next to nothing."""
    total = sum(
        int(WORTH[kind]) * (len(board.pieces(kind, board.turn)) - len(board.pieces(kind, not board.turn)))
        for kind in range(chess.PAWN, chess.KING)
    )
    return total / 10_000


def searching(game: Game, size: Size) -> tuple[Callable[[], jax.Array], Callable[[], int]]:
    """(the search of many games on each device by Giraffe's network, plain recursion of one), as calls that count."""
    mesh = make_mesh(jax.device_count())
    network = make_network(game, GiraffeConfig())
    variables = network.init(jax.random.key(0))
    search = make_minimax_search(game, network, num_nodes=size.num_nodes)
    states: State = start_games(game, size.num_games * mesh.size)
    states = jax.device_put(states, shardings(mesh, BY_FIRST))
    keys = jnp.zeros(size.num_games)

    @jax.jit
    @per_device(mesh, (REPLICATED, BY_FIRST), BY_FIRST)
    def look(variables, states):
        return search(variables, keys, states).num_nodes

    rules = plain.Rules(counting_material, lambda board, edges: [1 / len(edges)] * len(edges), None, size.threshold)
    board = game.board_class(game.start_fen)
    return lambda: look(variables, states), lambda: plain.search(game, rules, board).num_nodes


def minimax_rows(rounds: int) -> Iterator[Row]:
    """The features, then nodes/s of the search against plain recursion that counts material."""
    yield from feature_rows(rounds)
    for size in SIZES:
        fast, slow = searching(get_game(size.game), size)
        fast_nodes, slow_nodes = int(fast().sum()), slow()
        seconds = in_turns({"fast": fast, "plain": slow}, rounds)
        paces = {"fast": [fast_nodes / s for s in seconds["fast"]], "plain": [slow_nodes / s for s in seconds["plain"]]}
        ratios = [a / b for a, b in zip(paces["fast"], paces["plain"], strict=True)]
        value, reference = (statistics.median(paces[kind]) for kind in ("fast", "plain"))
        games = f"{size.num_games} games of {size.num_nodes} a device, {jax.device_count()} devices"
        name = f"minimax nodes/s, {size.board}, {games}, against plain recursion"
        yield Row(name, value, reference, statistics.median(ratios), size.target, (min(ratios), max(ratios)), "1/s")
