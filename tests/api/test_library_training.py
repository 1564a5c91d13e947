"""`alphagateau.train`: runs, goes on, calls back and stops as the command does."""

import math
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import alphagateau
from alphagateau.api import training
from alphagateau.config import ConfigError
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.stop import StopRequest

QUICK = {"num_iterations": 2, "evaluation.num_games": 0, "search.num_simulations": 2}


def weights(run: training.TrainedRun) -> str:
    return newest_checkpoint(run.folder).manifest["weights_hash"]


@pytest.fixture(scope="module")
def called() -> list[tuple[int, float]]:
    """What `whole` calls back."""
    return []


@pytest.fixture(scope="module")
def whole(tmp_path_factory, called) -> training.TrainedRun:
    """Two iterations without a stop."""

    def note(iteration, metrics):
        called.append((iteration, metrics["train/policy_loss"]))

    return alphagateau.train("smoke", "named", runs=tmp_path_factory.mktemp("whole"), changes=QUICK, on_iteration=note)


def test_a_run_has_a_row_and_a_call_an_iteration_and_a_checkpoint(whole, called):
    run = whole
    assert run.is_finished and run.folder.name == "named"
    assert [iteration for iteration, _ in called] == [row["iteration"] for row in run.metrics] == [1, 2]
    assert run.metrics == alphagateau.read_metrics(run.folder)
    assert called[1][1] == pytest.approx(run.metrics[1]["train/policy_loss"], rel=1e-4)  # written with few digits
    assert run.checkpoint == run.folder / "checkpoints" / "2"


@pytest.mark.whole
def test_a_callback_stops_a_run_and_the_same_call_goes_on(tmp_path, whole):
    run = alphagateau.train("smoke", runs=tmp_path, changes=QUICK, on_iteration=lambda iteration, metrics: True)
    assert not run.is_finished and len(run.metrics) == 1
    run = alphagateau.train("smoke", runs=tmp_path, changes=QUICK)
    assert run.is_finished and weights(run) == weights(whole)


@pytest.mark.whole
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_ctrl_c_writes_a_checkpoint_and_returns(tmp_path, whole, monkeypatch):
    stops = []

    class Seen(StopRequest):
        def __init__(self, *args):
            super().__init__(*args)
            stops.append(self)

    def interrupt(iteration, metrics):
        signal.raise_signal(signal.SIGINT)
        while stops[0].reason is None:  # a thread receives it
            pass

    monkeypatch.setattr(training, "StopRequest", Seen)
    run = alphagateau.train("smoke", runs=tmp_path, changes=QUICK, on_iteration=interrupt)
    assert not run.is_finished and run.checkpoint.name == "1"
    monkeypatch.undo()
    assert weights(alphagateau.train("smoke", runs=tmp_path, changes=QUICK)) == weights(whole)


@pytest.mark.whole
def test_a_record_tables_and_a_file_are_one_experiment_in_any_thread(tmp_path, whole):
    experiment = training.config.change(training.config.load(training.config.find_file("smoke", "experiment")), QUICK)
    tables = training.config.to_dict(experiment)
    found = []
    thread = threading.Thread(target=lambda: found.append(alphagateau.train(tables, "tables", runs=tmp_path)))
    thread.start()
    thread.join()
    again = alphagateau.train(experiment, "tables", runs=tmp_path)
    assert again.is_finished and weights(again) == weights(found[0]) == weights(whole)


def test_metrics_of_a_run_that_is_not_there_are_no_empty_list(tmp_path):
    with pytest.raises(RunError, match="nowhere: no such run"):
        alphagateau.read_metrics(tmp_path / "nowhere")


def test_what_cannot_be_trained_is_refused_in_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="num_simulation"):
        alphagateau.train("smoke", runs=tmp_path, changes={"search.num_simulation": 2})
    with pytest.raises(ConfigError, match="seed must be an integer from 0 to"):
        alphagateau.train("smoke", runs=tmp_path, changes={"seed": np.array([1, 2])})
    with pytest.raises(ConfigError, match=r"training\.loss must be one of"):
        alphagateau.train("smoke", runs=tmp_path, changes={"training.loss": "hinge"})
    with pytest.raises(ConfigError, match="expected a folder's name"):
        alphagateau.train("smoke", Path("../elsewhere"), runs=tmp_path)
    with pytest.raises(TypeError, match="on_iteration must be a function of a number and metrics, got 5"):
        alphagateau.train("smoke", runs=tmp_path, on_iteration=5)
    with pytest.raises(ConfigError, match="smokes"):
        alphagateau.train("smokes", runs=tmp_path)
    with pytest.raises(ValueError, match="'nan' is not a duration"):
        alphagateau.train("smoke", runs=tmp_path, stop_after=math.nan)
    with monkeypatch.context() as context, pytest.raises(CheckpointError, match="holds no whole checkpoint"):
        context.chdir(tmp_path)
        alphagateau.train("smoke", runs=tmp_path, init_from="")  # it began from nothing
    assert not any(tmp_path.iterdir())
