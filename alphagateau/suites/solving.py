"""Solves puzzles: each move of the line must be found, but any mate at once will do."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax

from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.pgn.rule_checks import ROWS, check_records
from alphagateau.games.rules import Game
from alphagateau.games.state import State, stack_rows
from alphagateau.matches.openings import one_state
from alphagateau.matches.players import Player
from alphagateau.suites.answers import Positions, find_answers, key_parts_of
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
    left, turn = list(range(len(puzzles))), 0  # of the moves to be found
    states = find_states(game, puzzles) if player.search else None  # engines are given the moves
    while left:
        going_on = []
        for part in find_answers(game, player, _positions(puzzles, states, left, turn, seed)):
            for number, move in zip((left[row] for row in part.rows), part.moves, strict=True):
                puzzle = puzzles[number]
                place = puzzle.first + 2 * turn
                is_found = move == puzzle.moves[place]
                if is_found and place + 1 < len(puzzle.moves):
                    going_on.append(number)
                    continue
                is_solved = is_found or _mates(game, puzzle, place, move)
                solutions[number] = Solution(is_solved, turn + is_found, move)
            report(len(solutions))
        left, turn = going_on, turn + 1
    return [solutions[number] for number in range(len(puzzles))]


def _positions(
    puzzles: Sequence[Puzzle], states: Sequence[State] | None, left: Sequence[int], turn: int, seed: int
) -> Positions:
    """The positions of the puzzles left, by their numbers, before the move `turn` that is to be found."""

    def line(row: int) -> tuple[str, Sequence[str]]:
        puzzle = puzzles[left[row]]
        return puzzle.start_fen, puzzle.moves[: puzzle.first + 2 * turn]

    here = [one_state(states[number], turn) for number in left] if states else []
    plies = [int(state.ply) for state in here] or [0] * len(left)
    return Positions(key_parts_of(seed, left, plies), lambda rows: stack_rows([here[row] for row in rows]), line)


def find_states(game: Game, puzzles: Sequence[Puzzle]) -> list[State]:
    """The States (numpy) of each puzzle in which its moves are to be found, with their past as far as it is known."""
    found = []
    for first in range(0, len(puzzles), ROWS):
        part = puzzles[first : first + ROWS]
        records = [GameRecord(game.name, puzzle.start_fen, puzzle.moves, "*") for puzzle in part]
        for puzzle, check in zip(part, check_records(game, records, with_states=True), strict=True):
            found.append(jax.tree.map(lambda x, puzzle=puzzle: x[puzzle.first :: 2].copy(), check.states))
    return found


def _mates(game: Game, puzzle: Puzzle, at: int, answer: str) -> bool:
    board = game.board_class(puzzle.start_fen)
    for uci in (*puzzle.moves[:at], answer):
        board.push_uci(uci)
    return board.is_checkmate()
