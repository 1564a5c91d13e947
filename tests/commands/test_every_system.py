"""Runs of Giraffe, of Chessformer and of GATEAU by TD-Leaf: what works with a run works with theirs."""

import json
import shutil
from pathlib import Path

import pytest

import alphagateau
from alphagateau.commands.main import main
from alphagateau.runs.logging.log import read_metrics

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
TINY = "--no-aim --cpu-devices 1 --num-iterations 1 --selfplay.num-games 8 --selfplay.num-plies 4 --window.size 32"
TINY += " --selfplay.segment-plies 4 --training.batch-size 16 --evaluation.num-games 0 --sample-games 1"
SMALL = {
    "giraffe_gardner": "--search.num-nodes 32 --training.material-positions 0 --network.hidden-size 16",
    "gateau_td_leaf_gardner": "--search.num-nodes 32 --network.hidden-size 8 --network.num-blocks 1",
    "chessformer_gardner": "--search.num-simulations 2 --network.hidden-size 12 --network.num-blocks 1 "
    "--network.ffn-size 8 --training.warmup-steps 1",
}


def train_words(name: str) -> list[str]:
    return ["train", str(EXPERIMENTS / f"{name}.toml"), *TINY.split(), *SMALL[name].split()]


@pytest.fixture(scope="module")
def giraffe_run(tmp_path_factory) -> Path:
    """One iteration of Giraffe on 5x5."""
    folder = tmp_path_factory.mktemp("giraffe")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(train_words("giraffe_gardner")) == 0
    return folder / "checkpoints" / "giraffe_gardner"


@pytest.mark.whole
@pytest.mark.parametrize("name", ["giraffe_gardner", "chessformer_gardner"])
def test_a_run_of_each_system_does_what_a_run_does(name, tmp_path, monkeypatch, capsys, request):
    """It goes on, is judged before it starts, shown, rated, published and read from Python."""
    monkeypatch.chdir(tmp_path)
    words = train_words(name)
    experiment, run = words[1], f"checkpoints/{name}"
    if name == "giraffe_gardner":
        shutil.copytree(request.getfixturevalue("giraffe_run"), run)
    else:
        assert main(words) == 0
    assert main([*words, "--num-iterations", "2"]) == 0
    ladder = ["ladder", run, "random", "--matching", "all", "--games-per-pair", "2", "--every", "2", "--out", "rated"]
    doctor = ["doctor", experiment, *words[2:]]
    for command in (doctor, ["report", run], ladder, ["publish", run, "mine"], ["info", "checkpoints/mine"]):
        assert main(command) == 0, (command, capsys.readouterr())
    capsys.readouterr()
    assert main(["info", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iteration"] == 2
    rated = (tmp_path / "rated" / "ratings.csv").read_text()
    assert f"{name}/2" in rated and f"{name}/0" in rated
    assert (tmp_path / run / "report.html").exists()
    model = alphagateau.load("checkpoints/mine")
    found = alphagateau.search_position(model, model.game.start_fen)
    assert found.move in ("a2a3", "b2b3", "c2c3", "d2d3", "e2e3", "b1a3", "b1c3")


@pytest.mark.whole
def test_gateau_learns_by_td_leaf_and_goes_on(tmp_path, monkeypatch):
    """Leaves teach its value, and what the searches found its policy."""
    monkeypatch.chdir(tmp_path)
    name = "gateau_td_leaf_gardner"
    words = train_words(name)
    assert main(words) == 0
    assert main([*words, "--num-iterations", "2"]) == 0
    first, last = read_metrics(tmp_path / "checkpoints" / name / "metrics.jsonl")
    assert (
        first["train/policy_loss"] > 0 and first["train/value_loss"] > 0 and last["train/steps"] > first["train/steps"]
    )


@pytest.mark.whole
def test_giraffe_refuses_weights_of_another_board(giraffe_run, tmp_path, monkeypatch, capsys):
    """Its inputs are those of one board."""
    monkeypatch.chdir(tmp_path)
    words = [*train_words("giraffe_gardner"), "--run", "large", "--game", "chess"]
    assert main([*words, "--init-from", str(giraffe_run)]) != 0
    said = capsys.readouterr().err
    assert "the weights of its giraffe have the size of gardner_chess" in said
