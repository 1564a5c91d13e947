"""Estimates an experiment's memory and time on this machine, from shapes and short trials."""

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import psutil

from alphagateau import config
from alphagateau.config import Experiment, SearchConfig, SelfPlayConfig
from alphagateau.config.searches import simulations_per_ply
from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.rules import Game
from alphagateau.runs.logging.progress import print_results
from alphagateau.search.minimax.config import DepthConfig, ProbabilityConfig
from alphagateau.training.optimizer import num_made_frames, num_steps
from alphagateau.training.plan import make_plan
from alphagateau.training.trainer import Trainer, make_run_learner, make_trainer

ONE_AT_A_TIME = ("search trees", "weights and optimizer", "training step")  # whatever the number of boards
LOWERED_BY = {  # what takes memory, and the keys that lower it
    "frame window": "window.size",
    "boards of an iteration": "data.frames_per_iteration",
    "games of an iteration": "selfplay.num_games or selfplay.num_plies",
    "frames that wait": "selfplay.num_games",
    "frames entering the window": "selfplay.num_games or selfplay.num_plies",
    "search trees": "selfplay.num_games or search.num_simulations (num_nodes of a minimax)",
    "training step": "training.batch_size",
    "weights and optimizer": "network.hidden_size",
}
LONG_RUN_HOURS = 24  # a longer run gets advice on how to shorten it
TRIAL_GAMES, TRIAL_PLIES, TRIAL_SIMULATIONS = 16, 2, 4  # at most, of games at least one a share


class Diagnosis(NamedTuple):
    """Bytes of all devices together; seconds of one iteration with a full window."""

    memory: dict[str, int]
    memory_available: int
    largest_batch: int  # frames, a multiple of num_shares; 0: the rest alone does not fit
    selfplay_seconds: float
    training_seconds: float
    num_iterations: int
    advice: list[str]  # on memory; empty if it fits

    @property
    def run_hours(self) -> float:
        return self.num_iterations * (self.selfplay_seconds + self.training_seconds) / 3600


def tree_bytes(tree: Any) -> int:
    """Bytes of a tree of arrays or shapes."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def search_bytes(game: Game, search: SearchConfig) -> int:
    """Bytes of one game's search: each node holds a State, [S] rows of 4 bytes and numbers."""
    state, row = tree_bytes(game.init()), 4 * game.max_legal_moves
    if isinstance(search, ProbabilityConfig | DepthConfig):
        return max(search.num_nodes, game.max_legal_moves + 1) * (state + row + 12 * 4)
    return (search.num_simulations + 1) * (state + 6 * row + 5 * 4)


def selfplay_bytes(state: Any) -> dict[str, int]:
    """Bytes of a SelfPlayState (arrays or shapes), and of the copy of frames that enters the window."""
    played, waiting = tree_bytes(state.trajectory), tree_bytes(state.waiting)
    found = {"frame window": tree_bytes(state.window), "games of an iteration": played + tree_bytes(state.games)}
    return found | ({"frames that wait": waiting} if waiting else {}) | {"frames entering the window": played + waiting}


def diagnose(experiment: Experiment) -> Diagnosis:
    """Compiles and runs the trials: seconds to minutes, by the size of the network."""
    trials = [try_board(board.experiment) for board in make_plan(experiment).boards]
    memories, bytes_per_frame, selfplay_seconds, training_seconds = zip(*trials, strict=True)
    memory = {name: (max if name in ONE_AT_A_TIME else sum)(m[name] for m in memories) for name in memories[0]}
    available = _available_bytes()
    room = available - sum(memory.values()) + memory["training step"]
    largest = max(int(room / max(bytes_per_frame)) // experiment.num_shares, 0) * experiment.num_shares
    advice = []
    if sum(memory.values()) > available:
        name = max(memory, key=lambda k: memory[k])
        advice.append(f"memory does not fit: most of it is {name}; lower {LOWERED_BY[name]}")
    if largest < experiment.training.batch_size:
        advice.append(f"training.batch_size {experiment.training.batch_size} does not fit: at most {largest}")
    seconds = sum(selfplay_seconds), sum(training_seconds)
    return Diagnosis(memory, available, largest, *seconds, experiment.num_iterations, advice)


def try_board(experiment: Experiment) -> tuple[dict[str, int], float, float, float]:
    """One board's memory, bytes a frame of the batch, and seconds of self-play and of training."""
    mesh = make_mesh(experiment.num_shares)
    trainer = make_trainer(experiment, mesh)
    state, selfplay, training = trainer.abstract_state, experiment.selfplay, experiment.training
    num_games, num_plies = (selfplay.num_games, selfplay.num_plies) if selfplay else (0, 0)
    per_frame, step_seconds = _try_training(experiment, trainer)
    memory = {
        **(selfplay_bytes(state.producer) if selfplay else {"boards of an iteration": tree_bytes(state.producer)}),
        "search trees": num_games * search_bytes(trainer.plan.game, experiment.search),
        "weights and optimizer": tree_bytes(state.train) * mesh.size,
        "training step": int(per_frame * training.batch_size),
    }
    if selfplay and experiment.window.keep == "newest":
        memory["frame window"] *= 2  # a copy, while frames enter
    new = num_made_frames(experiment)
    held = new if experiment.data else experiment.window.size
    steps = num_steps(experiment, held // training.batch_size, new)
    evaluations = num_games * num_plies * (simulations_per_ply(experiment) + 1)
    selfplay_seconds = evaluations * _try_selfplay(experiment, selfplay) if selfplay else 0.0
    return memory, per_frame, selfplay_seconds, steps * step_seconds


def _try_selfplay(experiment: Experiment, selfplay: SelfPlayConfig) -> float:
    """Seconds for one position's evaluation in self-play."""
    search, shares = experiment.search, experiment.num_shares
    games, plies = min(selfplay.num_games, max(TRIAL_GAMES // shares, 1) * shares), min(selfplay.num_plies, TRIAL_PLIES)
    changes = {"selfplay.num_games": games, "selfplay.num_plies": plies, "selfplay.full_search_share": 1.0}
    changes |= {"window.size": experiment.training.batch_size, "training.material_positions": 0}
    if search.num_simulations > TRIAL_SIMULATIONS:
        changes["search.num_simulations"] = TRIAL_SIMULATIONS
    small = config.change(experiment, changes)
    trainer = make_trainer(small, make_mesh(shares))
    play = trainer.phases[0]
    state = play.run_segment(trainer.init(trainer.init_variables()), 0, 0)
    num_evaluations = games * play.segment_size * (small.search.num_evaluations + 1)
    return _timed(lambda: play.run_segment(state, 1, 0)) / num_evaluations


def _try_training(experiment: Experiment, trainer: Trainer) -> tuple[float, float]:
    """(bytes a frame of the batch, seconds) of one compiled optimizer step on empty frames."""
    batch_size, state = experiment.training.batch_size, trainer.abstract_state
    step = jax.jit(make_run_learner(trainer.plan).step)
    share_ids = jnp.arange(experiment.num_shares)
    shapes = jax.eval_shape(
        lambda frames_of: trainer.producer.batches(frames_of, jax.random.key(0), share_ids)(jnp.int32(0)),
        state.producer,
    )
    frames, train = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (shapes, state.train))
    compiled = step.lower(train, frames).compile()
    temporary = getattr(compiled.memory_analysis(), "temp_size_in_bytes", 0)  # not of every backend
    jax.block_until_ready(compiled(train, frames))
    return max(temporary, 1) / batch_size, _timed(lambda: compiled(train, frames))


def _timed(call) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def _available_bytes() -> int:
    """Bytes free for arrays: of all accelerators together, or of the host."""
    stats = [device.memory_stats() for device in jax.local_devices()]
    if all(s and "bytes_limit" in s for s in stats):
        return sum(s["bytes_limit"] - s["bytes_in_use"] for s in stats if s)
    return psutil.virtual_memory().available


def print_diagnosis(diagnosis: Diagnosis, title: str) -> None:
    """Prints the diagnosis as a table, with its advice."""
    rows = [(f"memory: {name}", f"{size / 2**20:,.0f} MiB") for name, size in diagnosis.memory.items()]
    rows += [
        ("memory: in all", f"{sum(diagnosis.memory.values()) / 2**20:,.0f} MiB"),
        ("memory available", f"{diagnosis.memory_available / 2**20:,.0f} MiB"),
        ("largest batch that fits", f"{diagnosis.largest_batch:,} frames"),
        ("self-play, an iteration", f"{diagnosis.selfplay_seconds:,.0f} s"),
        ("training, an iteration with a full window", f"{diagnosis.training_seconds:,.0f} s"),
        (f"the run, {diagnosis.num_iterations} iterations, at most", f"{diagnosis.run_hours:,.1f} h"),
    ]
    print_results(title, ("", ""), rows, 100)
    for line in advice_lines(diagnosis):
        print(line)


def advice_lines(diagnosis: Diagnosis) -> list[str]:
    """Sentences on whether memory fits, how long the run takes, and what would shorten it."""
    used, free = sum(diagnosis.memory.values()), diagnosis.memory_available
    duration = f"the run takes {format_hours(diagnosis.run_hours)} here, compilation and the match at the end aside"
    lines = [*(diagnosis.advice or [f"memory fits: {used / max(free, 1):.0%} of what is free"]), duration]
    if diagnosis.run_hours < LONG_RUN_HOURS:
        return lines
    if diagnosis.selfplay_seconds > diagnosis.training_seconds:
        most, keys = "self-play", "search.num_simulations (num_nodes of a minimax), selfplay.num_games or num_plies"
    else:
        held = "window.size" if diagnosis.selfplay_seconds else "data.frames_per_iteration"
        most, keys = "training", f"training.num_epochs, training.samples_per_frame or {held}"
    advice = f"most of it is {most}: lower {keys}, network.hidden_size or num_iterations"
    return [*lines, advice if jax.default_backend() != "cpu" else f"{advice}, or use a GPU"]


def format_hours(hours: float) -> str:
    """A duration in the largest unit of which it has two, as in "about 8 years"."""
    for unit, length in (("years", 24 * 365.25), ("weeks", 24 * 7), ("days", 24), ("hours", 1)):
        if hours >= 2 * length:
            return f"about {hours / length:,.0f} {unit}"
    return f"about {hours * 60:.0f} minutes" if hours >= 1 / 30 else "less than two minutes"
