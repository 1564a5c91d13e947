"""Board games as pure functions over static tables, with edges of the move graph as actions.

An action is an edge of the board's move graph: a (from, to, under-promotion) triple, numbered by receiver, sender,
promotion. Squares are numbered file by file as in pgx, `file * size + rank`, seen by the player to move:

    5x5   4  9 14 19 24        8x8   7 15 ... 63
          3  8 13 18 23              .         .
          2  7 12 17 22              .         .
          1  6 11 16 21              1  9 ... 57
          0  5 10 15 20              0  8 ... 56

Moves are played in `moves.py`, legal edges found in `legality.py`; a step is then several times as fast as pgx's
(docs/performance.md), which also misses repetitions: of the initial position, and of positions that followed a double
pawn step which allowed no en passant capture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import chess
import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games import legality
from alphagateau.games.edges import Edges, make_edges
from alphagateau.games.entries import ROOK, GameEntry
from alphagateau.games.moves import flip_boards, move
from alphagateau.games.small_boards import board_class, enter_arguments
from alphagateau.games.state import HISTORY, KEYS, Array, Position, State

RULES_VERSION = 1  # raise it when a game of the same moves may go another way: ladders pool games of one version only
NO_PROGRESS_LIMIT = 100  # plies: the fifty-move rule
REPETITION_LIMIT = 3  # occurrences


@dataclass(frozen=True, eq=False, kw_only=True)
class Game(GameEntry, Edges):
    """A game: its entry, its move graph, and its rules as functions of one State (use `jax.vmap` for a batch)."""

    num_squares: int  # N
    num_edges: int  # E
    board_class: type[chess.Board] = chess.Board  # python-chess's, of this board
    init: Callable[[], State]
    step: Callable[[State, Array], State]  # (state, edge); a finished game stays as it is
    position: Callable[[State], Position]
    enter: Callable[..., State]  # State of a board with no known past; `notation.from_fen` calls it


def make_game(entry: GameEntry) -> Game:
    """The Game of an entry."""
    edges = make_edges(entry)
    enter, make_board = _make_enter(entry, edges), board_class(entry.name)
    start = jax.tree.map(np.asarray, jax.jit(enter)(*enter_arguments(entry.size, make_board(entry.start_fen))))
    return Game(
        **{**vars(entry), "board_class": make_board},
        **vars(edges),
        num_squares=entry.size**2,
        num_edges=len(edges.senders),
        init=lambda: jax.tree.map(jnp.asarray, start),
        step=partial(_step, entry, edges, enter),
        position=partial(_position, len(edges.senders)),
        enter=enter,
    )


def _make_enter(entry: GameEntry, edges: Edges) -> Callable[..., State]:
    num_squares = entry.size**2
    tables, position_key = legality.make_tables(entry, edges), _make_position_key(entry)

    def enter(board, color, castling, en_passant, halfmove_count, ply, boards=None, keys=None) -> State:
        """The State of a board [N] seen by the player to move; `boards`, `keys`: what went before.

        Rights of a Position, bool, name no rook on chess960: they are taken to be of the outermost ones.
        """
        if entry.is_fischer_random and castling.dtype == bool:
            castling = jnp.where(castling, 1 + outermost_rooks(entry.size, board), 0).astype(jnp.int8)
        slots, is_check, can_take = legality.legal_edges(tables, board, castling, en_passant.astype(jnp.int32))
        en_passant = jnp.where(can_take, en_passant, -1)
        key = position_key(board, color, castling, en_passant)
        if boards is None or keys is None:
            boards = jnp.zeros((HISTORY - 1, num_squares), jnp.int8)
            keys = jnp.zeros((KEYS - 1, 2), jnp.uint32)
        occurrences = 1 + (keys == key).all(axis=-1).sum()
        is_stuck = slots[0] < 0
        terminated = (
            is_stuck
            | legality.is_dead(entry.size, board)
            | (halfmove_count >= NO_PROGRESS_LIMIT)
            | (occurrences >= REPETITION_LIMIT)
            | (ply >= entry.max_plies)
        )
        return State(
            boards=jnp.concatenate([board.astype(jnp.int8)[None], boards]),
            keys=jnp.concatenate([key[None], keys]),
            color=color.astype(jnp.int8),
            castling=castling,
            en_passant=en_passant.astype(jnp.int8),
            halfmove_count=halfmove_count.astype(jnp.int16),
            ply=ply.astype(jnp.int16),
            legal_edges=slots,
            terminated=terminated,
            reward=(is_stuck & is_check).astype(jnp.float32),
        )

    return enter


def outermost_rooks(size: int, board: Array) -> Array:
    """The files int [4] of the rooks on the first rank and on the last, the lowest and the highest of each."""
    ranks = jnp.stack([board[::size] == ROOK, board[size - 1 :: size] == -ROOK])
    return jnp.stack([ranks.argmax(axis=1), size - 1 - ranks[:, ::-1].argmax(axis=1)], axis=1).reshape(4)


def _make_position_key(entry: GameEntry) -> Callable[[Array, Array, Array, Array], Array]:
    """The Zobrist hash (board, color, castling, en_passant) -> uint32 [2]; by equal ones repetitions are found."""
    rng, num_squares = np.random.default_rng(2024), entry.size**2
    on_board, on_side, on_castling, on_en_passant = (
        rng.integers(1, 2**32, size=(*shape, 2), dtype=np.uint32)
        for shape in ((num_squares, 13), (), (4,), (num_squares + 1,))
    )
    by_file = rng.integers(1, 2**32, size=(4, entry.size + 1, 2), dtype=np.uint32)  # of Fischer random

    def position_key(board: Array, color: Array, castling: Array, en_passant: Array) -> Array:
        words = jnp.asarray(on_board)[jnp.arange(num_squares), board.astype(jnp.int32) + 6]
        key = jax.lax.reduce(words, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        key ^= jnp.where(color == 0, jnp.asarray(on_side), jnp.uint32(0))
        rights = jnp.where(castling[:, None], jnp.asarray(on_castling), jnp.uint32(0))
        if entry.is_fischer_random:
            rights = jnp.asarray(by_file)[jnp.arange(4), castling]
        key ^= jax.lax.reduce(rights, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        return key ^ jnp.asarray(on_en_passant)[en_passant]

    return position_key


def _step(entry: GameEntry, edges: Edges, enter: Callable[..., State], state: State, edge: Array) -> State:
    board, castling, en_passant, halfmove_count = move(entry, edges, state, edge)
    past = flip_boards(entry.size, state.boards[:-1])
    after = enter(board, 1 - state.color, castling, en_passant, halfmove_count, state.ply + 1, past, state.keys[:-1])
    unchanged = state._replace(reward=jnp.zeros_like(state.reward))
    return jax.tree.map(lambda a, b: jnp.where(state.terminated, a, b), unchanged, after)


def _position(num_edges: int, state: State) -> Position:
    recent = state.keys[:HISTORY]
    occurrences = (recent[:, None] == state.keys).all(axis=-1).sum(axis=-1)
    repeated = (occurrences >= 2) & (recent != 0).any(axis=-1)
    legal = jnp.zeros(num_edges + 1, bool).at[state.legal_edges].set(True)[:-1]
    return Position(
        boards=state.boards,
        repeated=jnp.packbits(repeated, bitorder="little")[0],
        color=state.color,
        castling=jnp.packbits(state.castling.astype(bool), bitorder="little")[0],
        en_passant=state.en_passant,
        halfmove_count=state.halfmove_count,
        ply=state.ply,
        legal=jnp.packbits(legal),
    )


def reward_and_discount(before: State, after: State) -> tuple[Array, Array]:
    """The reward and the discount of the next value for the player who moved from `before` to `after`.

    Returns (reward, discount), float32: the reward is for the player who moved; the discount is 0 if the game is
    over, -1 if the other player moves next, 1 if the same player does. Any batch shape.
    """
    same = jnp.where(before.color == after.color, 1.0, -1.0)
    return after.reward, jnp.where(after.terminated, 0.0, same)
