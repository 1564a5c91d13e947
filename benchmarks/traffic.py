"""What moves between devices, counted in compiled programs: python benchmarks/traffic.py EXPERIMENT

Prints JSON: for each phase of an iteration and each kind of collective operation, how many the program holds and the
bytes that a device hands in. The program of training holds one optimizer step, in a loop. Compiles only, on virtual
CPU devices (--devices, 8); further options are those of the experiment, such as --window.size 4096.
"""

import argparse
import json
import os
import re
import sys
from collections import defaultdict

from alphagateau.cli.experiments import ExperimentArguments, parse_experiment

OPERATIONS = "all-reduce|all-gather|all-to-all|collective-permute|collective-broadcast|reduce-scatter|ragged-all-to-all"
LINE = re.compile(rf"^ *(?:ROOT )?%\S+ = (.*?) ({OPERATIONS})(?:-start)?\(", re.M)
SHAPE = re.compile(r"\b(pred|[subf]+\d+)\[([\d,]*)\]")


def collectives(program: str) -> dict[str, dict[str, int]]:
    """Of the text of a compiled program: kind of operation -> {"count", "bytes"}."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "bytes": 0})
    for shapes, kind in LINE.findall(program):
        found[kind]["count"] += 1
        found[kind]["bytes"] += sum(_bytes(*shape) for shape in SHAPE.findall(shapes))
    return dict(found)


def _bytes(dtype: str, shape: str) -> int:
    size = 1 if dtype == "pred" else int(re.sub(r"\D", "", dtype)) // 8
    for n in filter(None, shape.split(",")):
        size *= int(n)
    return size


def count(path: str, options: list[str], num_devices: int) -> dict:
    """The counts of an experiment, with what they are to be compared with."""
    import jax

    from alphagateau.distributed.mesh import make_mesh
    from alphagateau.training.doctor import tree_bytes
    from alphagateau.training.trainer import make_trainer

    _, _, experiment = parse_experiment(ExperimentArguments, [path, *options], "train")
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares, jax.devices()[:num_devices]))
    state = trainer.abstract_state
    play, fill_window, _ = (jax.jit(phase.run_segment, static_argnums=(1, 2)) for phase in trainer.phases)
    programs = {
        "play": play.lower(state, 0, 0).compile().as_text(),
        "fill_window": fill_window.lower(state, 0, 0).compile().as_text(),
        "train": trainer.phases[-1].compile(state).as_text(),
    }
    return {
        "devices": num_devices,
        "parameter_bytes": tree_bytes(state.train.variables["params"]),
        "batch_statistics_bytes": tree_bytes(state.train.variables.get("batch_stats", {})),
        "figures_bytes": tree_bytes(state.totals),
        "window_bytes": tree_bytes(state.producer.window),
        "collectives": {name: collectives(program) for name, program in programs.items()},
    }


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=8)
    options, argv = parser.parse_known_args(argv)
    num_devices = options.devices
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={num_devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    print(json.dumps(count(argv[0], argv[1:], num_devices), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
