"""Solves puzzles: each move of the line must be found, but any mate at once will do."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alphagateau.distributed.mesh import AXIS, REPLICATED
from alphagateau.games.notation import edge_to_uci, from_fens
from alphagateau.games.rules import Game
from alphagateau.games.state import State, pad_rows, stack_rows
from alphagateau.matches.find_moves import FoundMoves, compiled_search
from alphagateau.matches.openings import one_state, select_states, step_states
from alphagateau.matches.players import Player, Reply
from alphagateau.suites.puzzles import Puzzle

ROWS = 64  # puzzles of a device call

Tell = Callable[[int], None]  # hears how many puzzles are done


class Solution(NamedTuple):
    """What a player made of a puzzle."""

    is_solved: bool
    found: int  # moves of the line that it found
    answer: str  # its last move, in UCI


def solve(game: Game, player: Player, puzzles: Sequence[Puzzle], seed: int, tell: Tell) -> list[Solution]:
    """A Solution for each puzzle. Raises PlayerError."""
    if player.move:
        return _ask_engine(game, player, puzzles, tell)
    return _search(game, player, puzzles, seed, tell)


def _search(game: Game, player: Player, puzzles: Sequence[Puzzle], seed: int, tell: Tell) -> list[Solution]:
    """All puzzles are searched, then those that go on once more, and so on."""
    mesh = Mesh(np.array(jax.local_devices()), (AXIS,))
    find = compiled_search(game.name, player.search, mesh)
    variables = jax.device_put(player.variables, NamedSharding(mesh, REPLICATED))
    states, live, solutions = first_states(game, puzzles), list(range(len(puzzles))), {}
    place = [puzzle.first for puzzle in puzzles]  # of the move to be found next
    while live:
        going_on: list[tuple[int, State]] = []
        for numbers in (live[start : start + ROWS] for start in range(0, len(live), ROWS)):
            rows = numbers + numbers[:1] * (ROWS + -ROWS % mesh.size - len(numbers))
            before = select_states(states, rows)
            draws = np.array([[seed % 2**32] * len(rows), rows, before.ply]).T.astype(np.uint32)
            made = find(variables, draws, before)
            for row, number in enumerate(numbers):
                solution = _judge(game, puzzles[number], place[number], one_state(before, row), made, row)
                if solution:
                    solutions[number] = solution
                else:
                    going_on.append((number, one_state(made.after, row)))
                    place[number] += 2
            tell(len(solutions))
        live = [number for number, _ in going_on]
        _reply(game, states, going_on, [puzzles[number].edges[place[number] - 1] for number in live])
    return [solutions[number] for number in range(len(puzzles))]


def _judge(game: Game, puzzle: Puzzle, at: int, before: State, made: FoundMoves, row: int) -> Solution | None:
    """What came of a puzzle by the move in a row; None if the line goes on."""
    edge = int(made.edges[row])
    is_found, is_mate = edge == puzzle.edges[at], bool(made.after.reward[row] == 1)
    if is_found and at + 1 < len(puzzle.edges):
        return None
    return Solution(is_found or is_mate, (at - puzzle.first) // 2 + is_found, edge_to_uci(game, before, edge))


def _reply(game: Game, states: State, going_on: Sequence[tuple[int, State]], replies: Sequence[int]) -> None:
    """Puts the States after the opponent's replies in their places."""
    for start in range(0, len(going_on), ROWS):
        part = list(range(start, min(start + ROWS, len(going_on))))
        rows = pad_rows(part, ROWS)
        after = stack_rows([going_on[row][1] for row in rows])
        after = step_states(game, after, np.array([replies[row] for row in rows], np.int16))
        for stored, new in zip(states, after, strict=True):
            stored[[going_on[row][0] for row in part]] = new[: len(part)]


def first_states(game: Game, puzzles: Sequence[Puzzle]) -> State:
    """The States (numpy) in which the first moves are to be found, with their past as far as it is known."""
    parts = []
    for start in range(0, len(puzzles), ROWS):
        part = pad_rows(puzzles[start : start + ROWS], ROWS)
        states = jax.device_get(from_fens(game, [puzzle.start_fen for puzzle in part]))
        for ply in range(max(puzzle.first for puzzle in part)):
            edges = np.array([puzzle.edges[min(ply, puzzle.first)] for puzzle in part], np.int16)
            rows = np.flatnonzero([ply < puzzle.first for puzzle in part])
            after = step_states(game, states, edges)
            states = jax.tree.map(np.array, states)
            for stored, new in zip(states, after, strict=True):
                stored[rows] = new[rows]
        parts.append(states)
    return jax.tree.map(lambda *x: np.concatenate(x)[: len(puzzles)], *parts)


def _ask_engine(game: Game, player: Player, puzzles: Sequence[Puzzle], tell: Tell) -> list[Solution]:
    def play(number: int) -> Solution:
        puzzle, found = puzzles[number], 0
        for at in range(puzzle.first, len(puzzle.moves), 2):
            reply = player.move(puzzle.start_fen, puzzle.moves[:at])
            answer = reply.move if isinstance(reply, Reply) else reply
            if answer != puzzle.moves[at]:
                tell(number + 1)
                return Solution(_mates(game, puzzle, at, answer), found, answer)
            found += 1
        tell(number + 1)
        return Solution(True, found, puzzle.moves[-1])

    with ThreadPoolExecutor(player.num_workers) as pool:
        return list(pool.map(play, range(len(puzzles))))


def _mates(game: Game, puzzle: Puzzle, at: int, answer: str) -> bool:
    board = game.board_class(puzzle.start_fen)
    for uci in (*puzzle.moves[:at], answer):
        board.push_uci(uci)
    return board.is_checkmate()
