"""What an experiment will cost on the accelerator at hand, in ten minutes: python benchmarks/gpu.py --json gpu.json

Times a forward pass, a ply of self-play and an optimizer step of the paper's learning-speed experiment, in float32 and
bfloat16, with XLA's kernels and on a GPU, but for the step, with the fused ones too, each at several batches; prints a
row for each as it comes, and an iteration in seconds for each pair. A row has the compiled program's kernels, the bytes
that they move, the least time that these take and its memory (`hlo.py`), and the FLOP/s of the matrix products, also as
a share of the published peak. `--tiny` runs it all in a minute on a CPU.
"""

import argparse
import dataclasses
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hlo
import jax
import jax.numpy as jnp
from throughput.ratios import frames_of

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.games.actions import random_positions
from alphagateau.search.make_search import make_search
from alphagateau.training.flops import experiment_flops
from alphagateau.training.plan import make_plan
from alphagateau.training.selfplay.selfplay import Games, make_selfplay, start_games
from alphagateau.training.trainer import make_run_learner

ROOT = Path(__file__).parents[1]
DTYPES = ("float32", "bfloat16")
KERNELS = ("xla", "fused")
BACKWARD = 3  # products of a training step for each of the forward pass


class Device(NamedTuple):
    """Published peaks without sparsity: NVIDIA's data sheets, of the first three with SXM."""

    bfloat16: float  # FLOP/s
    float32: float  # FLOP/s in TF32, which XLA may use for products of float32
    bandwidth: float  # bytes/s


DEVICES = {
    "H100": Device(989.4e12, 494.7e12, 3.35e12),
    "H200": Device(989.4e12, 494.7e12, 4.8e12),
    "A100": Device(312e12, 156e12, 2.039e12),
    "RTX 4090": Device(165.2e12, 82.6e12, 1.008e12),
}


class Program(NamedTuple):
    """A jitted function with what it takes, and what it is called in the table."""

    name: str
    dtype: str
    kernel: str  # `network.kernel`
    size: int  # positions, games or frames at a time
    run: Any
    inputs: tuple
    flops: float  # of its matrix products


class Measured(NamedTuple):
    """A row of the table and of the JSON."""

    program: str
    dtype: str
    kernel: str
    size: int
    seconds: float
    seconds_for_bytes: float | None  # the bytes that it moves at the published bandwidth
    flops: float  # FLOP/s of the matrix products
    share_of_peak: float | None
    kernels: int  # an inner loop of unknown length counted once
    moved_bytes: int
    memory_bytes: int


def with_network(experiment: Experiment, **keys: Any) -> Experiment:
    """The experiment with other keys of its network."""
    return dataclasses.replace(experiment, network=dataclasses.replace(experiment.network, **keys))


def programs(experiment: Experiment, factors: list[float]) -> Iterator[Program]:
    """The three programs at multiples of the experiment's own sizes, in both dtypes; the own size comes first."""
    plan, config = make_plan(experiment), experiment.network
    named = config.dtype, config.kernel
    game, network = plan.game, plan.network
    variables = network.init(jax.random.key(0))
    learner = make_run_learner(plan)
    search = make_search(game, network, experiment.search)
    ply = jax.jit(make_selfplay(game, search, 1))
    forward = jax.jit(lambda v, p: network.apply(v, p, False)[0])
    flops = experiment_flops(experiment)[experiment.game]
    evaluations = experiment.search.num_simulations + 1
    for factor in factors:
        games = max(1, int(factor * experiment.selfplay.num_games))
        playing, key = Games(start_games(game, games)), jax.random.key(0)
        inputs = (variables, key, jnp.arange(games), jnp.int32(0), playing)
        yield Program("a ply of self-play", *named, games, ply, inputs, games * evaluations * flops)
        yield Program("forward", *named, games, forward, (variables, random_positions(game, games)), games * flops)
    for factor in factors if config.kernel != "fused" else ():  # training has XLA's kernels
        batch = max(1, int(factor * experiment.training.batch_size))
        frames = frames_of(game, random_positions(game, batch))
        step = jax.jit(learner.step)
        yield Program(
            "an optimizer step", *named, batch, step, (learner.init(variables), frames), BACKWARD * batch * flops
        )


def median_seconds(call: Callable[[], Any], rounds: int) -> float:
    """Median of the rounds, after one that is not counted."""
    seconds = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        jax.block_until_ready(call())
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def measure(program: Program, rounds: int) -> Measured:
    """Compiles and times one program."""
    compiled = program.run.lower(*program.inputs).compile()
    seconds = median_seconds(lambda: compiled(*program.inputs), rounds)
    peak = next((peaks for name, peaks in DEVICES.items() if name in jax.devices()[0].device_kind), None)
    loops = hlo.loops_of(compiled.as_text())
    memory = compiled.memory_analysis()
    rate = program.flops / seconds
    return Measured(
        program=program.name,
        dtype=program.dtype,
        kernel=program.kernel,
        size=program.size,
        seconds=seconds,
        seconds_for_bytes=hlo.total_bytes(loops) / peak.bandwidth if peak else None,
        flops=rate,
        share_of_peak=rate / getattr(peak, program.dtype) if peak else None,
        kernels=hlo.total_kernels(loops),
        moved_bytes=hlo.total_bytes(loops),
        memory_bytes=memory.temp_size_in_bytes + memory.argument_size_in_bytes,
    )


def iteration_seconds(experiment: Experiment, rows: list[Measured]) -> dict[str, float]:
    """Seconds of self-play and of training of one iteration with a full window, from the rows of its own sizes."""
    own = {row.program: row.seconds for row in reversed(rows)}  # the first row of a name is the experiment's size
    steps = experiment.training.num_epochs * (experiment.window.size // experiment.training.batch_size)
    selfplay = experiment.selfplay.num_plies * own["a ply of self-play"]
    training = steps * own["an optimizer step"]
    return {"self-play": selfplay, "training": training, "iteration": selfplay + training}


def tiny(experiment: Experiment) -> Experiment:
    """The same, small enough for a test."""
    return dataclasses.replace(
        experiment,
        game="gardner_chess",
        network=dataclasses.replace(experiment.network, hidden_size=16, num_blocks=1),
        search=dataclasses.replace(experiment.search, num_simulations=2),
        selfplay=dataclasses.replace(experiment.selfplay, num_games=8, num_plies=2),
        window=dataclasses.replace(experiment.window, size=64),
        training=dataclasses.replace(experiment.training, batch_size=8),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", default=str(ROOT / "experiments" / "learning_speed_alphagateau.toml"))
    parser.add_argument("--factors", default="1,0.25,4,8", help="multiples of the experiment's games and batch")
    parser.add_argument("--normalization", help="network.normalization, else the experiment's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="5x5, a network of one block")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    experiment = config.load(args.experiment)
    if args.normalization:
        experiment = with_network(experiment, normalization=args.normalization)
    factors, rounds = [float(x) for x in args.factors.split(",")], args.rounds
    if args.tiny:
        experiment, factors, rounds = tiny(experiment), [1.0], 1
    found: list[Measured] = []
    iterations = {}
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, {experiment.game}")
    kernels = KERNELS if jax.default_backend() == "gpu" else KERNELS[:1]
    for dtype, kernel in itertools.product(DTYPES, kernels):
        rows = []
        for program in programs(with_network(experiment, dtype=dtype, kernel=kernel), factors):
            try:
                rows.append(measure(program, rounds))
                print_row(rows[-1])
            except jax.errors.JaxRuntimeError as error:  # such as a kernel that wants more memory than there is
                print(f"{program.name}, {dtype}, {kernel}, {program.size}: {str(error).splitlines()[0]}", flush=True)
        found += rows
        steps = [row for row in found if (row.program, row.dtype) == ("an optimizer step", dtype)]
        if not steps or "a ply of self-play" not in {row.program for row in rows}:
            continue
        label = f"{dtype}, {kernel}"
        iterations[label] = iteration_seconds(experiment, [*rows, *steps])
        parts = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in iterations[label].items())
        print(f"an iteration of the experiment, {label}: {parts}", flush=True)
    if args.json:
        report = {
            "device": jax.devices()[0].device_kind,
            "jax": jax.__version__,
            "rows": [row._asdict() for row in found],
            "iterations": iterations,
        }
        args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def print_row(row: Measured) -> None:
    """One line; GB and TFLOP/s are decimal."""
    share = "" if row.share_of_peak is None else f", {row.share_of_peak:.1%} of the peak"
    bound = "" if row.seconds_for_bytes is None else f", in at least {row.seconds_for_bytes:.3g} s"
    print(
        f"{row.program}, {row.dtype}, {row.kernel}, {row.size}: {row.seconds:.4g} s, "
        f"{row.size / row.seconds:.4g} a second, {row.flops / 1e12:.3g} TFLOP/s{share}; "
        f"{row.kernels} kernels move {row.moved_bytes / 1e9:.3g} GB{bound}; memory {row.memory_bytes / 1e9:.3g} GB",
        flush=True,
    )


if __name__ == "__main__":
    main()
