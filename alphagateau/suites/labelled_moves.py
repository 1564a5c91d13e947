"""Compares a player's moves and its ranking of them with labels.

A board has no past. Networks look at many boards in a device call, engines at one at a time.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.data.packed import LARGEST, NO_VALUE, Boards
from alphagateau.games.move_numbers import action_names
from alphagateau.games.notation import legal_moves, to_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import one_state
from alphagateau.matches.players import Player, Reply
from alphagateau.search.search import ILLEGAL, Search
from alphagateau.suites.intervals import Estimate, mean, share
from alphagateau.suites.rank_correlation import tau_b, tau_published

ROWS = 128  # boards of a device call
TOPS = 1, 3  # moves of the highest prior

TOP_NAMES = tuple(f"policy_top_{number}" for number in TOPS)
Tell = Callable[[int], None]  # hears how many boards are done


class Opinions(NamedTuple):
    """What a player says of R boards: arrays of numpy or JAX."""

    edges: Any  # int [R], the moves it plays
    ranking: Any = None  # float32 [R, S], higher is better; None: of its own move alone
    policy_bits: Any = None  # float32 [R], -log2 of the prior of the best move, NaN where none is labelled
    value: Any = None  # float32 [R], of the position, for the player to move
    in_top: Any = None  # float32 [R, TOPS], whether the best move is among the first by the prior, equals sharing


class Answers(NamedTuple):
    """The boards themselves, on the host."""

    game: Game
    rows: Boards
    states: State  # numpy [R]


def enter_boards(game: Game, rows: Any) -> State:
    """The States [R] of `packed.Boards` [R], without a past; on the device."""
    rights = jnp.unpackbits(rows.castling[:, None], axis=-1, count=4, bitorder="little").astype(bool)
    return jax.vmap(game.enter)(rows.board, rows.color, rights, rows.en_passant, rows.halfmove_count, rows.ply)


def read_answers(game: Game, columns: Boards, number: int = 0) -> Answers:
    """The first `number` boards; 0: all."""
    rows = Boards(*(np.asarray(column[: number or None]) for column in columns))
    parts = [jax.device_get(_entered(game.name)(part)) for part, _ in _parts(rows)]
    states = jax.tree.map(lambda *x: np.concatenate(x)[: len(rows.count)], *parts)
    return Answers(game, rows, states)


@lru_cache
def _entered(game_name: str):
    return jax.jit(lambda rows: enter_boards(get_game(game_name), rows))


def _parts(rows: Any):
    """ROWS rows at a time with the numbers of the rows, the last repeated to fill a part."""
    count = len(rows.count)
    for start in range(0, count, ROWS):
        numbers = np.minimum(np.arange(start, start + ROWS), count - 1)
        yield jax.tree.map(lambda column, numbers=numbers: column[numbers], rows), numbers


def ask(answers: Answers, player: Player, seed: int, tell: Tell) -> Opinions:
    """What a player says of all boards. Raises PlayerError."""
    return _ask_engine(answers, player, tell) if player.move else _look(answers, player, seed, tell)


def _look(answers: Answers, player: Player, seed: int, tell: Tell) -> Opinions:
    count, found = len(answers.rows.count), []
    variables = jax.device_put(player.variables)
    for rows, numbers in _parts(answers.rows):
        look = _compiled(answers.game.name, player.search)
        found.append(jax.device_get(look(variables, jax.random.key(seed % 2**32), numbers, rows)))
        tell(min(int(numbers[-1]) + 1, count))
    opinions = Opinions(*(np.concatenate(x)[:count] for x in zip(*found, strict=True)))
    return opinions if player.variables else opinions._replace(value=None, in_top=None)


@lru_cache
def _compiled(game_name: str, search: Search):
    game = get_game(game_name)

    def look(variables, key, numbers, rows) -> Opinions:
        states = enter_boards(game, rows)
        keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)
        found = search(variables, keys, states)
        ranking = found.action_weights if found.move_values is None else found.move_values
        logits = jnp.where(states.legal_edges >= 0, found.prior_logits, ILLEGAL)
        of_best = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(rows.best, 0)[:, None], axis=-1)[:, 0]
        bits = jnp.where(rows.best >= 0, -of_best / jnp.log(2.0), jnp.nan)
        return Opinions(found.edge, ranking, bits, found.value, in_top(logits, rows.best))

    return jax.jit(look)


def in_top(logits: Array, best: Array) -> Array:
    """float32 [R, TOPS] of logits [R, S]: is the slot `best` [R] among the first 1 and 3; equals share a place."""
    own = jnp.take_along_axis(logits, jnp.maximum(best, 0)[:, None], axis=-1)
    before, alike = (logits > own).sum(axis=-1, keepdims=True), (logits == own).sum(axis=-1, keepdims=True)
    return jnp.clip((jnp.array(TOPS) - before) / alike, 0.0, 1.0)


def _ask_engine(answers: Answers, player: Player, tell: Tell) -> Opinions:
    def play(number: int) -> int:
        state = one_state(answers.states, number)
        reply = player.move(to_fen(answers.game, state), [])
        tell(number + 1)
        return legal_moves(answers.game, state).get(reply.move if isinstance(reply, Reply) else reply, -1)

    with ThreadPoolExecutor(player.num_workers) as pool:
        return Opinions(np.array(list(pool.map(play, range(len(answers.rows.count)))), np.int64))


def judge(answers: Answers, opinions: Opinions, is_best_only: bool) -> dict[str, Estimate]:
    """How right a player is, by name.

    `action_accuracy`: of the boards of which all moves are labelled, how often it plays one of the best; of labels of
    the best move alone (`is_best_only`), how often it plays that one. `tau_b` and `tau_published` rank all moves, where
    they are labelled. `policy_log_loss`: bits, and `policy_top_1` and `policy_top_3` how often the best move is the
    first, or of the first three, by the prior. `state_value_error`: of the probability of winning, its distance to the
    label.
    """
    rows, states = answers.rows, answers.states
    known, legal = rows.action_value != NO_VALUE, states.legal_edges >= 0
    is_whole = (known == legal).all(axis=1) & legal.any(axis=1)
    counted = np.flatnonzero(rows.best >= 0 if is_best_only else is_whole)
    slot = (states.legal_edges == opinions.edges[:, None]).argmax(axis=1)
    q = np.where(known, rows.action_value.astype(np.int64), -1)
    is_right = (slot == rows.best) if is_best_only else q[np.arange(len(q)), slot] == q.max(axis=1)
    is_right &= opinions.edges >= 0
    found = {"action_accuracy": share(int(is_right[counted].sum()), len(counted))}
    if opinions.ranking is not None and not is_best_only:
        number = {move: i for i, move in enumerate(action_names(answers.game))}
        taus = [_taus(answers, q, opinions.ranking, number, row) for row in np.flatnonzero(is_whole).tolist()]
        for name, values in zip(("tau_b", "tau_published"), zip(*taus, strict=True), strict=False):
            found[name] = mean(values)
    if opinions.policy_bits is not None:
        found["policy_log_loss"] = mean(opinions.policy_bits[counted])
    if opinions.in_top is not None:
        for number, name in enumerate(TOP_NAMES):
            found[name] = mean(opinions.in_top[counted, number])
    if opinions.value is not None:
        distance = np.abs((opinions.value + 1) / 2 - rows.state_value / LARGEST)
        found["state_value_error"] = mean(distance[rows.state_value != NO_VALUE])
    return found


def _taus(
    answers: Answers, q: np.ndarray, ranking: np.ndarray, number: Mapping[str, int], row: int
) -> tuple[float, float]:
    numbers = [number[move] for move in legal_moves(answers.game, one_state(answers.states, row))]
    truth, prediction = q[row, : len(numbers)], ranking[row, : len(numbers)]
    return tau_b(truth, prediction), tau_published(truth, prediction, numbers)
