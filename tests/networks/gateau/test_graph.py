"""The move graph and the features of Positions on it, against pgx's planes and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.entries import BISHOP, KNIGHT, ROOK
from alphagateau.games.notation import from_fen
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.graph import graphs_tuple, static_features
from alphagateau.networks.planes import square_planes

NAMES = (
    "left up to_knight to_bishop to_rook to_queen white_pawn black_pawn knight bishop rook queen white_king black_king"
)
COLUMN = {name: index for index, name in enumerate(NAMES.split())}


def one(game, state):
    """A batch of one Position."""
    return jax.tree.map(lambda x: jnp.asarray(x)[None], game.position(state))


@pytest.mark.parametrize("name", ["chess", "gardner_chess"])
def test_node_features_are_pgx_planes(name):
    """A random game beside pgx's; where its repetition plane is wrong is not met in games this short."""
    game, env = get_game(name), pgx.make(name)
    step, pgx_step = jax.jit(game.step), jax.jit(env.step)
    features = jax.jit(lambda state: square_planes(game, jax.tree.map(lambda x: x[None], game.position(state)))[0])
    state, theirs = game.init(), jax.jit(env.init)(jax.random.key(1))
    rng = np.random.default_rng(3)
    for _ in range(40):
        planes = np.asarray(theirs.observation)  # [rank from the top, file, planes]
        by_square = planes[::-1].transpose(1, 0, 2).reshape(game.num_squares, -1)
        if name == "gardner_chess":  # 115 planes: no castling
            by_square = np.insert(by_square, [114] * 4, 0.0, axis=1)
        np.testing.assert_allclose(features(state), by_square, atol=1e-6)
        edges = np.asarray(state.legal_edges)
        edge = rng.choice(edges[edges >= 0])
        state, theirs = step(state, edge), pgx_step(theirs, jnp.int32(game.labels[edge]))
        if state.terminated:
            break


@pytest.mark.parametrize(
    ("name", "under", "queen", "leaps"),
    [("chess", 66, 1456, 336), ("gardner_chess", 39, 320, 96), ("los_alamos_chess", 32, 580, 160)],
)
def test_edges_are_counted_as_the_paper_counts_them(name, under, queen, leaps):
    game = get_game(name)
    static = static_features(game)
    assert (game.promotions > 0).sum() == under
    assert static[:, COLUMN["queen"]].sum() == queen and static[:, COLUMN["knight"]].sum() == leaps
    assert game.num_edges == under + queen + leaps
    assert (np.diff(game.receivers) >= 0).all()  # what the network's sums over incoming edges rest on


def edge(game, sender: str, receiver: str, promotion: int = 0) -> int:
    def square(text):
        return "abcdefgh".index(text[0]) * game.size + int(text[1]) - 1

    same = (game.senders == square(sender)) & (game.receivers == square(receiver))
    return int(np.flatnonzero(same & (game.promotions == promotion))[0])


def named(game, *move) -> dict[str, float]:
    """The features of an edge that are not 0."""
    row = static_features(game)[edge(game, *move)]
    return {name: float(row[i]) for name, i in COLUMN.items() if row[i]}


def test_static_edge_features_by_hand():
    chess, gardner, los_alamos = map(get_game, ("chess", "gardner_chess", "los_alamos_chess"))
    assert named(chess, "e2", "e4") == {"up": 2, "white_pawn": 1, "rook": 1, "queen": 1}
    assert named(chess, "e7", "e5") == {"up": -2, "black_pawn": 1, "rook": 1, "queen": 1}
    assert named(chess, "g1", "f3") == {"left": 1, "up": 2, "knight": 1}
    assert named(chess, "e1", "g1") == {"left": -2, "rook": 1, "queen": 1, "white_king": 1}
    assert named(chess, "e8", "g8") == {"left": -2, "rook": 1, "queen": 1}
    assert named(chess, "a7", "a8", ROOK) == {"up": 1, "to_rook": 1, "white_pawn": 1}
    assert named(chess, "a7", "b8", KNIGHT) == {"left": -1, "up": 1, "to_knight": 1, "white_pawn": 1}
    near = {"queen": 1, "white_king": 1, "black_king": 1}
    assert named(chess, "a7", "b8") == {"left": -1, "up": 1, "to_queen": 1, "white_pawn": 1, "bishop": 1, **near}
    assert named(gardner, "a2", "a4") == {"up": 2, "rook": 1, "queen": 1}
    assert named(gardner, "e4", "e5", BISHOP) == {"up": 1, "to_bishop": 1, "white_pawn": 1}
    assert named(los_alamos, "d1", "f1") == {"left": -2, "rook": 1, "queen": 1}
    assert named(los_alamos, "a2", "a4") == {"up": 2, "rook": 1, "queen": 1}
    assert named(los_alamos, "a5", "b6", ROOK) == {"left": -1, "up": 1, "to_rook": 1, "white_pawn": 1}
    assert static_features(los_alamos)[:, COLUMN["to_bishop"]].sum() == 0


@pytest.mark.parametrize("name", ["chess", "gardner_chess", "los_alamos_chess"])
def test_the_graph_tuple_holds_the_batch(name):
    game = get_game(name)
    positions = jax.tree.map(lambda x: jnp.concatenate([x, x]), one(game, game.init()))
    graph = graphs_tuple(game, positions)
    assert graph.nodes.shape == (2 * game.num_squares, 119) and graph.edges.shape == (2 * game.num_edges, 15)
    assert int(graph.senders.max()) == 2 * game.num_squares - 1
    np.testing.assert_array_equal(graph.edges[: game.num_edges, 0], legal_edge_mask(game, positions)[0])


def test_the_legal_feature_follows_the_position():
    game = get_game("gardner_chess")
    state = from_fen(game, "4k/5/5/4P/K4 w - - 0 1")
    legal = np.flatnonzero(graphs_tuple(game, one(game, state)).edges[:, 0])
    edges = np.asarray(state.legal_edges)
    np.testing.assert_array_equal(legal, edges[edges >= 0])
