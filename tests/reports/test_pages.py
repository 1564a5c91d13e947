"""HTML pages: nothing from outside becomes markup, nothing is fetched, and the page works in a browser."""

import base64
import hashlib
import math
import re
import subprocess
import sys
from collections.abc import Iterator

import chess
import pytest
from boards import GardnerBoard
from chromium import Page, browsing
from looking import CUT, FAINT, brightness, unnamed
from markup import HOSTILE, SHOWN, Outline, browser, dom_of, drawn, said_by

from alphagateau.ratings.pairs import Residual
from alphagateau.ratings.results import Row
from alphagateau.reports.drawing.game_viewer import GameView, view_game
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import table
from alphagateau.reports.ladder_page import LearntOn, RatedPlayer, ladder_page
from alphagateau.reports.run_page import run_page


def sample_games(name: str = "Ada") -> list[GameView]:
    """A 5x5 game of 3 plies and an 8x8 game with castling, a capture en passant and a promotion."""
    small = GardnerBoard()
    large = chess.Board("r3k2r/6P1/8/8/4p3/8/3P4/R3K2R w KQkq - 0 20")
    moves = ("d2d4", "e4d3", "e1g1", "e8c8", "g7h8q")
    return [
        view_game(small, ("b2b3", "c4b3", "a2b3"), "*", f"{name} 5x5", {"White": name}),
        view_game(large, moves, "1-0", f"{name} 8x8", {name: "Black"}),
    ]


def sample_ladder(name: str = "Ada") -> str:
    players = [
        RatedPlayer(f"{name}/2", 1100.0, 25.0, 40, 0.7, [(name, 2)]),
        RatedPlayer(f"{name}/1", 900.0, 20.0, 40, 0.4, [(name, 1)]),
        RatedPlayer(f"random {name}", 10.0, 0.0, 20, 0.05),
        RatedPlayer("idle", math.nan, math.nan, 0),
    ]
    return ladder_page(
        f"Ladder of {name}",
        f"by {name}",
        players,
        [Row(f"{name}/1", f"{name}/2", 3, 4, 13), Row(f"random {name}", f"{name}/1", 0, 2, 18)],
        residuals=[Residual(f"{name}/1", f"{name}/2", 20, 5.0, 9.5, -3.4)],
        notes=[f"left out: {name}"],
        protocol={name: {"simulations": 16}},
        games=sample_games(name),
    )


def sample_report(name: str = "Ada") -> str:
    rows = [
        {"iteration": i, "train/policy_loss": 2 / i, "train/value_loss": math.nan, name: i, f"time/{name}": 1.5}
        for i in range(1, 60)
    ]
    return run_page(
        name,
        facts={
            "version of orbax-checkpoint": "5073d7b595a8d885",
            "commit": name,
            "versions": {"jax": name},
            "devices": [name, name],
        },
        metrics=rows,
        config={name: {"size": 3}},
        meaning={name: name},
        health=[(7, name)],
        level=name,
        calibration=[(30 + v, v / 4, v / 5) for v in range(-4, 5)],
        players=[RatedPlayer(name, 1.0, 2.0, 3, 0.5, [(name, 1)])],
        games=sample_games(name),
        notes=[name],
        subtitle=name,
    )


@pytest.mark.parametrize("make", [sample_ladder, sample_report])
def test_hostile_names_stay_text(make):
    tame, hostile = Outline(make()), Outline(make(HOSTILE))
    assert [t for t in hostile.tags if t != "wbr"] == [t for t in tame.tags if t != "wbr"]
    assert {name for name, _ in hostile.attributes} == {name for name, _ in tame.attributes}
    assert 'document.title="taken"' in "".join(hostile.texts)
    make(HOSTILE).encode("utf-8")


@pytest.mark.parametrize("page", [sample_ladder(), sample_report()])
def test_page_names_nothing_outside_itself(page):
    assert not re.search(r"https?:|@import|url\(|\ssrc=|://", page)
    links = [value for name, value in Outline(page).attributes if name == "href"]
    assert links and all(value.startswith(("#", "data:")) for value in links)


def test_policy_allows_only_the_pages_own_script():
    page = sample_ladder()
    script = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    policy = "default-src 'none'; script-src 'sha256-" + digest + "'; style-src 'unsafe-inline'; img-src data:;"
    assert policy in page


def test_pages_import_neither_jax_nor_scipy():
    code = "import sys; from alphagateau.reports import ladder_page, run_page\n"
    code += "print(sorted({'jax', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ladder_ranks_and_marks_what_it_does_not_know():
    rows = re.findall("<tr>(<td.*?)</tr>", sample_ladder())
    cells = [re.sub("<.*?>", "|", row).replace("||", "|") for row in rows]
    assert cells[0] == "|1|Ada/2|1100|50|40|70.0%|" and cells[3] == "|–|idle|–|–|0|–|"
    assert '<td data-order="-3.4" class="bad">-3.4</td>' in sample_ladder()


def test_a_curve_rated_as_one_has_a_band_and_one_of_single_players_bars():
    players = [RatedPlayer(f"r/{k}", 100.0 * k, 30.0, 9, 0.5, [("r", k)], costs={"frames": 64.0 * k}) for k in range(4)]
    engine = RatedPlayer("engine", 250.0, 10.0, 9)
    with_band, with_bars = (
        ladder_page("a", "b", [*players, engine], (), has_band=has_band) for has_band in (True, False)
    )
    assert with_band.count('class="band"') == 2 and 'class="band"' not in with_bars  # against iterations, and frames
    assert "Elo with bands of 2 standard errors; dashed: players without iterations" in with_band
    assert "Elo with bars of 2 standard errors" in with_bars and "Elo by frames played" in with_bars


def test_a_run_is_zero_shot_where_neither_it_nor_its_weights_have_learnt():
    players = [RatedPlayer(f"{run}/{k}", 9.0, 3.0, 9, 0.5, [(run, k)]) for run in ("pre", "tuned") for k in range(3)]
    runs = {"pre": LearntOn("gardner_chess"), "tuned": LearntOn("los_alamos_chess", 2, ("gardner_chess",))}

    def lines(board):
        page = ladder_page("a", "b", players, (), board=board, learnt_on=runs)
        return re.findall("(?:pre|tuned), learnt on [a-z_, ]*(?:: zero-shot)?", page.replace("<wbr>", ""))

    both = "tuned, learnt on gardner_chess, then los_alamos_chess"
    assert {*lines("los_alamos_chess")} == {"pre, learnt on gardner_chess: zero-shot", both}
    assert {*lines("gardner_chess")} == {"pre, learnt on gardner_chess", both}
    assert {*lines("chess")} == {"pre, learnt on gardner_chess: zero-shot", f"{both}: zero-shot"}


def test_page_of_thousands_of_players():
    players = [RatedPlayer(f"p{i}", float(i), 30.0, 10, 0.5) for i in range(2000)]
    rows = [Row(f"p{i}", f"p{i * 7 % 2000}", 1, 1, 1) for i in range(1999)]
    assert len(ladder_page("many", "wls", players, rows)) < 1_000_000


def test_report_draws_every_metric_once():
    names = ["train/loss", "train/gradient_norm", "selfplay/draw_rate", "selfplay/games", "time/train", "odd"]
    names += ["selfplay/moves_per_second", "train/policy_entropy", "train/value_accuracy"]
    rows = [{"iteration": i, **dict.fromkeys(names, i)} for i in (1, 2)]
    page = run_page("r", facts={}, metrics=rows)
    assert sorted(re.findall(r"<title>(\S+): 2 at 2</title>", page)) == sorted(names)
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings == ["Health", "Learning", "Self-play", "Throughput", "Other metrics"]
    assert "No warnings in 2 iterations." in page


def test_report_of_a_run_without_iterations():
    assert "No warnings in 0 iterations." in run_page("r", facts={"commit": None}, metrics=[])


def test_view_game_follows_python_chess_on_both_boards():
    small, large = sample_games()
    assert small.moves == ["b3", "cxb3", "axb3"] and small.fens[-1].startswith("rnbqk/pp1pp/1P3/2PPP/RNBQK b")
    assert large.moves == ["d4", "exd3", "O-O", "O-O-O", "gxh8=Q"]
    assert large.fens[-1] == "2kr3Q/8/8/8/8/3p4/8/R4RK1 b - - 0 22"
    with pytest.raises(ValueError, match="illegal"):
        view_game(chess.Board(), ["e2e5"], "*", "no")


@browser
def test_link_opens_a_position(tmp_path):
    """#game=1&ply=3: after castling, on the 8x8 board, the last move and both its squares shown."""
    dom = dom_of(sample_ladder(), tmp_path, "#game=1&ply=3")
    assert 'data-fen="r3k2r/6P1/8/8/8/3p4/8/R4RK1 b kq - 1 21"' in dom
    assert 'aria-label="Board: 21. O-O (3 of 5)"' in dom and 'href="#game=1&amp;ply=3"' in dom
    assert len(re.findall('class="square-(?:light|dark)"', dom)) == 64
    assert len(re.findall('<use .*?class="(?:white|black)"', dom)) == 8
    assert len(re.findall('class="moved"', dom)) == 4
    assert re.search('<button data-ply="3" aria-current="true">O-O<', dom)


DRIVER = """
const said = {}, q = (s) => document.querySelector(s);
const fen = () => q(".board").dataset.fen.split(" ")[0];
const go = (name) => q(`[data-go=${name}]`).click();
const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
q(".viewer").scrollIntoView();
said.start = fen();
go("on"); said.on = fen();
go("last"); said.last = fen(); go("on"); said.stays = fen() === said.last;
go("back"); said.back = fen(); go("first"); said.first = fen() === said.start;
key("ArrowRight"); said.right = fen() === said.on;
key("End"); key("ArrowLeft"); said.left = fen() === said.back;
q("[data-ply='3']").click(); said.clicked = fen() === said.last;
const corner = () => q(".board text").textContent;
said.sides = corner(); go("flip"); said.sides += corner(); key("f"); said.sides += corner();
q(".choice select").value = "1"; q(".choice select").dispatchEvent(new Event("change"));
said.other = document.querySelectorAll(".board rect").length;
const column = (n) => [...q("table.sortable").tBodies[0].rows].map((row) => row.cells[n].textContent);
const press = (n) => q("table.sortable").tHead.rows[0].cells[n].querySelector("button").click();
press(3); said.down = column(2); press(3); said.up = column(2); press(1); said.names = column(1);
document.title = JSON.stringify(said);
"""


@browser
def test_buttons_keys_and_sorting(tmp_path):
    said = said_by(dom_of(sample_ladder(), tmp_path, driver=DRIVER))
    assert said["start"] == "rnbqk/ppppp/5/PPPPP/RNBQK" and said["on"] == "rnbqk/ppppp/1P3/P1PPP/RNBQK"
    assert said["last"] == "rnbqk/pp1pp/1P3/2PPP/RNBQK" and said["back"] == "rnbqk/pp1pp/1p3/P1PPP/RNBQK"
    assert all(said[name] for name in ("stays", "first", "right", "left", "clicked"))
    assert said["sides"] == "515" and said["other"] == 64
    assert said["down"] == ["1100", "900", "10", "–"] and said["up"] == ["10", "900", "1100", "–"]
    assert said["names"] == ["Ada/1", "Ada/2", "idle", "random Ada"]


@browser
@pytest.mark.parametrize("make", [sample_ladder, sample_report])
def test_hostile_names_in_a_browser(tmp_path, make):
    """Even with a policy that lets any script of the page run, none of theirs does."""
    driver = """
        document.title = JSON.stringify({
            options: document.querySelectorAll("option").length,
            images: document.querySelectorAll("img").length,
            scripts: document.scripts.length,
            heading: document.querySelector("h1").textContent,
            header: document.querySelector(".stage dd").textContent,
        });"""
    dom_of(make(HOSTILE), tmp_path, "#game=1&ply=2")
    said = said_by(dom_of(make(HOSTILE), tmp_path, driver=driver))
    assert (said["options"], said["images"], said["scripts"]) == (2, 0, 3)
    assert said["heading"].endswith(SHOWN) and said["header"].replace("\x00", "\ufffd") == SHOWN


@pytest.fixture(scope="module")
def browsed(tmp_path_factory) -> Iterator[Page]:
    with browsing(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@browser
@pytest.mark.parametrize("make", [sample_ladder, sample_report])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_is_read_on_a_phone_and_in_the_dark(browsed, tmp_path, make, scheme, width):
    """Faint counts in the cross-table, names cut by letters, a heading and markers without a name were seen."""
    (tmp_path / "page.html").write_text(make("gardner_labelled_chessformer"), encoding="utf-8")
    browsed.look(width, 800, scheme)
    browsed.open((tmp_path / "page.html").as_uri())
    assert browsed.do("document.documentElement.scrollWidth") <= width
    assert browsed.do(FAINT) == {} and browsed.do(CUT) == [] and unnamed(browsed) == []
    assert browsed.do("[...document.querySelectorAll('th')].every((th) => th.textContent)")


@browser
def test_a_table_has_a_shadow_where_it_goes_on(browsed, tmp_path):
    """Tables were cut at the edge of a phone without a hint."""
    header, row = [f"column {i}" for i in range(30)], [""] * 30
    (tmp_path / "page.html").write_text(
        render(
            "page.html", title="wide", subtitle="", sections=[("a", drawn("parts.html", "table", table(header, [row])))]
        )
    )
    browsed.look(390, 800)
    browsed.open((tmp_path / "page.html").as_uri())
    seen = []
    for place in (0, 500, 10_000):
        browsed.do(f"document.querySelector('.scroll').scrollLeft = {place}")
        seen.append([value < 250 for value in brightness(browsed, ".scroll")])
    assert seen == [[False, True], [True, True], [True, False]]
