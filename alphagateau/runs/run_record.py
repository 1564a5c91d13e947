"""The record of a run, run.json: its starts, the weights it began from, its Aim run, why health stopped it."""

import hashlib
import json
import platform
import subprocess
import sys
from operator import eq
from pathlib import Path
from typing import Any

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.config.registers import plugins
from alphagateau.runs import checkpoint
from alphagateau.runs.files import write_text
from alphagateau.runs.programs import version_of
from alphagateau.runs.run_folder import RunError

PACKAGES = ("alphagateau", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "mctx", "jraph", "numpy")
START = {"command": str, "python": str, "versions": dict, "devices": list}  # keys of every start


def read_record(run: Path) -> dict[str, Any]:
    """run.json, or an empty record. Raises RunError if it cannot be read or is damaged."""
    path = run / "run.json"
    try:
        record = {"starts": [], **(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})}
        if not _is_record(record):
            raise ValueError("not a record of starts")
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error}): move it away to go on without it") from None
    return record


def _is_record(record: dict[str, Any]) -> bool:
    starts, unhealthy = record["starts"], record.get("unhealthy", {"why": ""})
    if not isinstance(starts, list) or not isinstance(unhealthy, dict) or "why" not in unhealthy:
        return False
    is_whole = all(isinstance(s, dict) and all(isinstance(s.get(k), kind) for k, kind in START.items()) for s in starts)
    origin = record.get("init_from") or ""
    is_whole = is_whole and isinstance(origin, str) and "\0" not in origin
    is_whole = is_whole and all(isinstance(start.get("iteration", 0), int) for start in starts)
    return is_whole and all(isinstance(name, str) for start in starts for name in start["devices"])


def write_record(run: Path, record: dict[str, Any]) -> None:
    write_text(run / "run.json", json.dumps(record, indent=1))


def record_aim_run(run: Path, aim_run: str) -> None:
    """Writes the hash of the run's Aim run into run.json."""
    record = read_record(run)
    if record.get("aim_run") != aim_run:
        write_record(run, {**record, "aim_run": aim_run})


def mark_unhealthy(run: Path, why: str) -> str:
    """Writes into run.json why the run was stopped and its last healthy checkpoint; returns a sentence on that."""
    found, _ = checkpoint.find(run / "checkpoints")
    healthy = next((c.path.name for c in found if not c.manifest["symptoms"]), None)
    write_record(run, {**read_record(run), "unhealthy": {"why": why, "last_healthy_checkpoint": healthy}})
    if healthy is None:
        return "no checkpoint of a healthy iteration is left"
    return f"the last healthy checkpoint is {healthy}; the same command goes on from the newest, {found[0].path.name}"


def is_same_origin(one: str | Path | None, other: str | Path | None) -> bool:
    """Whether two `init_from` name the same weights, on any machine that shares their folder."""
    ends = [Path(path or "").parts[-3:][::-1] for path in (one, other)]
    return all(ends) == any(ends) and all(map(eq, *ends))  # one may be absolute, and the other not


def start_record(devices: list[str]) -> dict[str, Any]:
    """This start of the run: its command, host, devices and versions."""
    return {
        "command": " ".join(sys.argv),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in (*PACKAGES, *plugins())},
        "devices": devices,
        "host": platform.node(),
    }


def process_facts(experiment: Experiment, init_from: Path | None) -> dict[str, str]:
    """The facts that must be alike in all processes of a run, by their names in errors."""
    return {
        **{f"experiment's {name}": repr(value) for name, value in config.flatten(experiment).items()},
        "--init-from": str(init_from),
        "version of python": platform.python_version(),
        **{f"version of {name}": str(version_of(name)) for name in (*PACKAGES, *plugins())},
        "code of alphagateau": _code_hash(),
    }


def _code_hash() -> str:
    """A SHA-256, in 16 hex digits, of the package's source files and their names."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str | None:
    """The commit of the source, if this process runs from a git checkout."""
    command = ["git", "-C", str(Path(__file__).resolve().parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return out.stdout.strip() or None


def read_final_match(run: Path) -> dict[str, Any]:
    """results.json, the match at the end; empty if there is none or it is damaged, for it can be played again."""
    try:
        record = json.loads((run / "results.json").read_text(encoding="utf-8"))
        is_whole = all(len(row) == 6 for row in record["scores"]) and {"weights_hash", "evaluation"} <= record.keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return record if is_whole else {}
