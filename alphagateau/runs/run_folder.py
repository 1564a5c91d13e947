"""The folder of a run, and the experiment that it belongs to.

checkpoints/<run>/   config.toml      the experiment as resolved
                     run.json         starts: command, versions, commit, devices; the Aim run; the weights begun from;
                                      why health stopped the run, and its last healthy checkpoint
                     metrics.jsonl    one line an iteration
                     checkpoints/     one folder an iteration
                     games/           sample games, one PGN an iteration
                     results.json     the match at the end; results.pgn its games
"""

from pathlib import Path

from alphagateau import config
from alphagateau.config import ConfigError, Experiment
from alphagateau.runs.files import reason, write_text

# Keys, and sections of keys, that may change from one start of a run to the next: no checkpoint depends on them.
CHANGEABLE = {
    "num_iterations",
    "checkpoint_every",
    "sample_games",
    "aim",
    "platform",
    "cpu_devices",
    "selfplay.segment_plies",
    "training.segment_steps",
}
CHANGEABLE_SECTIONS = ("evaluation.", "retention.", "health.")


class RunError(RuntimeError):
    """A run that cannot start or go on; one sentence for the user."""


class Unhealthy(RunError):
    """A run that its health stops; one sentence."""


def check_folder(run: Path, experiment: Experiment) -> None:
    """Raises ConfigError or RunError if the folder holds a run of another experiment, or files that are no run."""
    path = run / "config.toml"
    if (run / "manifest.json").exists():
        raise RunError(f"{run} is a checkpoint, in which no run can be: use another --run name")
    if path.exists():
        differences = [
            line
            for line in config.describe_difference(config.load(path), experiment)
            if (key := line.split(":")[0]) not in CHANGEABLE and not key.startswith(CHANGEABLE_SECTIONS)
        ]
        if differences:
            raise ConfigError(
                f"{run} holds a run of another experiment ({'; '.join(differences)}): "
                "use another --run name, or the experiment it was started with"
            )
    elif (run / "checkpoints").exists() or (run / "metrics.jsonl").exists():
        raise RunError(f"{run} holds files of a run but no config.toml: move it away or restore the file")


def write_config(run: Path, experiment: Experiment) -> None:
    """Writes config.toml, which makes the folder the experiment's. Raises RunError."""
    path = run / "config.toml"
    try:
        write_text(path, config.dumps(experiment))
    except OSError as error:
        raise RunError(f"cannot write {path}: {reason(error)}") from None
