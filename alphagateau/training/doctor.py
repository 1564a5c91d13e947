"""What an experiment will need here: an Experiment in, memory and time out, from shapes and a few short trials."""

import dataclasses
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import psutil
from rich.console import Console
from rich.table import Table

from alphagateau.config import Experiment
from alphagateau.distributed.mesh import make_mesh
from alphagateau.training.learner import make_optimizer, make_train_step
from alphagateau.training.phases import Engine, make_engine
from alphagateau.training.replay import take_batch

TRIAL_GAMES, TRIAL_PLIES, TRIAL_SIMULATIONS = 16, 2, 4  # of a self-play trial, at most


class Diagnosis(NamedTuple):
    """Bytes are of all devices together; seconds are those of one iteration once the window is full."""

    memory: dict[str, int]
    memory_available: int
    largest_batch: int  # frames, a multiple of num_shares; 0: not even the rest fits
    selfplay_seconds: float
    training_seconds: float
    num_iterations: int
    advice: list[str]

    @property
    def run_hours(self) -> float:
        return self.num_iterations * (self.selfplay_seconds + self.training_seconds) / 3600


def tree_bytes(tree: Any) -> int:
    """Bytes of a tree of arrays or shapes."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def search_tree_bytes(engine: Engine, num_simulations: int) -> int:
    """Bytes of the search tree of one game: a State and six [S] rows of 4 bytes a node, and its counters."""
    state = tree_bytes(engine.game.init())
    return (num_simulations + 1) * (state + 6 * 4 * engine.game.max_legal_moves + 5 * 4)


def diagnose(experiment: Experiment) -> Diagnosis:
    """Compiles and runs the trials; seconds to minutes, by the size of the network."""
    mesh = make_mesh(experiment.num_shares)
    engine = make_engine(experiment, mesh)
    state, selfplay, training = engine.abstract_state, experiment.selfplay, experiment.training
    per_frame, step_seconds = _try_training(experiment, engine)
    memory = {
        "frame window": tree_bytes(state.window),
        "games of an iteration": tree_bytes(state.trajectory) + tree_bytes(state.games),
        "search trees": selfplay.num_games * search_tree_bytes(engine, selfplay.num_simulations),
        "weights and optimizer": tree_bytes(state.train),
        "training step": int(per_frame * training.batch_size),
    }
    available = _available_bytes()
    room = available - sum(memory.values()) + memory["training step"]
    largest = max(int(room / per_frame) // experiment.num_shares, 0) * experiment.num_shares
    steps = training.num_epochs * (experiment.window.size // training.batch_size)
    evaluations = selfplay.num_games * selfplay.num_plies * (selfplay.num_simulations + 1)
    return Diagnosis(
        memory=memory,
        memory_available=available,
        largest_batch=largest,
        selfplay_seconds=evaluations * _try_selfplay(experiment),
        training_seconds=steps * step_seconds,
        num_iterations=experiment.num_iterations,
        advice=_advise(experiment, memory, available, largest),
    )


def _try_selfplay(experiment: Experiment) -> float:
    """Seconds of one evaluation of a position within self-play."""
    selfplay = experiment.selfplay
    shares = experiment.num_shares
    games = min(selfplay.num_games, max(TRIAL_GAMES // shares, 1) * shares)
    trial = dataclasses.replace(
        selfplay,
        num_games=games,
        num_plies=min(selfplay.num_plies, TRIAL_PLIES),
        num_simulations=min(selfplay.num_simulations, TRIAL_SIMULATIONS),
    )
    small = dataclasses.replace(
        experiment,
        selfplay=trial,
        window=dataclasses.replace(experiment.window, size=experiment.training.batch_size),
    )
    engine = make_engine(small, make_mesh(shares))
    state = engine.play(engine.init(engine.init_variables()), 0, 0)
    seconds, _ = _timed(lambda: engine.play(state, 1, 0))
    return seconds / (games * engine.segment_plies * (trial.num_simulations + 1))


def _try_training(experiment: Experiment, engine: Engine) -> tuple[float, float]:
    """(bytes a frame of the batch, seconds a step) of one compiled optimizer step on empty frames."""
    batch_size, state = experiment.training.batch_size, engine.abstract_state
    optimizer = make_optimizer(experiment.training.learning_rate)
    step = jax.jit(make_train_step(engine.game, engine.network, optimizer))
    share_batch = batch_size // experiment.num_shares
    order = jax.ShapeDtypeStruct((experiment.num_shares, experiment.window.size // experiment.num_shares), jnp.int32)
    shapes = jax.eval_shape(lambda w, o: take_batch(w, o, jnp.int32(0), share_batch), state.window, order)
    frames = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    train = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), state.train)
    compiled = step.lower(train, frames).compile()
    temporary = getattr(compiled.memory_analysis(), "temp_size_in_bytes", 0)
    jax.block_until_ready(compiled(train, frames))
    seconds, _ = _timed(lambda: compiled(train, frames))
    return max(temporary, 1) / batch_size, seconds


def _timed(call) -> tuple[float, Any]:
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    return time.perf_counter() - start, result


def _available_bytes() -> int:
    """Memory that is free for arrays: of the accelerators together, or of the host."""
    stats = [device.memory_stats() for device in jax.local_devices()]
    if all(s and "bytes_limit" in s for s in stats):
        return sum(s["bytes_limit"] - s["bytes_in_use"] for s in stats if s)
    return psutil.virtual_memory().available


def _advise(experiment: Experiment, memory: dict[str, int], available: int, largest: int) -> list[str]:
    advice = []
    if sum(memory.values()) > available:
        name = max(memory, key=lambda k: memory[k])
        key = {
            "frame window": "window.size",
            "games of an iteration": "selfplay.num_games or selfplay.num_plies",
            "search trees": "selfplay.num_games or selfplay.num_simulations",
            "training step": "training.batch_size",
        }.get(name, "network.hidden_size")
        advice.append(f"it does not fit: most of it is {name}; lower {key}")
    if largest < experiment.training.batch_size:
        advice.append(f"training.batch_size {experiment.training.batch_size} does not fit: at most {largest}")
    return advice


def print_diagnosis(diagnosis: Diagnosis, title: str) -> None:
    """A table on standard output."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, size in diagnosis.memory.items():
        table.add_row(f"memory: {name}", f"{size / 2**20:,.0f} MiB")
    table.add_row("memory: in all", f"{sum(diagnosis.memory.values()) / 2**20:,.0f} MiB")
    table.add_row("memory available", f"{diagnosis.memory_available / 2**20:,.0f} MiB")
    table.add_row("largest batch that fits", f"{diagnosis.largest_batch:,} frames")
    table.add_row("self-play, an iteration", f"{diagnosis.selfplay_seconds:,.0f} s")
    table.add_row("training, an iteration with a full window", f"{diagnosis.training_seconds:,.0f} s")
    table.add_row(f"the run, {diagnosis.num_iterations} iterations, at most", f"{diagnosis.run_hours:,.1f} h")
    console = Console()
    (console if console.is_terminal else Console(width=100)).print(table)
    for line in diagnosis.advice or ["it fits"]:
        print(line)
