"""An Engine of numpy that learns nothing and compiles nothing: a run with it is real in all but its arrays.

So a process that starts, plays, checkpoints and is killed costs a second where a real one costs fifteen.
"""

from typing import Any

import numpy as np

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.games.state import Position
from alphagateau.training.frames import Trajectory
from alphagateau.training.learner import TrainState
from alphagateau.training.phases import Engine, RunState
from alphagateau.training.replay import Window

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
            "selfplay": {"num_games": 2, "num_plies": 4, "segment_plies": 2},
            "search": {"num_simulations": 1},
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
    trajectory = Trajectory(Position(*[ones] * 8), reals, ones, reals, -reals, reals, reals)
    totals = {name: np.zeros((), np.float32) for name in SUMS} | {"calibration": np.zeros((3, 10), np.float32)}
    return RunState(train, {"boards": np.zeros((2, 25), np.float32)}, window, trajectory, totals)


def toy_engine() -> Engine:
    """Each step mixes what the real one reads into what the real one writes."""
    start = _start()

    def play(state: RunState, iteration: int, ply: int) -> RunState:
        old = start.trajectory if ply == 0 else state.trajectory
        value = _mixed(old.root_value, iteration, ply, float(state.train.variables["params"]["w"].sum()))
        return state._replace(games=_mixed(state.games, iteration, ply), trajectory=old._replace(root_value=value))

    def fill_window(state: RunState, iteration: int) -> tuple[RunState, dict[str, Any]]:
        frames = _mixed(state.window.frames, iteration, float(state.trajectory.root_value.sum()))
        statistics = dict.fromkeys(("plies", "prior_entropy", "frames"), 8.0) | dict.fromkeys(COUNTS, 0.0)
        return state._replace(window=state.window._replace(frames=frames), totals=start.totals), statistics

    def learn(state: RunState, iteration: int, epoch: int, first: int, last: int) -> RunState:
        del epoch
        seen = float(state.window.frames["x"].sum())
        variables = _mixed(state.train.variables, iteration, first, seen)
        memory = _mixed(state.train.opt_state, iteration, last)
        steps = state.train.num_steps + np.int32(last - first)
        totals = {k: np.asarray(v + abs(memory["m"]).sum(), np.float32) for k, v in state.totals.items()}
        return state._replace(train=TrainState(variables, memory, np.asarray(steps, np.int32)), totals=totals)

    return Engine(
        game=None,  # pyright: ignore[reportArgumentType]
        network=None,  # pyright: ignore[reportArgumentType]
        search=None,  # pyright: ignore[reportArgumentType]
        mesh=None,  # pyright: ignore[reportArgumentType]
        segment_plies=2,
        init=lambda variables: start._replace(train=start.train._replace(variables=variables)),
        play=play,
        fill_window=fill_window,
        train=learn,
        abstract_state=start,
        init_variables=lambda: start.train.variables,
        zeros_between=lambda: {"trajectory": start.trajectory, "totals": start.totals},
    )
