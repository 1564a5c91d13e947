"""How games begin: at positions of a file, and after random moves."""

from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.config import ConfigError
from alphagateau.games.actions import edge_at
from alphagateau.games.notation import board_from_fen, board_outcome
from alphagateau.games.pgn.epd import read_position, text_lines
from alphagateau.games.pgn.text_files import TextFileError, read_lines
from alphagateau.games.rules import Game
from alphagateau.games.small_boards import enter_arguments
from alphagateau.games.state import Array, State
from alphagateau.games.symmetry import select
from alphagateau.training.keys import START, fold_in_rows

MOST = 2**16  # positions kept, constants of the compiled program

StartPositions = tuple[np.ndarray, ...]  # the arguments of `Game.enter` for Q positions, [Q, ...]


def sample_openings(game: Game, start: State, keys: Array, max_plies: int, min_plies: int = 1) -> State:
    """States [B] after `min_plies` to `max_plies` random legal moves from `start` [B], or `start` if they end the game.

    Past positions are seen but do not count as occurrences, as in a game that begins with the opening's FEN.
    """
    of_lengths = jax.vmap(jax.random.fold_in, (0, None))(keys, max_plies)
    lengths = jax.vmap(lambda key: jax.random.randint(key, (), min_plies, max_plies + 1))(of_lengths)

    def one_ply(states: State, ply: Array) -> tuple[State, None]:
        slots = states.legal_edges.shape[-1:]
        draws = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, ply), slots))(keys)
        slot = jnp.argmax(jnp.where(states.legal_edges >= 0, draws, -1.0), axis=-1)
        return select(ply < lengths, jax.vmap(game.step)(states, edge_at(states, slot)), states), None

    states, _ = jax.lax.scan(one_ply, start, jnp.arange(max_plies))
    return select(states.terminated, start, states._replace(keys=states.keys.at[:, 1:].set(0)))


def read_starts(game: Game, path: str, seed: int) -> StartPositions:
    """The positions of a file of FENs or EPD, plain or packed, or of a folder of `alphagateau positions`.

    Of more than MOST a sample is drawn by `seed`. Positions in which the game is over are left out. Raises ConfigError.
    """
    lines = list(_lines(path))
    if len(lines) > MOST:
        rows = np.random.default_rng(seed).choice(len(lines), MOST, replace=False)
        lines = [lines[row] for row in sorted(rows)]
    found = []
    for where, fen in lines:
        try:
            board = board_from_fen(game, read_position(fen).fen)
            if board_outcome(game, board, 1)[0] == "*":
                *others, ply = enter_arguments(game.size, board)
                found.append((*others, np.int16(ply if ply > 1 else ply + 2)))  # 0 marks the first position
        except ValueError as error:
            raise ConfigError(f"selfplay.starts, {where}: {error}") from None
    if not found:
        raise ConfigError(f"selfplay.starts: {path} holds no position to begin in, expected FENs, one a line")
    return tuple(np.stack(column) for column in zip(*found, strict=True))


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """(its place in the file, FEN) of each position. Raises ConfigError."""
    source = Path(path)
    if source.is_dir():
        from alphagateau.data.tables import BOARDS, DataError, read_table  # pyarrow, which FENs do without

        try:
            table, _ = read_table(source / "train.parquet", BOARDS)
        except DataError as error:
            raise ConfigError(f"selfplay.starts: {error}") from None
        yield from ((f"row {row}", fen) for row, fen in enumerate(table.column("fen").to_pylist()))
        return
    try:
        yield from ((f"{path} line {number}", line) for number, line in text_lines(read_lines(path)))
    except TextFileError as error:
        raise ConfigError(f"selfplay.starts: {error}") from None


def sample_starts(game: Game, starts: StartPositions, num_moves: int, key: Array, rows: Array) -> State:
    """States [B] of `rows`, the games' numbers, after `num_moves` random moves unless they end it; `key` is PLAY's."""
    keys = fold_in_rows(jax.random.fold_in(key, START), rows)
    chosen = jax.vmap(lambda key: jax.random.randint(key, (), 0, len(starts[0])))(keys)
    states = jax.vmap(game.enter)(*(jnp.asarray(column)[chosen] for column in starts))
    return sample_openings(game, states, keys, num_moves, num_moves) if num_moves else states
