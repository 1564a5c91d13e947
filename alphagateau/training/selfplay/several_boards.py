"""Joins the producers and the learners of several boards into one producer and one learner.

Each board has its own games, window and phases, which follow one another. A batch is of one board; an epoch has the
batches of all windows in one random order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.state import Array
from alphagateau.training.frames import Frame
from alphagateau.training.iteration_metrics import PER_BOARD, over_boards
from alphagateau.training.keys import BOARD
from alphagateau.training.learner import Learner, TrainState
from alphagateau.training.losses.terms import AMONG
from alphagateau.training.phases import Phase, Producer, RunState


class BoardBatch(NamedTuple):
    """A batch of one of several boards, which is made when its board is chosen."""

    board: Array  # int32, the board's place
    batches: tuple[Callable[[], Frame], ...]  # one for each board; one is called


def make_boards_producer(producers: Mapping[str, Producer], batch_size: int, sizes: Sequence[int]) -> Producer:
    """The producer over those of several boards, by name, whose windows have `sizes`; its state has each by name."""

    def batches(states: Any, key: Array, share_ids: Array) -> Callable[[Array], BoardBatch]:
        *keys, order_key = (jax.random.fold_in(key, BOARD + place) for place in range(len(producers) + 1))
        of_boards = [p.batches(states[b], key, share_ids) for (b, p), key in zip(producers.items(), keys, strict=True)]
        counts = jnp.stack([states[board].statistics["frames"] // batch_size for board in producers])
        most = [size // batch_size for size in sizes]
        return choose_in_order(order_key, counts.astype(jnp.int32), most, of_boards)

    def metrics(state: RunState, iteration: int, seconds: Mapping[str, float]) -> dict[str, float]:
        by_board = {}
        for board, producer in producers.items():
            of_board = {name.removesuffix(f"/{board}"): x for name, x in seconds.items() if name.endswith(f"/{board}")}
            by_board[board] = producer.metrics(board_state(state, board), iteration, of_board)
        return over_boards(by_board)

    def sample_games(states: Any, run: str, iteration: int, weights: str) -> str:
        texts = [p.sample_games(states[board], run, iteration, weights) for board, p in producers.items()]
        return "\n".join(text for text in texts if text)

    return Producer(
        init=lambda: {board: producer.init() for board, producer in producers.items()},
        specs={board: producer.specs for board, producer in producers.items()},
        transient=frozenset(f"{board}_{field}" for board, p in producers.items() for field in p.transient),
        phases=tuple(on_board(board, phase) for board, producer in producers.items() for phase in producer.phases),
        num_batches=lambda states: sum(p.num_batches(states[board]) for board, p in producers.items()),
        num_new_frames=lambda states: sum(p.num_new_frames(states[board]) for board, p in producers.items()),
        batches=batches,
        metrics=metrics,
        sample_games=sample_games,
    )


def board_state(state: RunState, board: str) -> RunState:
    """The RunState for one board's functions."""
    return state._replace(producer=state.producer[board])


def on_board(board: str, phase: Phase) -> Phase:
    """A board's phase, on the state of all boards."""

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        after = phase.run_segment(board_state(state, board), iteration, segment)
        return after._replace(producer={**state.producer, board: after.producer})

    compile_alone = phase.compile
    return phase._replace(
        name=f"{phase.name}/{board}",
        num_segments=lambda state: phase.num_segments(board_state(state, board)),
        run_segment=run_segment,
        compile=compile_alone and (lambda state: compile_alone(board_state(state, board))),
    )


def choose_in_order(
    key: Array, counts: Array, most: Sequence[int], of_boards: Sequence[Callable[[Array], Frame]]
) -> Callable[[Array], BoardBatch]:
    """Step -> BoardBatch: all boards' batches, `counts` [boards] of at most `most` each, in a random order."""
    board = jnp.asarray(np.repeat(np.arange(len(most)), most), jnp.int32)
    batch = jnp.asarray(np.concatenate([np.arange(n) for n in most]), jnp.int32)
    rank = jax.random.uniform(key, board.shape)
    order = jnp.argsort(jnp.where(batch < counts[board], rank, 2.0))

    def choose(step: Array) -> BoardBatch:
        place = order[step]
        return BoardBatch(board[place], tuple(partial(of_board, batch[place]) for of_board in of_boards))

    return choose


def make_boards_learner(learners: Mapping[str, Learner]) -> Learner:
    """The learner over those of several boards, by name, whose TrainStates are alike: each step is of one board.

    Metrics are of the step, and of each board as `<name>/<board>`, 0 in another board's step, with its number of steps.
    """

    def step_on(board: str, learner: Learner, batch: Callable[[], Frame]) -> Callable:
        def step(train: TrainState) -> tuple[TrainState, dict[str, Array]]:
            train, metrics = learner.step(train, batch())
            figures = {name: x for name, x in metrics.items() if name.removeprefix(AMONG) in PER_BOARD}
            figures["steps"] = jnp.float32(1)
            by_board = {
                f"{name}/{b}": x if b == board else jnp.zeros_like(x) for name, x in figures.items() for b in learners
            }
            return train, metrics | by_board

        return step

    def step(train: TrainState, batch: BoardBatch) -> tuple[TrainState, dict[str, Array]]:
        branches = [step_on(*each, batch) for each, batch in zip(learners.items(), batch.batches, strict=True)]
        return jax.lax.switch(batch.board, branches, train)

    return Learner(next(iter(learners.values())).init, step)
