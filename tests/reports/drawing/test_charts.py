"""Charts: ticks, places and gaps worked by hand, and drawings that are files of their own."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markup import HOSTILE, SHOWN, drawn

from alphagateau.reports.drawing import axes, charts
from alphagateau.reports.drawing.charts import Labels, Series, calibration_chart, line_chart
from alphagateau.reports.ladder_page import MAX_LEVELS, RatedPlayer, rating_drawing, rating_levels

SVG = "{http://www.w3.org/2000/svg}"


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


def test_calibration_without_positions_in_a_bin():
    bins = [(0, math.nan, math.nan), (9, 0.5, 0.25)]
    markup = drawn("charts.html", "chart", calibration_chart(bins))
    assert "observed: 0.25 at 0.5" in markup and "9 positions predicted 0.5" in markup
    assert "observed:" not in drawn("charts.html", "chart", calibration_chart([]))


@pytest.mark.parametrize("iteration", [None, 3])
def test_drawing_with_hostile_names(iteration):
    """A file of its own is well-formed XML in which every name is text, and asks for nothing."""
    places = {name: [] if iteration is None else [(name, iteration)] for name in ("_a", "$x_{$", HOSTILE)}
    players = [RatedPlayer(name, 5.0, 2.0, 9, 0.5, at) for name, at in places.items()]
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


def test_a_band_goes_along_its_highest_values_and_back_along_its_lowest():
    (line,) = line_chart([Series("a", [0, 1], [5, 5], band=[(0, 10), (2, 8)])], Labels()).series
    x, y = (
        axes.make_axis([0, 1], charts.LEFT, 400 - charts.RIGHT),
        axes.make_axis([0, 10], 270 - charts.BOTTOM, charts.TOP),
    )
    corners = [(0, 10), (1, 8), (1, 2), (0, 0)]
    assert line.band == "M" + "L".join(f"{x.place(a):.1f} {y.place(b):.1f}" for a, b in corners) + "z"
    assert not line_chart([Series("a", [0, 1], [5, 5])], Labels()).series[0].band


def test_the_random_mover_is_among_the_lines_however_many_engines_there_are():
    players = [RatedPlayer(f"engine {k}", 900.0 - 50 * k, 5.0, 10) for k in range(MAX_LEVELS + 2)]
    players.append(RatedPlayer("random", 0.0, 5.0, 10))
    names = [name for name, _ in rating_levels(players)]
    assert names == [*(f"engine {k}" for k in range(MAX_LEVELS - 1)), "random"]
    assert [name for name, _ in rating_levels(players[:2])] == ["engine 0", "engine 1"]


def test_lines_keep_room_for_their_names_that_of_the_anchor_first():
    ratings = {"a": 1200.0, "b": 1190.0, "c": 1030.0, "anchor": 1000.0, "d": 240.0}
    players = [RatedPlayer(name, rating, 5.0 * (name != "anchor"), 10) for name, rating in ratings.items()]
    assert rating_levels(players) == [("a", 1200.0), ("anchor", 1000.0), ("d", 240.0)]
