"""Makes the optimizer of `[training]`, its schedule and the number of its steps."""

from typing import Any

import jax
import optax
import optax.contrib

from alphagateau.config import Experiment, TrainingConfig
from alphagateau.games.state import Array
from alphagateau.training.plan import Plan

FEATURE_MATRICES = ("attacks", "embed_edges")  # rows are features of a square or an edge, not entries of a table
STEPS_AT, STEP_FACTOR = (0.8, 0.9), 0.1**0.5
PAPER = TrainingConfig()


def make_optimizer(
    learning_rate: float | optax.Schedule, training: TrainingConfig = PAPER
) -> optax.GradientTransformation:
    """The optimizer of `[training]`, by default Adam (Kingma and Ba 2015) without weight decay, as in the paper.

    `weight_decay` of Adam and NAdam (Dozat 2016) is of arrays with two axes or more, decoupled from the gradient
    (AdamW, Loshchilov and Hutter 2019).

    Muon (Jordan 2024) has an orthogonalized momentum of 0.95 for each matrix, NAdam for vectors and tables. Tables have
    a row a token, square or offset; kernels of convolutions are matrices with a column an output. A step has the size
    of Adam's (Liu et al. 2025: a root mean square of 0.2 an entry), so rates and decays of AdamW serve.

    AdaDelta (Zeiler 2012) is of the sum over a batch, as in Giraffe: `adadelta_epsilon` drowns the small gradients of a
    mean.
    """
    clipping = [optax.clip_by_global_norm(training.max_gradient_norm)] if training.max_gradient_norm else []
    if training.optimizer == "adadelta":
        adadelta = optax.adadelta(learning_rate, training.adadelta_decay, training.adadelta_epsilon)
        return optax.chain(*clipping, optax.scale(training.batch_size), adadelta)
    if training.optimizer == "muon":
        muon = optax.contrib.muon(
            learning_rate,
            weight_decay=training.weight_decay,
            eps=training.epsilon,
            adam_b2=training.beta2,
            consistent_rms=0.2,
            muon_weight_dimension_numbers=lambda params: jax.tree_util.tree_map_with_path(_matrix_axes, params),
        )
        return optax.chain(*clipping, muon)
    options: dict[str, Any] = {"b2": training.beta2, "eps": training.epsilon, "nesterov": training.optimizer == "nadam"}
    if not training.weight_decay:
        adam = optax.adam(learning_rate, **options)
    else:
        options["mask"] = lambda params: jax.tree.map(lambda x: x.ndim > 1, params)
        adam = optax.adamw(learning_rate, weight_decay=training.weight_decay, **options)
    return optax.chain(*clipping, adam) if clipping else adam


def _matrix_axes(path: tuple[Any, ...], x: Array) -> optax.contrib.MuonDimensionNumbers | None:
    """Inputs and outputs of a matrix or of a convolution's kernel; None: neither."""
    name = path[-1].key
    if not (name == "kernel" or name.startswith("W") or name in FEATURE_MATRICES) or x.ndim == 1 or x.shape[-1] == 1:
        return None
    return optax.contrib.MuonDimensionNumbers(tuple(range(x.ndim - 1)), x.ndim - 1)


def learning_rate_schedule(training: TrainingConfig, decay_steps: int) -> float | optax.Schedule:
    """Step number -> learning rate: from 0 to `learning_rate` in `warmup_steps`, then by `schedule`.

    "linear" and "cosine" reach `min_learning_rate` at step `decay_steps` and stay there. "steps" divides by the root of
    10 at 0.8 and at 0.9 of `decay_steps`, as for CF-6M, and has no lowest. A constant without warm-up is a number, for
    which the optimizer keeps no count of steps.
    """
    schedule, highest, warmup_steps = training.schedule, training.learning_rate, training.warmup_steps
    warmup = optax.schedules.linear_schedule(0.0, highest, warmup_steps)
    after = max(decay_steps - warmup_steps, 1)
    if schedule == "constant":
        if not warmup_steps:
            return highest
        decay = optax.schedules.constant_schedule(highest)
    elif schedule == "steps":
        falls = {round(share * decay_steps) - warmup_steps: STEP_FACTOR for share in STEPS_AT}
        decay = optax.schedules.piecewise_constant_schedule(highest, falls)
    elif schedule == "linear":
        decay = optax.schedules.linear_schedule(highest, training.min_learning_rate, after)
    else:
        decay = optax.schedules.cosine_decay_schedule(highest, after, training.min_learning_rate / highest)
    return optax.schedules.join_schedules([warmup, decay], [warmup_steps]) if warmup_steps else decay


def num_steps(experiment: Experiment, num_batches: int, num_new_frames: int) -> int:
    """Optimizer steps of an iteration whose window has so many batches and new frames; 0 without a batch."""
    training = experiment.training
    if not training.samples_per_frame:
        return training.num_epochs * num_batches
    return round(training.samples_per_frame * num_new_frames / training.batch_size) if num_batches else 0


def num_made_frames(experiment: Experiment) -> int:
    """Frames that an iteration makes, of one board, if none waits for its result."""
    selfplay, data, targets = experiment.selfplay, experiment.data, experiment.targets
    if selfplay is None:
        return data.frames_per_iteration if data else 0
    num_plies = selfplay.num_plies
    if targets.kind == "td_leaf":
        num_plies = (num_plies if targets.learn_from == "all" else 1) + num_plies * targets.root_policies
    return num_plies * selfplay.num_games


def num_run_steps(plan: Plan) -> int:
    """Optimizer steps of a whole run in which each ply of self-play becomes a frame in its iteration."""
    whole = plan.experiment
    boards = [(num_made_frames(board.experiment), board.experiment.window.size) for board in plan.boards]

    def steps(iteration: int) -> int:
        held = (new if whole.data else min(size, iteration * new) for new, size in boards)
        return num_steps(whole, sum(n // whole.training.batch_size for n in held), sum(new for new, _ in boards))

    filling = min(whole.num_iterations, max(-(-size // new) for new, size in boards))  # later ones are all alike
    return sum(map(steps, range(1, filling + 1))) + (whole.num_iterations - filling) * steps(filling)
