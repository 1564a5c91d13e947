"""Generates the legal edges of a chess-like board: for each square, the set of pieces that may move to it.

pgx finds legal moves by playing each candidate and looking for an attack on the king. Here lines of sight, checks and
pins are found once, for all squares at a time, by a few operations on sets of squares; the tests hold the two equal,
and both equal to python-chess and pyffish. Squares are numbered as in `rules.py`, seen by the player to move, whose
pieces are positive and whose pawns go up. A set of squares is uint32 [W], a set for each square [W, N] (`bitsets.py`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.bitsets import WORD, Words, count, is_empty, pack, weighted_members
from alphagateau.games.edges import Edges
from alphagateau.games.entries import BISHOP, KING, KNIGHT, PAWN, ROOK, Castling, GameEntry
from alphagateau.games.state import Array

# (files, ranks) of a step along a ray, straight, then diagonally; along the opposite ray the numbers of squares fall.
RISING_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))


class Views(NamedTuple):
    """Lines and leaps from each of N squares, or of K of them, on an empty board."""

    rays: Words  # uint32 [2, 2, 2, W, N]: numbers rise or fall, straight or diagonal, two each
    leaps: Words  # uint32 [W, N], a knight's move away
    near: Words  # uint32 [W, N], a king's move away
    pawns: Words  # uint32 [W, N], from where an opponent's pawn attacks
    own_pawns: Words  # uint32 [W, N], from where an own pawn attacks


class Tables(NamedTuple):
    """Static tables of a board; numpy."""

    entry: GameEntry
    views: Views
    pushes: np.ndarray  # uint32 [W, N], from where a pawn reaches an empty square, double steps included
    squares: np.ndarray  # uint32 [W, N], each square as a set
    direction: np.ndarray  # int32 [N, N], the ray (of 8, as in Views) from one square through another, 8 if none
    edge: np.ndarray  # int16 [N, N], from the second square to the first; its under-promotions follow


class Pieces(NamedTuple):
    """One side's pieces as sets [W]."""

    pawns: Array
    knights: Array
    lines: Array  # [2, W]: those that move straight, those that move diagonally; queens do both
    king: Array


def offsets(size: int) -> tuple[np.ndarray, np.ndarray]:
    """(files, ranks) int [N, N] from the second square to the first."""
    file, rank = np.divmod(np.arange(size * size), size)
    return file[:, None] - file, rank[:, None] - rank


def sets_of(chosen: np.ndarray) -> np.ndarray:
    """uint32 [W, ...] of bool [N, ...], a set for each column."""
    padded = np.pad(chosen, [(0, -len(chosen) % WORD)] + [(0, 0)] * (chosen.ndim - 1)).astype(np.uint32)
    bits = np.uint32(1) << np.arange(WORD, dtype=np.uint32)
    return np.tensordot(bits, padded.reshape(-1, WORD, *chosen.shape[1:]), (0, 1)).astype(np.uint32)


def _all_rays(size: int) -> np.ndarray:
    """Bool [8, N, N], in the order of Views: is the first square on the ray of the second?"""
    df, dr = offsets(size)
    num_steps = np.maximum(abs(df), abs(dr))
    rays = [(sign * files, sign * ranks) for sign in (1, -1) for files, ranks in RISING_STEPS]
    return np.stack([(num_steps > 0) & (df == f * num_steps) & (dr == r * num_steps) for f, r in rays])


def make_views(size: int) -> Views:
    """The Views of all squares of a board; numpy."""
    df, dr = offsets(size)
    return Views(
        rays=np.stack([sets_of(ray) for ray in _all_rays(size)]).reshape(2, 2, 2, -1, size**2),
        leaps=sets_of(abs(df * dr) == 2),
        near=sets_of(np.maximum(abs(df), abs(dr)) == 1),
        pawns=sets_of((abs(df) == 1) & (dr == 1)),
        own_pawns=sets_of((abs(df) == 1) & (dr == -1)),
    )


def make_tables(entry: GameEntry, edges: Edges) -> Tables:
    """The tables of a game on its board."""
    size, num_squares = entry.size, entry.size**2
    df, dr = offsets(size)
    rays = _all_rays(size)
    is_home = np.arange(num_squares)[:, None] % size == entry.double_step_rank  # None is no rank's equal
    edge, plain = np.full((num_squares, num_squares), -1, np.int16), np.flatnonzero(edges.promotions == 0)
    edge[edges.receivers[plain], edges.senders[plain]] = plain
    return Tables(
        entry=entry,
        views=make_views(size),
        pushes=sets_of((df == 0) & ((dr == -1) | is_home & (dr == -2))),
        squares=sets_of(np.eye(num_squares, dtype=bool)),
        direction=np.where(rays.any(axis=0), rays.argmax(axis=0), len(rays)).T.astype(np.int32),
        edge=edge,
    )


def _union(sets: Array, axes: tuple[int, ...]) -> Array:
    """The union of sets along some axes, short ones."""
    return jax.lax.reduce(sets, jnp.uint32(0), jax.lax.bitwise_or, axes)


def _pieces(board: Array, sign: int) -> Pieces:
    """The pieces of the player to move (sign 1) or the opponent (-1) on a board int32 [N]."""
    codes = jnp.asarray(sign * np.arange(PAWN, KING + 1, dtype=np.int32))
    pawns, knights, bishops, rooks, queens, king = pack(board == codes[:, None])
    return Pieces(pawns, knights, jnp.stack([rooks | queens, bishops | queens]), king)


def up(rays: Words, occupied: Array) -> Array:
    """Rays [..., W, K] along which numbers rise, up to and with the first square of `occupied`, broadcast to them."""
    blockers, words = rays & occupied, jnp.arange(rays.shape[-2])[:, None]
    is_open = (words == 0) | (jnp.flip(blockers, axis=-2) == 0)  # nothing in the lower word, of two at most
    return jnp.where(is_open, rays & (blockers ^ (blockers - 1)), jnp.uint32(0))


def down(rays: Words, occupied: Array) -> Array:
    """As `up`, along rays where numbers fall."""
    blockers, words = rays & occupied, jnp.arange(rays.shape[-2])[:, None]
    is_open = (words == len(words) - 1) | (jnp.flip(blockers, axis=-2) == 0)
    below = (jnp.uint32(0xFFFFFFFF) >> jax.lax.clz(blockers)) >> 1  # the highest square; all with none
    return jnp.where(is_open, rays & ~below, jnp.uint32(0))


def sight(rays: Words, occupied: Array) -> tuple[Array, Array]:
    """Squares visible straight and diagonally from each of K squares, sets [W, K]; `occupied` [W, 1 or K]."""
    seen = up(rays[0], occupied) | down(rays[1], occupied)
    return seen[0, 0] | seen[0, 1], seen[1, 0] | seen[1, 1]


def _attackers(views: Views, theirs: Pieces, occupied: Array) -> Array:
    """The sets [W, K] of pieces of `theirs` that attack each of K squares; `occupied` [W, 1 or K]."""
    straight, diagonal = sight(views.rays, occupied)
    found = straight & theirs.lines[0][:, None] | diagonal & theirs.lines[1][:, None]
    found |= views.leaps & theirs.knights[:, None] | views.near & theirs.king[:, None]
    return found | views.pawns & theirs.pawns[:, None]


def _movers(tables: Tables, board: Array, own: Pieces, occupied: Array) -> Array:
    """The sets [W, N] of pieces but the king that could move to each square, were there no checks and pins."""
    straight, diagonal = sight(tables.views.rays, occupied[:, None])
    found = straight & own.lines[0][:, None] | diagonal & own.lines[1][:, None]
    found |= tables.views.leaps & own.knights[:, None]
    by_pawns = jnp.where(board < 0, tables.views.own_pawns, tables.pushes & straight) & own.pawns[:, None]
    return jnp.where(board > 0, jnp.uint32(0), found | by_pawns)


class _King(NamedTuple):
    """Constraints that checks and pins put on the other pieces of the player to move."""

    views: Views  # of its square alone
    is_check: Array
    evasions: Array  # uint32 [W], where they may move: every square without a check, none with two
    unpinned: Array  # uint32 [W, N], which of them may move to each square


def _checks_and_pins(tables: Tables, king: Array, theirs: Pieces, occupied: Array, checkers: Array) -> _King:
    """`king` is its square, `checkers` [W] the pieces that attack it.

    A piece is pinned if it is the nearest on a ray of the king and the next one is a line piece of the opponent's;
    it may move along that ray. A single check is met on the ray up to the checker, or on the checker's square.
    """
    views = jax.tree.map(lambda x: jnp.asarray(x)[..., king][..., None], tables.views)
    rays = jnp.stack([up(views.rays[0], occupied[:, None]), down(views.rays[1], occupied[:, None])])
    nearest = rays & occupied[:, None]
    behind = occupied[:, None] & ~nearest
    next_rays = jnp.stack([up(views.rays[0], behind[0]), down(views.rays[1], behind[1])])
    pinners = next_rays & behind & theirs.lines[:, None, :, None]
    is_pin = (pinners != 0).any(axis=3, keepdims=True)
    pinned = jnp.where(is_pin, nearest, jnp.uint32(0)).reshape(8, -1, 1)
    on_ray = jnp.asarray(tables.direction)[king] == jnp.arange(8)[:, None, None]
    checked = ((rays & checkers[:, None]) != 0).any(axis=3, keepdims=True)
    blocks = _union(jnp.where(checked, rays, jnp.uint32(0)), (0, 1, 2, 4))
    num_checkers = count(checkers)
    return _King(
        views=views,
        is_check=num_checkers > 0,
        evasions=jnp.where(num_checkers == 0, ~jnp.uint32(0), jnp.where(num_checkers == 1, blocks | checkers, 0)),
        unpinned=~_union(pinned, (0,)) | _union(jnp.where(on_ray, pinned, jnp.uint32(0)), (0,)),
    )


def legal_edges(tables: Tables, board: Array, castling: Array, en_passant: Array) -> tuple[Array, Array, Array]:
    """Legal moves on one board int [N] with castling rights bool [4] and an en passant square (-1: none).

    Returns (legal edges int16 [S] in rising order, then -1; is the king in check; is an en passant capture legal).
    """
    board = board.astype(jnp.int32)
    own, theirs, occupied = _pieces(board, 1), _pieces(board, -1), pack(board != 0)
    attackers = _attackers(tables.views, theirs, (occupied & ~own.king)[:, None])  # the king shields no square
    square, is_safe = jnp.argmax(board == KING), is_empty(attackers)
    king = _checks_and_pins(tables, square, theirs, occupied, attackers[:, square])

    is_evasion = ~is_empty(tables.squares & king.evasions[:, None])
    legal = jnp.where(is_evasion, _movers(tables, board, own, occupied) & king.unpinned, jnp.uint32(0))
    legal |= jnp.where(is_safe & (board <= 0), tables.views.near & own.king[:, None], jnp.uint32(0))
    can_take = jnp.bool_(False)
    if tables.entry.double_step_rank is not None:
        takers = _en_passant_takers(tables, own.pawns, theirs, en_passant, king.views, occupied)
        legal |= jnp.where(jnp.arange(len(board)) == en_passant, takers[:, None], jnp.uint32(0))
        can_take = ~is_empty(takers)
    for right, side in enumerate(tables.entry.castlings):
        if tables.entry.is_fischer_random:
            legal |= _castling_onto_rook(tables, side, castling[right], board, square, theirs, occupied, is_safe)
            continue
        step = tables.entry.size if side.king_to > side.king else -tables.entry.size
        between = sets_of(np.isin(np.arange(len(board)), range(side.king + step, side.rook, step)))
        is_home = (board[side.rook] == ROOK) & (board[side.king] == KING)
        is_free = is_empty(between & occupied) & is_safe[np.arange(side.king, side.king_to + step, step)].all()
        is_target = jnp.arange(len(board)) == side.king_to
        can_castle = castling[right] & is_home & is_free
        legal |= jnp.where(can_castle & is_target, tables.squares[:, side.king, None], jnp.uint32(0))
    return _slots(tables, legal, own.pawns), king.is_check, can_take


def _castling_onto_rook(
    tables: Tables,
    side: Castling,
    castling: Array,
    board: Array,
    king: Array,
    theirs: Pieces,
    occupied: Array,
    is_safe: Array,
) -> Array:
    """The sets [W, N] of kings that may castle onto each square, by a right of Fischer random, 1 + the rook's file.

    The rook leaves its square, so attacks on the king are found after the castling too.
    """
    size, squares = tables.entry.size, jnp.asarray(tables.squares)
    files = jnp.arange(size)
    king_file, rook_file = king // size, jnp.maximum(castling.astype(jnp.int32) - 1, 0)
    king_to, rook_to, rook = side.king_to // size, side.rook_to // size, rook_file * size
    is_crossed, by_rook = (  # [files], of the first rank
        (files >= jnp.minimum(start, end)) & (files <= jnp.maximum(start, end))
        for start, end in ((king_file, king_to), (rook_file, rook_to))
    )
    is_other = (board[::size] != 0) & (files != king_file) & (files != rook_file)
    is_attacked = ~is_safe[::size] & ((files != king_to) | (files == king_file))
    is_free = ~((is_crossed | by_rook) & is_other | is_crossed & is_attacked).any()
    after = occupied & ~squares[:, king] & ~squares[:, rook] | squares[:, side.rook_to]
    views = jax.tree.map(lambda x: jnp.asarray(x)[..., side.king_to, None], tables.views)
    is_free &= is_empty(_attackers(views, theirs, after[:, None]))[0]
    is_target = (castling > 0) & is_free & (jnp.arange(len(board)) == rook)
    return jnp.where(is_target, squares[:, king, None], jnp.uint32(0))


def _en_passant_takers(
    tables: Tables, pawns: Array, theirs: Pieces, en_passant: Array, views: Views, occupied: Array
) -> Array:
    """The set of pawns that may capture en passant.

    Two pieces leave a rank, so attacks on the king, whose `views` are given, are found after each capture.
    """
    squares, taken = jnp.asarray(tables.squares), en_passant - 1
    takers = jnp.where(en_passant >= 0, jnp.asarray(tables.views.own_pawns)[:, en_passant] & pawns, jnp.uint32(0))
    size = tables.entry.size
    beside = jnp.stack([squares[:, taken - size], squares[:, taken + size]], axis=1) & takers[:, None]
    after = (occupied & ~squares[:, taken])[:, None] & ~beside | squares[:, en_passant, None]
    others = theirs._replace(pawns=theirs.pawns & ~squares[:, taken])
    is_kept = is_empty(_attackers(views, others, after))
    return _union(jnp.where(is_kept, beside, jnp.uint32(0)), (1,))


def _slots(tables: Tables, legal: Array, pawns: Array) -> Array:
    """int16 [S]: the edges in rising order, then -1, of which `legal` [W, N] has the senders by receiver."""
    entry, num_squares = tables.entry, tables.entry.size**2
    is_last_rank = jnp.arange(num_squares) % entry.size == entry.size - 1
    promoting = jnp.where(is_last_rank, legal & pawns[:, None], jnp.uint32(0))
    num_promotions = 1 + len(entry.under_promotions)  # edges of a pawn's move to the last rank
    receiver, sender, nth = weighted_members(legal, promoting, num_promotions, entry.max_legal_moves)
    edge = jnp.asarray(tables.edge)[receiver, sender] + nth.astype(jnp.int16)
    return jnp.where(receiver < num_squares, edge, -1).astype(jnp.int16)


def is_dead(size: int, board: Array) -> Array:
    """Neither side can mate: bare kings, one knight or bishop, or bishops of one square color only."""
    shade = np.add(*np.divmod(np.arange(size * size), size)) % 2
    piece = jnp.abs(board.astype(jnp.int32))
    is_bishop = piece == BISHOP
    light, dark = count(pack(is_bishop & (shade == 0))), count(pack(is_bishop & (shade == 1)))
    others, knights = count(pack(piece != 0)) - 2, count(pack(piece == KNIGHT))
    return ((others == 1) & (knights > 0)) | ((others == light + dark) & (light * dark == 0))
