"""Divides an iteration into phases of segments, and keeps a run's place in them.

A segment is one device call: some plies of self-play or some optimizer steps. RunState and Progress hold all of a run,
so it can be put on disk between any two segments and go on as if it had never stopped.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from alphagateau.games.state import Array
from alphagateau.runs.logging.progress import COMPILE, Timer
from alphagateau.training.learner import TrainState


class RunState(NamedTuple):
    """All arrays of a run."""

    train: TrainState
    producer: Any  # its producer's NamedTuple, or one for each of several boards by name
    totals: dict[str, Array]  # sums over the iteration's optimizer steps so far; no meaning between iterations


class Phase(NamedTuple):
    """A part of an iteration. `num_segments` stays the same through the phase; 0: it has nothing to do."""

    name: str  # also names its seconds in metrics.jsonl, `time/<name>`
    num_segments: Callable[[RunState], int]
    run_segment: Callable[[RunState, int, int], RunState]  # (state, iteration, segment) -> state
    segment_size: int = 1  # plies or optimizer steps
    compile: Callable[[RunState], object] | None = None  # compiles `run_segment`, given shapes and shardings


class Producer(NamedTuple):
    """A source of the frames that a learner learns from.

    Its state is a NamedTuple of arrays, sharded by `specs`. Fields in `transient` mean nothing between iterations and
    are not saved then. On each device, `batches(its part of the state, key, share_ids)` is a function from the number
    of a step in the epoch to its batch. All processes call `metrics` together after an iteration, and
    `sample_games` once its `phases` are over.
    """

    init: Callable[[], Any]  # () -> state
    specs: Any  # a PartitionSpec for each field
    transient: frozenset[str]
    phases: tuple[Phase, ...]  # that make an iteration's frames
    num_batches: Callable[[Any], int]  # of an epoch
    num_new_frames: Callable[[Any], int]  # of the iteration
    batches: Callable[[Any, Array, Array], Callable[[Array], Any]]
    metrics: Callable[[RunState, int, Mapping[str, float]], dict[str, float]]  # seconds by phase -> by slash names
    sample_games: Callable[[Any, str, int, str], str]  # (state, run, iteration, hash of the weights that play) -> PGN


def saved_fields(state: Any) -> dict[str, Any]:
    """The fields of a producer's state by their names in checkpoints, `<board>_<field>` with several boards."""
    if not isinstance(state, dict):
        return state._asdict()
    return {f"{board}_{field}": x for board, part in state.items() for field, x in part._asdict().items()}


def with_fields(state: Any, fields: Mapping[str, Any]) -> Any:
    """The producer's state with other `saved_fields`."""
    if not isinstance(state, dict):
        return type(state)(**fields)
    return {
        board: type(part)(**{field: fields[f"{board}_{field}"] for field in part._fields})
        for board, part in state.items()
    }


class Progress(NamedTuple):
    """A run's place: finished iterations, then finished phases and segments of the next. Later places are larger."""

    iteration: int = 0
    phase: int = 0
    segment: int = 0

    @property
    def is_between(self) -> bool:
        """Whether no iteration is in progress."""
        return self.phase == self.segment == 0


def compile_all(
    phases: tuple[Phase, ...], state: RunState, is_ahead: bool, say: Callable[[str], None], timer: Timer
) -> tuple[Phase, ...]:
    """The phases for RunStates like `state`; each reports when its first segment waits for its compilation.

    Args:
        is_ahead: all are compiled at once, in threads; XLA compiles mostly on one core, so later phases are compiled
            while the first runs, and `timer` has the seconds of waiting under COMPILE. Else each is compiled by its
            first segment.
    """
    pool = ThreadPoolExecutor(len(phases))
    compiled = [pool.submit(phase.compile, state) if is_ahead and phase.compile else None for phase in phases]
    pool.shutdown(wait=False)
    total = len(phases)
    titles = [f"compiling {phase.name}, program {number} of {total}" for number, phase in enumerate(phases, 1)]
    return tuple(_compiled(*each, say, timer) for each in zip(phases, compiled, titles, strict=True))


def _compiled(phase: Phase, compiled: Future | None, title: str, say: Callable[[str], None], timer: Timer) -> Phase:
    """The phase; its first segment reports `title`, and waits, if compilation is not finished."""
    is_first = True

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        nonlocal is_first
        if is_first and phase.compile and not (compiled and compiled.done()):
            say(f"{title}: a minute or more the first time, seconds on later starts")
        if is_first and compiled:
            with timer(COMPILE):
                compiled.result()  # raises what compiling it raised
        is_first = False
        return phase.run_segment(state, iteration, segment)

    return phase._replace(run_segment=run_segment)


def advance(phases: tuple[Phase, ...], state: RunState, progress: Progress) -> tuple[RunState, Progress]:
    """Runs one segment."""
    iteration, index, segment = progress
    num_segments = phases[index].num_segments(state)
    if segment < num_segments:
        state = phases[index].run_segment(state, iteration, segment)
    if segment + 1 < num_segments:
        return state, progress._replace(segment=segment + 1)
    if index + 1 < len(phases):
        return state, Progress(iteration, index + 1)
    return state, Progress(iteration + 1)
