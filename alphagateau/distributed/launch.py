"""Starts JAX's coordination service among the processes of a run, by flags or a cluster's environment."""

import ctypes
import importlib.util
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from alphagateau.distributed.jax_internals import ClusterEnv
from alphagateau.distributed.processes import LOST, ProcessError, one_line

START_SECONDS = 120  # for all processes to find one another
HEARTBEAT_SECONDS = 100  # without a sign of life, after which a process counts as lost
EXIT_SECONDS = 300  # that a process which has finished waits for the others


class Launch(NamedTuple):
    """The place of this process among those of its run."""

    coordinator: str  # HOST:PORT of process 0
    num_processes: int
    process_id: int
    local_device_ids: Sequence[int] | None = None  # GPUs of the host that are this process's; None: all


def parse_launch(coordinator: str | None, num_processes: str | None, process_id: str | None) -> Launch | None:
    """The Launch of `train`'s three flags; None if none was given. Raises ValueError in one sentence."""
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
    """The Launch that JAX reads from Slurm, Open MPI or Kubernetes; None if this process is alone."""
    environ = os.environ
    is_several = (
        ("SLURM_STEP_NODELIST" in environ and int(environ.get("SLURM_NTASKS", 1)) > 1)
        or int(environ.get("OMPI_COMM_WORLD_SIZE", 1)) > 1
        or (
            {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= environ.keys()
            and importlib.util.find_spec("kubernetes")
        )
    )
    if not is_several:
        return None
    try:
        coordinator, num_processes, process_id, gpus = ClusterEnv.auto_detect_unset_distributed_params(
            None, None, None, None, None, START_SECONDS
        )
    except Exception as error:  # of JAX's readers or of the cluster's own packages
        raise ProcessError(f"the cluster does not say which processes belong to this run: {one_line(error)}") from error
    if coordinator is None or num_processes is None or process_id is None:
        return None
    return Launch(coordinator, num_processes, process_id, gpus)


def start(launch: Launch | None) -> None:
    """Brings the processes together, before any device is used. Raises ProcessError if process 0 is not reached.

    If another process does not come, JAX ends those that did, after START_SECONDS and with a sentence.
    """
    launch = launch or detect()
    if launch is None or launch.num_processes == 1:
        return
    if sys.platform == "win32":
        raise ProcessError("a run of several processes needs Linux or macOS; on Windows one process has all devices")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM away from `runs.stop`
    if launch.process_id > 0:
        _wait_for(launch.coordinator)
    _print_at_abort(
        f"not all {launch.num_processes} processes came together within {START_SECONDS} s, "
        f"or what listens at {launch.coordinator} is not process 0 of this run"
    )
    try:
        jax.distributed.initialize(
            *launch,
            cluster_detection_method="deactivate",
            initialization_timeout=START_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=EXIT_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        raise ProcessError(
            f"could not start with the coordinator at {launch.coordinator}: {one_line(error)}"
        ) from error
    _print_at_abort(LOST)


def _wait_for(coordinator: str) -> None:
    """Waits until something listens at HOST:PORT; JAX's own wait exceeds its timeout, and ends in C++."""
    host, _, port = coordinator.rpartition(":")
    deadline, reason = time.monotonic() + START_SECONDS, "no answer"
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
            return
        except OSError as error:
            reason = error.strerror or str(error)
        time.sleep(0.5)
    why = f"no coordinator answers at {coordinator} after {START_SECONDS} s ({reason})"
    raise ProcessError(f"{why}: process 0 must run there, and its port be open to this host")


def _print_at_abort(sentence: str) -> None:
    """Prints a sentence when JAX aborts this process from C++, as it does when another one is lost."""

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def on_abort(number: int) -> None:
        del number
        os.write(2, f"alphagateau: {sentence}\n".encode())
        os._exit(1)

    _handlers.append(on_abort)
    ctypes.CDLL(None).signal(signal.SIGABRT, on_abort)


_handlers: list[Any] = []  # C keeps no reference to them
