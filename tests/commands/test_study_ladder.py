"""What a study says of a ladder that cannot be played."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from alphagateau.cli import ladders
from alphagateau.cli.arguments import UsageError
from alphagateau.config import LadderConfig
from alphagateau.matches.specs import read_spec

ENGINE = f"{sys.executable} {Path(__file__).parents[1] / 'fake_engine.py'}"


def test_an_anchor_that_does_not_play_is_one_sentence(monkeypatch, tmp_path):
    """It is known once the engines have said what they are called, which is after the training; no run is lost."""
    ladder = LadderConfig(players=("random",), boards=("chess",), anchor="rondom")
    plan = SimpleNamespace(
        study=SimpleNamespace(name="s", ladder=ladder),
        reference=SimpleNamespace(experiment=SimpleNamespace(platform="auto")),
    )
    monkeypatch.setattr(ladders, "list_players", lambda *_: ([read_spec(f"uci:{ENGINE}?nodes=50")], {}))
    with pytest.raises(UsageError, match=r"^s, \[ladder\]: .*rondom"):
        ladders.rate_runs(SimpleNamespace(plan=plan), {}, tmp_path, SimpleNamespace(reason=None))
