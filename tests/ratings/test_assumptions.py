"""Checks of the assumptions under ratings: how seldom they cry out in pools that keep them, and what they find."""

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from alphagateau.matches.recorded_results import read_any_results
from alphagateau.ratings.assumptions import draw_notes, find_cycles, misfit_notes
from alphagateau.ratings.bradley_terry import fit_bradley_terry
from alphagateau.ratings.model import expected_score, game_arrays, outcome_chances
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Alike, Results, Row, make_results
from alphagateau.ratings.results_files import GameResult, count_games, write_ratings

EVAL = Path(__file__).parents[2] / "eval"


def table(*rows) -> Results:
    return make_results(Row(*row) for row in rows)


def flags(results: Results, method: str = "bradley-terry") -> dict[str, set[str]]:
    return {player: set(found) for player, found in rate(results, method).flags.items()}


def play_pool(rng, true: np.ndarray, num_games: int, nu: float) -> Results:
    chances = outcome_chances(expected_score(true[:, None] - true), nu)
    pairs = zip(*np.triu_indices(len(true), 1), strict=True)
    return make_results(Row(f"p{i}", f"p{j}", *rng.multinomial(num_games, chances[i, j]).tolist()) for i, j in pairs)


@pytest.mark.parametrize(("num_players", "num_games", "nu", "num_pools"), [(5, 40, 1.0, 200), (6, 20, 0.0, 150)])
def test_one_pool_in_twenty_that_keeps_the_model_is_said_to_go_in_cycles(num_players, num_games, nu, num_pools):
    alarms = {"cycle": 0, "draws": 0, "misfit": 0}
    for seed in range(num_pools):
        rng = np.random.default_rng(seed)
        results = play_pool(rng, rng.normal(0, 150, num_players), num_games, nu)
        games, names = game_arrays(results, True), results.players
        fit = fit_bradley_terry(games, np.zeros(len(names)))
        alarms["cycle"] += find_cycles(games, fit).p_value < 0.05
        alarms["draws"] += len(draw_notes(names, games, fit.draw_parameter))
        alarms["misfit"] += len(misfit_notes(names, games, fit))
    fewest, most = scipy.stats.binom.interval(0.99, num_pools, 0.05)
    assert fewest <= alarms["cycle"] <= most
    assert alarms["draws"] < 0.05 * num_pools and alarms["misfit"] < 0.05 * num_pools


def test_one_game_of_equals_each_says_nothing_of_cycles():
    """It was published as p = nan."""
    results = make_results([Row("a", "b", 1, 0, 0), Row("b", "c", 1, 0, 0), Row("c", "a", 1, 0, 0)])
    assert rate(results).flags == {name: ("scatter-unknown",) for name in "abc"}


def test_a_cycle_by_hand():
    # All three rated alike, each pair misses by 10 of 40 points of variance 10: 3 x 10 in one cycle
    results = table(("a", "b", 30, 0, 10), ("b", "c", 30, 0, 10), ("c", "a", 30, 0, 10))
    games = game_arrays(results, True)
    found = find_cycles(games, fit_bradley_terry(games, np.zeros(3)))
    assert (found.statistic, found.freedom) == (pytest.approx(30, rel=1e-4), 1)
    assert found.p_value < 1e-6 and found.worst in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    (note,) = (note for note in rate(results).notes if "cycles" in note)
    assert "statistic 30.0 of 1 independent cycles" in note and "c against a" in note
    assert all("cycle" in found for found in flags(results).values())


def test_a_chain_of_players_has_no_cycles():
    results = table(("a", "b", 10, 0, 3), ("b", "c", 5, 0, 9))
    games = game_arrays(results, True)
    assert find_cycles(games, fit_bradley_terry(games, np.zeros(3)))[:3] == (0, 0, 1)


def test_draws_between_equals_contradict_nothing_and_stalemates_do():
    usual = [("a", "b", 40, 20, 20), ("b", "c", 40, 20, 20), ("a", "c", 55, 15, 10)]
    assert not any("draws" in found for found in flags(table(*usual, ("c", "d", 5, 70, 5))).values())
    found = flags(table(*usual, ("c", "d", 40, 40, 0)))
    assert {player for player, flags in found.items() if "draws" in flags} == {"c", "d"}


@pytest.mark.parametrize(
    "name", ["gardner_selfplay", "los_alamos_selfplay", "giraffe_curve/ladder", "claims_network/ladder"]
)
def test_the_stalemates_of_weak_engines_are_found_in_published_ladders(name):
    ratings = rate(read_any_results(EVAL / name / "results.csv")[0])
    (note,) = (note for note in ratings.notes if note.startswith("draws contradict"))
    assert "random and Fairy-Stockfish 11.1 LB 64 nodes=1 (" in note
    assert ("nodes=10 (" in note) == (name != "claims_network/ladder")
    assert "draws" in ratings.flags["random"]


def test_results_far_from_ratings_are_named():
    even = [(a, b, 50, 0, 50) for a, b in ("ab", "ac", "ad", "bc", "bd")]
    results = table(*even, ("c", "d", 80, 0, 20))
    assert {p for p, found in flags(results).items() if "misfit" in found} == {"c", "d"}
    assert any("c against d (80 of 100 points" in note for note in rate(results).notes)
    assert not any("misfit" in found for found in flags(table(*even, ("c", "d", 55, 0, 45))).values())


def games_of(name: str, other: str, moves: list[str], is_white: bool = True) -> list[GameResult]:
    white, black = (name, other) if is_white else (other, name)
    return [GameResult(white, black, "1-0", opening, line) for opening, line in enumerate(moves)]


def test_players_who_play_the_same_games_are_named():
    lines, others = ["e4", "d4", "c4", "f4", "g4", "b4"], ["e3", "d3", "c3", "f3", "g3", "b3"]
    games = games_of("a", "x", lines) + games_of("b", "x", lines[:4] + others[4:]) + games_of("c", "x", others)
    found = count_games(games, "abcx")
    assert found.alike == (Alike("a", "b", "4 of their 6 games from one opening against one opponent are the same"),)
    assert flags(found)["a"] >= {"alike"} <= flags(found)["b"] and "alike" not in flags(found)["c"]
    assert any(note.startswith("a and b are rated as two players: 4 of their 6 games") for note in rate(found).notes)
    among = count_games(games_of("a", "b", lines) + games_of("a", "b", lines, is_white=False), "ab")
    assert among.alike[0][:2] == ("a", "b") and "6 of their 6 games" in among.alike[0].why
    assert count_games(games_of("a", "x", lines) + games_of("b", "x", lines, is_white=False), "abx").alike == ()


def test_rounds_without_numbers_of_their_own_make_no_two_players_alike():
    """4 of 100 games were "4 of their 1 games", as all had one opening."""
    same, own = ["e4", "d4", "c4", "f4"], [f"{name} {k}" for name in "ab" for k in range(96)]
    games = [GameResult("a", "x", "1-0", 1, line) for line in [*same, *own[:96]]]
    games += [GameResult("b", "x", "1-0", 1, line) for line in [*same, *own[96:]]]
    assert count_games(games, "abx").alike == ()


def test_the_engine_that_plays_the_games_of_another_is_found_in_a_published_ladder():
    results, _ = read_any_results(EVAL / "chess" / "games.pgn.gz")
    assert [sorted(pair[:2]) for pair in results.alike] == [[f"Stockfish 15.1 nodes={n} Hash=1" for n in (1, 10)]]


def test_equal_weights_under_two_names_are_named(tmp_path):
    tags = '[White "{}"]\n[Black "x"]\n[Result "1-0"]\n[WhiteWeights "{}"]\n[WhiteSearch "{}"]\n\n1. e4 1-0\n\n'
    path = tmp_path / "games.pgn"
    path.write_text(
        tags.format("a", "11", "policy") + tags.format("b", "11", "policy") + tags.format("c", "11", "minimax")
    )
    assert read_any_results(path)[0].alike == (Alike("a", "b", "the same weights and search"),)


def test_the_last_column_of_ratings_csv_has_the_flags(tmp_path):
    results = table(("a", "b", 40, 0, 40), ("a", "zero", 20, 0, 0), ("b", "zero", 20, 0, 0))
    write_ratings(rate(results), tmp_path / "ratings.csv", {"search": {"a": "policy"}})
    with (tmp_path / "ratings.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[-2:] == ["search", "flags"]
    assert {row[0]: row[-1] for row in rows} == {
        "a": "virtual-draw scatter-unknown",
        "b": "virtual-draw scatter-unknown",
        "zero": "bound virtual-draw scatter-unknown",
    }


def test_pairs_that_are_one_sided_are_no_cycles():
    """Few games of players far apart, strength being one number: alarms about as often as the check allows."""
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(40):
        rows = [
            Row(
                f"p{i}",
                f"p{j}",
                *rng.multinomial(20 if j - i <= 2 else 2, outcome_chances(expected_score(gap), 0.4)).tolist(),
            )
            for i in range(12)
            for j in range(i + 1, 12)
            for gap in [300.0 * (i - j)]
        ]
        alarms += any("cycles" in note for note in rate(make_results(rows)).notes)
    assert alarms <= 8
