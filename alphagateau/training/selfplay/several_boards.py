"""Several boards in one run: a self-play producer and a learner a board in, one producer and one learner out.

Each board has its own games, window and programs; the iteration's phases follow one another. A batch is of one board:
an epoch goes through the batches of all windows in one order drawn at random, and each step is that of its board.
"""

from collections import namedtuple
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
from alphagateau.training.phases import Phase, Producer, RunState


class Choice(NamedTuple):
    """A batch of one of several boards, made once it is known which."""

    board: Array  # int32, its place among the boards
    batches: tuple[Callable[[], Frame], ...]  # of each board, of which one is called


class Part(NamedTuple):
    """One board's place in the mixed state, whose fields are those of all boards one after the other."""

    kind: Any  # the NamedTuple of this board's state
    first: int

    def of(self, mixed: Any) -> Any:
        """This board's state."""
        return self.kind(*mixed[self.first : self.first + len(self.kind._fields)])

    def put(self, mixed: Any, state: Any) -> Any:
        """The mixed state with another of this board."""
        return type(mixed)(*mixed[: self.first], *state, *mixed[self.first + len(state) :])

    def run_state(self, state: RunState) -> RunState:
        """What this board's functions are told."""
        return state._replace(producer=self.of(state.producer))


def make_mixed_producer(producers: Mapping[str, Producer], batch_size: int, sizes: Sequence[int]) -> Producer:
    """One Producer of those of several boards, by name; `sizes`: frames of each window at most."""
    boards, made = list(producers), list(producers.values())
    kinds: list[Any] = [type(producer.specs) for producer in made]
    fields = [f"{board}_{field}" for board, kind in zip(boards, kinds, strict=True) for field in kind._fields]
    State = namedtuple("State", fields)  # flat, so that checkpoints and meshes take it for any producer's
    firsts = np.cumsum([0, *(len(kind._fields) for kind in kinds)])
    parts = [Part(kind, int(first)) for kind, first in zip(kinds, firsts[:-1], strict=True)]

    def batches(state: Any, key: Array, share_ids: Array) -> Callable[[Array], Choice]:
        ours = list(zip(made, parts, strict=True))
        keys = [jax.random.fold_in(key, BOARD + place) for place in range(len(made) + 1)]
        of_boards = [p.batches(part.of(state), k, share_ids) for (p, part), k in zip(ours, keys[:-1], strict=True)]
        counts = jnp.stack([part.of(state).statistics["frames"] // batch_size for part in parts]).astype(jnp.int32)
        return choose_in_order(keys[-1], counts, [size // batch_size for size in sizes], of_boards)

    def phases_of(board: str, producer: Producer, part: Part) -> list[Phase]:
        return [on_part(phase, f"{phase.name}/{board}", part) for phase in producer.phases]

    def metrics(state: RunState, iteration: int, seconds: Mapping[str, float]) -> dict[str, float]:
        found = {}
        for board, producer, part in zip(boards, made, parts, strict=True):
            of_board = {name.removesuffix(f"/{board}"): x for name, x in seconds.items() if name.endswith(f"/{board}")}
            found[board] = producer.metrics(part.run_state(state), iteration, of_board)
        return over_boards(found)

    def sample_games(state: Any, run: str, iteration: int, weights: str) -> str:
        texts = [p.sample_games(part.of(state), run, iteration, weights) for p, part in zip(made, parts, strict=True)]
        return "\n".join(text for text in texts if text)

    def total(count: Callable[[Producer], Callable[[Any], int]]) -> Callable[[Any], int]:
        return lambda state: sum(count(p)(part.of(state)) for p, part in zip(made, parts, strict=True))

    return Producer(
        init=lambda: State(*(x for producer in made for x in producer.init())),
        specs=State(*(spec for producer in made for spec in producer.specs)),
        transient=frozenset(f"{board}_{field}" for board, p in producers.items() for field in p.transient),
        phases=tuple(p for each in zip(boards, made, parts, strict=True) for p in phases_of(*each)),
        num_batches=total(lambda producer: producer.num_batches),
        num_new_frames=total(lambda producer: producer.num_new_frames),
        batches=batches,
        metrics=metrics,
        sample_games=sample_games,
    )


def on_part(phase: Phase, name: str, part: Part) -> Phase:
    """A board's phase, on the state of all."""

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        after = phase.run_segment(part.run_state(state), iteration, segment)
        return after._replace(producer=part.put(state.producer, after.producer))

    return Phase(
        name,
        lambda state: phase.num_segments(part.run_state(state)),
        run_segment,
        phase.segment_size,
        lambda state: phase.compile(part.run_state(state)),
    )


def choose_in_order(
    key: Array, counts: Array, most: Sequence[int], of_boards: Sequence[Callable[[Array], Frame]]
) -> Callable[[Array], Choice]:
    """Step -> Choice: the batches of all boards, `counts` [boards] of at most `most` each, in a random order."""
    board = jnp.asarray(np.repeat(np.arange(len(most)), most), jnp.int32)
    batch = jnp.asarray(np.concatenate([np.arange(n) for n in most]), jnp.int32)
    draw = jax.random.uniform(key, board.shape)
    order = jnp.argsort(jnp.where(batch < counts[board], draw, 2.0))

    def choose(step: Array) -> Choice:
        place = order[step]
        return Choice(board[place], tuple(partial(of_board, batch[place]) for of_board in of_boards))

    return choose


def make_mixed_learner(learners: Mapping[str, Learner]) -> Learner:
    """One Learner of those of several boards, by name, whose TrainStates are alike: each step is of one board.

    Beside the metrics of the step stand those of each board, 0 where the step is of another, and how many are its own.
    """

    def step_on(board: str, learner: Learner, batch: Callable[[], Frame]) -> Callable:
        def step(train: TrainState) -> tuple[TrainState, dict[str, Array]]:
            train, metrics = learner.step(train, batch())
            figures = {"steps": jnp.float32(1)} | {name: metrics[name] for name in PER_BOARD if name in metrics}
            by_board = {
                f"{name}/{b}": x if b == board else jnp.zeros_like(x) for name, x in figures.items() for b in learners
            }
            return train, metrics | by_board

        return step

    def step(train: TrainState, choice: Choice) -> tuple[TrainState, dict[str, Array]]:
        branches = [step_on(*each, batch) for each, batch in zip(learners.items(), choice.batches, strict=True)]
        return jax.lax.switch(choice.board, branches, train)

    return Learner(next(iter(learners.values())).init, step)
