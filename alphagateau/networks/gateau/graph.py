"""The move graph of a board, and the features of Positions on it: Tables 1 and 2 of the AlphaGateau paper.

The graph is the same for every position of a game; only the node features and one edge feature (is the move legal
now?) change. "White" means the player to move, who always plays up the board.
"""

from functools import lru_cache

import jax.numpy as jnp
import jraph
import numpy as np

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.entries import BISHOP, KNIGHT, QUEEN, ROOK
from alphagateau.games.rules import Game
from alphagateau.games.state import HISTORY, Array, Position

NODE_FEATURES = 14 * HISTORY + 7  # 119
EDGE_FEATURES = 15


def _unpack(bits: Array, count: int) -> Array:
    """bool [B, count] from uint8 [B], bit i the i-th."""
    return jnp.unpackbits(bits[:, None], axis=-1, count=count, bitorder="little").astype(bool)


def board_codes(positions: Position) -> Array:
    """int32 [B, HISTORY, N]: rows of `PLANES`, what lies on each square of each position."""
    repeated = _unpack(positions.repeated, HISTORY)  # [B, HISTORY]
    return positions.boards.astype(jnp.int32) + 6 + 13 * repeated[..., None]


def _planes() -> np.ndarray:
    """float32 [26, 14]: the planes of a square, by piece code + 6, and + 13 if the position is repeated.

    Own pawn .. king, the opponent's, not repeated, repeated.
    """
    planes = np.zeros((2, 13, 14), np.float32)
    for piece in range(1, 7):
        planes[:, 6 + piece, piece - 1] = planes[:, 6 - piece, piece + 5] = 1
    planes[0, :, 12] = planes[1, :, 13] = 1
    return planes.reshape(26, 14)


PLANES = _planes()


def position_scalars(game: Game, positions: Position) -> Array:
    """float32 [B, 7]: color, ply / ply limit (at most 1), 4 castling rights, plies without progress / 100."""
    castling = _unpack(positions.castling, 4)
    ply, progress = jnp.minimum(positions.ply / game.max_plies, 1.0), positions.halfmove_count / 100.0
    return jnp.column_stack([positions.color, ply, castling, progress]).astype(jnp.float32)


def node_features(game: Game, positions: Position) -> Array:
    """float32 [B, N, 119], in the order of pgx's chess planes (Table 1); a game without castling has its planes 0.

    The planes of the last 8 positions, newest first; then the scalars, the same on every square.
    """
    planes = jnp.asarray(PLANES)[board_codes(positions).transpose(0, 2, 1)]
    planes = planes.reshape(*planes.shape[:2], -1)
    scalars = position_scalars(game, positions)
    everywhere = jnp.broadcast_to(scalars[:, None], (*planes.shape[:2], scalars.shape[1]))
    return jnp.concatenate([planes, everywhere], axis=-1)


@lru_cache
def _static_edge_features(
    size: int,
    double_step_rank: int | None,
    castlings: frozenset[tuple[int, int]],
    edges: tuple[tuple[int, int, int], ...],
) -> np.ndarray:
    last = size - 1
    rows = []
    for sender, receiver, promotion in edges:
        (file, rank), (to_file, to_rank) = divmod(sender, size), divmod(receiver, size)
        left, up = file - to_file, to_rank - rank
        is_step = abs(left) <= 1
        is_own_home, is_other_home = rank == double_step_rank, last - rank == double_step_rank
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


def static_features(game: Game) -> np.ndarray:
    """float32 [E, 14], the features of Table 2 that depend on the edge alone.

    Squares moved left, squares moved up; would a pawn of the player to move promote to knight, bishop, rook, queen;
    could a white, a black pawn make this move; could a knight, bishop, rook, queen; could the white, the black king.
    An under-promotion edge is a pawn's and no other piece's.
    """
    edges = zip(game.senders.tolist(), game.receivers.tolist(), game.promotions.tolist(), strict=True)
    castlings = frozenset((side.king, side.king_to) for side in game.castlings)
    return _static_edge_features(game.size, game.double_step_rank, castlings, tuple(edges))


def edge_features(game: Game, positions: Position) -> Array:
    """float32 [B, E, 15]: legal now, then the static features (Table 2)."""
    legal = legal_edge_mask(game, positions).astype(jnp.float32)[..., None]
    static = jnp.asarray(static_features(game))
    return jnp.concatenate([legal, jnp.broadcast_to(static, (*legal.shape[:2], static.shape[1]))], axis=-1)


def graphs_tuple(game: Game, positions: Position) -> jraph.GraphsTuple:
    """B positions as one jraph graph of B * N nodes and B * E edges."""
    batch = positions.color.shape[0]
    offset = jnp.arange(batch)[:, None] * game.num_squares
    return jraph.GraphsTuple(
        nodes=node_features(game, positions).reshape(batch * game.num_squares, NODE_FEATURES),
        edges=edge_features(game, positions).reshape(batch * game.num_edges, EDGE_FEATURES),
        senders=(offset + jnp.asarray(game.senders)).reshape(-1),
        receivers=(offset + jnp.asarray(game.receivers)).reshape(-1),
        n_node=jnp.full(batch, game.num_squares),
        n_edge=jnp.full(batch, game.num_edges),
        globals=None,
    )
