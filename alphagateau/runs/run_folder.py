"""The folder of a run, the experiment that it belongs to, and its lock: one process at a time, until it ends.

docs/runs.md lists the files in it.
"""

import contextlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from alphagateau import config
from alphagateau.config import ConfigError, Experiment
from alphagateau.runs.files import reason, remove_half_written

# Keys, and sections of keys, that may change from one start of a run to the next: no checkpoint depends on them.
CHANGEABLE = {"num_iterations", "checkpoint_every", "sample_games", "aim", "platform", "cpu_devices"}
CHANGEABLE |= {"network.kernel", "selfplay.segment_plies", "training.segment_steps"}
CHANGEABLE_SECTIONS = ("evaluation.", "retention.", "health.")


class RunError(RuntimeError):
    """A run that cannot start or go on; one sentence for the user."""


class InUseError(RunError):
    """Another process has the run."""


class Unhealthy(RunError):
    """A run that its health stops; one sentence."""


def check_folder(run: Path, experiment: Experiment) -> None:
    """Raises ConfigError or RunError if the folder holds a run of another experiment, or files that are no run."""
    path = run / "config.toml"
    if (run / "manifest.json").exists():
        raise RunError(f"{run} is a checkpoint, in which no run can be: use another --run name")
    if path.exists():
        is_own_kernel = config.NETWORKS.is_of_plugin(experiment.network.architecture)  # its meaning is the plug-in's
        changeable = CHANGEABLE - {"network.kernel" if is_own_kernel else ""}
        differences = [
            line
            for line in config.describe_difference(config.load(path), experiment)
            if (key := line.split(":")[0]) not in changeable and not key.startswith(CHANGEABLE_SECTIONS)
        ]
        if differences:
            why = f"{run} holds a run of another experiment ({'; '.join(differences)})"
            raise ConfigError(f"{why}: use another --run name, or the experiment it was started with")
    elif any((run / "checkpoints").glob("*")) or (run / "metrics.jsonl").exists():
        raise RunError(f"{run} holds files of a run but no config.toml: move it away or restore the file")


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Locks the run until the block or the process ends. Raises RunError if another process has the lock.

    Removes half-written files of killed processes; `checkpoint.clean` does so for checkpoints.
    """
    path = run / ".lock"
    lock = FileLock(path, timeout=0, on_acquired=_write_holder)
    try:
        run.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        for folder in (run, run / "games"):
            remove_half_written(folder)
    except Timeout:
        holder = ""
        with contextlib.suppress(OSError):  # Windows lets nobody read the file of a lock
            holder = path.read_text(encoding="utf-8", errors="replace").strip()
        raise InUseError(f"{run} is in use by {holder or 'another process'}") from None
    except OSError as error:
        raise RunError(f"cannot write to {run}: {reason(error)}") from None
    try:
        yield
    finally:
        is_empty = run.is_dir() and [p.name for p in run.iterdir()] == [".lock"]  # nothing came of it
        with contextlib.suppress(OSError):  # Windows removes no file that is open, and does it at the release
            if is_empty:
                path.unlink()
        lock.release()
        with contextlib.suppress(OSError):  # another process has come
            if is_empty:
                run.rmdir()


def _write_holder(file: int) -> None:
    os.write(file, f"pid {os.getpid()} on {platform.node()}".encode())
