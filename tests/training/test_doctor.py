"""The doctor's verdict: memory and time in, words out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphagateau.commands.main import main
from alphagateau.training.doctor import Diagnosis, advice_lines, format_hours, selfplay_bytes
from alphagateau.training.selfplay.state import SelfPlayState

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
SMALL = Diagnosis(
    memory={"frame window": 2**20},
    memory_available=2**22,
    largest_batch=256,
    selfplay_seconds=30.0,
    training_seconds=10.0,
    num_iterations=3,
    advice=[],
)


def test_a_trial_of_too_few_frames_for_a_step_is_tried(capfd):
    """The quickstart was refused for its trial's two plies."""
    changes = ["--training.samples-per-frame", "4", "--training.batch-size", "256", "--selfplay.num-plies", "32"]
    assert main(["doctor", str(SMOKE), *changes]) == 0
    assert "the run takes" in capfd.readouterr().out


def test_frames_that_wait_are_counted_and_so_is_the_copy_that_fills_the_window():
    games, window, trajectory, waiting = (np.zeros(size, np.uint8) for size in (1, 10, 100, 1000))
    state: Any = SelfPlayState(games, window, trajectory, {}, waiting)  # pyright: ignore[reportArgumentType]
    assert selfplay_bytes(state) == {
        "frame window": 10,
        "games of an iteration": 101,
        "frames that wait": 1000,
        "frames entering the window": 1100,
    }
    assert "frames that wait" not in selfplay_bytes(state._replace(waiting=None))


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (70334, "about 8 years"),
        (400, "about 2 weeks"),
        (72, "about 3 days"),
        (5.2, "about 5 hours"),
        (0.5, "about 30 minutes"),
        (0.001, "less than two minutes"),
    ],
)
def test_a_duration_in_words(hours, words):
    assert format_hours(hours) == words


def test_a_short_run_fits_and_says_how_long_it_takes():
    assert not SMALL.advice
    first, second = advice_lines(SMALL)
    assert first == "memory fits: 25% of what is free"
    assert second.startswith("the run takes about 2 minutes here")


def test_a_run_of_years_says_so_and_what_would_shorten_it():
    slow = SMALL._replace(num_iterations=6_330_060)
    assert not slow.advice
    fits, time, advice = advice_lines(slow)
    assert fits.startswith("memory fits") and "about 8 years" in time
    assert advice.startswith("most of it is self-play: lower search.num_simulations (num_nodes of a minimax)")
    assert advice_lines(slow._replace(training_seconds=31.0))[2].startswith(
        "most of it is training: lower training.num_epochs"
    )


def test_memory_that_does_not_fit_comes_first():
    large = SMALL._replace(advice=["memory does not fit: most of it is frame window; lower window.size"])
    assert large.advice
    assert advice_lines(large)[0] == large.advice[0] and len(advice_lines(large)) == 2
