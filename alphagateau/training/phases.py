"""The shape of an iteration: a list of phases of segments, who makes its frames, and how far a run is in it.

A segment is the work of one device call: some plies of self-play or some optimizer steps. All that a run is lies in
its RunState and Progress, so a run can be put on disk between any two segments and go on as if it had never stopped.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from alphagateau.games.state import Array
from alphagateau.training.learner import TrainState


class RunState(NamedTuple):
    """All arrays of a run."""

    train: TrainState
    producer: Any  # its producer's: a NamedTuple, or of several boards a NamedTuple each by name
    totals: dict[str, Array]  # sums over the iteration's optimizer steps so far; of no meaning between iterations


class Phase(NamedTuple):
    """A part of an iteration. `num_segments` is asked when the phase is entered; 0: there is nothing to do."""

    name: str  # also of its seconds in metrics.jsonl, `time/<name>`
    num_segments: Callable[[RunState], int]
    run_segment: Callable[[RunState, int, int], RunState]  # (state, iteration, segment) -> state
    segment_size: int = 1  # of what it counts: plies, optimizer steps
    compile: Callable[[RunState], None] = lambda _: None  # `run_segment`, from a RunState's shapes and shardings


class Producer(NamedTuple):
    """Who makes the frames that a learner learns from.

    Its state is a NamedTuple of arrays that lie on the devices as `specs` says. Fields in `transient` mean nothing
    between iterations and are not kept then. On each device, `batches(its part of the state, key, share_ids)` gives a
    function from an optimizer step's number in the epoch to the Frames of that step, or what the run's learner takes
    for them; there are `num_batches(state)`.
    `num_new_frames(state)` are of this iteration.
    All processes call `metrics` and `sample_games` together, after an iteration, which `metrics` is told.
    """

    init: Callable[[], Any]  # () -> state
    specs: Any  # a PartitionSpec for each field
    transient: frozenset[str]
    phases: tuple[Phase, ...]  # that make an iteration's frames
    num_batches: Callable[[Any], int]
    num_new_frames: Callable[[Any], int]
    batches: Callable[[Any, Array, Array], Callable[[Array], Any]]
    metrics: Callable[[RunState, int, Mapping[str, float]], dict[str, float]]  # seconds by phase -> by slash names
    sample_games: Callable[[Any, str, int, str], str]  # (state, run, iteration, hash of the weights that play) -> PGN


def saved_fields(state: Any) -> dict[str, Any]:
    """The fields of a producer's state under the names that checkpoints save, `<board>_<field>` of several boards."""
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
    """How far a run is: whole iterations, then whole phases and segments of the next; in the order of a run."""

    iteration: int = 0
    phase: int = 0
    segment: int = 0

    @property
    def is_between(self) -> bool:
        """Whether no iteration is in progress."""
        return self.phase == self.segment == 0


def compile_all(
    phases: tuple[Phase, ...], state: RunState, is_ahead: bool, say: Callable[[str], None]
) -> tuple[Phase, ...]:
    """The phases for RunStates like `state`; each says so where its first segment waits until it is compiled.

    is_ahead: all are compiled at once, in threads; XLA compiles mostly on one core, so whoever comes first, the next
    one is compiled while it runs. Else each is compiled by its first segment.
    """
    pool = ThreadPoolExecutor(len(phases))
    compiled = [pool.submit(phase.compile, state) if is_ahead else None for phase in phases]
    pool.shutdown(wait=False)
    total = len(phases)
    titles = [f"compiling {phase.name}, program {number} of {total}" for number, phase in enumerate(phases, 1)]
    return tuple(_compiled(*each, say) for each in zip(phases, compiled, titles, strict=True))


def _compiled(phase: Phase, compiled: Future | None, title: str, say: Callable[[str], None]) -> Phase:
    """The phase, whose first segment says `title` unless it has been compiled, and waits for that."""
    is_first = True

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        nonlocal is_first
        if is_first and not (compiled and compiled.done()):
            say(f"{title}: a minute or more, and seconds when it is started again")
        is_first = False
        if compiled:
            compiled.result()  # raises what compiling it raised
        return phase.run_segment(state, iteration, segment)

    return phase._replace(run_segment=run_segment)


def advance(phases: tuple[Phase, ...], state: RunState, progress: Progress) -> tuple[RunState, Progress]:
    """One segment further."""
    iteration, index, segment = progress
    num_segments = phases[index].num_segments(state)
    if segment < num_segments:
        state = phases[index].run_segment(state, iteration, segment)
    if segment + 1 < num_segments:
        return state, progress._replace(segment=segment + 1)
    if index + 1 < len(phases):
        return state, Progress(iteration, index + 1)
    return state, Progress(iteration + 1)
