"""What Linux has and macOS or Windows lack: without it the package imports, and hears the signals that there are."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from alphagateau.runs import files

MISSING = {
    "macos": "del os.sched_getaffinity, os.sched_setaffinity",
    "windows": "del os.sched_getaffinity, os.sched_setaffinity, os.sysconf, os.set_blocking, os.fork, signal.SIGUSR1\n"
    "sys.modules.update(dict.fromkeys(('fcntl', 'resource', 'pwd', 'termios', 'aim')))",
}
# The libraries come first: each knows its platforms.
IMPORT_ALL = """
import os, signal, sys
import chess.pgn, filelock, flax.linen, jax, mctx, optax, orbax.checkpoint, pgx, psutil
import rich.progress, scipy.optimize, scipy.sparse.linalg
{missing}
import pkgutil, alphagateau
for module in pkgutil.walk_packages(alphagateau.__path__, "alphagateau."):
    __import__(module.name)
from alphagateau.runs.stop import SIGNALS, StopRequest
stop = StopRequest()
with stop.listening():
    signal.raise_signal(signal.SIGTERM)
    while stop.reason is None:
        pass
print(*[number.name for number in SIGNALS])
"""


@pytest.mark.whole
@pytest.mark.parametrize(("system", "signals"), [("macos", "SIGTERM SIGINT SIGUSR1"), ("windows", "SIGTERM SIGINT")])
def test_every_module_imports_where_linux_calls_are_missing(system, signals):
    code = IMPORT_ALL.format(missing=MISSING[system])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"{signals}\n"), done.stderr


def test_a_text_is_written_where_folders_cannot_be_synced(tmp_path, monkeypatch):
    fsync = os.fsync

    def no_folders(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", no_folders)
    files.write_text(tmp_path / "file", "text")
    monkeypatch.setattr(files.sys, "platform", "win32")
    monkeypatch.setattr(os, "open", None)
    files.sync(tmp_path)
    assert (tmp_path / "file").read_text() == "text"
