"""The library: docs/python.md runs as it stands; what is offered and refused."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import alphagateau
from alphagateau.api import players
from alphagateau.matches import specs
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


def test_evaluations_do_not_depend_on_their_batch(small_run, monkeypatch):
    model = alphagateau.load(small_run / "checkpoints" / "small")
    fens = [model.game.start_fen, "k4/2Q2/1K3/5/5 w - - 0 1", "k4/2Q2/1K3/5/5 b - - 0 1"]
    together = alphagateau.evaluate(model, fens)
    for fen, evaluation in zip(fens, together, strict=True):
        (alone,) = alphagateau.evaluate(model, [fen])
        assert alone.value == pytest.approx(evaluation.value, abs=1e-5)
        assert alone.policy == pytest.approx(evaluation.policy, abs=1e-5)
    sizes, pad_rows = [], players.pad_rows
    monkeypatch.setattr(players, "EVALUATED", 2)  # many are looked at in parts
    monkeypatch.setattr(players, "pad_rows", lambda rows: (sizes.append(len(rows)), pad_rows(rows))[1])
    in_parts = alphagateau.evaluate(model, fens)
    assert sizes == [2, 1] and [x.value for x in in_parts] == pytest.approx([x.value for x in together], abs=1e-5)
    assert alphagateau.evaluate(model, []) == []
    assert alphagateau.evaluate(model, fens[0]) == alphagateau.evaluate(model, fens[:1])
    mated, drawn = alphagateau.evaluate(model, ["k4/1Q3/K4/5/5 b - - 0 1", "k4/5/1Q3/5/K4 b - - 0 1"])
    assert (mated.policy, mated.value, drawn.policy, drawn.value) == ({}, -1, {}, 0)


def test_what_a_notebook_shows_is_one_line(small_run):
    """Weights and games made it a thousand."""
    model = alphagateau.load(small_run / "checkpoints" / "small")
    assert repr(model) == "Model(gateau of 1 iterations on gardner_chess)"
    played = alphagateau.play_match("random", "random", num_games=2, game="gardner_chess")
    assert repr(played).startswith("MatchResult(wins=") and len(repr(played)) < 80


def test_a_search_that_plays_no_legal_move_is_said(small_run, monkeypatch):
    """search_position returned the move."""
    model, compiled = alphagateau.load(small_run / "checkpoints" / "small"), players._compiled_search

    def broken(search):
        return lambda *given: compiled(search)(*given)._replace(edge=jnp.zeros(1, jnp.int16))

    monkeypatch.setattr(players, "_compiled_search", broken)
    with pytest.raises(specs.PlayerError, match="its search is not sound: a move is not legal"):
        alphagateau.search_position(model, model.game.start_fen)


def test_what_cannot_be_is_said(small_run):
    model = alphagateau.load(small_run / "checkpoints" / "small")
    with pytest.raises(ValueError, match="has a wrong board"):
        alphagateau.evaluate(model, ["8/8/8 w - - 0 1"])
    with pytest.raises(ValueError, match="the game is over"):
        alphagateau.search_position(model, "k4/Q4/1K3/5/5 b - - 0 1")
    with pytest.raises(ValueError, match="even number"):
        alphagateau.play_match("random", "random", num_games=3, game="chess")
    with pytest.raises(ValueError, match=r"num_games is 2\.0, expected an even number"):
        alphagateau.play_match("random", "random", num_games=2.0, game="chess")  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        alphagateau.load(small_run / "nowhere")
    with pytest.raises(TypeError, match="a player is named as on the command line"):
        alphagateau.play_match(model, "random")  # type: ignore[arg-type]
    for look in (alphagateau.evaluate, alphagateau.search_position):
        with pytest.raises(TypeError, match='model must be a Model, as load returns it, got "checkpoints/small"'):
            look("checkpoints/small", model.game.start_fen)
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        alphagateau.serach  # noqa: B018


def test_what_was_made_by_hand_is_a_checkpoint(page, small_run, tmp_path):
    scope, start = page[1], page[1]["start"]
    mine, made = scope["mine"], alphagateau.Model(scope["game"], scope["network"], scope["state"].variables, {})
    assert alphagateau.evaluate(mine, start) == alphagateau.evaluate(made, start)
    assert mine.manifest["search"]["num_simulations"] == 2 and alphagateau.load(small_run / "mine").game is made.game
    keys = {"hidden_size": 16, "num_blocks": 1}
    with pytest.raises(ValueError, match="the variables are not those of this gateau on gardner_chess"):
        alphagateau.save(tmp_path / "other", made.game, keys, made.variables)
    with pytest.raises(ValueError, match="the variables are not finite"):  # what is there stays
        alphagateau.save(
            small_run / "mine", made.game, scope["keys"], jax.tree.map(lambda x: x * jnp.nan, made.variables)
        )
    assert alphagateau.evaluate(alphagateau.load(small_run / "mine"), start) == alphagateau.evaluate(made, start)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years of work")
    with pytest.raises(CheckpointError, match="folder"):  # no checkpoint, and stays
        alphagateau.save(tmp_path / "folder", made.game, scope["keys"], made.variables)
    assert (tmp_path / "folder" / "thesis.tex").exists() and not (tmp_path / "other").exists()
    again = alphagateau.save(small_run / "mine", made.game, scope["keys"], scope["network"].init(jax.random.key(7)))
    assert again.manifest["weights_hash"] != mine.manifest["weights_hash"]


def test_a_player_is_also_a_path_and_one_that_was_saved_is_of_no_run(page, small_run, tmp_path, monkeypatch):
    """A Path was an AttributeError; in `checkpoints/` the folder above became its run, and gave it its name."""
    monkeypatch.chdir(tmp_path)
    scope = page[1]
    alphagateau.save(
        "checkpoints/mine", scope["game"], scope["keys"], scope["state"].variables, {"algorithm": "policy"}
    )
    found = specs.read_spec("checkpoints/mine").found
    assert found.run is None and specs.name_of(found) == "mine"
    played = alphagateau.play_match(Path("checkpoints/mine"), "random", num_games=2)
    assert played.wins + played.draws + played.losses == 2
    mine = alphagateau.load("checkpoints/mine")
    assert alphagateau.search_position(mine, scope["start"]).move
    with pytest.raises(ValueError, match="num_simulations is 8, but search policy makes none: leave it out"):
        alphagateau.search_position(mine, scope["start"], num_simulations=8)


def test_what_is_saved_replaces_no_file_of_the_user_s_and_goes_where_a_link_leads(page, tmp_path):
    """All of the folder was deleted, the cards of published ones with it, and a link became a folder."""
    game, keys, variables = page[1]["game"], page[1]["keys"], page[1]["state"].variables
    alphagateau.save(tmp_path / "mine", game, keys, variables)
    (tmp_path / "best").symlink_to(tmp_path / "mine")
    alphagateau.save(tmp_path / "best", game, keys, jax.tree.map(lambda x: x * 2, variables), {"algorithm": "policy"})
    assert (tmp_path / "best").is_symlink() and sorted(x.name for x in tmp_path.iterdir()) == ["best", "mine"]
    assert alphagateau.load(tmp_path / "mine").manifest["search"]["algorithm"] == "policy"
    (tmp_path / "mine" / "notes.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="is published, or holds other files"):
        alphagateau.save(tmp_path / "mine", game, keys, variables)
    assert (tmp_path / "mine" / "notes.txt").exists()


def test_what_is_offered_is_documented_and_imported_when_asked_for():
    for name in alphagateau.__all__:
        assert getattr(alphagateau, name).__doc__
    code = "import sys, alphagateau; print({'jax', 'aim', 'pydantic'} & set(sys.modules), sorted(dir(alphagateau))[:2])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set() ['FoundMove', 'Model']"
