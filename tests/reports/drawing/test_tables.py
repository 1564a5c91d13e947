"""Tables, cross-tables and pairs of names: what numbers look like, and what is added up or left out."""

import math
import re

import pytest
from markup import drawn

from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Row, make_results
from alphagateau.reports.drawing import tables
from alphagateau.reports.ratings import RatingsReport, print_ratings

LATEX = r"\textasciitilde{}\textasciicircum{}\textbackslash{}\{x\}\_50\% \& \textless{}\$\textbar{}"


def test_numbers_as_people_read_them():
    given_and_shown = {3: "3", 12345: "12,345", 0.12345: "0.1235", 1e-5: "1e-05", 1234.5: "1,234", 0.0: "0"}
    assert {v: tables.number(v) for v in given_and_shown} == given_and_shown
    assert [tables.number(v) for v in (math.nan, math.inf, 10**400)] == ["–"] * 3


def test_table_marks_numbers_and_refuses_a_short_row():
    markup = drawn("parts.html", "table", tables.table(["a", "b"], [["window_256_1m/1000", 2.5], [None, None]]))
    assert '<td>window_256_<wbr>1m/<wbr>1000</td><td data-order="2.5">2.5</td>' in markup
    assert '<td>–</td><td data-order="nan">–</td>' in markup  # each aligned as its column
    ((huge,), (small,)) = tables.table(["a"], [[10**400], [1]]).rows  # of a file that anybody may have written
    assert (huge.text, small.order) == ("–", 1) and math.isnan(huge.order or 0)
    with pytest.raises(ValueError, match="shorter"):
        tables.table(["a", "b"], [["x"]])


def test_key_values_joins_nested_names():
    rows = tables.key_values({"a": {"b": {"c": 1}}, "list": [1, None], "on": False})
    assert rows == [("a.b.c", "1"), ("list", "1, –"), ("on", "no")]
    assert re.findall("<d[td]>(.*?)</d[td]>", drawn("parts.html", "facts", rows)) == [x for row in rows for x in row]


def test_what_latex_and_markdown_take_for_their_own_is_escaped():
    text = tables.latex_table([["#", "a"], ["1", "~^\\{x}_50% & <$|"]])
    assert text.splitlines()[2:6:2] == [r"\# & a \\", r"1 & " + LATEX + r" \\"]
    assert tables.in_markdown("a|b `c` *d* <e> [f](g) \\") == r"a\|b \`c\` \*d\* \<e\> \[f\](g) \\"


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


def test_brackets_in_the_names_of_players_are_no_markup(capsys):
    results = make_results([Row("Fish [avx2]", "Fish [/x]", 3, 1, 2)])
    print_ratings(RatingsReport("of [a] file", results, rate(results)))
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("Fish [avx2]", "Fish [/x]", "of [a] file"))


def test_what_rounds_to_nothing_has_no_sign_of_its_own():
    assert [tables.in_form(-0.3, form) for form in (".0f", "+.0f", ".4g")] == ["0", "+0", "-0.3"]
    assert tables.number(-0.0) == "0" and tables.number_cell(-0.04, ".1f").text == "0.0"
