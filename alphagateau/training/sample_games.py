"""The finished games of an iteration on the host: a Trajectory in, sample PGN and a count of repeated games out."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from alphagateau.games.pgn import MoveNote, record_game, to_pgn
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
    """A device array on every host, also one that is cut over several."""
    if getattr(x, "is_fully_addressable", True) or x.is_fully_replicated:
        return np.asarray(x)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(x, tiled=True))


def finished_games(trajectory: Trajectory) -> FinishedGames:
    """The games of a Trajectory [T, B], in the order of rows and then plies."""
    edges, ends, begins = (
        to_host(x) for x in (trajectory.edge, trajectory.discount == 0, trajectory.position.ply == 0)
    )
    plies = np.arange(len(edges))[:, None]
    first = np.maximum.accumulate(np.where(begins, plies, -1), axis=0)  # of the game in progress
    row, last = np.nonzero((ends & (first >= 0)).T)
    return FinishedGames(edges, row, first[last, row], last)


def moves(games: FinishedGames, index: int) -> np.ndarray:
    """The edges of one game."""
    return games.edges[games.first[index] : games.last[index] + 1, games.row[index]]


def duplicate_rate(games: FinishedGames) -> float:
    """The fraction of games that repeat another one of the iteration move by move."""
    different = {moves(games, i).tobytes() for i in range(len(games.row))}
    return 1.0 - len(different) / len(games.row) if len(games.row) else 0.0


def sample_pgn(game: Game, trajectory: Trajectory, count: int, headers: Mapping[str, str], iteration: int) -> str:
    """The first `count` games of an iteration as PGN, with what the search thought of each position."""
    games, values, texts = finished_games(trajectory), to_host(trajectory.search_value), []
    for index in range(min(count, len(games.row))):
        of_game = values[games.first[index] : games.last[index] + 1, games.row[index]].tolist()
        notes = [MoveNote(white_score(value, ply % 2 == 0)) for ply, value in enumerate(of_game)]
        tags = {**headers, "Round": f"{iteration}.{index + 1}"}
        texts.append(to_pgn(record_game(game, moves(games, index), headers=tags, notes=notes)).strip())
    return "".join(text + "\n\n" for text in texts)
