"""How long before a run does something: its start with and without a compilation cache, and what a step compiles.

    python benchmarks/cold_start.py start     # seconds from the command to the first finished iteration, cold and warm
    python benchmarks/cold_start.py steps     # an optimizer step, ours against the plain reference: CPU time, size

`start` runs the quickstart in a folder of its own and stops it after one iteration; on a machine that others use, look
at the CPU seconds. `steps` measures each network in a process of its own.
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "quickstart.toml"
SIZES = {"gardner_chess": (32, 2), "chess": (128, 5)}  # features, blocks: the quickstart's, the paper's
BATCH = 64


def start(folder: Path) -> dict[str, float]:
    """Wall and CPU seconds of one start, up to the first line of metrics.jsonl; then it is killed."""
    words = ["train", str(EXPERIMENT), "--no-aim", "--runs", str(folder / "runs")]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
    begun, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "alphagateau.commands.main", *words]
    with open(folder / "log", "w") as log:
        child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        while not (found := list(folder.glob("runs/*/metrics.jsonl"))) or not found[0].stat().st_size:
            if child.poll() is not None:
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.05)
        wall = time.perf_counter() - begun
        child.send_signal(signal.SIGKILL)
        child.wait()
    after, phases = os.times(), json.loads(found[0].read_text().splitlines()[0])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    found[0].parent.rename(folder / f"run-{begun}")
    return {"wall": wall, "cpu": cpu} | {k: v for k, v in phases.items() if k.startswith("time/")}


def step(game_name: str, network_name: str) -> dict[str, float]:
    """CPU seconds to trace, lower and compile an optimizer step, and its operations as JAX hands them to XLA."""
    import jax
    import jax.numpy as jnp

    from alphagateau.games.variants import get_game
    from alphagateau.networks.gateau.config import GateauConfig
    from alphagateau.networks.gateau.network import make_gateau
    from alphagateau.networks.gateau.reference import make_reference
    from alphagateau.training.frames import Frame
    from alphagateau.training.learner import make_learner
    from alphagateau.training.losses.policy_value import policy_value_loss
    from alphagateau.training.optimizer import make_optimizer

    game, (hidden_size, num_blocks) = get_game(game_name), SIZES[game_name]
    make = {"ours": make_gateau, "plain": make_reference}[network_name]
    network = make(game, GateauConfig(hidden_size=hidden_size, num_blocks=num_blocks))
    learner = make_learner(game, network, policy_value_loss, make_optimizer(1e-3))

    def of_nothing(key):
        position, one = game.position(game.init()), jnp.float32(0)
        frame = Frame(position, jnp.zeros(game.max_legal_moves, jnp.float16), one, jnp.bool_(True))
        batch = jax.tree.map(lambda x: jnp.broadcast_to(x, (BATCH, *x.shape)), frame)
        return learner.init(network.init(key)), batch

    state, frames = jax.eval_shape(of_nothing, jax.random.key(0))
    times = [time.process_time()]
    traced = jax.jit(learner.step).trace(state, frames)
    times.append(time.process_time())
    lowered = traced.lower()
    times.append(time.process_time())
    lowered.compile()
    times.append(time.process_time())
    trace, lower, compile = (after - before for before, after in itertools.pairwise(times))
    operations = lowered.as_text().count(" = ")
    return {"total": trace + lower + compile, "trace": trace, "lower": lower, "compile": compile, "ops": operations}


def in_process(*words: str) -> dict[str, float]:
    """What this file says of `words`, from a process of its own."""
    done = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def show(name: str, values: dict[str, float]) -> None:
    print(f"{name}: " + ", ".join(f"{k} {v:.2f}" for k, v in values.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("start", "steps", "step"))
    parser.add_argument("of", nargs="*", help="`steps`: the games, all of them if none is named")
    args = parser.parse_args()
    if args.what == "step":
        print(json.dumps(step(*args.of)))
    elif args.what == "steps":
        for game in args.of or SIZES:
            plain, ours = (in_process("step", game, name) for name in ("plain", "ours"))
            show(f"{game}, ours", ours)
            show(f"{game}, plain", plain)
            show(f"{game}, ours / plain", {k: ours[k] / plain[k] for k in ours})
    else:
        with tempfile.TemporaryDirectory() as folder:
            show("cold", start(Path(folder)))
            show("warm", start(Path(folder)))


if __name__ == "__main__":
    main()
