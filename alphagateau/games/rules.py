"""Board games as pure functions over static tables: pgx rules in, exact states with edge actions out.

An action is an edge of the board's move graph: a (from, to, under-promotion) triple, numbered by receiver, sender,
promotion. Squares are numbered file by file as in pgx, `file * size + rank`, seen by the player to move:

    5x5   4  9 14 19 24        8x8   7 15 ... 63
          3  8 13 18 23              .         .
          2  7 12 17 22              .         .
          1  6 11 16 21              1  9 ... 57
          0  5 10 15 20              0  8 ... 56

Moves are played by pgx. Legality is found over edges in `legality.py`, some 30 times faster than pgx finds it. Endings
are decided here, because pgx 2.6 misses repetitions: of the initial position, and of positions that followed a double
pawn step which allowed no en passant capture.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx.gardner_chess as pgx_gardner
from pgx._src.games import chess as pgx_chess

from alphagateau.games import legality
from alphagateau.games.legality import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK
from alphagateau.games.state import HISTORY, KEYS, Array, Position, State

NO_PROGRESS_LIMIT = 100  # plies: the fifty-move rule
REPETITION_LIMIT = 3  # occurrences


class Game(NamedTuple):
    """A game: its static move graph, and its rules as functions of one State (use `jax.vmap` for a batch)."""

    name: str
    size: int  # squares a side
    num_squares: int  # N
    num_edges: int  # E
    num_labels: int  # A, pgx's actions; no other module but a baseline network needs them
    max_legal_moves: int  # S, no reachable position has more
    max_plies: int  # the game is then a draw
    senders: np.ndarray  # int32 [E], square a piece leaves
    receivers: np.ndarray  # int32 [E], square it reaches
    promotions: np.ndarray  # int8 [E], KNIGHT, BISHOP or ROOK for an under-promotion, else 0
    labels: np.ndarray  # int32 [E], pgx's action of the edge
    start_fen: str
    init: Callable[[], State]
    step: Callable[[State, Array], State]  # (state, edge); a finished game stays as it is
    position: Callable[[State], Position]
    enter: Callable[..., State]  # State of a board with no known past; `notation.from_fen` calls it


class _Moved(NamedTuple):
    """A board after a move, already seen by the next player."""

    board: Array  # int32 [N]
    castling: Array  # bool [4]
    en_passant: Array  # int32
    halfmove_count: Array  # int32


def chess_move(state: State, label: Array) -> _Moved:
    x = pgx_chess.GameState(
        board=state.boards[0].astype(jnp.int32),
        color=state.color.astype(jnp.int32),
        castling_rights=state.castling.reshape(2, 2),
        en_passant=state.en_passant.astype(jnp.int32),
        halfmove_count=state.halfmove_count.astype(jnp.int32),
    )
    x = pgx_chess._flip(pgx_chess._apply_move(x, pgx_chess.Action._from_label(label)))
    return _Moved(x.board, x.castling_rights.reshape(4), x.en_passant, x.halfmove_count)


def gardner_move(state: State, label: Array) -> _Moved:
    x = pgx_gardner.State(
        _board=state.boards[0].astype(jnp.int32),
        _turn=state.color.astype(jnp.int32),
        _halfmove_count=state.halfmove_count.astype(jnp.int32),
    )
    x = pgx_gardner._flip(pgx_gardner._apply_move(x, pgx_gardner.Action._from_label(label)))
    return _Moved(x._board, state.castling, jnp.int32(-1), x._halfmove_count)


def build_edges(action_from_label: Callable, num_actions: int) -> tuple[np.ndarray, ...]:
    """All moves that stay on the board, ordered by receiver, sender, promotion."""
    action = jax.vmap(action_from_label)(jnp.arange(num_actions))
    sender, receiver, under = (np.asarray(x) for x in (action.from_, action.to, action.underpromotion))
    promotion = np.where(under >= 0, np.array([ROOK, BISHOP, KNIGHT])[under], 0)
    labels = np.flatnonzero(receiver >= 0)
    order = np.lexsort((promotion[labels], sender[labels], receiver[labels]))
    labels = labels[order]
    return sender[labels], receiver[labels], promotion[labels].astype(np.int8), labels


def _zobrist_tables(num_squares: int) -> tuple[np.ndarray, ...]:
    """Random 64-bit words (as pairs of uint32) for piece on square, side, castling right, en passant square."""
    rng = np.random.default_rng(2024)

    def words(*shape):
        return rng.integers(1, 2**32, size=(*shape, 2), dtype=np.uint32)

    return words(num_squares, 13), words(), words(4), words(num_squares + 1)


def make_game(
    name: str,
    size: int,
    max_legal_moves: int,
    max_plies: int,
    start_fen: str,
    start_castling: bool,
    num_labels: int,
    edges: tuple[np.ndarray, ...],
    move: Callable[[State, Array], _Moved],
) -> Game:
    senders, receivers, promotions, labels = edges
    num_squares = size * size
    tables = legality.make_tables(
        size, tuple(zip(senders.tolist(), receivers.tolist(), promotions.tolist(), strict=True))
    )
    on_board, on_side, on_castling, on_en_passant = _zobrist_tables(num_squares)

    def position_key(board, color, castling, en_passant) -> Array:
        """uint32 [2]; the same position, side, rights and en passant capture give the same key."""
        words = jnp.asarray(on_board)[jnp.arange(num_squares), board.astype(jnp.int32) + 6]
        key = jax.lax.reduce(words, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        key ^= jnp.where(color == 0, jnp.asarray(on_side), jnp.uint32(0))
        rights = jnp.where(castling[:, None], jnp.asarray(on_castling), jnp.uint32(0))
        key ^= jax.lax.reduce(rights, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        return key ^ jnp.asarray(on_en_passant)[en_passant]

    def enter(board, color, castling, en_passant, halfmove_count, ply, boards=None, keys=None) -> State:
        """The State of a board [N] seen by the player to move; `boards`, `keys`: what went before."""
        legal, is_check, can_take = legality.legal_edges(
            tables, senders, receivers, board, castling, en_passant.astype(jnp.int32)
        )
        en_passant = jnp.where(can_take, en_passant, -1)
        key = position_key(board, color, castling, en_passant)
        if boards is None or keys is None:
            boards = jnp.zeros((HISTORY - 1, num_squares), jnp.int8)
            keys = jnp.zeros((KEYS - 1, 2), jnp.uint32)
        occurrences = 1 + (keys == key).all(axis=-1).sum()
        is_stuck = ~legal.any()
        terminated = (
            is_stuck
            | legality.is_dead(size, board)
            | (halfmove_count >= NO_PROGRESS_LIMIT)
            | (occurrences >= REPETITION_LIMIT)
            | (ply >= max_plies)
        )
        return State(
            boards=jnp.concatenate([board.astype(jnp.int8)[None], boards]),
            keys=jnp.concatenate([key[None], keys]),
            color=color.astype(jnp.int8),
            castling=castling,
            en_passant=en_passant.astype(jnp.int8),
            halfmove_count=halfmove_count.astype(jnp.int16),
            ply=ply.astype(jnp.int16),
            legal_edges=jnp.nonzero(legal, size=max_legal_moves, fill_value=-1)[0].astype(jnp.int16),
            terminated=terminated,
            reward=(is_stuck & is_check).astype(jnp.float32),
        )

    def step(state: State, edge: Array) -> State:
        moved = move(state, jnp.asarray(labels)[edge])
        past = -state.boards[:-1].reshape(-1, size, size)[:, :, ::-1].reshape(-1, num_squares)
        after = enter(
            moved.board,
            1 - state.color,
            moved.castling,
            moved.en_passant,
            moved.halfmove_count,
            state.ply + 1,
            past,
            state.keys[:-1],
        )
        unchanged = state._replace(reward=jnp.zeros_like(state.reward))
        return jax.tree.map(lambda a, b: jnp.where(state.terminated, a, b), unchanged, after)

    def init() -> State:
        return jax.tree.map(jnp.asarray, start)

    def position(state: State) -> Position:
        recent = state.keys[:HISTORY]
        occurrences = (recent[:, None] == state.keys).all(axis=-1).sum(axis=-1)
        repeated = (occurrences >= 2) & (recent != 0).any(axis=-1)
        legal = jnp.zeros(len(labels) + 1, bool).at[state.legal_edges].set(True)[:-1]
        return Position(
            boards=state.boards,
            repeated=jnp.packbits(repeated, bitorder="little")[0],
            color=state.color,
            castling=jnp.packbits(state.castling, bitorder="little")[0],
            en_passant=state.en_passant,
            halfmove_count=state.halfmove_count,
            ply=state.ply,
            legal=jnp.packbits(legal),
        )

    start = jax.tree.map(
        np.asarray,
        jax.jit(enter)(
            jnp.asarray(_start_board(size)),
            jnp.int8(0),
            jnp.full(4, start_castling),
            jnp.int8(-1),
            jnp.int16(0),
            jnp.int16(0),
        ),
    )
    return Game(
        name=name,
        size=size,
        num_squares=num_squares,
        num_edges=len(labels),
        num_labels=num_labels,
        max_legal_moves=max_legal_moves,
        max_plies=max_plies,
        senders=senders.astype(np.int32),
        receivers=receivers.astype(np.int32),
        promotions=promotions,
        labels=labels.astype(np.int32),
        start_fen=start_fen,
        init=init,
        step=step,
        position=position,
        enter=enter,
    )


def _start_board(size: int) -> np.ndarray:
    """int8 [N]: the back ranks of the 8x8 game, or of Gardner's 5x5."""
    back = [ROOK, KNIGHT, BISHOP, QUEEN, KING, BISHOP, KNIGHT, ROOK][:size]
    board = np.zeros((size, size), np.int8)  # [file, rank]
    board[:, 0], board[:, 1], board[:, -2], board[:, -1] = back, PAWN, -PAWN, np.negative(back)
    return board.reshape(-1)


def reward_and_discount(before: State, after: State) -> tuple[Array, Array]:
    """Whose reward, and what the next value is worth to the player who moved from `before` to `after`.

    Returns (reward, discount), float32: the reward is for the player who moved; the discount is 0 if the game is
    over, -1 if the other player moves next, 1 if the same player does. Any batch shape.
    """
    same = jnp.where(before.color == after.color, 1.0, -1.0)
    return after.reward, jnp.where(after.terminated, 0.0, same)
