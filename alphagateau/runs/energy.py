"""Measures energy in joules by the counters of NVIDIA's driver and of RAPL, where they may be read.

By hand because pynvml would be a dependency for three calls of a library that comes with the driver.
"""

import contextlib
import ctypes
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class Counter(NamedTuple):
    """A counter of joules that only grows, until it begins anew."""

    read: Callable[[], float]
    begins_anew_at: float = math.inf


def open_meter(counters: Sequence[Counter]) -> Callable[[], float] | None:
    """A function that returns the joules used since its last call; None without a counter."""
    if not counters:
        return None
    last = [counter.read() for counter in counters]

    def take() -> float:
        nonlocal last
        before, last = last, [counter.read() for counter in counters]
        return sum((b - a) % counter.begins_anew_at for counter, a, b in zip(counters, before, last, strict=True))

    return take


def find_counters(with_gpus: bool) -> list[Counter]:
    """The counters of this host's processors and memory, and of its GPUs, that this user may read."""
    return [*rapl_counters(), *(nvml_counters() if with_gpus else ())]


def rapl_counters(folder: Path = Path("/sys/class/powercap")) -> list[Counter]:
    """The counters of processor packages, and of memory where it is counted apart (intel-rapl, also for AMD)."""
    found = []
    for zone in sorted(folder.glob("intel-rapl:*")) if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError):
            name = (zone / "name").read_text().strip()
            path, size = zone / "energy_uj", float((zone / "max_energy_range_uj").read_text()) / 1e6
            if name.startswith("package") or name == "dram":
                float(path.read_text())  # most systems let root alone read it
                found.append(Counter(lambda path=path: float(path.read_text()) / 1e6, size))
    return found


def nvml_counters(library: str = "libnvidia-ml.so.1") -> list[Counter]:
    """The counters of the GPUs that CUDA_VISIBLE_DEVICES numbers, or of all."""
    with contextlib.suppress(OSError, AttributeError):
        nvml = ctypes.CDLL(library)
        count = ctypes.c_uint()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        named = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip().isdecimal()]
        counters = [_gpu_counter(nvml, number) for number in (map(int, named) if named else range(count.value))]
        return [counter for counter in counters if counter is not None]
    return []


def _gpu_counter(nvml: ctypes.CDLL, number: int) -> Counter | None:
    """None if it has none: a GPU older than Volta."""
    handle, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()

    def has_failed() -> int:
        return nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules))

    def read() -> float:
        has_failed()  # then it is as it was
        return millijoules.value / 1e3

    return None if nvml.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)) or has_failed() else Counter(read)
