"""Samples first positions of games from a file, and changes them by random moves."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.config import ConfigError
from alphagateau.games.notation import board_from_fen, board_outcome, enter_arguments
from alphagateau.games.pgn.epd import read_position, text_lines
from alphagateau.games.pgn.text_files import TextFileError, read_lines
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.training.keys import START, fold_in_rows
from alphagateau.training.selfplay.openings import sample_openings

MOST = 2**16  # positions kept, constants of the compiled program


class StartPositions(NamedTuple):
    """Q positions in which games begin."""

    positions: tuple[np.ndarray, ...]  # the arguments of `Game.enter`, [Q, ...]
    num_moves: int  # random ones, before a game begins


def read_starts(game: Game, path: str, num_moves: int, seed: int) -> StartPositions:
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
            fen = read_position(fen).fen
            if board_outcome(game, board_from_fen(game, fen), 1)[0] == "*":
                *others, ply = enter_arguments(game, fen)
                found.append((*others, np.int16(ply if ply > 1 else ply + 2)))  # 0 marks the first position
        except ValueError as error:
            raise ConfigError(f"selfplay.starts, {where}: {error}") from None
    if not found:
        raise ConfigError(f"selfplay.starts: {path} holds no position to begin in, expected FENs, one a line")
    return StartPositions(tuple(np.stack(column) for column in zip(*found, strict=True)), num_moves)


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """(its place in the file, FEN) of each position. Raises ConfigError."""
    source = Path(path)
    try:
        if source.is_dir():
            from alphagateau.data.tables import BOARDS, DataError, read_table  # pyarrow, which FENs do without

            try:
                table, _ = read_table(source / "train.parquet", BOARDS)
            except DataError as error:
                raise ConfigError(f"selfplay.starts: {error}") from None
            yield from ((f"row {row}", fen) for row, fen in enumerate(table.column("fen").to_pylist()))
            return
        yield from ((f"{path} line {number}", line) for number, line in text_lines(read_lines(path)))
    except TextFileError as error:
        raise ConfigError(f"selfplay.starts: {error}") from None


def sample_starts(game: Game, starts: StartPositions, key: Array, rows: Array) -> State:
    """States [B], one for each of `rows`, the games' numbers; `key` is PLAY's. A game that they end begins without."""
    keys = fold_in_rows(jax.random.fold_in(key, START), rows)
    chosen = jax.vmap(lambda key: jax.random.randint(key, (), 0, len(starts.positions[0])))(keys)
    states = jax.vmap(game.enter)(*(jnp.asarray(column)[chosen] for column in starts.positions))
    if not starts.num_moves:
        return states
    return sample_openings(game, states, keys, starts.num_moves, starts.num_moves)
