"""The table of ratings on the terminal, in Markdown, LaTeX and JSON, and on the page."""

import json
import re

import pytest

from alphagateau.commands.main import main
from alphagateau.ratings.results import Row, make_results
from alphagateau.ratings.results_files import write_results
from alphagateau.reports.ladder_page import RatedPlayer, ladder_page

NAMES = ("run_1/40 <b>|", "run_1/20 50% & more", "random")


@pytest.fixture
def results(tmp_path):
    """Of 300 games of three players, as results.csv."""
    rows = [Row(*NAMES[:2], 50, 20, 30), Row(NAMES[0], NAMES[2], 95, 2, 3), Row(*NAMES[1:], 90, 4, 6)]
    write_results(make_results(rows), tmp_path / "results.csv")
    return str(tmp_path / "results.csv")


def test_the_table_fits_80_columns_with_all_that_is_known(tmp_path, capsys):
    """Names of 18 letters, colors, which a PGN file has, a rating of four digits and a sign."""
    games = [(NAMES[0], "b" * 18, "1-0"), ("b" * 18, NAMES[0], "1/2-1/2"), ("b" * 18, NAMES[0], "1-0")] * 400
    text = "".join(f'[White "{w}"]\n[Black "{b}"]\n[Result "{r}"]\n\n{r}\n\n' for w, b, r in games)
    (tmp_path / "games.pgn").write_text(text)
    words = ["rate", str(tmp_path / "games.pgn"), "--anchor", NAMES[0], "--anchor-rating=-1234"]
    assert main(words) == 0
    table = capsys.readouterr().out.partition("method:")[0].splitlines()
    assert max(map(len, table)) <= 80 and "b" * 18 in "".join(table)
    header = " ".join(" ".join(table).split("─")[0].split())
    for name in ("#", "Player", "Elo", "±", "Games", "Score", "Drawn", "White", "Black", "LOS"):
        assert name in header
    assert re.search(r" 1 +run_1/40 <b>\| +-1234 +0 +1200 +50\.0% +33% +100\.0% +25\.0%", "".join(table))


def test_markdown_latex_and_json_hold_the_same_table(results, capsys):
    """Sentences go elsewhere; what is special in a name is escaped."""
    shown = {}
    for form in ("markdown", "latex", "json"):
        assert main(["rate", results, "--anchor", "random", "--format", form]) == 0
        shown[form], said = capsys.readouterr()
        assert "method: Bradley-Terry" in said and "method:" not in shown[form]
    rows = shown["markdown"].splitlines()
    assert rows[0] == "| # | Player | Elo | ± | Games | Score | Drawn | To next | ± | LOS |" and len(rows) == 5
    assert rows[2].startswith(r"| 1 | run_1/40 \<b\>\| | ")
    assert rows[4].startswith("| 3 | random | 0 | 0 | 200 | 6.0% | 3% |")
    assert shown["latex"].startswith("\\begin{tabular}{rlrrrrrrrr}\n\\toprule\n\\# & Player & Elo & $\\pm$")
    assert r"run\_1/20 50\% \& more" in shown["latex"]
    table = json.loads(shown["json"])
    best = table["players"][0]
    _, _, elo, error, _, _, drawn, gap, gap_error, superiority = rows[2].replace(r"\|", "").strip("| ").split(" | ")
    assert (table["method"], table["anchor"], best["player"]) == ("bradley-terry", "random", NAMES[0])
    assert (f"{best['rating']:.0f}", f"{2 * best['standard_error']:.0f}") == (elo, error)
    assert (f"{best['to_next']:+.0f}", f"{2 * best['to_next_error']:.0f}") == (gap, gap_error)
    assert (f"{best['superiority']:.1%}", f"{best['draws']:.0%}") == (superiority, drawn) == (superiority, "11%")


def test_each_method_is_named_with_what_to_publish(results, capsys):
    for method, said in (("wls", "publish bradley-terry"), ("bradley-terry", "Publish these ratings")):
        assert main(["rate", results, "--method", method]) == 0
        assert said in capsys.readouterr().out


def test_an_anchor_rating_without_an_anchor_is_refused(results, capsys):
    assert main(["rate", results, "--anchor-rating", "1000"]) == 2
    assert "--anchor-rating 1000 needs --anchor" in capsys.readouterr().err
    assert main(["rate", results, "--anchor", "UCI_Elo", "--anchor-rating", "1000"]) == 2
    assert "--anchor-rating 1000 needs --anchor" in capsys.readouterr().err


def test_the_page_leaves_out_what_nobody_has():
    """As of a ratings.csv of an earlier version."""
    players = [RatedPlayer("a", 900.0, 20.0, 40, 0.4, beside={"draws": 0.25}), RatedPlayer("b", 100.0, 0.0, 20)]
    page = ladder_page("title", "method", players, [], reading=["how to read <it>"])
    assert "<button>Drawn</button>" in page and ">25%<" in page and "<button>LOS</button>" not in page
    assert "how to read &lt;it&gt;" in page
