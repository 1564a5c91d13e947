"""A ladder's curves from its ratings.csv alone."""

import shutil
from pathlib import Path

import pytest

from alphagateau.commands.main import main
from alphagateau.config import ConfigError
from alphagateau.reports.ladder_page import draw_curves, player_of, read_rows

QUICKSTART = Path(__file__).parents[2] / "eval" / "quickstart"
HEADER = "player,rating,standard_error,games,score,flops\n"


def test_a_row_is_a_player_of_its_run_or_of_none(tmp_path):
    (tmp_path / "ratings.csv").write_text(
        HEADER + '"a-1/12 (policy, abc123)",10,2,3,0.5,7\nrandom,0,0,3,0.5,\n', "utf-8-sig"
    )
    first, second = map(player_of, read_rows(tmp_path / "ratings.csv"))
    assert (first.places, first.costs, first.rating) == ([("a-1 (policy)", 12)], {"flops": 7.0}, 10.0)
    assert (second.places, second.costs) == ([], {})


@pytest.mark.parametrize(
    ("name", "run", "iteration"),
    [
        ("r/4 (gumbel 8 simulations, aaaaaa)", "r (gumbel 8 simulations)", 4),
        ("r/8 (gumbel 8 simulations, bbbbbb)", "r (gumbel 8 simulations)", 8),
        ("r/8 (minimax, depth 2, bbbbbb)", "r (minimax, depth 2)", 8),
        ("r/8-stopped", "r", 8),
        ("r/8", "r", 8),
    ],
)
def test_iterations_of_a_run_under_one_search_are_one_curve(name, run, iteration):
    player = player_of({"player": name, "rating": "0", "standard_error": "1", "games": "2", "score": "0.5"})
    assert player.places == [(run, iteration)]


def test_the_curves_of_a_ladder_are_drawn_from_its_table(tmp_path, capsys):
    shutil.copy(QUICKSTART / "ratings.csv", tmp_path)
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'curves.svg'}\n"
    drawn = (tmp_path / "curves.svg").read_text()
    for said in ("iteration", "Elo by frames played", "Elo by device-hours", "Elo by FLOPs"):
        assert said in drawn
    assert "joules" not in drawn


def test_a_table_without_runs_is_one_sentence(tmp_path):
    (tmp_path / "ratings.csv").write_text(HEADER + "random,0,0,3,0.5,\n")
    with pytest.raises(ConfigError, match="rates no checkpoints of runs"):
        draw_curves(tmp_path)
    (tmp_path / "ratings.csv").write_text("player\nrandom\n")
    with pytest.raises(ConfigError, match=r"is no ratings\.csv of a ladder: KeyError"):
        draw_curves(tmp_path)
