"""The match at the end of a run: what results.json has of it, what is printed."""

import json

from alphagateau.matches.final_match import Score, print_scores
from alphagateau.ratings.sprt import strength
from alphagateau.runs.files import to_json


def test_strengths_are_kept_as_json_and_read_back():
    pairs = (0, 0, 0, 0, 2)
    record = {"scores": [["a", "b", 4, 0, 0, 0]], "strengths": [{"pairs": pairs, **strength(pairs)._asdict()}]}
    known = json.loads(to_json(record))
    (row,) = known["strengths"]
    assert row["elo"] is None and row["num_pairs"] == 2 and 0.8 < row["superiority"] < 1


def test_a_match_ends_with_elo_and_likelihood_of_superiority(capsys):
    print_scores([Score("a", "b", 3, 1, 0, 0, (0, 0, 0, 1, 1)), Score("a", "c", 0, 0, 0, 8)], "gardner_chess")
    out = capsys.readouterr().out
    assert "a against b: Elo +338 (" in out and "by 2 pairs of games" in out
    assert "a against c" not in out and "nan" not in out
