"""Compares a player's moves and its ranking of them with labels.

A board has no past. The published "Kendall's tau" is no rank correlation: the code of Ruoss et al. (2024) hands the two
orders (argsort) to it in the place of the two sequences of ranks, so a good ranking scores 0.3. It depends on how moves
are numbered.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from alphagateau.data.packed import LARGEST, NO_VALUE, Boards
from alphagateau.games.move_numbers import action_names
from alphagateau.games.notation import jitted, legal_moves
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State, pad_rows
from alphagateau.matches.openings import one_state, select_states
from alphagateau.matches.players import Player
from alphagateau.ratings.intervals import Estimate, mean, share
from alphagateau.search.search import ILLEGAL
from alphagateau.suites.answers import Answers, find_answers, positions_of_states

ROWS = 128  # boards of a device call
TOPS = 1, 3  # moves of the highest prior


class Predictions(NamedTuple):
    """A player's moves on R boards, and what else is measured of it, in numpy."""

    edges: Any  # int [R], the moves it plays; -1: none
    ranking: Any = None  # float32 [R, S], higher is better; None: of its own move alone
    policy_bits: Any = None  # float32 [R], -log2 of the prior of the best move, NaN where none is labelled
    value: Any = None  # float32 [R], of the position, for the player to move
    in_top: Any = None  # float32 [R, TOPS], whether the best move is among the first by the prior, equals sharing


class LabelledBoards(NamedTuple):
    """Boards with their labels, on the host."""

    game: Game
    rows: Boards
    states: State  # numpy [R]


def read_boards(game: Game, columns: Boards, number: int = 0) -> LabelledBoards:
    """The first `number` boards; 0: all."""
    rows, parts = Boards(*(np.asarray(column[: number or None]) for column in columns)), []
    castling = np.unpackbits(rows.castling[:, None], axis=1, count=4, bitorder="little").astype(bool)
    fields = rows.board, rows.color, castling, rows.en_passant, rows.halfmove_count, rows.ply
    for first in range(0, len(rows.count), ROWS):
        part = pad_rows(range(first, min(first + ROWS, len(rows.count))), ROWS)
        parts.append(jax.device_get(jitted(game.enter, True)(*(field[part] for field in fields))))
    states = jax.tree.map(lambda *x: np.concatenate(x)[: len(rows.count)], *parts)
    return LabelledBoards(game, rows, states)


def predict(boards: LabelledBoards, player: Player, seed: int, report: Callable[[int], None]) -> Predictions:
    """A player's moves on all boards; `report` takes the number of them that are done. Raises PlayerError."""
    found = []
    for part in find_answers(boards.game, player, positions_of_states(boards.game, boards.states, seed), ROWS):
        found.append(_predictions(boards, part))
        report(part.rows[-1] + 1)
    columns = zip(*found, strict=True)
    predictions = Predictions(*(None if column[0] is None else np.concatenate(column) for column in columns))
    return predictions if player.variables else predictions._replace(value=None, in_top=None)


def _predictions(boards: LabelledBoards, part: Answers) -> Predictions:
    states, output = select_states(boards.states, part.rows), part.output
    if output is None:
        legal = legal_moves(boards.game, one_state(states, 0))
        return Predictions(np.array([legal.get(part.moves[0], -1)], np.int64))
    ranking = output.action_weights if output.move_values is None else output.move_values
    rows, count = pad_rows(range(len(part.rows)), ROWS), len(part.rows)
    of_best = _of_best(output.prior_logits[rows], states.legal_edges[rows], boards.rows.best[part.rows][rows])
    bits, tops = (np.asarray(x)[:count] for x in of_best)
    return Predictions(output.edge, ranking, bits, output.value, tops)


@jax.jit
def _of_best(logits: Array, legal_edges: Array, best: Array) -> tuple[Array, Array]:
    """(bits of the best move by the prior, whether it is in its TOPS) of logits [R, S]."""
    logits = jnp.where(legal_edges >= 0, logits, ILLEGAL)
    of_best = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(best, 0)[:, None], axis=-1)[:, 0]
    return jnp.where(best >= 0, -of_best / jnp.log(2.0), jnp.nan), in_top(logits, best)


def in_top(logits: Array, best: Array) -> Array:
    """float32 [R, TOPS] of logits [R, S]: is the slot `best` [R] among the first 1 and 3; equals share a place."""
    own = jnp.take_along_axis(logits, jnp.maximum(best, 0)[:, None], axis=-1)
    before, alike = (logits > own).sum(axis=-1, keepdims=True), (logits == own).sum(axis=-1, keepdims=True)
    return jnp.clip((jnp.array(TOPS) - before) / alike, 0.0, 1.0)


def measure(boards: LabelledBoards, predictions: Predictions, is_best_only: bool) -> dict[str, Estimate]:
    """How right a player is, by name.

    `action_accuracy`: of the boards of which all moves are labelled, how often it plays one of the best; of labels of
    the best move alone (`is_best_only`), how often it plays that one. `tau_b` and `tau_published` rank all moves, where
    they are labelled. `policy_log_loss`: bits, and `policy_top_1` and `policy_top_3` how often the best move is the
    first, or of the first three, by the prior. `state_value_error`: of the probability of winning, its distance to the
    label.
    """
    rows, states = boards.rows, boards.states
    known, legal = rows.action_value != NO_VALUE, states.legal_edges >= 0
    is_whole = (known == legal).all(axis=1) & legal.any(axis=1)
    counted = np.flatnonzero(rows.best >= 0 if is_best_only else is_whole)
    slot = (states.legal_edges == predictions.edges[:, None]).argmax(axis=1)
    q = np.where(known, rows.action_value.astype(np.int64), -1)
    is_right = (slot == rows.best) if is_best_only else q[np.arange(len(q)), slot] == q.max(axis=1)
    is_right &= predictions.edges >= 0
    found = {"action_accuracy": share(int(is_right[counted].sum()), len(counted))}
    if predictions.ranking is not None and not is_best_only:
        number = {move: i for i, move in enumerate(action_names(boards.game))}
        taus = [_taus(boards, q, predictions.ranking, number, row) for row in np.flatnonzero(is_whole).tolist()]
        for name, values in zip(("tau_b", "tau_published"), zip(*taus, strict=True), strict=False):
            found[name] = mean(values)
    if predictions.policy_bits is not None:
        found["policy_log_loss"] = mean(predictions.policy_bits[counted])
    if predictions.in_top is not None:
        for column, top in enumerate(TOPS):
            found[f"policy_top_{top}"] = share(float(predictions.in_top[counted, column].sum()), len(counted))
    if predictions.value is not None:
        distance = np.abs((predictions.value + 1) / 2 - rows.state_value / LARGEST)
        found["state_value_error"] = mean(distance[rows.state_value != NO_VALUE])
    return found


def _taus(
    boards: LabelledBoards, q: np.ndarray, ranking: np.ndarray, number: Mapping[str, int], row: int
) -> tuple[float, float]:
    numbers = [number[move] for move in legal_moves(boards.game, one_state(boards.states, row))]
    truth, prediction = q[row, : len(numbers)], ranking[row, : len(numbers)]
    return tau_b(truth, prediction), tau_published(truth, prediction, numbers)


def tau_b(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Kendall's tau-b of two [n]; 1 of a single move, 0 of a prediction that is all ties, NaN of such a truth."""
    if len(truth) == 1:
        return 1.0
    if (truth == truth[0]).all():
        return float("nan")
    if (prediction == prediction[0]).all():
        return 0.0
    return _tau(truth, prediction)


def tau_published(truth: np.ndarray, prediction: np.ndarray, numbers: Sequence[int]) -> float:
    """What the published code calls Kendall's tau, of moves by their `action_names` number, which orders ties."""
    if len(truth) == 1:
        return 1.0
    order = np.argsort(numbers)
    orders = (np.argsort(np.asarray(x)[order], kind="stable") for x in (truth, prediction))
    return _tau(*orders)


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    found: Any = scipy.stats.kendalltau(x, y, variant="b")
    return float(found.statistic)
