"""Runs that are stopped and go on: a request to stop at a known place, and one trainer for all starts of a run."""

import pytest

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
