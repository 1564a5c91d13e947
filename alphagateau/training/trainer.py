"""Builds the parts of a run from its plan: producer, learner, phases and the shapes of its state."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from alphagateau.config import Experiment
from alphagateau.config.losses import LOSSES
from alphagateau.distributed.mesh import AXIS, BY_FIRST, REPLICATED, per_device, shardings
from alphagateau.games.state import Array
from alphagateau.networks.network import Variables
from alphagateau.training.iteration_metrics import as_summed
from alphagateau.training.keys import TRAIN, WEIGHTS, key_of
from alphagateau.training.learner import Learner, TrainState, make_learner, with_average
from alphagateau.training.material import learn_material
from alphagateau.training.optimizer import learning_rate_schedule, make_optimizer, num_run_steps, num_steps
from alphagateau.training.phases import Phase, Producer, RunState, saved_fields
from alphagateau.training.plan import BoardPlan, Plan, make_plan
from alphagateau.training.selfplay.producer import make_selfplay_producer
from alphagateau.training.selfplay.several_boards import make_boards_learner, make_boards_producer


class Trainer(NamedTuple):
    """The functions of a run on its RunState, each compiled at its first call."""

    plan: Plan
    mesh: Mesh
    producer: Producer
    phases: tuple[Phase, ...]  # of an iteration: the producer's, then training
    init_variables: Callable[[], Variables]  # drawn from the seed, and taught to count material if asked for
    init: Callable[[Variables], RunState]
    abstract_state: RunState  # shapes and shardings, for reading a checkpoint


def make_producer(plan: Plan, mesh: Mesh) -> Producer:
    """The producer of the run's frames, on one board or on several."""
    producers = {board.experiment.game: make_board_producer(board, mesh) for board in plan.boards}
    if len(producers) == 1:
        return producers[plan.experiment.game]
    sizes = [board.experiment.window.size for board in plan.boards]
    return make_boards_producer(producers, plan.experiment.training.batch_size, sizes)


def make_board_producer(board: BoardPlan, mesh: Mesh) -> Producer:
    """The producer of one board's frames, by self-play or from labelled positions."""
    experiment = board.experiment
    if experiment.selfplay is not None:
        return make_selfplay_producer(board, experiment.selfplay, mesh)
    from alphagateau.training.labels.producer import make_data_producer  # pyarrow, which self-play does without

    assert experiment.data is not None  # as an Experiment has one of the two
    return make_data_producer(board, experiment.data, mesh)


def make_run_learner(plan: Plan, axis_name: str | None = None) -> Learner:
    """The learner that `[training]` describes, on one board or on several."""
    training = plan.experiment.training
    schedule = learning_rate_schedule(training, training.decay_steps or num_run_steps(plan))
    optimizer = make_optimizer(schedule, training)

    def on_board(board: BoardPlan) -> Learner:
        terms = LOSSES[training.loss].terms
        learner = make_learner(board.game, board.network, terms, optimizer, axis_name, training.num_parts)
        return with_average(learner, training.average_decay) if training.average_decay else learner

    learners = {board.experiment.game: on_board(board) for board in plan.boards}
    return make_boards_learner(learners) if len(learners) > 1 else learners[plan.experiment.game]


def make_trainer(experiment: Experiment, mesh: Mesh) -> Trainer:
    """The Trainer of an experiment on the devices of `mesh`."""
    plan = make_plan(experiment)
    game, network = plan.game, plan.network
    producer, learner = make_producer(plan, mesh), make_run_learner(plan, AXIS)

    def init_variables() -> Variables:
        variables, positions = network.init(key_of(experiment.seed, WEIGHTS)), experiment.training.material_positions
        return learn_material(game, network, variables, positions, experiment.seed) if positions else variables

    alone = make_run_learner(plan)  # on one device

    def first_step(variables: Variables) -> dict[str, Array]:
        key, share_ids = jax.random.key(0), jnp.arange(experiment.num_shares)
        frames = producer.batches(producer.init(), key, share_ids)(jnp.int32(0))
        return alone.step(alone.init(variables), frames)[1]

    like = jax.eval_shape(network.init, jax.random.key(0))
    metrics = jax.eval_shape(first_step, like)  # traced once, as tracing a step takes seconds

    def build(variables: Variables) -> RunState:
        return RunState(alone.init(variables), producer.init(), jax.tree.map(jnp.zeros_like, metrics))

    specs = RunState(REPLICATED, producer.specs, REPLICATED)  # pyright: ignore[reportArgumentType]
    init = jax.jit(build, out_shardings=shardings(mesh, specs))
    phases = (*producer.phases, make_train_phase(experiment, mesh, producer, learner))
    return Trainer(plan, mesh, producer, phases, init_variables, init, init.eval_shape(like))


def transient(producer: Producer, state: RunState) -> dict[str, Any]:
    """The arrays of a RunState that hold nothing between iterations."""
    fields = saved_fields(state.producer)
    return {name: fields[name] for name in sorted(producer.transient)} | {"totals": state.totals}


def make_train_phase(experiment: Experiment, mesh: Mesh, producer: Producer, learner: Learner) -> Phase:
    """The last phase of an iteration: epochs over the producer's batches, some optimizer steps a segment."""
    segment_steps = experiment.training.segment_steps

    @per_device(mesh, (REPLICATED, REPLICATED, producer.specs, REPLICATED, BY_FIRST, REPLICATED), REPLICATED)
    def local(train, totals, frames_of, key, share_ids, steps):
        batch_of = producer.batches(frames_of, key, share_ids)

        def body(step, carry):
            train, totals = carry
            train, metrics = learner.step(train, batch_of(step))
            return train, jax.tree.map(jnp.add, totals, as_summed(metrics))

        first, last = steps
        return jax.lax.fori_loop(first, last, body, (train, totals))

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_steps(train: TrainState, totals, frames_of, place) -> tuple[TrainState, dict]:
        seed, iteration, epoch, first, last = place
        is_first = (epoch == 0) & (first == 0)  # of the iteration, which begins new totals
        totals = jax.tree.map(lambda x: jnp.where(is_first, jnp.zeros_like(x), x), totals)
        key = key_of(seed, iteration, TRAIN, epoch)
        share_ids, steps = jnp.arange(experiment.num_shares), jnp.stack([first, last])
        return local(train, totals, frames_of, key, share_ids, steps)

    def segments_per_epoch(state: RunState) -> int:
        return -(-producer.num_batches(state.producer) // segment_steps)

    def num_segments(state: RunState) -> int:
        steps, an_epoch = num_iteration_steps(experiment, producer, state), producer.num_batches(state.producer) or 1
        return steps // an_epoch * segments_per_epoch(state) + -(-(steps % an_epoch) // segment_steps)

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        epoch, part = divmod(segment, segments_per_epoch(state))
        first, an_epoch = part * segment_steps, producer.num_batches(state.producer)
        left = num_iteration_steps(experiment, producer, state) - epoch * an_epoch
        last = min(first + segment_steps, an_epoch, left)
        place = (experiment.seed, iteration, epoch, first, last)
        train, totals = train_steps(state.train, state.totals, state.producer, place)
        return state._replace(train=train, totals=totals)

    def compile(state: RunState) -> object:
        return train_steps.lower(state.train, state.totals, state.producer, (0,) * 5).compile()

    return Phase("train", num_segments, run_segment, segment_steps, compile)


def num_iteration_steps(experiment: Experiment, producer: Producer, state: RunState) -> int:
    """Optimizer steps of the iteration in progress, once its frames are made."""
    return num_steps(experiment, producer.num_batches(state.producer), producer.num_new_frames(state.producer))
