"""Giraffe's features of Positions: material, places and moves of each piece, control of each square.

363 numbers on 8x8, 195 on 5x5, in three groups (Lai 2015, section 4.1). What the thesis leaves open is as in its
author's code: docs/giraffe.md lists it. Squares are numbered as in `rules.py`; pieces come in the order a1 b1 .. h8.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.config import ConfigError
from alphagateau.games.attacks import PIECE_VALUES, attack_maps, piece_sets
from alphagateau.games.bitsets import count, drop_lowest, lowest, pack
from alphagateau.games.entries import BISHOP, KNIGHT, PAWN, QUEEN, ROOK
from alphagateau.games.legality import down, make_views, up
from alphagateau.games.moves import flip_boards
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.planes import unpack_bits

KINDS = (QUEEN, ROOK, BISHOP, KNIGHT)  # order of the piece slots; pawns have slots of their own
# The rays of `legality.Views`, flattened: right, left, up, down; up-right, up-left, down-right, down-left.
STRAIGHT, DIAGONAL = (1, 5, 0, 4), (2, 7, 3, 6)


class Groups(NamedTuple):
    """The features of a position by group, each with a first layer of its own."""

    material: Array  # float32 [G]: 19 on 8x8, 15 on 5x5
    pieces: Array  # float32 [P]: 216, 130
    squares: Array  # float32 [2 N]: 128, 50


class Slots(NamedTuple):
    """Numbers of a side's piece slots and of its pieces at the start, by kind."""

    of_kind: tuple[int, ...]  # by KINDS, two at most
    at_start: tuple[int, ...]  # queens, rooks, bishops, knights, pawns

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kind of each slot."""
        return tuple(kind for kind, number in zip(KINDS, self.of_kind, strict=True) for _ in range(number))


def slots_of(game: Game) -> Slots:
    """The Slots of a game."""
    white = [letter for letter in game.start_fen.split()[0] if letter.isupper()]
    at_start = tuple(white.count(letter) for letter in "QRBNP")
    if not any(at_start[:4]):
        raise ConfigError(f"Giraffe's features are of pieces, and {game.name} has kings and pawns alone")
    return Slots(tuple(min(number, 2) for number in at_start[:4]), at_start)


def group_sizes(game: Game) -> tuple[int, int, int]:
    """The number of features of each of the Groups."""
    order = _feature_order(game.size, slots_of(game), bool(game.castlings))
    return 11 + (8 if game.castlings else 4), len(order), 2 * game.num_squares


def piece_features(game: Game, positions: Position, from_mover: bool = False) -> Groups:
    """The Groups of B Positions, from the side of White or of the player to move."""
    boards, is_white = positions.boards[:, 0].astype(jnp.int32), positions.color == 0
    castling = unpack_bits(positions.castling, 4)
    if not from_mover:
        boards = jnp.where(is_white[:, None], boards, flip_boards(game.size, boards))
        castling = jnp.where(is_white[:, None], castling, jnp.roll(castling, 2, axis=-1))
    return jax.vmap(partial(board_features, game))(boards, is_white, castling)


def _pawn_slots(size: int, board: Array, sign: int) -> Array:
    """int32 [size], the square of the pawn in each slot, -1 in an empty one; squares are numbered rank by rank.

    The first pawn of a file has its file's slot; every other pawn takes the nearest empty one in turn.
    """
    pawns = jnp.equal(board.reshape(size, size).T, sign * PAWN)  # [rank, file]
    is_first = pawns & (jnp.cumsum(pawns, axis=0) == 1)
    files = jnp.arange(size)
    slots = jnp.where(pawns.any(axis=0), jnp.argmax(is_first, axis=0) * size + files, -1)
    others = pack((pawns & ~is_first).reshape(-1))
    for _ in range(size - 1):
        square = lowest(others)  # -1 when there is none, which changes nothing
        distance = jnp.where(slots < 0, jnp.abs(files - square % size), size)
        slots = jnp.where((files == jnp.argmin(distance)) & (slots < 0), square, slots)
        others = drop_lowest(others)
    return slots


def _piece_slots(size: int, slots: Slots, sets: Array) -> Array:
    """int32 [M], the square of the piece in each slot of a side, -1 in an empty one, of its `sets` [6, W].

    Squares are numbered rank by rank. Of two slots the first has the piece on the lower file; a single piece has the
    slot of its half of the board.
    """
    squares = []
    for kind, number in zip(KINDS, slots.of_kind, strict=True):
        first = lowest(sets[kind - 1])
        if number == 1:
            squares.append(first)
        elif number == 2:
            second = lowest(drop_lowest(sets[kind - 1]))
            is_later = jnp.where(second < 0, first % size >= size // 2, second % size < first % size)
            squares += [jnp.where(is_later, second, first), jnp.where(is_later, first, second)]
    return jnp.stack(squares)


def board_features(game: Game, board: Array, is_white: Array, castling: Array) -> Groups:
    """The Groups of a board [N] of the first side, White or the player to move, with rights `castling` bool [4]."""
    size, slots = game.size, slots_of(game)
    by_rank = board.reshape(size, size).T.reshape(-1)
    sets, maps = piece_sets(by_rank), attack_maps(size, board)
    control = jnp.where(maps.least > 0, (2250 - maps.least) / 3000, 0.0).astype(jnp.float32)
    pieces = _file_by_file(size, jnp.concatenate([_piece_slots(size, slots, own) for own in sets]))
    pawns = _file_by_file(size, jnp.concatenate([_pawn_slots(size, board, sign) for sign in (1, -1)]))
    rights = castling[jnp.array([1, 0, 3, 2])].astype(jnp.float32)  # short, long of each side
    moves = _moves_of_pieces(size, slots, board, maps, pieces)
    all_pieces = [_placed(size, control, pieces, moves), _placed(size, control, pawns, jnp.zeros((0, pawns.size)))]
    flat = jnp.concatenate([x.reshape(-1) for x in all_pieces] + [rights])
    return Groups(
        material=_material(game, slots, sets, is_white, rights),
        pieces=flat[_feature_order(size, slots, bool(game.castlings))],
        squares=control.reshape(-1),
    )


def _file_by_file(size: int, squares: Array) -> Array:
    """Squares by the numbers of `rules.py`, of squares numbered rank by rank; -1 for none."""
    return jnp.where(squares < 0, -1, squares % size * size + squares // size)


def _placed(size: int, control: Array, squares: Array, between: Array) -> Array:
    """float32 [R, M] of M slots: 1, file, rank, the rows `between`, control by both sides; 0 in an empty slot."""
    at = jnp.maximum(squares, 0)
    file, rank = at // size / (size - 1), at % size / (size - 1)
    rows = jnp.concatenate([jnp.stack([jnp.ones(at.shape), file, rank]), between, control[:, at]])
    return jnp.where(squares < 0, 0.0, rows).astype(jnp.float32)


def _moves_of_pieces(size: int, slots: Slots, board: Array, maps, squares: Array) -> Array:
    """float32 [9, M] of the pieces of both sides: reach in the STRAIGHT and DIAGONAL directions, safe moves.

    Reach counts the squares up to and with the first other piece. A move is safe if no enemy attacks its square, or if
    two own pieces attack it and all enemy attackers are worth as much or more.
    """
    views, at, kinds = make_views(size), jnp.maximum(squares, 0), np.array(2 * slots.kinds)
    occupied, rays = pack(board != 0)[:, None], jnp.asarray(views.rays)[..., at]
    reached = jnp.stack([up(rays[0], occupied), down(rays[1], occupied)]).reshape(8, -1, at.size)
    reach = jax.lax.population_count(reached).astype(jnp.int32).sum(axis=1)[np.array(STRAIGHT + DIAGONAL)]
    none = jnp.uint32(0)
    union = partial(jax.lax.reduce, init_values=none, computation=jax.lax.bitwise_or, dimensions=(0,))
    straight, diagonal = union(reached[np.array(STRAIGHT)]), union(reached[np.array(DIAGONAL)])
    targets = jnp.where(np.isin(kinds, (QUEEN, ROOK)), straight, none)
    targets |= jnp.where(np.isin(kinds, (QUEEN, BISHOP)), diagonal, none)
    targets = jnp.where(kinds == KNIGHT, jnp.asarray(views.leaps)[:, at], targets)
    is_free, is_backed, least = maps.least[::-1] == 0, maps.count >= 2, maps.least[::-1]
    worths = np.unique(PIECE_VALUES[kinds])
    safe = jnp.stack([pack(is_free | is_backed & (least >= worth)) for worth in worths])  # [worths, 2, W]
    side = np.repeat(np.arange(2), len(slots.kinds))
    safe_of = safe[np.searchsorted(worths, PIECE_VALUES[kinds]), side].T
    return jnp.concatenate([reach / (size - 1), count(targets & safe_of)[None] / (2 * size)])


def _material(game: Game, slots: Slots, sets: Array, is_white: Array | bool, rights: Array) -> Array:
    """float32 [G]: piece counts of both sides, is White to move, both kings with their castling rights."""
    size = game.size
    numbers = jax.lax.population_count(sets).astype(jnp.int32).sum(axis=-1)[:, [4, 3, 2, 1, 0]]
    king = lowest(sets[:, 5])
    places = jnp.stack([king % size, king // size], axis=-1) / (size - 1)
    kings = jnp.concatenate([places, rights.reshape(2, 2)], axis=-1) if game.castlings else places
    numbers = numbers / np.maximum(slots.at_start, 1)
    return jnp.concatenate([numbers.reshape(-1), jnp.asarray(is_white)[None], kings.reshape(-1)]).astype(jnp.float32)


def _feature_order(size: int, slots: Slots, has_castling: bool) -> np.ndarray:
    """int32 [P]: the index of each feature in rows of pieces [14, 2 M], of pawns [5, 2 size] and the rights [4].

    Of each kind come the first side's slots, then the other's; rights follow a side's rooks.
    """
    kinds, num = slots.kinds, 2 * len(slots.kinds)
    rows = {QUEEN: range(14), ROOK: (0, 1, 2, 3, 4, 5, 6, 11, 12, 13), BISHOP: (0, 1, 2, *range(7, 14))}
    rows[KNIGHT] = (0, 1, 2, 11, 12, 13)
    first_pawn, first_right = 14 * num, 14 * num + 5 * 2 * size
    order = [first_pawn + row * 2 * size + slot for slot in range(2 * size) for row in range(5)]
    for kind in KINDS:
        for side in range(2):
            own = [side * len(kinds) + slot for slot, other in enumerate(kinds) if other == kind]
            order += [row * num + slot for slot in own for row in rows[kind]]
            if kind == ROOK and has_castling:
                order += [first_right + 2 * side, first_right + 2 * side + 1]
    return np.array(order, np.int32)
