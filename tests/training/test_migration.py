"""Runs that the version before wrote (schema 2: plies, epochs and steps) go on as if nothing had happened."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

from alphagateau import config
from alphagateau.commands import info
from alphagateau.config import ConfigError
from alphagateau.runs import checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training.loop import train

OLD_RUNS = Path(__file__).parent / "data" / "runs_of_schema_2.tar.gz"
PLACES = ("between", "in_selfplay", "in_training")
# The weights of the same experiment after iteration 3: when it ran in one piece, and when it goes on from each place.
# The old runs were written on a CPU with AVX-512, where the four are one. Another CPU rounds otherwise, also what it
# adds to them: the second row is AVX2's. On a CPU that rounds like neither, only the counts can be held.
WEIGHTS = {
    "4b32d711a06fbd38": dict.fromkeys(PLACES, "4b32d711a06fbd38"),
    "5e6fde1960537dc2": dict(zip(PLACES, ("9b4d92210d74b34c", "70c23a378bf5ad5c", "2cb32ed7abaf68c4"), strict=True)),
}
COUNTS = ("schema", "order", "iteration", "progress", "optimizer_steps", "parameters", "parts")


def unpack(folder: Path) -> Path:
    with tarfile.open(OLD_RUNS) as file:
        file.extractall(folder, filter="data")
    return folder


def manifest_after(folder: Path, run: Path) -> dict[str, Any]:
    """The newest manifest of `run` once the old runs' experiment, in `folder`, has come to its end there."""
    assert train(config.load(folder / "between" / "config.toml"), run, StopRequest())
    return checkpoint.find(run / "checkpoints")[0][0].manifest


@pytest.fixture
def old_runs(tmp_path: Path) -> Path:
    """Three runs of three iterations, each stopped in its own place."""
    return unpack(tmp_path)


@pytest.fixture(scope="module")
def in_one_piece(tmp_path_factory) -> dict[str, Any]:
    """The last manifest of the same experiment, begun here and never stopped."""
    folder = unpack(tmp_path_factory.mktemp("whole"))
    return manifest_after(folder, folder / "whole")


def test_an_old_checkpoint_says_what_it_is(old_runs):
    (found,), complaints = checkpoint.find(old_runs / "in_training" / "checkpoints")
    assert (found.manifest["schema"], found.order, complaints) == (2, (1, 1, 11), [])
    described = info.describe(old_runs / "between")
    assert (described["iteration"], described["is_between_iterations"], described["symptoms"]) == (2, True, [])


@pytest.mark.whole
@pytest.mark.parametrize("name", PLACES)
def test_an_old_run_goes_on_bit_for_bit(old_runs, in_one_piece, name):
    newest = manifest_after(old_runs, old_runs / name)
    assert (newest["order"], newest["schema"]) == ([3, 0, 0], checkpoint.SCHEMA)
    assert {key: newest[key] for key in COUNTS} == {key: in_one_piece[key] for key in COUNTS}
    if known := WEIGHTS.get(in_one_piece["weights_hash"]):
        assert newest["weights_hash"] == known[name]


@pytest.mark.whole
def test_an_old_run_stopped_inside_a_segment_of_todays_size_is_said(old_runs):
    text = (old_runs / "in_selfplay" / "config.toml").read_text()
    experiment = config.loads(text.replace("segment_plies = 4", "segment_plies = 8"))
    with pytest.raises(ConfigError, match=r"stopped at 4 inside an iteration, which selfplay\.segment_plies = 8"):
        train(experiment, old_runs / "in_selfplay", StopRequest())
