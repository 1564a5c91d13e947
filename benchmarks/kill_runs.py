"""Kills runs and continues them, and says how many survived: the counts of docs/reliability.md.

    python benchmarks/kill_runs.py [--toy-every 1] [--toy-random 100] [--real 60] [--json FILE]

toy: a run on arrays of numpy, killed before every change of its folder that a scenario makes (`--toy-every 5`: every
fifth), and at random times. real: `alphagateau train` on a tiny experiment, whose processes are killed one after the
other, at random times and before random changes, until it is done. After each kill the newest whole checkpoint must
be no older than before, the same start must go on from it, and the end must equal that of a run never killed.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orbax.checkpoint  # noqa: F401  imported once, before the forks
from kills import copy_of, die_at, forked, newest_order, outcome
from toy_trainer import toy_experiment, toy_trainer

from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop

SMOKE = Path(__file__).parents[1] / "experiments" / "smoke.toml"
TINY = "--no-aim --evaluation.num-games 0 --num-iterations 10 --search.num-simulations 2 --selfplay.num-plies 4"
TINY += " --selfplay.segment-plies 2 --training.segment-steps 1 --sample-games 1 --retention.keep-newest 1"
MOST_CHANGES = 2000  # of one start, far more than there are


class StopAfter(StopRequest):
    """Asks to stop after the run has looked `looks` times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def reason(self) -> str | None:
        self.looks -= 1
        return "the harness" if self.looks < 0 else None


class Scenario(NamedTuple):
    """A start of a toy run that is killed, and what had been done before it."""

    name: str
    before: tuple[int, int] | None  # (iterations, looks until the stop) of the start before; None: a new run
    looks: int  # until this start is asked to stop


SCENARIOS = (
    Scenario("new run, two checkpoints", None, 6),
    Scenario("next checkpoint, the one before retired", (2, 99), 99),
    Scenario("stopped again in the same iteration", (3, 12), 1),
    Scenario("stopped where it began", (2, 99), 0),
)


def toy_train(folder: Path, iterations: int, looks: int = 10**6) -> None:
    loop.make_trainer = lambda experiment, mesh: toy_trainer(experiment)
    loop.train(toy_experiment(iterations), folder, StopAfter(looks))


def toy_kills(work: Path, every: int, count: int, tally: dict[str, Any]) -> None:
    """All scenarios, killed before every `every`-th change, then `count` times at random moments."""
    forked(lambda: toy_train(work / "whole", 3))
    expected, rng = outcome(work / "whole"), random.Random(0)
    for scenario in SCENARIOS:
        template = None
        if scenario.before:
            template = copy_of(None, work / "template")
            forked(partial(toy_train, template, *scenario.before))
        began = time.perf_counter()
        one_kill(work, scenario, template, expected, tally, 0)
        seconds = time.perf_counter() - began
        for change in range(1, MOST_CHANGES, every):
            if not one_kill(work, scenario, template, expected, tally, change):
                break
        for _ in range(count // len(SCENARIOS)):
            one_kill(work, scenario, template, expected, tally, 0, rng.uniform(0, seconds / 2))


def one_kill(work, scenario, template, expected, tally, change: int, seconds: float | None = None) -> bool:
    """Kills one start of a scenario before its `change`-th change or after `seconds`; False if it outlived that."""
    folder = copy_of(template, work / "toy")
    before = newest_order(folder)

    def start() -> None:
        die_at(change, folder)
        toy_train(folder, 3, scenario.looks)

    code = forked(start, seconds)
    where = f"{scenario.name}, " + (f"change {change}" if seconds is None else f"{seconds:.3f} s")
    check(tally, code in (0, -signal.SIGKILL), f"{where}: exit code {code}")
    check(tally, newest_order(folder) >= before, f"{where}: {newest_order(folder)} is left, {before} was there")
    code_after = forked(lambda: toy_train(folder, 3))
    check(tally, code_after == 0 and outcome(folder) == expected, f"{where}: the end differs (exit code {code_after})")
    if code == -signal.SIGKILL:
        count_kill(tally, "toy, before a change" if seconds is None else "toy, at a random time")
    return code == -signal.SIGKILL


def count_kill(tally: dict[str, Any], kind: str) -> None:
    tally["kills"][kind] = tally["kills"].get(kind, 0) + 1


def check(tally: dict[str, Any], is_right: bool, sentence: str) -> None:
    if not is_right:
        tally["failures"].append(sentence)
        print(f"FAILED: {sentence}", file=sys.stderr, flush=True)


def real_command(folder: Path, change: int = 0) -> list[str]:
    """`alphagateau train` in `folder`, in a process that dies before its `change`-th change of it."""
    words = ["train", str(SMOKE), "--runs", str(folder.parent), "--run", folder.name, *TINY.split()]
    code = (
        "import sys, pathlib, kills; kills.die_at({}, pathlib.Path({!r})); from alphagateau.commands.main import main; "
    )
    return [sys.executable, "-c", (code + "sys.exit(main({!r}))").format(change, str(folder), words)]


def real_kills(work: Path, count: int, tally: dict[str, Any]) -> None:
    """`count` kills over as many tiny runs as it takes, and one run more that nothing interrupts."""
    start, rng, number = time.perf_counter(), random.Random(1), 0
    subprocess.run(real_command(work / "real-whole"), env=environment(), stderr=subprocess.DEVNULL, check=True)
    expected = outcome(work / "real-whole")
    tally["seconds of a real run"] = round(time.perf_counter() - start, 1)
    while real_count(tally) < count:
        folder, number = work / f"real-{number}", number + 1
        while real_start(folder, rng, tally, real_count(tally) < count):
            pass
        check(tally, outcome(folder) == expected, f"{folder.name}: the end differs")
        copy_of(None, folder)
        print(json.dumps(tally), flush=True)


def real_count(tally: dict[str, Any]) -> int:
    return sum(count for kind, count in tally["kills"].items() if kind.startswith("real"))


def environment() -> dict[str, str]:
    """This process's, with the harness's own modules to import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}


def real_start(folder: Path, rng: random.Random, tally: dict[str, Any], may_kill: bool) -> bool:
    """One start of a real run, killed in one of the two ways if it `may_kill`; False if it came to its end."""
    is_by_change = may_kill and rng.random() < 0.5
    before, change = newest_order(folder), rng.randint(1, 200) if is_by_change else 0
    command, pipe = real_command(folder, change), subprocess.PIPE
    with subprocess.Popen(command, env=environment(), stderr=pipe, text=True) as process:
        if may_kill and not is_by_change:
            die_in_the_loop(process, rng)
        process.communicate()
    was_killed, where = process.returncode == -signal.SIGKILL, f"{folder.name}, kill {real_count(tally) + 1}"
    check(tally, was_killed or process.returncode == 0, f"{where}: exit code {process.returncode}")
    check(tally, newest_order(folder) >= before, f"{where}: {newest_order(folder)} is left, {before} was there")
    if was_killed:
        count_kill(tally, "real, before a change" if is_by_change else "real, at a random time")
    return was_killed


def die_in_the_loop(process: subprocess.Popen, rng: random.Random) -> None:
    """Kills the process some time after it says that it starts or goes on; one time in ten, before that."""
    assert process.stderr is not None
    if rng.random() < 0.1:
        time.sleep(rng.uniform(0, 5))
    else:
        for line in process.stderr:
            if line.startswith(("iteration", "continuing")):
                break
        time.sleep(rng.uniform(0, 4))
    process.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--toy-every", type=int, default=1, metavar="N", help="0: no toy runs")
    parser.add_argument("--toy-random", type=int, default=100, metavar="KILLS")
    parser.add_argument("--real", type=int, default=60, metavar="KILLS")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    tally: dict[str, Any] = {"kills": {}, "failures": []}
    with tempfile.TemporaryDirectory() as work:
        if options.toy_every:
            toy_kills(Path(work), options.toy_every, options.toy_random, tally)
        print(json.dumps(tally), flush=True)
        if options.real:
            real_kills(Path(work), options.real, tally)
    tally["survived"] = sum(tally["kills"].values()) - len(tally["failures"])
    print(json.dumps(tally, indent=1))
    if options.json:
        options.json.write_text(json.dumps(tally, indent=1), encoding="utf-8")
    return 1 if tally["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
