"""Several processes as one run: how they start, what they agree on, how they end. One process alone has none of it.

JAX's own coordination service, in process 0, brings them together and watches over them. All processes run the same
code in the same order; what only process 0 does (the run's folder, the terminal) it does in `on_first`, whose outcome,
an error too, is everybody's.
"""

import atexit
import ctypes
import importlib.util
import itertools
import json
import os
import re
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
from jax._src import clusters, distributed  # JAX has no public names for these

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

START_SECONDS = 120  # for all processes to find one another
HEARTBEAT_SECONDS = 100  # without a sign of life, after which a process counts as lost
EXIT_SECONDS = 30  # that a process waits for the others when it ends
FOLDER_SECONDS = 60  # for a new file to be seen by all; network file systems remember what was not there
_FOREVER = 7 * 24 * 3600 * 1000  # ms: who is waited for is alive, or the heartbeats end the wait

LOST = (
    "another process of this run ended or cannot be reached (its own output says why); "
    "what was done since the last checkpoint is lost, and the same command on every host goes on from there"
)
_SIGNS_OF_LOSS = re.compile(r"gloo|nccl|coordination|barrier|socket closed|connection (closed|reset|refused)", re.I)


class ProcessError(RuntimeError):
    """The processes cannot start, differ, or have lost one another; one sentence for the user."""


class Launch(NamedTuple):
    """Where this process stands among the processes of its run."""

    coordinator: str  # HOST:PORT of process 0
    num_processes: int
    process_id: int
    local_device_ids: Any = None  # GPUs of the host that are this process's; None: all


def parse_launch(coordinator: str | None, num_processes: str | None, process_id: str | None) -> Launch | None:
    """The three flags of `train`; None if none was given. Raises ValueError in one sentence."""
    given = (coordinator, num_processes, process_id)
    if given == (None, None, None):
        return None
    if coordinator is None or num_processes is None or process_id is None:
        raise ValueError("--coordinator, --num-processes and --process-id belong together: give all three or none")
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"--coordinator must be HOST:PORT of process 0, got {coordinator!r}")
    if not num_processes.isdecimal() or int(num_processes) < 1:
        raise ValueError(f"--num-processes must be a whole number, 1 or more, got {num_processes!r}")
    if not process_id.isdecimal() or int(process_id) >= int(num_processes):
        raise ValueError(f"--process-id must be a whole number below {num_processes}, got {process_id!r}")
    return Launch(coordinator, int(num_processes), int(process_id))


def detect() -> Launch | None:
    """What Slurm, Open MPI or Kubernetes say of this process, as JAX reads it; None if it is alone."""
    environ = os.environ
    is_several = (
        ("SLURM_STEP_NODELIST" in environ and int(environ.get("SLURM_NTASKS", 1)) > 1)
        or int(environ.get("OMPI_COMM_WORLD_SIZE", 1)) > 1
        or ({"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= environ.keys() and _has_kubernetes())
    )
    if not is_several:
        return None
    try:
        coordinator, num_processes, process_id, gpus = clusters.ClusterEnv.auto_detect_unset_distributed_params(
            None, None, None, None, None, START_SECONDS
        )
    except Exception as error:  # of JAX's readers or of the cluster's own packages
        raise ProcessError(f"the cluster does not say which processes belong to this run: {_line(error)}") from error
    if coordinator is None or num_processes is None or process_id is None:
        return None
    return Launch(coordinator, num_processes, process_id, gpus)


def _has_kubernetes() -> bool:
    return importlib.util.find_spec("kubernetes") is not None


def start(launch: Launch | None) -> None:
    """Brings the processes together, before any device is used. Raises ProcessError if process 0 is not reached.

    If another process does not come, JAX ends those that did, after START_SECONDS and with a sentence.
    """
    launch = launch or detect()
    if launch is None or launch.num_processes == 1:
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM away from `stopping`
    if launch.process_id == 0:
        _say_at_abort(
            f"not all {launch.num_processes} processes came to the coordinator, process 0 at {launch.coordinator}, "
            f"within {START_SECONDS} s"
        )
    else:
        _wait_for(launch.coordinator)
    try:
        jax.distributed.initialize(
            *launch,
            cluster_detection_method="deactivate",
            initialization_timeout=START_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=EXIT_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        raise ProcessError(f"could not start with the coordinator at {launch.coordinator}: {_line(error)}") from error
    _say_at_abort(LOST)


def _wait_for(coordinator: str) -> None:
    """Returns once something listens at HOST:PORT. JAX's own wait for it is longer than it is told, and ends in C++."""
    host, _, port = coordinator.rpartition(":")
    deadline, reason = time.monotonic() + START_SECONDS, "no answer"
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
            return
        except OSError as error:
            reason = error.strerror or str(error)
        time.sleep(0.5)
    raise ProcessError(
        f"no coordinator answers at {coordinator} after {START_SECONDS} s ({reason}): "
        "process 0 must run there, and its port be open to this host"
    )


def _say_at_abort(sentence: str) -> None:
    """What this process says when JAX aborts it from C++, which is how it passes on that another one is lost."""

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def on_abort(number: int) -> None:
        del number
        os.write(2, f"alphagateau: {sentence}\n".encode())
        os._exit(1)

    _handlers.append(on_abort)
    ctypes.CDLL(None).signal(signal.SIGABRT, on_abort)


_handlers: list[Any] = []  # C keeps no reference to them
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
    """The texts of all processes, in their order; all call it together."""
    if count() == 1:
        return [text]
    name = f"alphagateau/{next(_rounds)}"
    _client().key_value_set(f"{name}/{index()}", text)
    return [_client().blocking_key_value_get(f"{name}/{i}", _FOREVER) for i in range(count())]


def on_first(fn: Callable[[], T], *errors: type[Exception]) -> T:
    """What `fn` returns on process 0, as JSON holds it, on all processes; only process 0 calls it.

    What it raises there is raised everywhere: an exception of one of the classes `errors`, else ProcessError.
    """
    if count() == 1:
        return fn()
    name, value, error = f"alphagateau/{next(_rounds)}", None, None
    if is_first():
        try:
            value = fn()
        except Exception as raised:
            error = raised
        outcome = [value, error and [type(error).__name__, _line(error)]]
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
            raise everywhere(
                ProcessError(
                    "the processes of a run must be alike, but they differ in "
                    f"{name}: {mine} in process 0, {theirs} in process {i}"
                )
            )


def check_shared(folder: Path) -> None:
    """Raises ProcessError, everywhere, unless all processes see what process 0 writes in `folder`."""
    if count() == 1:
        return
    name = f".seen-{secrets.token_hex(8)}"
    name = on_first(lambda: (folder / name).touch() or name)
    deadline = time.monotonic() + FOLDER_SECONDS
    while not (is_seen := (folder / name).exists()) and time.monotonic() < deadline:
        time.sleep(0.2)
    hosts = [text for text in exchange("" if is_seen else f"process {index()} on {socket.gethostname()}") if text]
    if is_first():
        (folder / name).unlink()
    if hosts:
        raise everywhere(
            ProcessError(
                f"{hosts[0]} does not see what process 0 writes in {folder}: "
                "the run's folder must be on a file system that all hosts share"
            )
        )


def first_of(text: str | None) -> str | None:
    """The first text that any process has, with the process named if there are several; all call it together."""
    texts = exchange(text or "")
    found = next(((i, t) for i, t in enumerate(texts) if t), None)
    return found and (found[1] if len(texts) == 1 else f"{found[1]}, process {found[0]}")


def everywhere(error: E) -> E:
    """Marks an error as one that all processes raise here, so that none need be told of it."""
    error.__dict__["is_everywhere"] = True
    return error


def is_everywhere(error: BaseException | None) -> bool:
    """Whether all processes have this error, or the one that it came from."""
    while error is not None:
        if error.__dict__.get("is_everywhere"):
            return True
        error = error.__cause__
    return False


def is_loss(error: BaseException) -> bool:
    """Whether this is how JAX says that another process is gone."""
    is_ours = type(error).__module__.startswith("alphagateau")
    is_of_runtime = isinstance(error, RuntimeError | ValueError) and not is_ours
    return count() > 1 and is_of_runtime and bool(_SIGNS_OF_LOSS.search(str(error)))


def part() -> None:
    """The processes let go of one another, all at the same time; from here on each is alone."""
    if count() > 1:
        jax.distributed.shutdown()


@contextmanager
def ending_together() -> Iterator[None]:
    """An error of this process alone ends it at once, so that the others hear of it; says ProcessError of their end."""
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


def _line(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
