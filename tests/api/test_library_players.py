"""The library: docs/python.md runs as it stands; what is offered and refused."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import alphagateau
from alphagateau.runs.checkpoint import CheckpointError

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> tuple[Path, dict]:
    """The folder in which the page's blocks ran, and what they left."""
    folder, scope = tmp_path_factory.mktemp("page"), {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as output:
        exec("\n".join(blocks), scope)
    return folder, {**scope, "blocks": blocks, "output": output.getvalue()}


@pytest.fixture(scope="module")
def small_run(page) -> Path:
    return page[0]


def test_the_blocks_of_the_page_run(page):
    _, scope = page
    first, second = scope["first"], scope["second"]
    assert len(scope["blocks"]) == 9 and "c: 0 +- 0 Elo" in scope["output"]
    assert scope["run"].is_finished and [row["iteration"] for row in scope["rows"]] == [1]
    assert sum(first.policy.values()) == pytest.approx(1, abs=1e-5) and len(first.policy) == 7
    assert list(second.policy.values()) == sorted(second.policy.values(), reverse=True)
    assert scope["found"].move in {"c4d5", "c4c5", "c4b4", "c4a4"}  # the mates
    assert scope["result"].unfinished == 0
    assert scope["frames"].value_target.shape == (32,)


def test_evaluations_do_not_depend_on_their_batch(small_run):
    model = alphagateau.load(small_run / "checkpoints" / "small")
    fens = [model.game.start_fen, "k4/2Q2/1K3/5/5 w - - 0 1", "k4/2Q2/1K3/5/5 b - - 0 1"]
    together = alphagateau.evaluate(model, fens)
    for fen, evaluation in zip(fens, together, strict=True):
        (alone,) = alphagateau.evaluate(model, [fen])
        assert alone.value == pytest.approx(evaluation.value, abs=1e-5)
        assert alone.policy == pytest.approx(evaluation.policy, abs=1e-5)
    assert alphagateau.evaluate(model, []) == []
    assert alphagateau.evaluate(model, fens[0]) == alphagateau.evaluate(model, fens[:1])


def test_what_a_notebook_shows_is_one_line(small_run):
    """Weights and games made it a thousand."""
    model = alphagateau.load(small_run / "checkpoints" / "small")
    assert repr(model) == "Model(gateau of 1 iterations on gardner_chess)"
    played = alphagateau.play_match("random", "random", num_games=2, game="gardner_chess")
    assert repr(played).startswith("MatchResult(wins=") and len(repr(played)) < 80


def test_what_cannot_be_is_said(small_run):
    model = alphagateau.load(small_run / "checkpoints" / "small")
    with pytest.raises(ValueError, match="has a wrong board"):
        alphagateau.evaluate(model, ["8/8/8 w - - 0 1"])
    with pytest.raises(ValueError, match="the game is over"):
        alphagateau.search_position(model, "k4/Q4/1K3/5/5 b - - 0 1")
    with pytest.raises(ValueError, match="even number"):
        alphagateau.play_match("random", "random", num_games=3, game="chess")
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        alphagateau.load(small_run / "nowhere")
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        alphagateau.serach  # noqa: B018


def test_what_is_offered_is_documented_and_imported_when_asked_for():
    for name in alphagateau.__all__:
        assert getattr(alphagateau, name).__doc__
    code = "import sys, alphagateau; print({'jax', 'aim', 'pydantic'} & set(sys.modules), sorted(dir(alphagateau))[:2])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set() ['FoundMove', 'Model']"
