"""The move graph of a board, and the features of its edges (Table 2 of AlphaGateau).

The graph is static: of a game's positions only the nodes' planes and one edge feature, legality, differ. "White" is the
player to move, who always plays up the board.
"""

from itertools import product

import jax.numpy as jnp
import jraph
import numpy as np

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.entries import BISHOP, KNIGHT, QUEEN, ROOK
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.networks.planes import square_planes


def static_features(game: Game) -> np.ndarray:
    """float32 [E, 14], the features of Table 2 that depend on the edge alone.

    Squares moved left and up; whether a white pawn would promote to a knight, bishop, rook, queen; whether the move is
    possible for a white pawn, a black pawn, a knight, bishop, rook, queen, the white king, the black king. Only a pawn
    can make an under-promotion.
    """
    size, last, home = game.size, game.size - 1, game.double_step_rank
    castlings, rows = {(side.king, side.king_to) for side in game.castlings}, []
    if game.is_fischer_random:
        first_rank = range(0, game.num_squares, game.size)
        castlings = {*product(first_rank, first_rank)}
    edges = zip(game.senders.tolist(), game.receivers.tolist(), game.promotions.tolist(), strict=True)
    for sender, receiver, promotion in edges:
        (file, rank), (to_file, to_rank) = divmod(sender, size), divmod(receiver, size)
        left, up = file - to_file, to_rank - rank
        is_step = abs(left) <= 1
        is_own_home, is_other_home = rank == home, last - rank == home
        white_pawn = 1 <= rank < last and ((is_step and up == 1) or (left == 0 and is_own_home and up == 2))
        black_pawn = 1 <= rank < last and ((is_step and up == -1) or (left == 0 and is_other_home and up == -2))
        promotes_to = (promotion or QUEEN) if white_pawn and to_rank == last else 0
        piece = not promotion
        diagonal, straight = abs(left) == abs(up), left == 0 or up == 0
        near = max(abs(left), abs(up)) == 1
        rows.append(
            [left, up]
            + [promotes_to == kind for kind in (KNIGHT, BISHOP, ROOK, QUEEN)]
            + [white_pawn, black_pawn and piece]
            + [piece and sorted((abs(left), abs(up))) == [1, 2]]
            + [piece and diagonal, piece and straight, piece and (diagonal or straight)]
            + [piece and (near or (sender, receiver) in castlings), piece and near]
        )
    return np.array(rows, np.float32)


def graphs_tuple(game: Game, positions: Position) -> jraph.GraphsTuple:
    """B positions as one jraph graph of B * N nodes and B * E edges, whose first feature is legality."""
    batch = positions.color.shape[0]
    offset = jnp.arange(batch)[:, None] * game.num_squares
    legal = legal_edge_mask(game, positions).reshape(-1, 1)
    return jraph.GraphsTuple(
        nodes=square_planes(game, positions).reshape(batch * game.num_squares, -1),
        edges=jnp.hstack([legal, jnp.tile(static_features(game), (batch, 1))]),
        senders=(offset + jnp.asarray(game.senders)).reshape(-1),
        receivers=(offset + jnp.asarray(game.receivers)).reshape(-1),
        n_node=jnp.full(batch, game.num_squares),
        n_edge=jnp.full(batch, game.num_edges),
        globals=None,
    )
