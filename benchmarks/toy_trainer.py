"""A Trainer of numpy that learns nothing and compiles nothing: a run with it is real in all but its arrays.

So a process that starts, plays, checkpoints and is killed costs a second where a real one costs fifteen.
"""

from typing import Any, cast

import numpy as np

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.games.state import Position
from alphagateau.training.frames import Trajectory
from alphagateau.training.iteration_metrics import selfplay_metrics, selfplay_pace
from alphagateau.training.learner import TrainState
from alphagateau.training.phases import Phase, Producer, RunState
from alphagateau.training.plan import BoardPlan, Plan
from alphagateau.training.selfplay.replay import Window
from alphagateau.training.selfplay.state import SelfPlayState
from alphagateau.training.trainer import Trainer

PLIES = (4, 2)  # [T, B]
SUMS = ("loss", "gradient_norm", "weight_norm", "policy_loss", "policy_entropy", "target_entropy", "value_loss")
COUNTS = ("games", "draws", "white_wins", "at_ply_limit", "finished_plies", "saturated_values")


def toy_experiment(num_iterations: int, keep_newest: int = 1) -> Experiment:
    """Two segments of self-play and two of training an iteration."""
    return config.from_dict(
        {
            "game": "gardner_chess",
            "num_iterations": num_iterations,
            "sample_games": 0,
            "aim": False,
            "num_shares": 1,
            "search": {"num_simulations": 1},
            "selfplay": {"num_games": 2, "num_plies": 4, "segment_plies": 2},
            "window": {"size": 16},
            "training": {"batch_size": 4, "segment_steps": 1},
            "evaluation": {"num_games": 0},
            "retention": {"keep_newest": keep_newest},
        }
    )


def _mixed(tree: Any, *numbers: float) -> Any:
    """Other float32 arrays of the same shapes, decided by `tree` and `numbers`."""
    seed = sum(n * p for n, p in zip(numbers, (1.0, 31.0, 1009.0), strict=False))
    if isinstance(tree, dict):
        return {k: _mixed(v, *numbers) for k, v in tree.items()}
    return np.sin(tree * 1.5 + seed + np.arange(tree.size).reshape(tree.shape)).astype(np.float32)


def _start() -> RunState:
    variables = {"params": {"w": np.zeros((4, 8), np.float32)}, "batch_stats": {"mean": np.zeros(8, np.float32)}}
    train = TrainState(variables, {"m": np.zeros((4, 8), np.float32)}, np.zeros((), np.int32))
    window = Window({"x": np.zeros((16, 4), np.float32)}, np.zeros(1, np.int32))
    ones, reals = np.ones(PLIES, np.int16), np.ones(PLIES, np.float32)
    trajectory = Trajectory(Position(*[ones] * 8), reals, ones, reals, -reals, reals, reals, reals)
    sums = dict.fromkeys(("plies", "prior_entropy", "frames"), 8.0) | dict.fromkeys(COUNTS, 0.0)
    statistics = {name: np.asarray(value, np.float32) for name, value in sums.items()}
    totals = {name: np.zeros((), np.float32) for name in SUMS} | {"calibration": np.zeros((3, 10), np.float32)}
    games: Any = {"boards": np.zeros((2, 25), np.float32)}
    return RunState(train, SelfPlayState(games, window, trajectory, statistics), totals)


def _play(state: RunState, iteration: int, segment: int) -> RunState:
    """Each phase mixes what the real one reads into what the real one writes."""
    held, ply = state.producer, 2 * segment
    old = held.trajectory if segment else _start().producer.trajectory
    value = _mixed(old.root_value, iteration, ply, float(state.train.variables["params"]["w"].sum()))
    games = _mixed(held.games, iteration, ply)
    return state._replace(producer=held._replace(games=games, trajectory=old._replace(root_value=value)))


def _fill_window(state: RunState, iteration: int, segment: int) -> RunState:
    held = state.producer
    frames = _mixed(held.window.frames, iteration, float(held.trajectory.root_value.sum()))
    window = held.window._replace(frames=frames)
    return state._replace(producer=held._replace(window=window, statistics=_start().producer.statistics))


def _train(state: RunState, iteration: int, segment: int) -> RunState:
    seen = float(state.producer.window.frames["x"].sum())
    variables = _mixed(state.train.variables, iteration, segment, seen)
    memory = _mixed(state.train.opt_state, iteration, segment + 1)
    before = state.totals if segment else _start().totals
    totals = {k: np.asarray(v + abs(memory["m"]).sum(), np.float32) for k, v in before.items()}
    num_steps = np.asarray(state.train.num_steps + np.int32(1), np.int32)
    return state._replace(train=TrainState(variables, memory, num_steps), totals=totals)


def _producer(start: RunState) -> Producer:
    def metrics(state, iteration, seconds):
        sums = {name: float(x) for name, x in state.producer.statistics.items()}
        return selfplay_metrics(sums) | selfplay_pace(sums["plies"], 1, seconds)

    return Producer(
        init=lambda: start.producer,
        specs=None,
        transient=frozenset({"trajectory", "statistics"}),
        phases=(Phase("selfplay", lambda _: 2, _play, 2), Phase("window", lambda _: 1, _fill_window)),
        num_batches=lambda _: 2,
        num_new_frames=lambda _: 2,
        batches=lambda *_: lambda step: step,  # pyright: ignore[reportArgumentType]
        metrics=metrics,
        sample_games=lambda *_: "",
    )


def toy_trainer(experiment: Experiment) -> Trainer:
    start, nothing = _start(), cast(Any, None)
    producer = _producer(start)
    return Trainer(
        plan=Plan(experiment, (BoardPlan(experiment, nothing, nothing),), nothing, nothing),
        mesh=nothing,
        producer=producer,
        phases=(*producer.phases, Phase("train", lambda _: 2, _train)),
        init_variables=lambda: start.train.variables,
        init=lambda variables: start._replace(train=start.train._replace(variables=variables)),
        abstract_state=start,
    )
