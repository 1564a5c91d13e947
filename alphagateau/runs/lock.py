"""The lock of a run's folder: one process at a time, named to all others, until it ends in whatever way."""

import contextlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from alphagateau.runs import files
from alphagateau.runs.run_folder import RunError


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Locks the run until the process ends, however it ends. Raises RunError if another process has the lock.

    Removes half-written files of killed processes; `checkpoint.clean` does so for checkpoints.
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
    """The process that has a lock, by the lock's file; Windows lets nobody read it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
