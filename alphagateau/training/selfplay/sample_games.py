"""Sample games of an iteration as PGN, and the rate of repeated games; on the host."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from alphagateau.games.notation import to_fen
from alphagateau.games.pgn.pgn import MoveNote, record_game, to_pgn
from alphagateau.games.rules import Game
from alphagateau.games.scores import white_score
from alphagateau.games.state import Array
from alphagateau.training.frames import Trajectory


class FinishedGames(NamedTuple):
    """Games that began and ended within one Trajectory; `moves` gives those of one."""

    edges: np.ndarray  # int16 [T, B]
    row: np.ndarray  # int [G]
    first: np.ndarray  # int [G], ply of the Trajectory at which the game began
    last: np.ndarray  # int [G]


def to_host(x: Array) -> np.ndarray:
    """A device array, also one that lies on several hosts, as an array of each host."""
    if not isinstance(x, jax.Array) or x.is_fully_addressable or x.is_fully_replicated:
        return np.asarray(x)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(x, tiled=True))


def finished_games(trajectory: Trajectory, are_new: bool = False) -> FinishedGames:
    """The games of a Trajectory [T, B], by row and then ply.

    A game begins at ply 0, where the one before it has ended, and with the Trajectory if its games `are_new`. If not,
    games that are past ply 0 where it begins are left out, as they may have gone on or begun after random plies.
    """
    edges, ends, begins = (
        to_host(x) for x in (trajectory.edge, trajectory.discount == 0, trajectory.position.ply == 0)
    )
    begins = begins | np.concatenate([np.full_like(ends[:1], are_new), ends[:-1]])
    plies = np.arange(len(edges))[:, None]
    first = np.maximum.accumulate(np.where(begins, plies, -1), axis=0)  # of the game in progress
    row, last = np.nonzero((ends & (first >= 0)).T)
    return FinishedGames(edges, row, first[last, row], last)


def moves(games: FinishedGames, index: int) -> np.ndarray:
    """The edges of one game; the ply of a resignation has none."""
    edges = games.edges[games.first[index] : games.last[index] + 1, games.row[index]]
    return edges[edges >= 0]


def duplicate_rate(trajectory: Trajectory, games: FinishedGames) -> float:
    """The fraction of games with the first board and the moves of another game of the iteration, which has one."""
    boards = to_host(trajectory.position.boards[..., 0, :])[games.first, games.row]
    different = {(boards[i].tobytes(), moves(games, i).tobytes()) for i in range(len(games.row))}
    return 1.0 - len(different) / len(games.row)


def sample_pgn(game: Game, trajectory: Trajectory, games: FinishedGames, count: int, headers: Mapping[str, str]) -> str:
    """The first `count` games as PGN with the search's values, from the first position that is not random.

    Their rounds are `headers`'.
    """
    sample = zip(games.row[:count], games.first[:count], games.last[:count], strict=True)
    values, plies, texts = to_host(trajectory.search_value), to_host(trajectory.position.ply), []
    for index, (row, first, last) in enumerate(sample):
        start_fen = None
        if plies[first, row]:
            position = jax.tree.map(lambda x, at=(first, row): to_host(x[at]), trajectory.position)
            start_fen = to_fen(game, position)
        of_game = zip(values[first : last + 1, row].tolist(), plies[first : last + 1, row].tolist(), strict=True)
        notes = [MoveNote(white_score(value, ply % 2 == 0)) for value, ply in of_game]
        tags, edges = {**headers, "Round": f"{headers['Round']}.{index + 1}"}, moves(games, index)
        record = record_game(game, edges, start_fen, tags, notes[: len(edges)])
        if games.edges[last, row] < 0:
            result = "0-1" if plies[last, row] % 2 == 0 else "1-0"
            record = dataclasses.replace(record, result=result, termination="resignation")
        texts.append(to_pgn(record).strip())
    return "".join(text + "\n\n" for text in texts)
