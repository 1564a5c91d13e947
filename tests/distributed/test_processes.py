"""Two real processes as one run, started as a user would: what they write, how they stop, and how they fail."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest

from alphagateau.commands.main import main
from alphagateau.distributed import launch, processes
from alphagateau.runs import checkpoint

REPOSITORY = Path(__file__).parents[2]
SMOKE = REPOSITORY / "experiments" / "smoke.toml"
# A convolutional network, because its programs compile sooner; what is tested here does not depend on it.
NETWORK = ["--network.architecture", "alphazero"]
SMALL = ["--evaluation.num-games", "0", "--selfplay.segment-plies", "4", "--training.segment-steps", "2"]
SMALL += ["--sample-roots", "8", "--training.mirror", "--targets.bootstrap"]
BOUND = launch.HEARTBEAT_SECONDS + 20  # seconds; JAX needs some to look
FOREVER = ["--num-iterations", "1000"]  # a run that has to be stopped


def start(runs: Path, *options: str, num_devices: int = 1, package: Path = REPOSITORY) -> subprocess.Popen:
    """`alphagateau train` in a process of its own, with virtual devices; LLVM need not make its programs fast."""
    flags = f"--xla_force_host_platform_device_count={num_devices} --xla_backend_optimization_level=0"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    cache = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    environment |= {"JAX_COMPILATION_CACHE_DIR": cache}
    words = ["train", str(SMOKE), "--runs", str(runs), *SMALL, *NETWORK, *options]
    command = [sys.executable, "-m", "alphagateau.commands.main", *words]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(command, env=environment, cwd=package, **pipes)  # python -m imports from cwd first


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_two(runs: Path, *options: str, num_devices: int = 1, more: tuple = (), **rest) -> list[subprocess.Popen]:
    """Both processes; `more` are options of process 1 alone, and the `rest` is for its `start`."""
    where = ["--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", "2", "--process-id"]
    first = start(runs, *options, *where, "0", num_devices=num_devices)
    return [first, start(runs, *options, *more, *where, "1", num_devices=num_devices, **rest)]


def end_of(process: subprocess.Popen, seconds: float = 300) -> tuple[int, str]:
    """(exit code, standard error)."""
    try:
        error = process.communicate(timeout=seconds)[1]
    finally:
        process.kill()
    return process.returncode, error


def wait_until(condition: Callable[[], bool], running: list[subprocess.Popen]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline and all(p.poll() is None for p in running), [end_of(p, 1) for p in running]
        time.sleep(0.02)


def newest(run: Path) -> tuple[int, int]:
    """(iteration, phase, segment) of the newest checkpoint; (-1, 0, 0) without one."""
    found, _ = checkpoint.find(run / "checkpoints")
    return found[0].order if found else (-1, 0, 0)


def rows(run: Path) -> list[dict]:
    """metrics.jsonl without what depends on the clock."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {k: v for k, v in row.items() if not any(x in k for x in ("per_second", "time/", "energy/"))} for row in lines
    ]


def weights(run: Path, iteration: int) -> str:
    return checkpoint.open_checkpoint(run / "checkpoints" / str(iteration)).manifest["weights_hash"]


def starts(run: Path) -> list[dict]:
    return json.loads((run / "run.json").read_text())["starts"]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> tuple[Path, list[tuple[int, str]]]:
    """A run of two processes, of which process 1 alone heard SIGTERM."""
    runs = tmp_path_factory.mktemp("two")
    pair = start_two(runs, *FOREVER)
    wait_until(lambda: newest(runs / "smoke") >= (2, 0), pair)
    pair[1].send_signal(signal.SIGTERM)
    return runs, [end_of(p) for p in pair]


@pytest.fixture(scope="module")
def lost(tmp_path_factory) -> tuple[Path, int, str]:
    """A run of two processes, of which process 1 was killed in the first games; how process 0 ended."""
    runs = tmp_path_factory.mktemp("lost")
    pair = start_two(runs, *FOREVER)
    wait_until(lambda: newest(runs / "smoke") >= (0, 0) and bool(starts(runs / "smoke")), pair)
    pair[1].kill()
    return runs, *end_of(pair[0], BOUND)


@pytest.fixture(scope="module")
def continued(lost) -> Path:
    """That run, gone on with in one process of two devices to the end of the second iteration."""
    code, error = end_of(start(lost[0], "--num-iterations", "2", num_devices=2))
    assert code == 0 and "after iteration 0" in error, error
    return lost[0] / "smoke"


@pytest.mark.whole
def test_a_signal_to_one_process_stops_both_at_one_checkpoint(stopped):
    runs, ends = stopped
    assert [code for code, _ in ends] == [0, 0], ends
    assert "stopped (SIGTERM, process 1)" in ends[0][1]
    assert len(list((runs / "smoke" / "checkpoints").glob("*-stopped"))) == (newest(runs / "smoke")[1:] != (0, 0))


@pytest.mark.whole
def test_process_0_alone_writes(stopped):
    runs, ends = stopped
    assert ends[1][1] == ""
    iterations = [row["iteration"] for row in rows(runs / "smoke")]
    assert iterations == list(range(1, newest(runs / "smoke")[0] + 1))
    assert len(starts(runs / "smoke")) == 1 and len(starts(runs / "smoke")[0]["devices"]) == 2


@pytest.mark.whole
def test_a_lost_process_stops_the_other(lost):
    _, code, error = lost
    assert code == 1 and error.rstrip().endswith(processes.LOST) and "Traceback" not in error


@pytest.mark.whole
def test_one_process_goes_on_where_two_were(continued):
    assert [row["iteration"] for row in rows(continued)] == [1, 2]
    assert [len(start["devices"]) for start in starts(continued)] == [2, 1]  # a CPU for each process


@pytest.mark.whole
def test_two_processes_learn_as_one_with_as_many_devices(stopped, continued):
    """Bit by bit: a sum of two parts is the same in either order."""
    run = stopped[0] / "smoke"
    assert [weights(run, i) for i in (0, 1)] == [weights(continued, i) for i in (0, 1)]
    assert rows(run)[:2] == rows(continued)


@pytest.mark.slow
def test_two_processes_learn_as_one_with_the_graph_network_too(tmp_path):
    options = ["--network.architecture", "gateau", "--num-iterations", "2"]
    pair = start_two(tmp_path / "two", *options)
    ends = [end_of(p) for p in (*pair, start(tmp_path / "one", *options, num_devices=2))]
    assert [code for code, _ in ends] == [0, 0, 0], ends
    two, one = tmp_path / "two" / "smoke", tmp_path / "one" / "smoke"
    assert [weights(two, i) for i in (0, 1, 2)] == [weights(one, i) for i in (0, 1, 2)]
    assert rows(two) == rows(one)


@pytest.mark.slow
def test_two_processes_of_two_devices_go_on_where_one_was(continued, tmp_path):
    runs = Path(shutil.copytree(continued.parent, tmp_path / "runs"))
    ends = [end_of(p) for p in start_two(runs, "--num-iterations", "3", num_devices=2)]
    assert [code for code, _ in ends] == [0, 0], ends
    assert [row["iteration"] for row in rows(runs / "smoke")] == [1, 2, 3]
    assert [len(start["devices"]) for start in starts(runs / "smoke")] == [2, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_a_process_lost_later_stops_the_other(who, tmp_path):
    pair = start_two(tmp_path, *FOREVER)
    wait_until(lambda: newest(tmp_path / "smoke") >= (1, 0), pair)
    pair[who].kill()
    code, error = end_of(pair[1 - who], BOUND)
    assert code == 1 and processes.LOST in error and "Traceback" not in error


@pytest.mark.slow
def test_the_time_given_to_one_process_stops_both(tmp_path):
    ends = [end_of(p) for p in start_two(tmp_path, *FOREVER, more=("--stop-after", "60s"))]
    assert [code for code, _ in ends] == [0, 0], ends
    assert "process 1" in ends[0][1]


@pytest.mark.whole
def test_processes_with_different_experiments_both_say_in_what(tmp_path):
    ends = [end_of(p) for p in start_two(tmp_path, more=("--seed", "7"))]
    for code, error in ends:
        assert code == 1 and error.count("\n") == 1, ends
        assert "differ in experiment's seed: 0 in process 0, 7 in process 1" in error
    assert not (tmp_path / "smoke").exists()


@pytest.mark.whole
def test_processes_with_different_code_both_say_so(tmp_path):
    shutil.copytree(REPOSITORY / "alphagateau", tmp_path / "alphagateau")
    with (tmp_path / "alphagateau" / "search" / "search.py").open("a") as file:
        file.write("# another version\n")
    ends = [end_of(p) for p in start_two(tmp_path / "runs", package=tmp_path)]
    for code, error in ends:
        assert code == 1 and error.count("\n") == 1 and "differ in code of alphagateau" in error, ends


@pytest.mark.slow
def test_hosts_that_do_not_share_the_folder_are_told_so(tmp_path):
    ends = [end_of(p) for p in start_two(tmp_path / "here", more=("--runs", str(tmp_path / "there")))]
    for code, error in ends:
        assert code == 1 and error.count("\n") == 1, ends
        assert f"does not see what process 0 writes in {tmp_path / 'here' / 'smoke'}" in error
    assert not (tmp_path / "here" / "smoke").exists() and not (tmp_path / "there").exists()


@pytest.mark.slow
def test_what_process_0_finds_wrong_stops_both_with_the_same_sentence(tmp_path):
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke" / "metrics.jsonl").write_text("")
    ends = [end_of(p) for p in start_two(tmp_path)]
    assert ends[0] == ends[1] and ends[0][0] == 1
    assert "no config.toml" in ends[0][1]


def test_several_processes_on_windows_are_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr(launch.sys, "platform", "win32")
    with pytest.raises(processes.ProcessError, match=r"^a run of several processes needs Linux or macOS;[^\n]*$"):
        launch.start(launch.Launch("host:1234", 2, 0))


def unreachable(runs: Path) -> list[str]:
    where = ["--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", "2", "--process-id", "1"]
    return ["train", str(SMOKE), "--runs", str(runs), *where]


def test_a_coordinator_that_does_not_answer_is_one_sentence(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(launch, "START_SECONDS", 1)
    words = unreachable(tmp_path)
    assert main(words) == 1
    error = capfd.readouterr().err
    assert f"no coordinator answers at {words[5]} after 1 s" in error and error.count("\n") == 1
    assert not (tmp_path / "smoke").exists()


@pytest.mark.whole
def test_a_process_whose_others_do_not_come_says_so(tmp_path):
    program = "import sys; from alphagateau.commands.main import main; from alphagateau.distributed import launch; "
    program += "launch.START_SECONDS = 2; sys.exit(main())"
    command = [sys.executable, "-c", program, *unreachable(tmp_path)[:-1], "0"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "not all 2 processes came together within 2 s" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--num-processes", "2"], "all three or none"),
        (["--coordinator", "host", "--num-processes", "2", "--process-id", "0"], "HOST:PORT"),
        (["--coordinator", "host:99999", "--num-processes", "2", "--process-id", "0"], "HOST:PORT"),
        (["--coordinator", "host:1", "--num-processes", "0", "--process-id", "0"], "--num-processes"),
        (["--coordinator", "host:1", "--num-processes", "2", "--process-id", "2"], "below 2"),
    ],
)
def test_flags_that_say_nothing_sensible_are_a_usage_error(flags, said, capfd):
    assert main(["train", str(SMOKE), *flags]) == 2
    error = capfd.readouterr().err
    assert said in error and error.count("\n") == 1


SLURM = {
    "SLURM_JOB_ID": "4097",
    "SLURM_STEP_NODELIST": "node[007-009]",
    "SLURM_NTASKS": "6",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}


@pytest.fixture
def no_cluster(monkeypatch) -> Iterator[pytest.MonkeyPatch]:
    for name in os.environ:
        if name.startswith(("SLURM_", "OMPI_", "KUBERNETES_", "JOB_COMPLETION")):
            monkeypatch.delenv(name)
    yield monkeypatch


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, None),
        ({"JOB_COMPLETION_INDEX": "1", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None),  # no `kubernetes` package
        (SLURM, launch.Launch("node007:61441", 6, 3, [1])),
        ({**SLURM, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}, None),
        (OPEN_MPI, launch.Launch("10.96.0.1:62624", 2, 1, [0])),
    ],
)
def test_what_a_cluster_says_of_a_process(environment, found, no_cluster):
    for name, value in environment.items():
        no_cluster.setenv(name, value)
    assert launch.detect() == found


def test_one_process_agrees_with_itself():
    assert processes.exchange("a") == ["a"] and processes.first_of(None) is None
    assert processes.on_first(lambda: {"x": 1}) == {"x": 1}
    processes.check_same({"seed": "0"})
    assert processes.count() == 1 and processes.is_first()


def test_an_error_that_comes_of_everybodys_is_everybodys():
    error = RuntimeError("could not write")
    assert not processes.is_everywhere(error)
    error.__cause__ = processes.everywhere(OSError("disk full"))
    assert processes.is_everywhere(error)
