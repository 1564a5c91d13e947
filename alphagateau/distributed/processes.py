"""Agreement among the processes of a run, by JAX's coordination service in process 0; one alone need not communicate.

All processes run the same code in the same order. What process 0 alone does (the run's folder, the terminal) it does in
`on_first`, whose result or error all processes share.
"""

import atexit
import itertools
import json
import os
import platform
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import jax

from alphagateau.distributed.jax_internals import distributed

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

FOLDER_SECONDS = 60  # for a new file to be seen by all; network file systems cache absent files
_FOREVER = 7 * 24 * 3600 * 1000  # ms: the heartbeats end the wait for a process that is lost

LOST = (
    "another process of this run ended or cannot be reached (its own output says why); "
    "what was done since the last checkpoint is lost, and the same command on every host goes on from there"
)
_SIGNS_OF_LOSS = re.compile(r"gloo|nccl|coordination|barrier|socket closed|connection (closed|reset|refused)", re.I)


class ProcessError(RuntimeError):
    """The processes cannot start, differ, or have lost one another; one sentence for the user."""


_rounds = itertools.count()  # the same everywhere, as all processes agree on the same things in the same order


def count() -> int:
    """Processes of this run, 1 if it is alone."""
    return distributed.global_state.num_processes if distributed.global_state.client else 1


def index() -> int:
    return distributed.global_state.process_id if count() > 1 else 0


def is_first() -> bool:
    return index() == 0


def _client() -> Any:
    return distributed.global_state.client


def exchange(text: str) -> list[str]:
    """Gathers the texts of all processes, in their order; all call it together."""
    if count() == 1:
        return [text]
    name = f"alphagateau/{next(_rounds)}"
    _client().key_value_set(f"{name}/{index()}", text)
    return [_client().blocking_key_value_get(f"{name}/{i}", _FOREVER) for i in range(count())]


def on_first(fn: Callable[[], T], *errors: type[Exception]) -> T:
    """Calls `fn` on process 0 and broadcasts its result, as JSON, to all processes.

    Its exception is raised everywhere: of one of the classes `errors`, else as ProcessError.
    """
    if count() == 1:
        return fn()
    name, value, error = f"alphagateau/{next(_rounds)}", None, None
    if is_first():
        try:
            value = fn()
        except Exception as raised:
            error = raised
        kind = next((e.__name__ for e in errors if isinstance(error, e)), "")
        outcome = [value, error and [kind, one_line(error)]]
        _client().key_value_set(name, json.dumps(outcome))
    else:
        value, failure = json.loads(_client().blocking_key_value_get(name, _FOREVER))
        if failure:
            kind = next((e for e in errors if e.__name__ == failure[0]), ProcessError)
            error = kind(failure[1])
    if error:
        raise everywhere(error)
    return value  # pyright: ignore[reportReturnType]


def check_same(facts: Mapping[str, str]) -> None:
    """Raises ProcessError, everywhere, that names the first of `facts` in which two processes differ."""
    by_process = [json.loads(text) for text in exchange(json.dumps(dict(facts)))]
    names = list(dict.fromkeys(itertools.chain(*by_process)))
    for name, (i, other) in itertools.product(names, enumerate(by_process)):
        mine, theirs = by_process[0].get(name), other.get(name)
        if mine != theirs:
            difference = f"{name}: {mine} in process 0, {theirs} in process {i}"
            raise everywhere(ProcessError(f"the processes of a run must be alike, but they differ in {difference}"))


def check_shared(folder: Path) -> None:
    """Raises ProcessError, everywhere, unless all processes see what process 0 writes in `folder`."""
    if count() == 1:
        return

    def write() -> tuple[str, str]:
        path = folder / f".seen-{secrets.token_hex(8)}"
        path.touch()
        return path.name, str(folder)

    name, where = on_first(write)
    deadline = time.monotonic() + FOLDER_SECONDS
    while not (is_seen := (folder / name).exists()) and time.monotonic() < deadline:
        time.sleep(0.2)
    hosts = [text for text in exchange("" if is_seen else f"process {index()} on {socket.gethostname()}") if text]
    if is_first():
        (folder / name).unlink()
    if hosts:
        why = f"{hosts[0]} does not see what process 0 writes in {where}"
        raise everywhere(ProcessError(f"{why}: the run's folder must be on a file system that all hosts share"))


def first_of(text: str | None) -> str | None:
    """The first text that any process has, with the process named if there are several; all call it together."""
    texts = exchange(text or "")
    found = next(((i, t) for i, t in enumerate(texts) if t), None)
    return found and (found[1] if len(texts) == 1 else f"{found[1]}, process {found[0]}")


def everywhere(error: E) -> E:
    """Marks an error that all processes raise, so that none need end the others."""
    error.__dict__["is_everywhere"] = True
    return error


def is_everywhere(error: BaseException) -> bool:
    """Whether all processes raise this error or one of its causes."""
    return any("is_everywhere" in e.__dict__ for e in _causes(error))


def is_loss(error: BaseException) -> bool:
    """Whether this error or one of its causes is JAX's of a lost process."""
    of_runtime = [e for e in _causes(error) if not type(e).__module__.startswith("alphagateau")]
    said = [str(e) for e in of_runtime if isinstance(e, RuntimeError | ValueError)]
    return count() > 1 and any(_SIGNS_OF_LOSS.search(text) for text in said)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def disconnect() -> None:
    """Disconnects the processes, all at the same time; from here on each is alone."""
    if count() > 1:
        jax.distributed.shutdown()


@contextmanager
def ending_together() -> Iterator[None]:
    """Ends this process at once on an error of its own, which ends the others; raises ProcessError if one was lost."""
    try:
        yield
    except BaseException as error:
        if count() > 1 and not is_everywhere(error):
            atexit.register(_end_at_once)  # before JAX's own, which would wait for the others
        if is_loss(error):
            raise ProcessError(LOST) from error
        raise


def _end_at_once() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def one_line(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]


def device_names() -> list[str]:
    """The run's accelerators over all processes, or on CPUs one name a process, however many devices it is."""
    if jax.default_backend() == "cpu":
        return [_cpu_name()] * count()
    return [f"{device.platform} {device.device_kind}" for device in jax.devices()]


def _cpu_name() -> str:
    """The CPU and the cores that this process may use, such as "cpu AMD EPYC 7763, 2 cores"."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                cores = len(os.sched_getaffinity(0))
                return f"cpu {name}, {cores} core{'s' if cores > 1 else ''}"
    return f"cpu {platform.machine()}"
