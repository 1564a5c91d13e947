"""The loop from the command line: training, continuing, and what bad input gets."""

import json
import os
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from alphagateau import checkpoint, config, entrants, run
from alphagateau.cli import main
from alphagateau.engine import make_engine
from alphagateau.sharding import make_mesh
from alphagateau.stopping import StopRequest

SMOKE = Path(__file__).parents[1] / "experiments" / "smoke.toml"
SMALL = ["--evaluation.num-games", "0", "--selfplay.num-simulations", "2"]


@pytest.fixture(scope="module", autouse=True)
def engines_made_once():
    """An engine is pure functions of these keys: runs of this module that agree in them share its compiled programs."""
    engines = {}

    def make_once(experiment, mesh):
        values = config.flatten(experiment)
        deciding = ("game", "seed", "num_shares", "network.", "selfplay.", "window.", "training.")
        key = tuple(values[name] for name in values if name.startswith(deciding))
        if key not in engines:
            engines[key] = make_engine(experiment, mesh)
        return engines[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "make_engine", make_once)
        yield


def train(folder: Path, *options: str) -> int:
    return main(["train", str(SMOKE), "--runs", str(folder), *SMALL, *options])


def weights(run_folder: Path, name: str) -> str:
    return checkpoint.open_checkpoint(run_folder / "checkpoints" / name).manifest["weights_hash"]


def lasting_metrics(run_folder: Path) -> list[dict]:
    """metrics.jsonl without what depends on the clock."""
    rows = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if "per_second" not in k and "time/" not in k} for row in rows]


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory) -> Path:
    """A smoke run of 4 iterations that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    assert train(folder) == 0
    return folder / "smoke"


@pytest.fixture
def run_copy(whole_run, tmp_path) -> Path:
    return Path(shutil.copytree(whole_run, tmp_path / "runs" / "smoke"))


def test_a_run_leaves_what_a_reader_needs(whole_run):
    assert [row["iteration"] for row in lasting_metrics(whole_run)] == [1, 2, 3, 4]
    assert config.load(whole_run / "config.toml").selfplay.num_simulations == 2
    record = json.loads((whole_run / "run.json").read_text())
    assert record["starts"][0]["versions"]["jax"] == jax.__version__
    found, complaints = checkpoint.find(whole_run / "checkpoints")
    assert [c.order for c in found] == [(4, 0), (3, 0), (2, 0), (1, 0), (0, 0)] and not complaints
    assert [len(c.manifest["parts"]) for c in found] == [2, 2, 1, 1, 1]  # keep_newest = 2


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


class StopAfter(StopRequest):
    """Asks to stop after the run has looked `looks` times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def reason(self) -> str | None:
        self.looks -= 1
        return "the test" if self.looks < 0 else None


@pytest.mark.parametrize("looks", [1, 5, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 3, 8))])
def test_a_run_stopped_inside_an_iteration_equals_one_never_stopped(whole_run, tmp_path, looks):
    options = [*SMALL, "--selfplay.segment-plies", "4", "--training.segment-steps", "2"]
    experiment = config.parse_command_line(SMOKE, options)
    folder = tmp_path / "smoke"
    assert not run.train(experiment, folder, StopAfter(looks))
    assert run.train(experiment, folder, StopRequest())
    assert weights(folder, "4") == weights(whole_run, "4")
    assert lasting_metrics(folder) == lasting_metrics(whole_run)
    assert not list((folder / "checkpoints").glob("*-stopped"))


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
    assert train(run_copy.parent) == 0
    assert "checksum" in capfd.readouterr().err
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
    engine = make_engine(chess, make_mesh(chess.num_shares))
    moved = run.load_weights(engine, whole_run)
    there = entrants.newest(whole_run)
    assert checkpoint.weights_hash(moved) == there.manifest["weights_hash"]
    assert there.manifest["game"] == "gardner_chess"


def test_init_from_starts_from_those_weights(whole_run, tmp_path):
    assert train(tmp_path, "--num-iterations", "1", "--init-from", str(whole_run)) == 0
    assert weights(tmp_path / "smoke", "0") == weights(whole_run, "4")


def test_init_from_a_network_of_another_shape_is_one_sentence(whole_run, tmp_path, capfd):
    options = ["--init-from", str(whole_run), "--network.hidden-size", "16"]
    assert train(tmp_path, *options) == 1
    error = capfd.readouterr().err
    assert "does not fit" in error and "Traceback" not in error
    assert not (tmp_path / "smoke" / "checkpoints").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["train"], 2, "experiment file"),
        (["train", "nowhere.toml"], 2, "nowhere.toml"),
        (["train", str(SMOKE), "--selfplay.num-game", "8"], 2, "selfplay.num-games"),
        (["train", str(SMOKE), "--init-from", "nowhere"], 1, "nowhere"),
        (["train", str(SMOKE), "--stop-after", "soon"], 2, "soon"),
        (["train", str(SMOKE), "--num-shares", "3"], 2, "divisible"),
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
    assert train(tmp_path, "--platform", "gpu") == 1
    assert "gpu" in capfd.readouterr().err
    assert not (tmp_path / "smoke").exists()


def test_a_second_process_on_the_run_is_refused(run_copy, capfd):
    from alphagateau import rundir

    with rundir.locked(run_copy):
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

    monkeypatch.setattr(checkpoint, "_write_tree", full)
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
    engine = make_engine(experiment, make_mesh(experiment.num_shares))
    newest = checkpoint.find(run_copy / "checkpoints")[0][0]
    progress, state = run.restore(engine, newest)
    poisoned = jax.tree.map(lambda x: x * np.nan if x.dtype == np.float32 else x, state.train.opt_state)
    state = state._replace(train=state.train._replace(opt_state=poisoned))
    run.save(engine, experiment, run_copy, state, progress)
    assert train(run_copy.parent) == 1
    assert "went wrong in iteration 4" in capfd.readouterr().err


def test_nothing_outside_the_run_folder_is_written(whole_run):
    assert sorted(os.listdir(whole_run.parent)) == ["smoke"]
