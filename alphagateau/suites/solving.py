"""Solves puzzles: each move of the line must be found, but any mate at once will do."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from alphagateau.games.notation import from_fens
from alphagateau.games.rules import Game
from alphagateau.games.state import State, pad_rows
from alphagateau.matches.openings import select_states, step_states
from alphagateau.matches.players import Player
from alphagateau.suites.answers import ROWS, Positions, find_answers, key_parts_of
from alphagateau.suites.puzzles import Puzzle


class Solution(NamedTuple):
    """What a player made of a puzzle."""

    is_solved: bool
    found: int  # moves of the line that it found
    answer: str  # its last move, in UCI


def solve(
    game: Game, player: Player, puzzles: Sequence[Puzzle], seed: int, report: Callable[[int], None]
) -> list[Solution]:
    """A Solution for each puzzle; `report` takes the number of them that are done. Raises PlayerError.

    All puzzles are searched, then those that go on once more, and so on.
    """
    solutions: dict[int, Solution] = {}
    left = list(range(len(puzzles)))
    states = first_states(game, puzzles) if player.search else None  # engines are given the moves
    at = [puzzle.first for puzzle in puzzles]  # of the move to be found next
    while left:
        going_on = []
        for part in find_answers(game, player, _positions(puzzles, states, left, at, seed)):
            for number, move in zip((left[row] for row in part.rows), part.moves, strict=True):
                puzzle, place = puzzles[number], at[number]
                is_found = move == puzzle.moves[place]
                if is_found and place + 1 < len(puzzle.moves):
                    going_on.append(number)
                    continue
                is_solved = is_found or _mates(game, puzzle, place, move)
                solutions[number] = Solution(is_solved, (place - puzzle.first) // 2 + is_found, move)
            report(len(solutions))
        left = going_on
        for _ in range(2):  # the move that was found, and the reply
            if states is not None:
                states = _play(game, states, left, [puzzles[number].edges[at[number]] for number in left])
            for number in left:
                at[number] += 1
    return [solutions[number] for number in range(len(puzzles))]


def _positions(
    puzzles: Sequence[Puzzle], states: State | None, left: Sequence[int], at: Sequence[int], seed: int
) -> Positions:
    """The positions of the puzzles left, by their numbers, before the moves `at`."""

    def states_of(rows: Sequence[int]) -> State:
        assert states is not None
        return select_states(states, [left[row] for row in rows])

    def line(row: int) -> tuple[str, Sequence[str]]:
        puzzle = puzzles[left[row]]
        return puzzle.start_fen, puzzle.moves[: at[left[row]]]

    plies = [0] * len(left) if states is None else np.asarray(states.ply)[left].tolist()
    return Positions(key_parts_of(seed, left, plies), states_of, line)


def _play(game: Game, states: State, rows: Sequence[int], edges: Sequence[int]) -> State:
    """The States, numpy, in some rows of which a move is made."""
    states = jax.tree.map(np.array, states)
    for first in range(0, len(rows), ROWS):
        part = rows[first : first + ROWS]
        padded = np.array(pad_rows(edges[first : first + ROWS], ROWS), np.int16)
        after = step_states(game, select_states(states, pad_rows(part, ROWS)), padded)
        for stored, new in zip(states, after, strict=True):
            stored[part] = new[: len(part)]
    return states


def first_states(game: Game, puzzles: Sequence[Puzzle]) -> State:
    """The States (numpy) in which the first moves are to be found, with their past as far as it is known."""
    parts = []
    for first in range(0, len(puzzles), ROWS):
        part = puzzles[first : first + ROWS]
        states = jax.device_get(from_fens(game, [puzzle.start_fen for puzzle in pad_rows(part, ROWS)]))
        for ply in range(max(puzzle.first for puzzle in part)):
            rows = [row for row, puzzle in enumerate(part) if ply < puzzle.first]
            states = _play(game, states, rows, [part[row].edges[ply] for row in rows])
        parts.append(states)
    return jax.tree.map(lambda *x: np.concatenate(x)[: len(puzzles)], *parts)


def _mates(game: Game, puzzle: Puzzle, at: int, answer: str) -> bool:
    board = game.board_class(puzzle.start_fen)
    for uci in (*puzzle.moves[:at], answer):
        board.push_uci(uci)
    return board.is_checkmate()
