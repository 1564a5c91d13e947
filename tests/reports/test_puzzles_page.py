"""The page of solved puzzles: names escaped, the best player first, shares by band and theme; its drawing and JSON."""

import json

from markup import HOSTILE, Outline

from alphagateau.ratings.intervals import Estimate
from alphagateau.reports.drawing.charts import standalone
from alphagateau.reports.puzzles_page import (
    Band,
    PuzzleResult,
    band_chart,
    puzzles_json,
    puzzles_page,
)


def result(name: str, solved: int) -> PuzzleResult:
    share = Estimate(solved / 10, solved / 10 - 0.1, solved / 10 + 0.1, 10)
    return PuzzleResult(name, share, [Band(800, 1000, share), Band(1000, 1200, share)], {"mate": share})


RESULTS = [result("random", 1), result(HOSTILE, 7)]


def test_the_page_ranks_players_and_escapes_their_names():
    page = puzzles_page("Puzzles", RESULTS, ["one left out"], {"file": "x.csv"})
    outline = Outline(page)  # fails on a tag of a name's
    assert HOSTILE not in page and [text for text in outline.texts if text in ("70.0%", "10.0%")] == ["70.0%", "10.0%"]
    assert {"70% (60% - 80%)", "10% (0% - 20%)", "800 - 999", "mate", "one left out"} <= set(outline.texts)


def test_the_drawing_has_a_line_and_a_band_a_player():
    drawn = standalone("Puzzles", [band_chart(RESULTS)])
    outline = Outline(drawn)
    assert drawn.startswith("<svg") and any("rating of the puzzle" in text for text in outline.texts)
    assert sum(text == "random" for text in outline.texts) == 1


def test_json_has_what_other_programs_read():
    first, _ = json.loads(json.dumps(puzzles_json(RESULTS, {"file": "x.csv"})))
    assert (first["name"], first["score"], first["total"], first["file"]) == ("random", 1, 10, "x.csv")
    assert first["bands"][1] == {"low": 1000, "high": 1200, "score": 1, "total": 10, "lower": 0.0, "upper": 0.2}
    assert first["themes"]["mate"]["total"] == 10
