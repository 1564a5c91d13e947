"""HTML pages: nothing from outside becomes markup, nothing is fetched, and the page works in a browser."""

import base64
import hashlib
import html
import json
import math
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.games.small_boards import GardnerBoard
from alphagateau.ratings.rate import Residual
from alphagateau.ratings.results import Row
from alphagateau.reports import axes, charts, pages, tables
from alphagateau.reports.board import GameView, view_game, viewer_data
from alphagateau.reports.charts import CalibrationBin, Labels, Series, calibration_chart, line_chart
from alphagateau.reports.ladder_page import LadderPage, RatedPlayer, ladder_page, rating_drawing
from alphagateau.reports.run_page import Event, RunPage, run_page

HOSTILE = """</script x><!--<script ><script>document.title="taken"</script><img src=x onerror=go()>"""
HOSTILE += """"'`&amp;\x00\ud800${1}"""
SHOWN = HOSTILE.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
VOID = {"meta", "link", "br", "img", "input", "wbr"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --virtual-time-budget=3000 --dump-dom"
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


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
        RatedPlayer(f"{name}/1", 900.0, 20.0, 40, 0.4, name, 1),
        RatedPlayer(f"{name}/2", 1100.0, 25.0, 40, 0.7, name, 2),
        RatedPlayer(f"random {name}", 10.0, 0.0, 20, 0.05),
        RatedPlayer("idle", math.nan, math.nan, 0),
    ]
    page = LadderPage(
        f"Ladder of {name}",
        f"by {name}",
        players,
        [Row(f"{name}/1", f"{name}/2", 3, 4, 13), Row(f"random {name}", f"{name}/1", 0, 2, 18)],
        residuals=[Residual(f"{name}/1", f"{name}/2", 20, 5.0, 9.5, -3.4)],
        notes=[f"left out: {name}"],
        protocol={name: {"simulations": 16}},
        games=sample_games(name),
    )
    return ladder_page(page)


def sample_report(name: str = "Ada") -> str:
    rows = [
        {"iteration": i, "train/policy_loss": 2 / i, "train/value_loss": math.nan, name: i, f"time/{name}": 1.5}
        for i in range(1, 60)
    ]
    page = RunPage(
        name,
        facts={"commit": name, "versions": {"jax": name}, "devices": [name, name]},
        metrics=rows,
        config={name: {"size": 3}},
        meaning={name: name},
        health=[Event(7, name, name)],
        calibration=[CalibrationBin(v / 4, v / 5, 30 + v, 0.1) for v in range(-4, 5)],
        players=[RatedPlayer(name, 1.0, 2.0, 3, 0.5, name, 1)],
        games=sample_games(name),
        notes=[name],
        subtitle=name,
    )
    return run_page(page)


def drawn(template: str, macro: str, *data) -> str:
    """What a macro of a template makes of data."""
    return getattr(pages.environment().get_template(template).module, macro)(*data)


class Outline(HTMLParser):
    """Tags, attributes and texts of a page; fails on a tag that is closed out of order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def dom_of(page: str, folder, fragment: str = "", driver: str = "") -> str:
    """The page as Chromium has it after loading and after `driver`, a script that the policy then allows."""
    if driver:
        page = re.sub("script-src 'sha256-[^']+'", "script-src 'unsafe-inline'", page)
        page = page.replace("</body>", f"<script>{driver}</script></body>")
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS.split(), f"--user-data-dir={folder / 'profile'}", path.as_uri() + fragment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    opening = re.search("<html[^>]*>", done.stdout)
    assert opening and "data-error" not in opening[0], opening
    return done.stdout


def said_by(dom: str) -> dict:
    """What a driver put into the title."""
    title = re.search("<title>(.*?)</title>", dom)
    assert title
    return json.loads(html.unescape(title[1]))


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


def test_pages_import_neither_jax_nor_matplotlib():
    code = "import sys; from alphagateau.reports import ladder_page, run_page\n"
    code += "print(sorted({'jax', 'matplotlib', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_numbers_as_people_read_them():
    given_and_shown = {3: "3", 12345: "12,345", 0.12345: "0.1235", 1e-5: "1e-05", 1234.5: "1,234", 0.0: "0"}
    assert {v: tables.number(v) for v in given_and_shown} == given_and_shown
    assert [tables.number(v) for v in (math.nan, math.inf, 10**400)] == ["–"] * 3


def test_table_marks_numbers_and_refuses_a_short_row():
    markup = drawn("parts.html", "table", tables.table(["a", "b"], [["window_256_1m/1000", 2.5], [None, True]]))
    assert '<td>window_256_<wbr>1m/<wbr>1000</td><td data-order="2.5">2.5</td>' in markup
    assert '<td data-order="nan">–</td><td>yes</td>' in markup
    with pytest.raises(ValueError, match="1 cells: expected 2"):
        tables.table(["a", "b"], [["x"]])


def test_key_values_joins_nested_names():
    rows = tables.key_values({"a": {"b": {"c": 1}}, "list": [1, None], "on": False})
    assert rows == [("a.b.c", "1"), ("list", "1, –"), ("on", "no")]
    assert re.findall("<d[td]>(.*?)</d[td]>", drawn("parts.html", "facts", rows)) == [x for row in rows for x in row]


def test_cross_table_adds_rows_of_a_pair_whichever_side_they_are_from():
    table = tables.cross_table(["A", "B"], [("A", "B", 3, 1, 0), ("B", "A", 2, 0, 4, 1)])
    markup = drawn("parts.html", "cross_table", table)
    assert "A against B: 7 won, 1 drawn, 2 lost" in markup and "B against A: 2 won, 1 drawn, 7 lost" in markup
    assert "7.5<small>/10</small>" in markup and "2.5<small>/10</small>" in markup
    assert '"good" style="--strength:0.50"' in markup and '"bad" style="--strength:0.50"' in markup


def test_cross_table_of_many_players_says_what_it_leaves_out():
    table = tables.cross_table([f"p{i}" for i in range(2000)], [("p0", "p1999", 1, 0, 0)])
    markup = drawn("parts.html", "cross_table", table)
    assert "The first 40 of 2000 players." in markup and "p40" not in markup


def test_ladder_ranks_and_marks_what_it_does_not_know():
    rows = re.findall("<tr>(<td.*?)</tr>", sample_ladder())
    cells = [re.sub("<.*?>", "|", row).replace("||", "|") for row in rows]
    assert cells[0] == "|1|Ada/2|1100|50|40|70.0%|" and cells[3] == "|–|idle|–|–|0|–|"
    assert '<td data-order="-3.4" class="bad">-3.4</td>' in sample_ladder()


def test_page_of_thousands_of_players():
    players = [RatedPlayer(f"p{i}", float(i), 30.0, 10, 0.5) for i in range(2000)]
    rows = [Row(f"p{i}", f"p{i * 7 % 2000}", 1, 1, 1) for i in range(1999)]
    assert len(ladder_page(LadderPage("many", "wls", players, rows))) < 1_000_000


def test_ticks_are_round_and_inside():
    assert axes.ticks(axes.Axis(-0.4, 10.4, 0, 1)) == [0, 2, 4, 6, 8, 10]
    assert axes.ticks(axes.make_axis([1, 2], 0, 1)) == [1, 2]
    assert axes.ticks(axes.make_axis([1.5, 2], 0, 1)) == pytest.approx([1.5, 1.6, 1.7, 1.8, 1.9, 2.0])
    assert axes.ticks(axes.Axis(0.009, 150, 0, 1, True)) == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert axes.ticks(axes.Axis(900, 2100, 0, 1, True)) == list(range(1000, 2001, 200))
    assert [axes.tick_label(v) for v in (0.1 + 0.2, 15_000, 3.4e6, 2500)] == ["0.3", "15k", "3.4M", "2500"]


def test_line_has_gaps_where_a_value_is_missing():
    values = [1, math.nan, 2, 3, -1]
    (line,) = line_chart([Series("a", range(5), values)], Labels(), is_log=True).series
    assert [line.path.count(letter) for letter in "ML"] == [2, 1]


def test_bars_reach_two_standard_errors():
    chart = drawn("charts.html", "chart", line_chart([Series("a", [0, 1], [100, 200], [10, math.nan])], Labels(x="n")))
    assert "a: 100 ± 20 at 0" in chart and "a: 200 at 1" in chart
    (bar,) = re.findall(r'class="bar" d="M\S+ (\S+)h6m-3 0V(\S+)m', chart)
    axis = axes.make_axis([80, 100, 120, 200], 270 - charts.BOTTOM, charts.TOP)
    assert [float(y) for y in bar] == pytest.approx([axis.place(80), axis.place(120)], abs=0.06)


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(), st.floats(min_value=0)), max_size=8), st.booleans())
def test_any_numbers_make_a_chart(rows, is_log):
    x, y, errors = list(zip(*rows, strict=True)) or [(), (), ()]
    chart = line_chart([Series("s", x, y, errors)], Labels(), is_log=is_log, levels=[("l", 1e300)])
    markup = drawn("charts.html", "chart", chart)
    places = re.findall(r'[ "](?:d|x|y|cx|cy|transform)="(.*?)"', markup)
    assert not re.search("nan|inf", " ".join(places))


def test_report_draws_every_metric_once():
    names = ["train/loss", "train/gradient_norm", "selfplay/draw_rate", "selfplay/games", "time/train", "odd"]
    names += ["selfplay/moves_per_second", "train/policy_entropy", "train/value_accuracy"]
    rows = [{"iteration": i, **dict.fromkeys(names, i)} for i in (1, 2)]
    page = run_page(RunPage("r", facts={}, metrics=rows))
    assert sorted(re.findall(r"<title>(\S+): 2 at 2</title>", page)) == sorted(names)
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings == ["Health", "Learning", "Self-play", "Throughput", "Other metrics"]
    assert "No warnings in 2 iterations." in page


def test_report_of_a_run_without_iterations():
    assert "No warnings in 0 iterations." in run_page(RunPage("r", facts={"commit": None}, metrics=[]))


def test_calibration_without_positions_in_a_bin():
    bins = [CalibrationBin(math.nan, math.nan, 0), CalibrationBin(0.5, 0.25, 9)]
    markup = drawn("charts.html", "chart", calibration_chart(bins))
    assert "observed: 0.25 at 0.5" in markup and "9 positions predicted 0.5" in markup
    assert "observed:" not in drawn("charts.html", "chart", calibration_chart([]))


def test_view_game_follows_python_chess_on_both_boards():
    small, large = sample_games()
    assert small.moves == ["b3", "cxb3", "axb3"] and small.fens[-1].startswith("rnbqk/pp1pp/1P3/2PPP/RNBQK b")
    assert large.moves == ["d4", "exd3", "O-O", "O-O-O", "gxh8=Q"]
    assert large.fens[-1] == "2kr3Q/8/8/8/8/3p4/8/R4RK1 b - - 0 22"
    with pytest.raises(ValueError, match="illegal"):
        view_game(chess.Board(), ["e2e5"], "*", "no")


def test_viewer_refuses_games_that_do_not_fit():
    game = sample_games()[0]
    with pytest.raises(ValueError, match="3 moves and 3 FENs"):
        viewer_data([game._replace(fens=game.fens[1:])])
    for fen in ("8/8 w", "99999999/8", "rnbqk/ppppp/5/PPPPP/RNBQ", ""):
        with pytest.raises(ValueError, match="square board"):
            viewer_data([game._replace(fens=[fen] * 4)])


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("iteration", [None, 3])
def test_drawing_with_hostile_names(iteration):
    """A file of its own is well-formed XML in which every name is text, and asks for nothing."""
    players = [RatedPlayer(name, 5.0, 2.0, 9, 0.5, name, iteration) for name in ("_a", "$x_{$", HOSTILE)]
    players += [RatedPlayer("random", 0.0, 0.0, 9), RatedPlayer("idle", math.nan, math.nan, 0)]
    drawing = rating_drawing(players, HOSTILE)
    root = ElementTree.fromstring(drawing)
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert {"_a", "$x_{$", "random", SHOWN[:59] + "…"} <= set(texts) and "idle" not in texts
    assert sum(text == SHOWN[:59] + "…" for text in texts) == 2
    tags = {node.tag.removeprefix(SVG) for node in root.iter()}
    assert tags == {"svg", "style", "rect", "g", "text", "title", "path"}
    assert not {name for node in root.iter() for name in node.attrib if name.startswith("on") or "href" in name}
    assert not re.search(r"@import|url\(|var\(", root.findtext(f"{SVG}style"))


def test_drawing_without_iterations_has_a_row_a_player():
    """A standard error of 10 Elo: the bar reaches as far as 20 Elo on the axis."""
    chart = charts.dot_chart([("a", 100.0, 10.0), ("b", 50.0, math.nan)], Labels())
    first, second = chart.series[0].points
    assert [label for _, label in chart.y_ticks] == ["a", "b"] and first.y < second.y and second.bar == ""
    low, high = (float(x) for x in re.findall(r"M(\S+) \S+v6m0-3H(\S+)m", first.bar)[0])
    places = [chart.x_axis.place(x) for x in (80, 120)]
    assert [low, high] == pytest.approx(places, abs=0.06)
    assert (first.meaning, second.meaning) == ("a: 100 ± 20", "b: 50")
    assert chart.x_axis.start < second.x < first.x < chart.x_axis.stop


def test_drawing_of_players_without_games():
    assert ElementTree.fromstring(rating_drawing([RatedPlayer("idle", math.nan, math.nan, 0)])) is not None


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
