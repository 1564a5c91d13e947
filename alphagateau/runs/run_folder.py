"""The folder of a run: who holds it, which experiment it belongs to, what ran in it.

checkpoints/<run>/   config.toml      the experiment as resolved
                     run.json         starts: command, versions, commit, devices; the Aim run; the weights begun from;
                                      why health stopped the run, and its last healthy checkpoint
                     metrics.jsonl    one line an iteration
                     checkpoints/     one folder an iteration
                     games/           sample games, one PGN an iteration
                     results.json     the match at the end; results.pgn its games
"""

import contextlib
import difflib
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from alphagateau import config
from alphagateau.config import ConfigError, Experiment, printable
from alphagateau.runs import (
    checkpoint,
    files,
)
from alphagateau.runs.checkpoint import WEIGHTS, Checkpoint, CheckpointError, NoCheckpointError
from alphagateau.runs.logging import progress

# Keys that may change from one start of a run to the next: they decide nothing that a checkpoint holds.
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
PACKAGES = (
    "alphagateau",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "orbax-checkpoint",
    "mctx",
    "jraph",
    "numpy",
)


START = {"command": str, "python": str, "versions": dict, "devices": list}  # what a start in run.json always says


class RunError(RuntimeError):
    """A run that cannot start or go on; one sentence for the user."""


class Unhealthy(RunError):
    """A run that its health stops; one sentence."""


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Holds the run for this process; the lock goes with the process, however it ends. RunError if it is held.

    What a killed holder left half written is removed; of checkpoints, that is the part of `checkpoint.clean`.
    """
    path = run / ".lock"
    lock = FileLock(path, timeout=0, on_acquired=_write_holder)
    try:
        run.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        for folder in (run, run / "games"):
            files.remove_half_written(folder)
    except Timeout:
        raise RunError(f"{run} is in use by another process ({_read_holder(path) or 'unknown'})") from None
    except OSError as error:
        raise RunError(f"cannot write to {run}: {files.reason(error)}") from None
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


def _read_holder(path: Path) -> str:
    """What the holder of a lock wrote into it; Windows lets nobody read it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def check(run: Path, experiment: Experiment) -> None:
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


def claim(run: Path, experiment: Experiment) -> None:
    """Writes config.toml. Raises RunError."""
    path = run / "config.toml"
    try:
        files.write_text(path, config.dumps(experiment))
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from None


def read_record(run: Path) -> dict[str, Any]:
    """run.json, or an empty record. Raises RunError if it is damaged."""
    path = run / "run.json"
    try:
        record = {"starts": []} | (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})
        if not _is_record(record):
            raise ValueError("not a record of starts")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error}): move it away to go on without it") from None
    return record


def _is_record(record: dict[str, Any]) -> bool:
    starts, unhealthy = record["starts"], record.get("unhealthy", {"why": ""})
    if not isinstance(starts, list) or not isinstance(unhealthy, dict) or "why" not in unhealthy:
        return False
    return all(isinstance(s, dict) and all(isinstance(s.get(k), kind) for k, kind in START.items()) for s in starts)


def is_same_origin(one: str | Path | None, other: str | Path | None) -> bool:
    """Whether two `init_from` name the same weights, as any of the machines says that share their folder."""
    return Path(one or "").parts[-3:] == Path(other or "").parts[-3:]


def read_final(run: Path) -> dict[str, Any]:
    """results.json, the match at the end; empty if there is none or it is damaged, for it can be played again."""
    try:
        record = json.loads((run / "results.json").read_text(encoding="utf-8"))
        is_whole = all(len(row) == 6 for row in record["scores"]) and {"weights_hash", "evaluation"} <= record.keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return record if is_whole else {}


def write_record(run: Path, record: dict[str, Any]) -> None:
    files.write_text(run / "run.json", json.dumps(record, indent=1))


def record_aim_run(run: Path, aim_run: str) -> None:
    """Writes into run.json which Aim run is the run's."""
    record = read_record(run)
    if record.get("aim_run") != aim_run:
        write_record(run, {**record, "aim_run": aim_run})


def mark_unhealthy(run: Path, why: str) -> str:
    """Writes into run.json why the run was stopped and its last healthy checkpoint; returns a sentence on that."""
    found, _ = checkpoint.find(run / "checkpoints")
    healthy = next((c.path.name for c in found if not c.manifest["symptoms"]), None)
    record = read_record(run)
    write_record(run, {**record, "unhealthy": {"why": why, "last_healthy_checkpoint": healthy}})
    if healthy is None:
        return "no checkpoint of a healthy iteration is left"
    return f"the last healthy checkpoint is {healthy}; the same command goes on from the newest, {found[0].path.name}"


def identity(experiment: Experiment, init_from: Path | None) -> dict[str, str]:
    """All in which the processes of one run must be alike, by what a reader calls it."""
    return {
        **{f"experiment's {name}": repr(value) for name, value in config.flatten(experiment).items()},
        "--init-from": str(init_from),
        "version of python": platform.python_version(),
        **{f"version of {name}": str(_version(name)) for name in PACKAGES},
        "code of alphagateau": _code_hash(),
    }


def _code_hash() -> str:
    """A SHA-256, in 16 hex digits, of the package's source files and their names."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def describe_start(devices: list[str]) -> dict[str, Any]:
    """What a reader of the run wants to know of one start of it."""
    return {
        "command": " ".join(sys.argv),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "devices": devices,
        "host": platform.node(),
    }


def devices_of(start: Mapping[str, Any]) -> list[str]:
    """The devices of a start in run.json: accelerators, or a CPU for each process.

    Once each of a CPU's devices was written as "cpu cpu"; they are one CPU here.
    """
    devices = [str(name) for name in start["devices"]]
    return devices[:1] if set(devices) == {"cpu cpu"} else devices


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source this process runs, if it runs from a git checkout."""
    where = Path(__file__).resolve().parent
    try:
        out = subprocess.run(
            ["git", "-C", str(where), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return out.stdout.strip() or None


def newest(source: Path, others: Sequence[str] = ()) -> Checkpoint:
    """The checkpoint `source`, or the newest of the run `source` whose weights are whole.

    `others`: what else a user may have meant. Programs and paths that its manifest names are left out, with one
    warning. Raises NoCheckpointError if there is none, CheckpointError if none is whole.
    """
    found = _newest(source, others)
    if found.left_out:
        say_left_out(found.run or found.path, found.left_out)
    return found


@lru_cache
def say_left_out(source: Path, names: tuple[str, ...]) -> None:
    """Warns, once, of the keys of a search that are not taken from a checkpoint or a run."""
    keys = " and ".join(f"search.{name}" for name in names)
    progress.warn(
        f"{printable(source)} names a program or a path ({keys}), which is left out: only what you type or write may. "
        f"To use one, give it yourself, as in PLAYER?{names[0]}=..."
    )


def _newest(source: Path, others: Sequence[str]) -> Checkpoint:
    if (source / "manifest.json").exists():
        return checkpoint.open_checkpoint(source)
    found, complaints = checkpoint.find(source / "checkpoints")
    for candidate in found:
        try:
            checkpoint.verify(candidate, WEIGHTS)
            return candidate
        except CheckpointError as error:
            complaints.append(str(error))
    if complaints:
        raise CheckpointError(f"{source} holds no whole checkpoint: {'; '.join(complaints)}")
    near = _nearest(source, others)
    hint = f"; did you mean {near}?" if near else ""
    raise NoCheckpointError(f"{source} holds no whole checkpoint: no such run or checkpoint{hint}")


def _nearest(source: Path, others: Sequence[str]) -> str | None:
    """The run or checkpoint whose name is most like that of a path that is none, beside it or where runs live."""
    usual = Path("checkpoints")
    if _is_player(usual / source):
        return str(usual / source)
    found = {name: name for name in others}
    with contextlib.suppress(OSError):  # a folder that may not be read
        for folder in (usual, source.parent):
            found |= {path.name: str(path) for path in folder.glob("*") if _is_player(path)}
    near = difflib.get_close_matches(source.name, found, 1)
    return found[near[0]] if near else None


def _is_player(path: Path) -> bool:
    return (path / "manifest.json").exists() or (path / "checkpoints").is_dir()
