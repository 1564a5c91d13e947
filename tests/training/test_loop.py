"""The loop from the command line: training, continuing, and what bad input gets."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from command_lines import read_experiment
from stopping import StopAfter, make_trainers_once

from alphagateau import config
from alphagateau.commands import info
from alphagateau.commands import train as train_command
from alphagateau.commands.main import main
from alphagateau.distributed import processes
from alphagateau.distributed.mesh import make_mesh
from alphagateau.matches import final_match
from alphagateau.matches.match import MatchResult
from alphagateau.matches.scheduler import Statistics
from alphagateau.runs import checkpoint, health, run_folder, trees
from alphagateau.runs.logging.log import MetricsLog, read_metrics
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop, resume
from alphagateau.training.trainer import make_trainer

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
BENCHMARKS = SMOKE.parents[1] / "benchmarks"
SMALL = ["--evaluation.num-games", "0", "--search.num-simulations", "2"]
SEGMENTS = ["--selfplay.segment-plies", "4", "--training.segment-steps", "2"]


@pytest.fixture(scope="module", autouse=True)
def trainers_made_once():
    with pytest.MonkeyPatch.context() as patch:
        make_trainers_once(patch)
        yield


def train(folder: Path, *options: str) -> int:
    return main(["train", str(SMOKE), "--runs", str(folder), *SMALL, *options])


def weights(run_folder: Path, name: str) -> str:
    return checkpoint.open_checkpoint(run_folder / "checkpoints" / name).manifest["weights_hash"]


def lasting_metrics(run_folder: Path) -> list[dict]:
    """metrics.jsonl without what depends on the clock."""
    rows = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    return [
        {k: v for k, v in row.items() if not any(x in k for x in ("per_second", "time/", "energy/"))} for row in rows
    ]


@pytest.fixture(scope="module")
def compiled() -> list[str]:
    """Names of the programs that `whole_run` compiles or reads from the cache, as it does."""
    return []


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory, compiled) -> Path:
    """A smoke run of 4 iterations that nothing interrupted."""

    def listen(event: str, _: float, fun_name: str = "", **__) -> None:
        if event.endswith("/backend_compile_duration"):
            compiled.append(fun_name)

    folder = tmp_path_factory.mktemp("whole")
    jax.monitoring.register_event_duration_secs_listener(listen)
    assert train(folder) == 0
    jax.monitoring.unregister_event_duration_listener(listen)
    return folder / "smoke"


@pytest.fixture
def run_copy(whole_run, tmp_path) -> Path:
    return Path(shutil.copytree(whole_run, tmp_path / "runs" / "smoke"))


def test_a_run_leaves_what_a_reader_needs(whole_run):
    assert [row["iteration"] for row in lasting_metrics(whole_run)] == [1, 2, 3, 4]
    assert config.load(whole_run / "config.toml").search.num_simulations == 2
    record = json.loads((whole_run / "run.json").read_text())
    assert record["starts"][0]["versions"]["jax"] == jax.__version__
    found, complaints = checkpoint.find(whole_run / "checkpoints")
    assert [c.order for c in found] == [(k, 0, 0) for k in (4, 3, 2, 1, 0)] and not complaints
    assert [len(c.manifest["parts"]) for c in found] == [2, 2, 1, 1, 1]  # keep_newest = 2


def test_a_run_compiles_each_phase_once_and_little_else(whole_run, compiled):
    assert [compiled.count(f"jit({name})") for name in ("play", "fill_window", "train_steps")] == [1, 1, 1]
    assert len(compiled) <= 40, compiled


def test_training_changes_the_weights_and_the_same_seed_repeats_them(whole_run, tmp_path):
    assert weights(whole_run, "0") != weights(whole_run, "4")
    assert train(tmp_path, "--num-iterations", "2") == 0
    assert weights(tmp_path / "smoke", "2") == weights(whole_run, "2")


@pytest.mark.slow
def test_another_seed_gives_other_weights(whole_run, tmp_path):
    assert train(tmp_path, "--num-iterations", "1", "--run", "other", "--seed", "1") == 0
    assert weights(tmp_path / "other", "1") != weights(whole_run, "1")


def test_a_run_continued_equals_one_never_stopped(whole_run, tmp_path):
    assert train(tmp_path, "--num-iterations", "1") == 0
    assert train(tmp_path) == 0
    assert weights(tmp_path / "smoke", "4") == weights(whole_run, "4")
    assert lasting_metrics(tmp_path / "smoke") == lasting_metrics(whole_run)


LOOKS = [5, pytest.param(1, marks=pytest.mark.whole), *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 3, 8))]


@pytest.mark.parametrize("looks", LOOKS)
def test_a_run_stopped_inside_an_iteration_equals_one_never_stopped(whole_run, tmp_path, looks):
    experiment = read_experiment(SMOKE, [*SMALL, *SEGMENTS])
    folder = tmp_path / "smoke"
    assert not loop.train(experiment, folder, StopAfter(looks))
    assert loop.train(experiment, folder, StopRequest())
    assert weights(folder, "4") == weights(whole_run, "4")
    assert lasting_metrics(folder) == lasting_metrics(whole_run)
    assert not list((folder / "checkpoints").glob("*-stopped"))


def test_metrics_count_the_seconds_of_an_iteration_before_it_was_stopped(whole_run, tmp_path):
    """As a checkpoint that says 1000 s of self-play tells; six digits are written, so what comes after may not show."""
    experiment = read_experiment(SMOKE, [*SMALL, *SEGMENTS, "--num-iterations", "1"])
    folder = tmp_path / "smoke"
    assert not loop.train(experiment, folder, StopAfter(1))
    found = checkpoint.open_checkpoint(folder / "checkpoints" / "0-stopped")
    assert found.manifest["seconds"]["selfplay"] > 0
    checkpoint._write_manifest(found.path, found.manifest | {"seconds": {"selfplay": 1000.0}})
    assert loop.train(experiment, folder, StopRequest())
    (row,) = read_metrics(folder / "metrics.jsonl")
    assert row["time/selfplay"] >= 1000 and row["time/train"] < 1000


IN_A_PROCESS = """
import os, pathlib, signal, sys
sys.path.insert(0, {benchmarks!r})
{before}
from alphagateau.commands.main import main
sys.exit(main({words!r}))
"""
SIGNAL_IN_SELFPLAY = """
from alphagateau.runs.logging.progress import Reporter
def phase(self, text, done):
    if text == "selfplay" and 1 < done < 2:  # the second segment of iteration 2
        os.kill(os.getpid(), signal.SIGTERM)
Reporter.phase = phase
"""
SIGNAL_IN_THE_START = """
from alphagateau.training import loop
make_trainer = loop.make_trainer
def interrupted(*words):
    os.kill(os.getpid(), signal.SIGINT)
    return make_trainer(*words)
loop.make_trainer = interrupted
"""
KILL_IN_A_CHECKPOINT = """
import kills
from alphagateau.runs import checkpoint
save = checkpoint.save
def killed(folder, name, *words):
    if name == "2":
        kills.die_at(22, folder)  # its second part half written
    return save(folder, name, *words)
checkpoint.save = killed
"""


def train_in_a_process(folder: Path, before: str) -> subprocess.CompletedProcess:
    """`alphagateau train` with the options of `train`, in a process that first runs `before`."""
    words = ["train", str(SMOKE), "--runs", str(folder), *SMALL, *SEGMENTS]
    code = IN_A_PROCESS.format(benchmarks=str(BENCHMARKS), before=before, words=words)
    cache = str(jax.config.jax_compilation_cache_dir)
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=900)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("before", "code", "left", "said"),
    [
        (SIGNAL_IN_SELFPLAY, 0, "1-stopped", "stopped (SIGTERM) in iteration 2"),
        (SIGNAL_IN_THE_START, 0, "0", "stopped (SIGINT) in iteration 1"),
        (KILL_IN_A_CHECKPOINT, -signal.SIGKILL, "1", ""),
    ],
)
def test_a_process_that_is_told_to_stop_or_killed_goes_on_as_if_it_had_not(
    whole_run, tmp_path, before, code, left, said
):
    done = train_in_a_process(tmp_path, before)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    newest = checkpoint.find(tmp_path / "smoke" / "checkpoints")[0][0]
    assert newest.path.name == left
    assert (newest.order == (1, 1, 0)) == (left == "1-stopped")  # both segments of self-play are done
    assert train(tmp_path, *SEGMENTS) == 0
    assert weights(tmp_path / "smoke", "4") == weights(whole_run, "4")
    assert lasting_metrics(tmp_path / "smoke") == lasting_metrics(whole_run)


def test_a_deadline_stops_a_run_with_a_checkpoint(whole_run, tmp_path):
    assert train(tmp_path, *SEGMENTS, "--stop-after", "0.2s") == 0
    assert checkpoint.find(tmp_path / "smoke" / "checkpoints")[0][0].order < (4, 0, 0)
    assert train(tmp_path, *SEGMENTS) == 0
    assert weights(tmp_path / "smoke", "4") == weights(whole_run, "4")


STATISTICS = Statistics(moves=9, seconds=1.0)
RESULT = MatchResult(1, 1, 0, 0, (0, 0, 0, 1, 0), (0, 0, 0, 0, 0), [], (math.nan, math.nan), STATISTICS)


def test_a_signal_in_the_match_at_the_end_leaves_it_to_the_next_start(run_copy, monkeypatch, capfd):
    def interrupted(*players, should_stop, **options):
        os.kill(os.getpid(), signal.SIGUSR1)
        end = time.monotonic() + 30
        while not should_stop() and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(final_match, "play_match", interrupted)
    assert train(run_copy.parent, "--evaluation.num-games", "2") == 0
    assert "stopped (SIGUSR1) in the match at the end; the same command plays it" in capfd.readouterr().err
    assert not (run_copy / "results.json").exists()
    monkeypatch.setattr(final_match, "play_match", lambda *players, **options: RESULT)
    assert train(run_copy.parent, "--evaluation.num-games", "2") == 0
    assert json.loads((run_copy / "results.json").read_text())["scores"][0][2:] == [1, 1, 0, 0]


def test_metrics_written_after_the_checkpoint_are_not_doubled(run_copy, whole_run):
    shutil.rmtree(run_copy / "checkpoints" / "4")
    with (run_copy / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 5, "train/lo')  # cut short by a kill
    assert train(run_copy.parent) == 0
    assert lasting_metrics(run_copy) == lasting_metrics(whole_run)
    assert weights(run_copy, "4") == weights(whole_run, "4")


def flip_a_bit(part: Path) -> None:
    file = max((p for p in part.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def test_a_damaged_checkpoint_is_passed_over(run_copy, whole_run, capfd):
    flip_a_bit(run_copy / "checkpoints" / "4" / "training")
    copied = shutil.copytree(run_copy / "checkpoints" / "4", run_copy / "checkpoints" / "my_copy")
    assert train(run_copy.parent) == 0
    error = capfd.readouterr().err
    assert "checksum" in error and f"removed: {run_copy / 'checkpoints' / '4'}" in error and copied.exists()
    assert weights(run_copy, "4") == weights(whole_run, "4")


def test_no_whole_checkpoint_is_said_and_nothing_is_touched(run_copy, capfd):
    for folder in (run_copy / "checkpoints").iterdir():
        (folder / "manifest.json").write_text("{")
    before = sorted(p for p in run_copy.rglob("*") if p.is_file())
    assert train(run_copy.parent) == 1
    assert "no checkpoint" in capfd.readouterr().err
    assert sorted(p for p in run_copy.rglob("*") if p.is_file()) == before


def test_a_run_folder_of_another_experiment_is_refused(run_copy, capfd):
    assert train(run_copy.parent, "--training.batch-size", "16") == 2
    error = capfd.readouterr().err
    assert "training.batch_size: 32 -> 16" in error and error.count("\n") == 1
    assert config.load(run_copy / "config.toml").training.batch_size == 32


def test_weights_move_to_the_other_board(whole_run):
    experiment = config.load(SMOKE)
    chess = config.from_dict({**config.to_dict(experiment), "game": "chess"})
    trainer = make_trainer(chess, make_mesh(chess.num_shares))
    moved = resume.load_weights(trainer, resume.find_origin(whole_run))
    there = newest_checkpoint(whole_run)
    assert checkpoint.weights_hash(moved) == there.manifest["weights_hash"]
    assert there.manifest["game"] == "gardner_chess"


def test_init_from_starts_from_those_weights(whole_run, tmp_path):
    assert train(tmp_path, "--num-iterations", "1", "--init-from", str(whole_run)) == 0
    assert weights(tmp_path / "smoke", "0") == weights(whole_run, "4")


def test_a_run_without_a_checkpoint_yet_still_begins_from_the_weights_it_was_first_given(whole_run, tmp_path, capfd):
    """Killed before its first checkpoint and started without `--init-from`, it began from random weights."""
    assert train(tmp_path, "--num-iterations", "1", "--init-from", str(whole_run)) == 0
    shutil.rmtree(tmp_path / "smoke" / "checkpoints")
    (tmp_path / "smoke" / "config.toml").unlink()  # run.json is written before it
    (tmp_path / "smoke" / "metrics.jsonl").unlink()
    capfd.readouterr()
    assert train(tmp_path, "--num-iterations", "1") == 0
    assert weights(tmp_path / "smoke", "0") == weights(whole_run, "4")
    assert f"from {whole_run}" in "".join(capfd.readouterr())


def test_a_run_that_goes_on_says_that_it_began_from_other_weights(whole_run, tmp_path, capfd):
    assert train(tmp_path, "--num-iterations", "1") == 0
    capfd.readouterr()
    assert train(tmp_path, "--num-iterations", "1", "--init-from", str(whole_run)) == 2
    assert f"began from no weights, not from {whole_run}" in capfd.readouterr().err


def test_more_iterations_than_a_schedule_was_made_for_are_said(tmp_path, capfd):
    assert train(tmp_path, "--num-iterations", "1", "--training.schedule", "cosine") == 0
    assert "num_iterations was" not in "".join(capfd.readouterr())
    assert train(tmp_path, "--num-iterations", "2", "--training.schedule", "cosine") == 0
    assert "num_iterations was 1 and is 2: the cosine schedule" in "".join(capfd.readouterr())


def test_init_from_a_network_of_another_shape_is_one_sentence(whole_run, tmp_path, capfd):
    options = ["--init-from", str(whole_run), "--network.hidden-size", "16"]
    assert train(tmp_path, *options) == 2
    error = capfd.readouterr().err
    assert "network.hidden_size is 8, not 16; --network-from-init takes" in error and error.count("\n") == 1
    assert not (tmp_path / "smoke").exists()


def test_init_from_weights_that_do_not_fit_is_said_before_anything_is_compiled(whole_run, tmp_path, monkeypatch):
    """Programs were being compiled meanwhile, and the process stayed for a minute after its error."""
    monkeypatch.setattr(loop, "compile_all", lambda *_: pytest.fail("compiled"))
    assert train(tmp_path, "--init-from", str(whole_run), "--network.num-blocks", "2") == 2


def test_weights_that_fit_but_were_learnt_by_another_network_are_said(whole_run, tmp_path, capfd):
    options = ["--num-iterations", "1", "--init-from", str(whole_run), "--network.neighbors", "outgoing"]
    assert train(tmp_path, *options) == 0
    said = f"the weights of {whole_run / 'checkpoints' / '4'} fit, and were learnt with "
    assert said + 'network.neighbors is "incoming", not "outgoing"' in capfd.readouterr().err


def test_network_from_init_takes_the_network_of_the_source(whole_run, tmp_path, monkeypatch, capfd):
    options = ["--num-iterations", "1", "--network.hidden-size", "16", "--network-from-init"]
    assert train(tmp_path, *options) == 2
    assert "--network-from-init needs --init-from" in capfd.readouterr().err
    sizes: list[int] = []  # of the networks whose FLOPs are counted

    def check(folder, budget, experiment):
        sizes.append(experiment.network.hidden_size)
        return lambda: None

    monkeypatch.setattr(train_command, "make_budget_check", check)
    for _ in range(2):  # the second goes on with the run, as the same command does
        assert train(tmp_path, *options, "--init-from", str(whole_run), "--until", "flops=1e15") == 0
    assert sizes == [8, 8]
    assert config.load(tmp_path / "smoke" / "config.toml").network.hidden_size == 8
    assert weights(tmp_path / "smoke", "0") == weights(whole_run, "4")


def test_a_run_knows_what_it_reads_by_its_hash(tmp_path):
    """Its labels were known so, not the positions in which its games begin."""
    starts = tmp_path / "starts.fen"
    starts.write_text("rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1\n")
    experiment = read_experiment("smoke", [f"--selfplay.starts={starts}"])
    before = loop.source_hash(experiment)
    starts.write_text("rnbqk/ppppp/5/PPPPP/RNBQK b - - 0 1\n")
    assert before is not None and before != loop.source_hash(experiment)
    assert loop.source_hash(read_experiment("smoke", [])) is None


def test_a_run_whose_checkpoints_cannot_be_read_does_not_begin(tmp_path, monkeypatch, capfd):
    """It was trained to its end, and the match at the end found nothing to play."""

    def unreadable(*_):
        raise ValueError("NOT_FOUND")

    monkeypatch.setattr(trees, "read", unreadable)
    assert train(tmp_path) == 1
    assert "what this run writes cannot be read, so it does not begin: " in capfd.readouterr().err
    assert list((tmp_path / "smoke" / "checkpoints").iterdir()) == []
    assert not (tmp_path / "smoke" / "metrics.jsonl").exists()


def test_a_player_that_leaves_the_match_at_the_end_is_said_and_the_match_is_played_again(run_copy, monkeypatch, capfd):
    """Its scores of no games were the run's results for good, without a word."""
    left = RESULT._replace(statistics=Statistics(failures={"iteration 4": "its search is not sound"}))
    monkeypatch.setattr(final_match, "play_match", lambda *players, **options: left)
    assert train(run_copy.parent, "--evaluation.num-games", "2") == 1
    assert "iteration 4 left the match at the end: its search is not sound" in capfd.readouterr().err
    monkeypatch.setattr(final_match, "play_match", lambda *players, **options: RESULT)
    assert train(run_copy.parent, "--evaluation.num-games", "2") == 0


def test_a_finished_run_says_so_and_compiles_and_plays_nothing(run_copy, monkeypatch, capfd):
    played = []

    def play(*players, **options):
        played.append(players)
        return RESULT

    monkeypatch.setattr(final_match, "play_match", play)
    monkeypatch.setattr(loop, "compile_all", lambda *_: pytest.fail("compiled"))
    for match_is_said in (True, False):
        assert train(run_copy.parent, "--evaluation.num-games", "2") == 0
        out, error = capfd.readouterr()
        assert "smoke is finished: " in error and ("the match at the end: " in error) == match_is_said
        assert "iteration 0" in out
    assert len(played) == 2  # against iteration 0 and the random mover, once


def test_a_budget_that_is_reached_says_that_a_larger_one_goes_on(run_copy, monkeypatch, capfd):
    """It said that the same command does."""
    monkeypatch.setattr(loop, "compile_all", lambda *_: None)
    assert train(run_copy.parent, "--num-iterations", "9", "--until", "iterations=1") == 0
    assert "is reached) in iteration 5; a larger one goes on" in capfd.readouterr().err


def test_a_finished_run_keeps_its_number_of_iterations(run_copy):
    """Its page said "3 of 1 iterations"."""
    before = config.load(run_copy / "config.toml").num_iterations
    assert train(run_copy.parent, "--num-iterations", "1") == 0
    assert config.load(run_copy / "config.toml").num_iterations == before > 1


def test_a_run_within_another_exceptions_block_ends_as_any_other(run_copy, monkeypatch):
    """Its log did not wait for Aim, whose run was then begun once more."""
    waited = []
    monkeypatch.setattr(MetricsLog, "close", lambda log, is_waiting=True: waited.append(is_waiting))
    try:
        raise KeyError
    except KeyError:
        assert train(run_copy.parent) == 0
    assert waited == [True]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["train"], 2, "experiment file"),
        (["train", "nowhere.toml"], 2, "nowhere.toml"),
        (["train", str(SMOKE), "--selfplay.num-game", "8"], 2, "selfplay.num-games"),
        (["train", str(SMOKE), "--init-from", "nowhere"], 2, "nowhere"),
        (["train", str(SMOKE), "--stop-after", "soon"], 2, "soon"),
        (["train", str(SMOKE), "--num-shares", "3"], 2, "divisible"),
        (["train", str(SMOKE), "--training.samples-per-frame", "0.01"], 2, "too few frames for one optimizer step"),
        (
            ["train", str(SMOKE), "--network.action-values", "--search.algorithm", "action_value"],
            *(2, "teaches no action values"),
        ),
        (["trian"], 2, "trian"),
    ],
)
def test_bad_input_is_one_line(words, code, said, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == code
    error = capfd.readouterr().err
    assert said in error and "Traceback" not in error and error.strip().count("\n") == 0


def test_no_gpu_is_said_and_no_run_is_made(tmp_path, capfd):
    if any(d.platform == "gpu" for d in jax.devices()):
        pytest.skip("this machine has a GPU")
    assert train(tmp_path, "--platform", "gpu") == 2
    assert "gpu" in capfd.readouterr().err
    assert not (tmp_path / "smoke").exists()


def test_a_cpu_cannot_be_cut_once_jax_has_started(tmp_path, capfd):
    assert train(tmp_path, "--cpu-devices", str(jax.device_count("cpu") + 1)) == 2
    assert "cpu_devices" in capfd.readouterr().err
    assert not (tmp_path / "smoke").exists()


def test_a_second_process_on_the_run_is_refused(run_copy, capfd):
    with run_folder.locked(run_copy):
        assert train(run_copy.parent) == 1
    assert "in use" in capfd.readouterr().err


def test_a_folder_that_cannot_be_written_is_said(tmp_path, capfd):
    (tmp_path / "file").write_text("")
    assert train(tmp_path / "file") == 1
    assert "file" in capfd.readouterr().err


def test_a_disk_that_is_full_leaves_the_last_checkpoint(run_copy, whole_run, monkeypatch, capfd):
    shutil.rmtree(run_copy / "checkpoints" / "4")

    def full(path, tree):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trees, "write", full)
    assert train(run_copy.parent) == 1
    error = capfd.readouterr().err
    assert "No space left" in error and "needed" in error
    assert [c.order[0] for c in checkpoint.find(run_copy / "checkpoints")[0]] == [3, 2, 1, 0]
    assert not [p for p in (run_copy / "checkpoints").iterdir() if p.name.startswith(".")]
    monkeypatch.undo()
    assert train(run_copy.parent) == 0
    assert weights(run_copy, "4") == weights(whole_run, "4")


def test_a_loss_that_is_not_finite_stops_the_run(run_copy, capfd):
    shutil.rmtree(run_copy / "checkpoints" / "4")
    experiment = config.load(run_copy / "config.toml")
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    newest = checkpoint.find(run_copy / "checkpoints")[0][0]
    progress, state = resume.restore(trainer, newest)
    poisoned = jax.tree.map(lambda x: x * np.nan if x.dtype == np.float32 else x, state.train.opt_state)
    state = state._replace(train=state.train._replace(opt_state=poisoned))
    resume.save(trainer, run_copy, state, progress)
    assert train(run_copy.parent) == 1
    assert "went wrong in iteration 4" in capfd.readouterr().err


def sick_copy(run_copy: Path) -> None:
    """The run as if iteration 3 had left weights 30 times too large, and games 6 plies before their limit."""
    experiment = config.load(run_copy / "config.toml")
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    shutil.rmtree(run_copy / "checkpoints" / "4")
    progress, state = resume.restore(trainer, checkpoint.find(run_copy / "checkpoints")[0][0])
    variables = {**state.train.variables, "params": jax.tree.map(lambda x: 30 * x, state.train.variables["params"])}
    games = state.producer.games._replace(ply=state.producer.games.ply + 250)
    state = state._replace(
        train=state.train._replace(variables=variables), producer=state.producer._replace(games=games)
    )
    resume.save(trainer, run_copy, state, progress)


STRICT = ["--health.max-weight-norm", "100", "--health.max-gradient-norm", "50", "--health.max-draw-rate", "0.9"]
STRICT += ["--health.max-truncation-rate", "0.5", "--health.max-game-length", "200"]
STRICT += ["--health.max-value-saturation", "0.3", "--health.max-value-calibration-error", "0.2"]
STRICT += ["--health.min-policy-entropy", "1.0"]


def test_sick_weights_and_endless_games_are_named(run_copy, capfd, monkeypatch):
    monkeypatch.setattr(health, "LEAST_GAMES", 1)  # so few are played here
    sick_copy(run_copy)
    assert train(run_copy.parent, *STRICT) == 0
    said = capfd.readouterr().err
    for meaning in (
        "policy has collapsed onto single moves",
        "value head is saturated",
        "value head is not calibrated",
        "too many games are drawn",
        "too many games reach the ply limit",
        "too many games repeat another move by move",
        "games are absurdly long",
        "gradient is too large",
        "weights are too large",
    ):
        assert f"unhealthy in iteration 4: the {meaning}" in said or f"unhealthy in iteration 4: {meaning}" in said
    left = checkpoint.find(run_copy / "checkpoints")[0]
    assert len(info.description_of(run_copy)["symptoms"]) == 9
    assert [c.order[0] for c in left if "training" in c.manifest["parts"]] == [4, 3]


def test_a_run_that_health_stops_names_its_last_healthy_checkpoint(run_copy, whole_run, capfd):
    shutil.rmtree(run_copy / "checkpoints" / "4")
    strict = ["--health.max-weight-norm", "1", "--health.action", "stop"]
    for said_before in ("", "the start before this one stopped as unhealthy in iteration 4: the weights"):
        assert train(run_copy.parent, *strict) == 1
        error = capfd.readouterr().err
        assert said_before in error and "above health.max_weight_norm = 1; the last healthy checkpoint is 3;" in error
        assert info.description_of(run_copy)["stopped_by_health"]["last_healthy_checkpoint"] == "3"
        assert not (run_copy / "checkpoints" / "4").exists()
    assert train(run_copy.parent) == 0
    assert weights(run_copy, "4") == weights(whole_run, "4")
    assert info.description_of(run_copy)["stopped_by_health"] is None


def test_an_unhealthy_checkpoint_is_not_gone_on_from_silently(run_copy, capfd):
    shutil.rmtree(run_copy / "checkpoints" / "4")
    assert train(run_copy.parent, "--health.max-weight-norm", "1") == 0
    assert train(run_copy.parent) == 0
    assert "after iteration 4 (4)\nthat iteration was unhealthy: the weights are too large" in capfd.readouterr().err
    retention = ["--retention.keep-newest", "1", "--health.max-weight-norm", "1", "--num-iterations", "6"]
    assert train(run_copy.parent, *retention) == 0
    whole = [c.path.name for c in checkpoint.find(run_copy / "checkpoints")[0] if "training" in c.manifest["parts"]]
    assert whole == ["6", "3"]  # the newest, and the last healthy one


def test_weights_that_are_not_finite_are_never_written(run_copy):
    experiment = config.load(run_copy / "config.toml")
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    progress, state = resume.restore(trainer, checkpoint.find(run_copy / "checkpoints")[0][0])
    broken = jax.tree.map(lambda x: x.at[(0,) * x.ndim].set(np.inf), state.train.variables)
    state = state._replace(train=state.train._replace(variables=broken))
    with pytest.raises(run_folder.Unhealthy, match="after iteration 4: the weights are not finite"):
        resume.save(trainer, run_copy, state, progress)
    assert checkpoint.find(run_copy / "checkpoints")[0][0].path.name == "4"


def test_nothing_outside_the_run_folder_is_written(whole_run):
    assert sorted(os.listdir(whole_run.parent)) == ["smoke"]


def test_a_process_lost_while_the_first_checkpoint_is_read_costs_no_checkpoint(run_copy, monkeypatch):
    """It was called unreadable, and removed."""
    saved = newest_checkpoint(run_copy)
    weights = {"w": np.zeros(2, np.float32)}

    def lose(*_):
        raise RuntimeError("Gloo AllGather failed: Connection reset by peer")

    monkeypatch.setattr(trees, "read", lose)
    monkeypatch.setattr(resume, "restore", lambda trainer, found: checkpoint.load(found, checkpoint.WEIGHTS, weights))
    trainer: Any = None
    with monkeypatch.context() as patch:
        patch.setattr(processes, "count", lambda: 2)
        with pytest.raises(checkpoint.CheckpointError) as caught:
            loop.read_back(trainer, saved)
        assert processes.is_loss(caught.value) and saved.path.exists()
    with pytest.raises(checkpoint.CheckpointError, match="cannot be read, so it does not begin"):
        loop.read_back(trainer, saved)
    assert not saved.path.exists()
