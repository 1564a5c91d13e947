"""Weak scaling on one CPU: python benchmarks/weak_scaling.py [--json FILE] [--rounds 5] [EXPERIMENT OPTIONS]

Each device is one core. One device on one core does a share of the work, two devices on two cores do two shares, and so
on up to the cores there are, in processes that take turns. Efficiency is the time of one device over the time of n: 1
if devices did not disturb one another. It holds what devices share on one CPU (memory bandwidth, clock) and the
reductions within a process; it says nothing of a network between hosts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from alphagateau.cli.experiments import ExperimentArguments, parse_experiment

OPTIONS = {  # of each device
    "--selfplay.num-games": 32,
    "--training.batch-size": 128,
    "--window.size": 1024,
}
FIXED = ["--selfplay.num-plies", "32", "--selfplay.segment-plies", "32", "--training.segment-steps", "8", "--no-aim"]
FIXED += ["--targets.no-wait-for-result"]  # so that the first iteration fills the window


def measure(path: str, options: list[str], num_devices: int) -> None:
    """Prints a JSON list of the seconds of each round, as a child whose input is one line a round."""
    import jax

    from alphagateau.cli.compilation import use_compilation_cache
    from alphagateau.distributed.mesh import make_mesh
    from alphagateau.training.trainer import make_trainer

    use_compilation_cache()
    sizes = [word for name, value in OPTIONS.items() for word in (name, str(value * num_devices))]
    words = [path, *sizes, *FIXED, *options]
    _, _, experiment = parse_experiment(ExperimentArguments, words, "train")
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    state, iteration = trainer.init(trainer.init_variables()), 0
    play, fill_window, learn = trainer.phases

    def one_round(state):
        begun = time.perf_counter()
        state = jax.block_until_ready(play.run_segment(state, iteration, 0))
        played = time.perf_counter()
        state = jax.block_until_ready(fill_window.run_segment(state, iteration, 0))
        filled = time.perf_counter()
        state = jax.block_until_ready(learn.run_segment(state, iteration, 0))  # eight steps, an epoch of the window
        return state, {"self-play": played - begun, "training": time.perf_counter() - filled}

    state, _ = one_round(state)
    print("ready", flush=True)
    for _ in sys.stdin:
        state, seconds = one_round(state)
        print(json.dumps(seconds), flush=True)


def start(argv: list[str], num_devices: int, cores: list[int]) -> subprocess.Popen:
    """A child with `num_devices` devices on as many cores, ready to measure."""
    flags = f"--xla_force_host_platform_device_count={num_devices} --xla_cpu_multi_thread_eigen=false"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    child = subprocess.Popen(
        [sys.executable, __file__, "--child", str(num_devices), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, cores[:num_devices]),
    )
    assert child.stdout and child.stdout.readline() == "ready\n"
    return child


def ask(child: subprocess.Popen) -> dict[str, float]:
    """The seconds of one round."""
    assert child.stdin and child.stdout
    child.stdin.write("\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    options, argv = parser.parse_known_args(argv)
    out, rounds = options.json, options.rounds
    argv = argv if argv and not argv[0].startswith("-") else ["experiments/quickstart.toml", *argv]
    cores = sorted(os.sched_getaffinity(0))
    sizes = [n for n in (1, 2, 4, 8) if n <= len(cores)]
    children = {n: start(argv, n, cores) for n in sizes}
    seconds = {n: [] for n in sizes}
    for _ in range(rounds):
        for n, child in children.items():
            seconds[n].append(ask(child))
    for child in children.values():
        child.terminate()
    rows = []
    for n in sizes[1:]:
        for part in ("self-play", "training"):
            found = [one[part] / many[part] for one, many in zip(seconds[1], seconds[n], strict=True)]
            rows.append({"devices": n, "part": part, "efficiency": statistics.median(found)})
            rows[-1] |= {"least": min(found), "greatest": max(found)}
            print(f"{n} devices, {part}: {rows[-1]['efficiency']:.2f} ({min(found):.2f} - {max(found):.2f})")
    if out:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        measure(sys.argv[3], sys.argv[4:], int(sys.argv[2]))
    else:
        main(sys.argv[1:])
