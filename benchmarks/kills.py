"""Killing a process that writes a run, and judging what it left: functions that the harness is made of.

A process is killed just before its n-th change of the run's folder that Python's audit events show (a file opened for
writing, a rename, a new folder, a removal), or by its parent after some seconds, which also hits what the events do
not show: the files that orbax writes from C++.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import TRAINING, WEIGHTS, Checkpoint, CheckpointError

CHANGES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
BY_HANDLE = {"os.mkdir", "os.remove", "os.rmdir"}  # their last argument is an open folder, or -1
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die_at(change: int, folder: Path) -> None:
    """From now on this process dies just before its `change`-th change below `folder`, counted from 1."""
    root, count = str(folder.resolve()) + os.sep, 0

    def hook(event: str, args: tuple) -> None:
        nonlocal count
        if event in CHANGES and (event != "open" or (args[2] or 0) & WRITING) and _path(event, args).startswith(root):
            count += 1
            if count == change:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _path(event: str, args: tuple) -> str:
    """The absolute path that an audit event names, "" if it names none."""
    if not isinstance(args[0], str | bytes | os.PathLike):
        return ""
    path = os.fsdecode(args[0])
    is_below_handle = event in BY_HANDLE and isinstance(args[-1], int) and args[-1] >= 0
    return os.path.join(os.readlink(f"/proc/self/fd/{args[-1]}") if is_below_handle else os.getcwd(), path)


def forked(work: Callable[[], Any], seconds: float | None = None) -> int:
    """The exit code of `work` in a child process, which is killed after `seconds`; -9: it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            work()
            code = 0
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def whole(run: Path) -> list[Checkpoint]:
    """The checkpoints from which the run could go on, newest first."""
    checkpoints = []
    for found in checkpoint.find(run / "checkpoints")[0]:
        try:
            checkpoint.verify(found, WEIGHTS)
            checkpoint.verify(found, TRAINING)
        except CheckpointError:
            continue
        checkpoints.append(found)
    return checkpoints


def newest_order(run: Path) -> tuple[int, int, int]:
    """Of the newest whole checkpoint, as a start of the run would find it; (-1, 0) if there is none.

    In a copy: to undo what a kill left half done is the part of the start.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if (run / "checkpoints").exists():
            shutil.copytree(run / "checkpoints", Path(scratch) / "checkpoints")
        checkpoint.clean(Path(scratch) / "checkpoints")
        return next((found.order for found in whole(Path(scratch))), (-1, 0, 0))


def outcome(run: Path) -> dict[str, Any]:
    """What must be the same however often a run was killed: weights, figures, and the files it leaves."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    of_machine = ("per_second", "time/", "energy/")
    lasting = [{k: v for k, v in row.items() if not any(name in k for name in of_machine)} for row in rows]
    found, complaints = checkpoint.find(run / "checkpoints")
    return {
        "weights": [(c.path.name, c.manifest["weights_hash"]) for c in found],
        "metrics": lasting,
        "parts": [(c.path.name, sorted(p.name for p in c.path.iterdir())) for c in found],
        "files": sorted(p.name for p in run.iterdir()) + sorted(p.name for p in (run / "checkpoints").iterdir()),
        "complaints": complaints,
    }


def copy_of(template: Path | None, run: Path) -> Path:
    """`run` as a copy of the run `template`, or not there."""
    shutil.rmtree(run, ignore_errors=True)
    if template is not None:
        shutil.copytree(template, run)
    return run
