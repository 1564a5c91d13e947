"""Runs that the version before wrote (schema 2: plies, epochs and steps) go on as if nothing had happened."""

import tarfile
from pathlib import Path

import pytest

from alphagateau import config
from alphagateau.commands import info
from alphagateau.config import ConfigError
from alphagateau.runs import checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training.loop import train

OLD_RUNS = Path(__file__).parent / "data" / "runs_of_schema_2.tar.gz"
WEIGHTS = "4b32d711a06fbd38"  # of the same experiment after iteration 3, when that version ran it in one piece


@pytest.fixture
def old_runs(tmp_path: Path) -> Path:
    """Three runs of three iterations, each stopped in its own place."""
    with tarfile.open(OLD_RUNS) as file:
        file.extractall(tmp_path, filter="data")
    return tmp_path


def test_an_old_checkpoint_says_what_it_is(old_runs):
    (found,), complaints = checkpoint.find(old_runs / "in_training" / "checkpoints")
    assert (found.manifest["schema"], found.order, complaints) == (2, (1, 1, 11), [])
    described = info.describe(old_runs / "between")
    assert (described["iteration"], described["is_between_iterations"], described["symptoms"]) == (2, True, [])


@pytest.mark.whole
@pytest.mark.parametrize("name", ["between", "in_selfplay", "in_training"])
def test_an_old_run_goes_on_bit_for_bit(old_runs, name):
    experiment = config.load(old_runs / name / "config.toml")
    assert train(experiment, old_runs / name, StopRequest())
    newest = checkpoint.find(old_runs / name / "checkpoints")[0][0]
    assert (newest.order, newest.manifest["schema"]) == ((3, 0, 0), checkpoint.SCHEMA)
    assert newest.manifest["weights_hash"] == WEIGHTS


@pytest.mark.whole
def test_an_old_run_stopped_inside_a_segment_of_todays_size_is_said(old_runs):
    text = (old_runs / "in_selfplay" / "config.toml").read_text()
    experiment = config.loads(text.replace("segment_plies = 4", "segment_plies = 8"))
    with pytest.raises(ConfigError, match=r"stopped at 4 inside an iteration, which selfplay\.segment_plies = 8"):
        train(experiment, old_runs / "in_selfplay", StopRequest())
