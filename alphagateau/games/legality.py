"""Which edges of a chess-like board are legal: pins and checks by bit sets over static tables.

pgx finds legal moves by playing each candidate and looking for an attack on the king. Here the attackers of the
king, the pinned pieces and the squares the king may reach are found once, and every edge is then judged by a few
bit operations; the tests hold the two equal, and both equal to python-chess and pyffish. Squares are numbered as in
`rules.py`, seen by the player to move, whose pieces are positive and whose pawns go up.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.edges import Edges
from alphagateau.games.entries import BISHOP, KING, KNIGHT, PAWN, ROOK, GameEntry
from alphagateau.games.state import Array

# How an edge can be moved along, as bits.
STRAIGHT, DIAGONAL, LEAP, NEAR, PUSH, CAPTURE, CASTLE = (1 << i for i in range(7))
# What each piece code can do; a pawn's two ways are told apart by what stands on the receiver.
ABILITIES = np.array([0, PUSH | CAPTURE, LEAP, DIAGONAL, STRAIGHT, STRAIGHT | DIAGONAL, NEAR | CASTLE], np.int32)
WORDS = 2  # a set of up to 64 squares is two uint32


class CastlingTable(NamedTuple):
    """One castling of the player to move."""

    edge: int
    king: int
    rook: int
    path: tuple[int, ...]  # the king's squares, from the first to the last
    right: int  # its index in State.castling


class Tables(NamedTuple):
    """What the geometry of a board fixes; numpy, [N, N] tables are indexed [target, from]."""

    size: int
    senders: np.ndarray  # int32 [E]
    receivers: np.ndarray  # int32 [E]
    edge_ways: np.ndarray  # int32 [E], bits
    edge_between: np.ndarray  # uint32 [E, WORDS], squares strictly between, for lines and double steps
    edge_receiver: np.ndarray  # uint32 [E, WORDS], the receiver as a set
    has_double_step: bool
    castlings: tuple[CastlingTable, ...]
    attack_ways: np.ndarray  # int32 [N, N], how an opponent's piece on `from` attacks `target`
    between: np.ndarray  # uint32 [N, N, WORDS]
    square: np.ndarray  # uint32 [N, WORDS], each square as a set
    direction: np.ndarray  # int32 [N, N], number of the ray from one square through another, 0 if none
    neighbours: np.ndarray  # int32 [N, 8], of each square; N where there are fewer


def _bits(chosen) -> np.ndarray:
    """uint32 [WORDS], the set of the squares `chosen`."""
    words = [sum(1 << (s - 32 * w) for s in chosen if s // 32 == w) for w in range(WORDS)]
    return np.array(words, np.uint32)


def _offset(size: int, a: int, b: int) -> tuple[int, int]:
    """(files, ranks) from a to b."""
    return b // size - a // size, b % size - a % size


def _line(size: int, a: int, b: int) -> list[int]:
    """The squares strictly between two on a line."""
    (df, dr), steps = _offset(size, a, b), max(map(abs, _offset(size, a, b)))
    if not (df == 0 or dr == 0 or abs(df) == abs(dr)):
        return []
    return [a + (df * size + dr) * i // steps for i in range(1, steps)]


def _ways(df: int, dr: int) -> int:
    """How pieces other than pawns can move by so many files and ranks."""
    return (
        STRAIGHT * (df == 0 or dr == 0)
        | DIAGONAL * (abs(df) == abs(dr))
        | LEAP * (sorted((abs(df), abs(dr))) == [1, 2])
        | NEAR * (max(abs(df), abs(dr)) == 1)
    )


def _edge_ways(entry: GameEntry, sender: int, receiver: int, promotion: int) -> int:
    df, dr = _offset(entry.size, sender, receiver)
    is_double_step = sender % entry.size == entry.double_step_rank and (df, dr) == (0, 2)
    pawn = PUSH * ((df, dr) == (0, 1) or is_double_step) | CAPTURE * (abs(df) == 1 and dr == 1)
    return pawn if promotion else pawn | _ways(df, dr)


def _castling_tables(entry: GameEntry, triples: list[tuple[int, int, int]]) -> tuple[CastlingTable, ...]:
    found = []
    for right, (king, king_to, rook, _) in enumerate(entry.castlings):
        step = entry.size if king_to > king else -entry.size
        path = tuple(range(king, king_to + step, step))
        found.append(CastlingTable(triples.index((king, king_to, 0)), king, rook, path, right))
    return tuple(found)


@lru_cache
def _pair_tables(size: int) -> tuple[np.ndarray, ...]:
    """(attack_ways, between, direction, neighbours) of Tables."""
    squares = size * size
    attack = np.zeros((squares, squares), np.int32)
    between = np.zeros((squares, squares, WORDS), np.uint32)
    direction = np.zeros((squares, squares), np.int32)
    neighbours = np.full((squares, 8), squares, np.int32)
    for a in range(squares):
        near = []
        for b in range(squares):
            if a == b:
                continue
            df, dr = _offset(size, a, b)
            attack[a, b] = _ways(df, dr) | CAPTURE * (abs(df) == 1 and dr == 1)
            between[a, b] = _bits(_line(size, a, b))
            if attack[a, b] & (STRAIGHT | DIAGONAL):
                direction[a, b] = 5 + 3 * int(np.sign(df)) + int(np.sign(dr))
            if attack[a, b] & NEAR:
                near.append(b)
        neighbours[a, : len(near)] = near
    return attack, between, direction, neighbours


def make_tables(entry: GameEntry, edges: Edges) -> Tables:
    """The tables of a game on its board."""
    attack, between, direction, neighbours = _pair_tables(entry.size)
    triples = edges.triples()
    square = np.stack([_bits([s]) for s in range(entry.size**2)])
    return Tables(
        size=entry.size,
        senders=edges.senders,
        receivers=edges.receivers,
        edge_ways=np.array([_edge_ways(entry, *triple) for triple in triples], np.int32),
        edge_between=between[edges.receivers, edges.senders],
        edge_receiver=square[edges.receivers],
        has_double_step=entry.double_step_rank is not None,
        castlings=_castling_tables(entry, triples),
        attack_ways=attack,
        between=between,
        square=square,
        direction=direction,
        neighbours=neighbours,
    )


def _is_empty(words: Array) -> Array:
    """bool [...] of sets [..., WORDS]."""
    return (words == 0).all(axis=-1)


def _union(sets: Array, chosen: Array) -> Array:
    """The set [WORDS] of the `chosen` (bool [K]) among sets [K, WORDS]."""
    return jax.lax.reduce(jnp.where(chosen[:, None], sets, jnp.uint32(0)), jnp.uint32(0), jax.lax.bitwise_or, (0,))


def _attackers(tables: Tables, target: Array, theirs: Array, occupied: Array) -> Array:
    """bool [N]: the squares whose piece attacks `target`; `theirs` int32 [N], ways in which each square attacks."""
    can = (jnp.asarray(tables.attack_ways)[target] & theirs) != 0
    return can & _is_empty(jnp.asarray(tables.between)[target] & occupied)


def _any_attacked(tables: Tables, targets: Array, theirs: Array, occupied: Array) -> Array:
    """bool [K]: which of the squares `targets` [K] are attacked."""
    return jax.vmap(lambda target: _attackers(tables, target, theirs, occupied).any())(targets)


class _King(NamedTuple):
    """Who attacks the king of the player to move, who is pinned to it, where it can go."""

    square: Array
    is_check: Array
    is_double: Array
    answers: Array  # uint32 [WORDS], squares that meet a single check
    is_pinned: Array  # bool [N]
    is_safe: Array  # bool [N], squares beside the king that are not attacked


def _look_at_king(tables: Tables, board: Array, theirs: Array, occupied: Array) -> _King:
    sets, between = jnp.asarray(tables.square), jnp.asarray(tables.between)
    king = jnp.argmax(board == KING)
    checkers = _attackers(tables, king, theirs, occupied)
    blockers = between[king] & occupied
    is_pinner = (jnp.asarray(tables.attack_ways)[king] & theirs & (STRAIGHT | DIAGONAL)) != 0
    is_pinner &= jax.lax.population_count(blockers).sum(axis=-1) == 1
    pinned = _union(blockers, is_pinner)
    around = jnp.asarray(tables.neighbours)[king]
    danger = _any_attacked(tables, around, theirs, occupied & ~sets[king])
    return _King(
        square=king,
        is_check=checkers.any(),
        is_double=checkers.sum() > 1,
        answers=_union(between[king] | sets, checkers),
        is_pinned=~_is_empty(pinned & sets) & (board > 0),
        is_safe=jnp.zeros(len(board) + 1, bool).at[around].set(~danger)[: len(board)],
    )


def legal_edges(tables: Tables, board: Array, castling: Array, en_passant: Array) -> tuple[Array, Array, Array]:
    """What is legal on one board int [N] with castling rights bool [4] and an en passant square (-1: none).

    Returns (legal bool [E], is the king in check, is an en passant capture legal).
    """
    senders, receivers = tables.senders, tables.receivers
    board = board.astype(jnp.int32)
    ability = jnp.asarray(ABILITIES)[jnp.abs(board)]
    theirs = jnp.where(board < 0, ability & ~(PUSH | CASTLE), 0)
    occupied = _union(jnp.asarray(tables.square), board != 0)
    king = _look_at_king(tables, board, theirs, occupied)

    ray = jnp.asarray(tables.direction)[king.square]
    sender_ability, target = jnp.where(board > 0, ability, 0)[senders], board[receivers]
    needs = jnp.where(target < 0, ~PUSH, ~CAPTURE)  # a pawn pushes to an empty square, captures on a full one
    can = ((jnp.asarray(tables.edge_ways) & sender_ability & needs) != 0) & (target <= 0)
    can &= _is_empty(jnp.asarray(tables.edge_between) & occupied)
    meets_check = ~_is_empty(jnp.asarray(tables.edge_receiver) & king.answers)
    is_answer = ~king.is_check | (~king.is_double & meets_check)
    keeps_pin = ~king.is_pinned[senders] | (ray[senders] == ray[receivers])
    is_king = (board == KING)[senders]
    legal = can & jnp.where(is_king, king.is_safe[receivers], is_answer & keeps_pin)

    can_take = jnp.bool_(False)
    if tables.has_double_step:
        takes = _en_passant_edges(tables, board, en_passant, theirs, king.square, occupied)
        legal, can_take = legal | takes, takes.any()
    for side in tables.castlings:
        can_castle = castling[side.right] & _can_castle(tables, side, board, theirs, occupied)
        legal = legal.at[side.edge].set(legal[side.edge] | can_castle)
    return legal, king.is_check, can_take


def _en_passant_edges(
    tables: Tables, board: Array, en_passant: Array, theirs: Array, king: Array, occupied: Array
) -> Array:
    """bool [E]. En passant takes two pieces off a rank, so the position after it is looked at."""
    sets, squares = jnp.asarray(tables.square), len(tables.square)
    taken, legal = en_passant - 1, jnp.zeros(len(tables.senders), bool)
    for side in (-tables.size, tables.size):
        pawn = taken + side
        on_board = (en_passant >= 0) & (pawn >= 0) & (pawn < squares)
        after = (occupied & ~sets[pawn] & ~sets[taken]) | sets[en_passant]
        exposed = _attackers(tables, king, theirs.at[taken].set(0), after).any()
        takes = on_board & (board[pawn] == PAWN) & ~exposed
        legal |= takes & (jnp.asarray(tables.senders) == pawn) & (jnp.asarray(tables.receivers) == en_passant)
    return legal


def _can_castle(tables: Tables, side: CastlingTable, board: Array, theirs: Array, occupied: Array) -> Array:
    """Are king and rook at home, nothing between them, and no square of the king's path attacked?"""
    is_free = _is_empty(jnp.asarray(tables.between)[side.king, side.rook] & occupied)
    at_home = (board[side.rook] == ROOK) & (board[side.king] == KING)
    return is_free & at_home & ~_any_attacked(tables, jnp.array(side.path), theirs, occupied).any()


def is_dead(size: int, board: Array) -> Array:
    """Neither side can mate: bare kings, one knight or bishop, or bishops of one square color only."""
    shade = np.add(*np.divmod(np.arange(size * size), size)) % 2
    piece = jnp.abs(board.astype(jnp.int32))
    others = (piece != 0).sum() - 2
    bishops = piece == BISHOP
    same_shade = (bishops & (shade == 0)).sum() * (bishops & (shade == 1)).sum() == 0
    lone_knight = (others == 1) & (piece == KNIGHT).any()
    return lone_knight | ((others == bishops.sum()) & same_shade)
