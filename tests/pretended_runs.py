"""A process of `alphagateau train` that only pretends: metrics and manifests on disk, no network, no games."""

import json
from collections.abc import Callable
from pathlib import Path

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.runs import checkpoint, run_folder, run_record
from alphagateau.studies.budget import make_budget_check

STEPS = 3  # of each iteration


def write_checkpoint(run: Path, experiment: Experiment, iteration: int, weights: str = "") -> None:
    """The folder of a checkpoint, its manifest alone; `weights`: their hash, if it is to be that of others."""
    path = run / "checkpoints" / str(iteration)
    path.mkdir(parents=True)
    manifest = {
        "schema": checkpoint.SCHEMA,
        "iteration": iteration,
        "parameters": 7,
        "optimizer_steps": STEPS * iteration,
        "game": experiment.game,
        "weights_hash": weights or (f"{run.name}/{iteration}" if iteration else f"seed {experiment.seed}"),
        "progress": {},
        "network": {},
        "search": {"num_simulations": 4},
        "files": {},
        "order": [iteration, 0, 0],
        "symptoms": [],
        "parts": ["weights"],
    }
    checkpoint._write_manifest(path, manifest)


def write_iteration(run: Path, experiment: Experiment, iteration: int) -> None:
    """A line of metrics.jsonl, then a checkpoint."""
    row = {"iteration": iteration, "train/steps": STEPS * iteration, "train/loss": 1 / iteration}
    row |= {"time/selfplay": 1.5, "time/train": 0.5, "selfplay/games": 4}
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    write_checkpoint(run, experiment, iteration)


class PretendedProcess:
    """Takes the place of subprocess.Popen; what it was told is in `told`, `fail` says which runs exit with 1."""

    told: list[list[str]] = []  # noqa: RUF012  of all processes
    fail: Callable[[str], bool] = staticmethod(lambda name: False)

    def __init__(self, command: list[str], **options: object) -> None:
        words = command[command.index("train") + 1 :]
        self.told.append(words)
        given = dict(zip(words[1::2], words[2::2], strict=True))
        self.code = 1 if self.fail(Path(words[0]).stem) else 0
        if not self.code:
            self.train(config.load(words[0]), Path(given["--runs"]) / Path(words[0]).stem, given)

    def train(self, experiment: Experiment, run: Path, given: dict[str, str]) -> None:
        run.mkdir(exist_ok=True)
        run_folder.check_folder(run, experiment)
        if not (run / "config.toml").exists():
            (run / "config.toml").write_text(config.dumps(experiment))
            start = {"command": "", "python": "", "versions": {}, "devices": ["cpu cpu"], "iteration": 0}
            run_record.write_record(run, {"starts": [start], "init_from": given.get("--init-from")})
            write_checkpoint(run, experiment, 0)
        ask = make_budget_check(run, config.parse_budget(given["--until"]), experiment)
        done = max(c.order[0] for c in checkpoint.find(run / "checkpoints")[0])
        while done < experiment.num_iterations and ask() is None:
            done += 1
            write_iteration(run, experiment, done)

    def wait(self, timeout: float) -> int:
        return self.code
