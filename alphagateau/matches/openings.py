"""Makes openings for matches of random legal lines or of a file: distinct unfinished States with their lines."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import NamedTuple

import jax
import numpy as np

from alphagateau.config.records import counted
from alphagateau.games.notation import edge_to_uci, from_fen, from_fens, jitted, uci_to_edge
from alphagateau.games.pgn.epd import is_position, read_position, text_lines
from alphagateau.games.pgn.rule_checks import check_games
from alphagateau.games.pgn.text import WrittenGame, read_games
from alphagateau.games.pgn.text_files import BOUNDS, Bounds, read_lines
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Row, State

NUM_LINES = 256  # random lines made at once
NUM_HEAD = 100  # lines of a file by which PGN is recognised
NUM_BARREN = 8  # times without a new position, after which there are no more


class Opening(NamedTuple):
    """A position to play from, and how it came about."""

    state: State  # numpy
    start_fen: str
    line: tuple[str, ...]  # UCI moves from the FEN to the State


def select_states(states: Row, rows: Sequence[int]) -> Row:
    """Numpy copies of some rows of a tree of arrays, such as States."""
    return jax.tree.map(lambda x: np.asarray(x)[list(rows)], states)


def one_state(states: State, row: int) -> State:
    """One row of numpy States."""
    return jax.tree.map(lambda x: x[row], states)


def step_states(game: Game, states: State, edges: np.ndarray) -> State:
    """The States [B], as numpy, after edges int16 [B]."""
    return jax.device_get(jitted(game.step, True)(states, edges))


def make_openings(game: Game, num_openings: int, num_plies: int, seed: int) -> list[Opening]:
    """The first different positions, none finished, of random legal lines of `num_plies` plies.

    With few plies there may be fewer: ValueError, with their number.
    """
    found = list(itertools.islice(random_openings(game, num_plies, seed), num_openings))
    if len(found) < num_openings:
        raise ValueError(
            f"{num_openings} different openings of {num_plies} plies of {game.name} were asked for, and "
            f"{len(found)} found: ask for fewer, or for more plies"
        )
    return found


def random_openings(game: Game, num_plies: int, seed: int) -> Iterator[Opening]:
    """Different unfinished positions of random legal lines, until chance finds no more."""
    found: set[bytes] = set()
    num_calls = num_barren = 0
    while num_barren < NUM_BARREN:
        num_before = len(found)
        key = jax.random.fold_in(jax.random.key(seed % 2**32), num_calls)
        start_fens, starts = _starts(game, key)
        plies = _random_lines(game, starts, key, num_plies)
        states, _ = plies[-1]
        for row in np.flatnonzero(~states.terminated).tolist():
            identity = states.keys[row, 0].tobytes()
            if identity not in found:
                found.add(identity)
                line = (edge_to_uci(game, one_state(before, row), edges[row]) for before, edges in plies[:-1])
                yield Opening(one_state(states, row), start_fens[row], tuple(line))
        num_barren = num_barren + 1 if len(found) == num_before else 0
        num_calls += 1


def _starts(game: Game, key: Array) -> tuple[list[str], State]:
    """(FENs, States) [NUM_LINES] to begin from: the game's first position, or some of Fischer random's 960."""
    if not game.is_fischer_random:
        states = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], NUM_LINES, axis=0), game.init())
        return [game.start_fen] * NUM_LINES, states
    numbers = jax.random.randint(jax.random.fold_in(key, 2**31), (NUM_LINES,), 0, 960).tolist()
    fens = [game.board_class.from_chess960_pos(number).fen() for number in numbers]
    return fens, jax.device_get(from_fens(game, fens))


def _random_lines(game: Game, states: State, key: Array, num_plies: int) -> list[tuple[State, np.ndarray]]:
    """(States [NUM_LINES], edges played from them) of each ply, from `states`; the last edges are of no meaning."""
    plies = []
    for ply in range(num_plies + 1):
        slots = states.legal_edges
        draws = jax.random.uniform(jax.random.fold_in(key, ply), slots.shape)
        best = np.where(slots >= 0, draws, -1.0).argmax(axis=-1)
        plies.append((states, slots[np.arange(NUM_LINES), best]))
        if ply < num_plies:
            states = step_states(game, *plies[-1])
    return plies


def read_openings(game: Game, path: str | PathLike, bounds: Bounds = BOUNDS) -> tuple[list[Opening], tuple[str, ...]]:
    """(openings, a sentence on what was passed over) of FENs, EPD or UCI moves, one a line, or of games of PGN.

    UCI moves are from the usual start. Of a game of PGN the last position is an opening; the sentence names those that
    are none. Raises ValueError naming file and line for a line that is no opening, a finished position, or one given
    before, and for a file with none or that cannot be read.
    """
    lines = read_lines(path, bounds)
    head = list(itertools.islice(lines, NUM_HEAD))
    lines = itertools.chain(head, lines)
    if any(line.lstrip().startswith("[") for line in head):
        found, notes = _openings_of_games(game, path, read_games(lines, bounds))
    else:
        found, notes = _openings_of_lines(game, path, lines), ()
    if not found:
        why = f"; {notes[0]}" if notes else ""
        raise ValueError(f"{path}: it has no openings: expected a FEN or UCI moves on each line, or PGN{why}")
    return found, notes


def _openings_of_lines(game: Game, path: str | PathLike, lines: Iterable[str]) -> list[Opening]:
    found: dict[bytes, tuple[int, Opening]] = {}
    for number, line in text_lines(lines):
        try:
            opening = _read_opening(game, line)
            identity = opening.state.keys[0].tobytes()
            if opening.state.terminated:
                raise ValueError("the game is over in this position: expected one to play on")
            if identity in found:
                raise ValueError(f"it gives the position of line {found[identity][0]}: expected a new one")
        except ValueError as error:
            raise ValueError(f"{path} line {number}: {error}") from None
        found[identity] = number, opening
    return [opening for _, opening in found.values()]


def _read_opening(game: Game, line: str) -> Opening:
    if is_position(line):
        fen = read_position(line).fen
        return Opening(jax.device_get(from_fen(game, fen)), fen, ())
    state, words = jax.device_get(game.init()), line.rstrip(" ;").lower().split()
    if len(words) > game.max_plies:
        raise ValueError(f"it has {len(words)} moves: expected at most {game.max_plies}")
    for word in words:
        edge = np.array([uci_to_edge(game, state, word)], np.int16)
        state = one_state(step_states(game, jax.tree.map(lambda x: x[None], state), edge), 0)
    return Opening(state, game.start_fen, tuple(words))


def _openings_of_games(
    game: Game, path: str | PathLike, games: Iterable[WrittenGame]
) -> tuple[list[Opening], tuple[str, ...]]:
    """The last positions of games, and a sentence on those that are left out."""
    found: dict[bytes, Opening] = {}
    left_out: list[str] = []
    for written, record, fault, _, _, ruling in check_games(games, with_states=True):
        where = f"{path}, game {written.number} (line {written.line})"
        if record is None or ruling is None or ruling.states is None:
            left_out.append(f"{where}: {fault}")
        elif record.game != game.name:
            left_out.append(f"{where}: a game of {record.game}, expected {game.name}")
        elif ruling.over or from_fen(game, record.start_fen).terminated:
            left_out.append(f"{where}: the game is over in its last position, expected one to play on")
        else:
            state = one_state(ruling.states, len(record.moves))
            identity = state.keys[0].tobytes()
            if identity in found:
                left_out.append(f"{where}: it gives a position again")
            found.setdefault(identity, Opening(state, record.start_fen, record.moves))
    notes = (f"{counted(len(left_out), 'game')} left out as openings, the first: {left_out[0]}",) if left_out else ()
    return list(found.values()), notes
