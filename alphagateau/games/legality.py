"""Which edges of a chess-like board are legal: pins and checks by bit sets over static tables.

pgx finds legal moves by playing each candidate and looking for an attack on the king. Here the attackers of the
king, the pinned pieces and the squares the king may reach are found once, and every edge is then judged by a few
bit operations; the tests hold the two equal, and both equal to python-chess and pyffish. Squares are numbered as in
`games.py`, seen by the player to move, whose pieces are positive and whose pawns go up.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.state import Array

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
# How an edge can be moved along, as bits.
STRAIGHT, DIAGONAL, LEAP, NEAR, PUSH, CAPTURE, CASTLE = (1 << i for i in range(7))
# What each piece code can do; a pawn's two ways are told apart by what stands on the receiver.
ABILITIES = np.array([0, PUSH | CAPTURE, LEAP, DIAGONAL, STRAIGHT, STRAIGHT | DIAGONAL, NEAR | CASTLE], np.int32)
WORDS = 2  # a set of up to 64 squares is two uint32


class Tables(NamedTuple):
    """What the geometry of a board fixes; numpy, [N, N] tables are indexed [target, from]."""

    edge_ways: np.ndarray  # int32 [E], bits
    edge_between: np.ndarray  # uint32 [E, WORDS], squares strictly between, for lines and double steps
    edge_receiver: np.ndarray  # uint32 [E, WORDS], the receiver as a set
    castles: tuple[tuple[int, tuple[int, ...], int, int], ...]  # (edge, king's path, rook's square, right)
    attack_ways: np.ndarray  # int32 [N, N], how an opponent's piece on `from` attacks `target`
    between: np.ndarray  # uint32 [N, N, WORDS]
    square: np.ndarray  # uint32 [N, WORDS], each square as a set
    direction: np.ndarray  # int32 [N, N], number of the ray from one square through another, 0 if none
    neighbours: np.ndarray  # int32 [N, 8], of each square; N where there are fewer


@lru_cache
def make_tables(size: int, edges: tuple[tuple[int, int, int], ...]) -> Tables:
    """The tables of a `size` x `size` board with `edges` (sender, receiver, promotion)."""
    squares = size * size

    def bits(chosen) -> np.ndarray:
        words = [sum(1 << (s - 32 * w) for s in chosen if s // 32 == w) for w in range(WORDS)]
        return np.array(words, np.uint32)

    def offset(a: int, b: int) -> tuple[int, int]:
        return b // size - a // size, b % size - a % size

    def line(a: int, b: int) -> list[int]:
        (df, dr), steps = offset(a, b), max(map(abs, offset(a, b)))
        if not (df == 0 or dr == 0 or abs(df) == abs(dr)):
            return []
        return [a + (df * size + dr) * i // steps for i in range(1, steps)]

    def ways(df: int, dr: int) -> int:
        near = max(abs(df), abs(dr)) == 1
        return (
            STRAIGHT * (df == 0 or dr == 0)
            | DIAGONAL * (abs(df) == abs(dr))
            | LEAP * (sorted((abs(df), abs(dr))) == [1, 2])
            | NEAR * near
        )

    edge_ways, castles = [], []
    for index, (sender, receiver, promotion) in enumerate(edges):
        (df, dr), rank = offset(sender, receiver), sender % size
        double = size == 8 and rank == 1 and (df, dr) == (0, 2)
        pawn = PUSH * ((df, dr) == (0, 1) or double) | CAPTURE * (abs(df) == 1 and dr == 1)
        edge_ways.append(pawn if promotion else pawn | ways(df, dr))
        if size == 8 and sender == 32 and receiver in (16, 48):
            path, rook = ((32, 24, 16), 0) if receiver == 16 else ((32, 40, 48), 56)
            castles.append((index, path, rook, int(receiver == 48)))
    attack = np.zeros((squares, squares), np.int32)
    between = np.zeros((squares, squares, WORDS), np.uint32)
    direction = np.zeros((squares, squares), np.int32)
    neighbours = np.full((squares, 8), squares, np.int32)
    for a in range(squares):
        near = []
        for b in range(squares):
            if a == b:
                continue
            df, dr = offset(a, b)
            attack[a, b] = ways(df, dr) | CAPTURE * (abs(df) == 1 and dr == 1)
            between[a, b] = bits(line(a, b))
            if attack[a, b] & (STRAIGHT | DIAGONAL):
                direction[a, b] = 5 + 3 * int(np.sign(df)) + int(np.sign(dr))
            if attack[a, b] & NEAR:
                near.append(b)
        neighbours[a, : len(near)] = near
    return Tables(
        edge_ways=np.array(edge_ways, np.int32),
        edge_between=np.stack([between[r, s] for s, r, _ in edges]),
        edge_receiver=np.stack([bits([r]) for _, r, _ in edges]),
        castles=tuple(castles),
        attack_ways=attack,
        between=between,
        square=np.stack([bits([s]) for s in range(squares)]),
        direction=direction,
        neighbours=neighbours,
    )


def _is_empty(words: Array) -> Array:
    """bool [...] of sets [..., WORDS]."""
    return (words == 0).all(axis=-1)


def _union(sets: Array, chosen: Array) -> Array:
    """The set [WORDS] of the `chosen` (bool [K]) among sets [K, WORDS]."""
    return jax.lax.reduce(jnp.where(chosen[:, None], sets, jnp.uint32(0)), jnp.uint32(0), jax.lax.bitwise_or, (0,))


def legal_edges(
    tables: Tables,
    senders: np.ndarray,
    receivers: np.ndarray,
    board: Array,
    castling: Array,
    en_passant: Array,
) -> tuple[Array, Array, Array]:
    """What is legal on one board int [N] with castling rights bool [4] and an en passant square (-1: none).

    Returns (legal bool [E], is the king in check, is an en passant capture legal).
    """
    squares = len(tables.square)
    size = round(squares**0.5)
    board = board.astype(jnp.int32)
    ability = jnp.asarray(ABILITIES)[jnp.abs(board)]
    theirs = jnp.where(board < 0, ability & ~(PUSH | CASTLE), 0)  # ways in which each square attacks
    sets, between = jnp.asarray(tables.square), jnp.asarray(tables.between)
    occupied = _union(sets, board != 0)
    king = jnp.argmax(board == KING)

    def attackers(target: Array, theirs: Array, occupied: Array) -> Array:
        """bool [N]: the squares whose piece attacks `target`."""
        can = (jnp.asarray(tables.attack_ways)[target] & theirs) != 0
        return can & _is_empty(between[target] & occupied)

    # The king: who attacks it, who is pinned to it, where it can go.
    checkers = attackers(king, theirs, occupied)
    is_check = checkers.any()
    is_double = checkers.sum() > 1
    answers = _union(between[king] | sets, checkers)  # squares that meet a single check
    blockers = between[king] & occupied
    lines = theirs & (STRAIGHT | DIAGONAL)
    is_pinner = (jnp.asarray(tables.attack_ways)[king] & lines) != 0
    is_pinner &= jax.lax.population_count(blockers).sum(axis=-1) == 1
    pinned = _union(blockers, is_pinner)
    is_pinned = ~_is_empty(pinned & sets) & (board > 0)  # bool [N]
    around = jnp.asarray(tables.neighbours)[king]
    without_king = occupied & ~sets[king]
    danger = jax.vmap(attackers, (0, None, None))(around, theirs, without_king).any(axis=-1)
    is_safe = jnp.zeros(squares + 1, bool).at[around].set(~danger)[:squares]

    # Every edge.
    ray = jnp.asarray(tables.direction)[king]
    code = jnp.where(board > 0, ability, 0)
    code = code | jnp.where(board == KING, 1 << 8, 0)
    sender_code, target = code[senders], board[receivers]
    needs = jnp.where(target < 0, ~PUSH, ~CAPTURE)  # a pawn pushes to an empty square, captures on a full one
    can = ((jnp.asarray(tables.edge_ways) & sender_code & needs) != 0) & (target <= 0)
    can &= _is_empty(jnp.asarray(tables.edge_between) & occupied)
    is_answer = ~is_check | (~is_double & ~_is_empty(jnp.asarray(tables.edge_receiver) & answers))
    keeps_pin = ~is_pinned[senders] | (ray[senders] == ray[receivers])
    is_king = sender_code >= 1 << 8
    legal = can & jnp.where(is_king, is_safe[receivers], is_answer & keeps_pin)
    if not tables.castles:
        return legal, is_check, jnp.bool_(False)

    # En passant takes two pieces off a rank, so the position after it is looked at.
    taken, can_take = en_passant - 1, jnp.bool_(False)
    for side in (-size, size):
        pawn = taken + side
        on_board = (en_passant >= 0) & (pawn >= 0) & (pawn < squares)
        pawn_set, taken_set = sets[pawn], sets[taken]
        after = (occupied & ~pawn_set & ~taken_set) | sets[en_passant]
        exposed = attackers(king, theirs.at[taken].set(0), after).any()
        ok = on_board & (board[pawn] == PAWN) & ~exposed
        can_take |= ok
        legal |= ok & (jnp.asarray(senders) == pawn) & (jnp.asarray(receivers) == en_passant)
    for edge, path, rook, right in tables.castles:
        squares_free = _is_empty(between[32, rook] & occupied) & (board[rook] == ROOK) & (board[32] == KING)
        unsafe = jax.vmap(attackers, (0, None, None))(jnp.array(path), theirs, occupied).any()
        legal = legal.at[edge].set(legal[edge] | (castling[right] & squares_free & ~unsafe))
    return legal, is_check, can_take


def is_dead(size: int, board: Array) -> Array:
    """Neither side can mate: bare kings, one knight or bishop, or bishops of one square color only."""
    shade = np.add(*np.divmod(np.arange(size * size), size)) % 2
    piece = jnp.abs(board.astype(jnp.int32))
    others = (piece != 0).sum() - 2
    bishops = piece == BISHOP
    same_shade = (bishops & (shade == 0)).sum() * (bishops & (shade == 1)).sum() == 0
    lone_knight = (others == 1) & (piece == KNIGHT).any()
    return lone_knight | ((others == bishops.sum()) & same_shade)
