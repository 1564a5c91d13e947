"""Runs that are stopped and go on: a request to stop at a known place, and one trainer for all starts of a run."""

import pytest

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.distributed.mesh import make_mesh
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.trainer import Trainer, make_trainer


class StopAfter(StopRequest):
    """Asks to stop after the run has looked `looks` times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def reason(self) -> str | None:
        self.looks -= 1
        return "the test" if self.looks < 0 else None


def share_trainer(monkeypatch: pytest.MonkeyPatch, experiment: Experiment) -> Trainer:
    """The experiment's trainer, which `loop.train` uses from now on: its programs are compiled once."""
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    monkeypatch.setattr(loop, "make_trainer", lambda *_: trainer)
    return trainer


def make_trainers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer is pure functions of these keys: runs that agree in them share its compiled programs from now on."""
    trainers = {}

    def make_once(experiment, mesh):
        values = config.flatten(experiment)
        deciding = ("game", "seed", "num_shares", "network.", "search.", "selfplay.", "window.", "training.")
        key = tuple(values[name] for name in values if name.startswith(deciding))
        if key not in trainers:
            trainers[key] = make_trainer(experiment, mesh)
        return trainers[key]

    monkeypatch.setattr(loop, "make_trainer", make_once)
