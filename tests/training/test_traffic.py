"""What moves between devices in a training step, counted in the compiled program."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from alphagateau.games.variants import get_game

ROOT = Path(__file__).parents[2]
OPTIONS = ["--network.hidden-size", "8", "--network.num-blocks", "1", "--window.size", "65536"]


WAITING = ["--selfplay.continue-games", "--targets.wait-for-result", "--targets.td-lambda", "0.9", "--training.mirror"]

SAVING = ["--selfplay.full-search-share", "0.5", "--selfplay.cheap-simulations", "2"]
SAVING += ["--selfplay.random-openings", "0.5", "--selfplay.resign-plies", "3"]


@pytest.mark.whole
@pytest.mark.parametrize("more", [[], WAITING, SAVING], ids=["as published", "frames wait and are mirrored", "saving"])
def test_only_gradients_statistics_and_figures_move_between_devices(more):
    command = [sys.executable, "benchmarks/traffic.py", "experiments/smoke.toml", "--devices", "4", *OPTIONS, *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    counted = json.loads(done.stdout)
    found = counted["collectives"]
    assert found["play"] == {}
    assert sum(kind["bytes"] for kind in found["fill_window"].values()) <= 64  # sums over the iteration's games
    assert set(found["train"]) == {"all-reduce"}
    moved = found["train"]["all-reduce"]["bytes"]
    legal_share = 4 * get_game("gardner_chess").num_edges  # a batch statistic too: how often each edge is legal
    statistics = 2 * counted["batch_statistics_bytes"] + legal_share  # forward, and their gradients backward
    assert counted["parameter_bytes"] < moved
    assert moved <= counted["parameter_bytes"] + statistics + counted["figures_bytes"]
    assert moved < counted["window_bytes"] / 1000
