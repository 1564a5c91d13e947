"""Counters of joules: RAPL's files, the driver's library, counters that begin anew."""

import shutil
import subprocess

import pytest

from alphagateau.runs.energy import Counter, nvml_counters, open_meter, rapl_counters
from alphagateau.runs.logging.progress import JOULES, Timer
from alphagateau.training.iteration_metrics import training_pace

LIBRARY = """
typedef struct { unsigned long long joules; } device;
static device gpus[2] = {{1000}, {5000}};
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned k, device **out) { *out = gpus + k; return k > 1; }
int nvmlDeviceGetTotalEnergyConsumption(device *one, unsigned long long *out) { *out = one->joules += 500; return 0; }
"""


def test_joules_since_the_last_look_also_where_a_counter_begins_anew():
    first, second = iter([10.0, 12.5, 12.5]), iter([90.0, 95.0, 5.0])
    take = open_meter([Counter(lambda: next(first)), Counter(lambda: next(second), 100.0)])
    assert take is not None and take() == 7.5 and take() == 10.0
    assert open_meter([]) is None


def test_rapl_counts_packages_and_memory_that_may_be_read(tmp_path):
    zones = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "package-1", "2": "psys"}
    for number, name in zones.items():
        zone = tmp_path / f"intel-rapl:{number}"
        zone.mkdir()
        for file, text in (
            ("name", f"{name}\n"),
            ("energy_uj", "2500000\n"),
            ("max_energy_range_uj", "262143328850\n"),
        ):
            (zone / file).write_text(text)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()  # as if it were root's alone
    counters = rapl_counters(tmp_path)
    assert [(c.read(), round(c.begins_anew_at)) for c in counters] == [(2.5, 262143)] * 2
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("3500000\n")
    assert [c.read() for c in counters] == [3.5, 2.5]
    assert rapl_counters(tmp_path / "nowhere") == []


def test_the_driver_counts_the_gpus_that_have_a_counter(tmp_path, monkeypatch):
    """A library of the driver's functions: two GPUs that use 0.5 J a look, a third that cannot be opened."""
    if not (compiler := shutil.which("cc")):
        pytest.skip("no C compiler is installed")
    (tmp_path / "nvml.c").write_text(LIBRARY)
    library = str(tmp_path / "libnvml.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(tmp_path / "nvml.c")], check=True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    counters = nvml_counters(library)
    assert [c.read() for c in counters] == [2.0, 6.0] and counters[0].read() == 2.5
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert len(nvml_counters(library)) == 1
    assert nvml_counters(str(tmp_path / "nowhere.so")) == []


def test_an_iteration_says_its_joules_also_those_before_a_stop():
    timer = Timer({"selfplay": 1.0, JOULES: 4.0}, lambda: 3.0)
    with timer("selfplay"), timer("train"):
        pass
    found = training_pace(8, timer.take())
    assert found["energy/joules"] == 10.0 and "time/joules" not in found and found["time/selfplay"] >= 1.0
    assert "energy/joules" not in training_pace(8, {"train": 1.0})
