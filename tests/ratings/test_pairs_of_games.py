"""Games of one opening with colors exchanged: found in files, and counted together in the errors of ratings."""

import math
from pathlib import Path

import numpy as np
import pytest

from alphagateau.matches.recorded_results import read_any_results
from alphagateau.ratings.model import expected_score, outcome_chances
from alphagateau.ratings.pairs import difference, residuals
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Pairs, Results, ResultsError, Row, make_results, restrict, without_colors
from alphagateau.ratings.results_files import GameResult, count_games, write_results
from alphagateau.ratings.sprt import strength

NAT = 173.7177928  # Elo
EVAL = Path(__file__).parents[2] / "eval"


def without_pairs(results: Results) -> Results:
    return make_results(results.rows, results.players)


def test_two_games_of_an_opening_with_colors_exchanged_are_a_pair():
    games = [
        GameResult("b", "a", "1-0", 1),
        GameResult("a", "b", "1/2-1/2", 2),
        GameResult("a", "b", "1-0", 1),  # the twin of the first: a point each
        GameResult("b", "a", "0-1", 2),  # a has 1 1/2 points of its two games
        GameResult("a", "b", "1-0", 3),  # alone
        GameResult("b", "a", "1-0"),  # of no known opening
        GameResult("a", "c", "0-1", 1),
    ]
    found = count_games(games, ["a", "b", "c"])
    assert found.pairs == (Pairs("a", "b", (0, 0, 1, 1, 0)),)
    assert found.rows == (Row("a", "b", 1, 0, 2, -1), Row("a", "b", 2, 1, 0, 1), Row("a", "c", 0, 0, 1, 1))
    assert count_games(reversed(games), ["b", "a", "c"]).pairs == (Pairs("b", "a", (0, 1, 1, 0, 0)),)


def pgn(white: str, black: str, result: str, number: str, event: str = "x", fen: str = "") -> str:
    tags = {"Event": event, "Round": number, "White": white, "Black": black, "Result": result, "FEN": fen}
    return "".join(f'[{tag} "{value}"]\n' for tag, value in tags.items() if value) + f"\n1. e4 {result}\n\n"


@pytest.mark.parametrize(
    ("first", "second", "is_pair"),
    [
        (("1.1",), ("1.2",), True),
        (("7",), ("7",), True),
        (("7",), ("8",), False),
        (("?",), ("?",), False),
        (("-",), ("-",), False),
        (("",), ("",), False),
        (("1.1", "x"), ("1.2", "y"), False),
        (("1.1", "x", "8/8 w"), ("1.2", "x", "8/8 b"), False),
    ],
)
def test_a_pgn_tells_pairs_by_event_round_and_first_position(first, second, is_pair, tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text(pgn("a", "b", "1-0", *first) + pgn("b", "a", "0-1", *second))
    assert read_any_results(path)[0].pairs == ((Pairs("a", "b", (0, 0, 0, 0, 1)),) if is_pair else ())


def test_pairs_are_merged_restricted_and_checked():
    rows = [Row("a", "b", 2, 0, 1, 1), Row("a", "b", 1, 0, 2, -1), Row("b", "c", 1, 0, 0)]
    found = make_results(rows, pairs=[Pairs("a", "b", (1, 0, 1, 0, 0)), Pairs("b", "a", (1, 0, 0, 0, 0))])
    assert found.pairs == (Pairs("a", "b", (1, 0, 1, 0, 1)),)
    assert restrict(found, ["b", "a"]).pairs == (Pairs("b", "a", (1, 0, 1, 0, 1)),)
    assert restrict(found, ["b", "c"]) == make_results(rows[2:])
    for wrong in (Pairs("a", "b", (4, 0, 0, 0, 0)), Pairs("a", "b", (1,)), Pairs("b", "c", (0, 0, 1, 0, 0))):
        with pytest.raises(ResultsError, match=r"expected 5 counts of \d pairs at most"):
            make_results(rows, pairs=[wrong])


def even_match(*counts: int) -> Results:
    """Two players of whom white wins as often as black: [5] pairs, of those of a point half have white winning."""
    none, _, one, _, both = counts
    rows = [Row("a", "b", both + one // 2, 0, none + one // 2, color) for color in (1, -1)]
    return make_results(rows, pairs=[Pairs("a", "b", counts)])


@pytest.mark.parametrize("counts", [(10, 0, 40, 0, 10), (0, 0, 60, 0, 0), (30, 0, 0, 0, 30)])
def test_the_error_of_a_match_by_pairs_by_hand(counts):
    # A game's points have variance 1/4; those of n pairs scatter by 2 x counts[0] squares of a point about 1. With one
    # more pair of independent games the correlation is (2 counts[0] - (n - 1) / 2) / (n / 2).
    found, correlation = rate(even_match(*counts)), min((2 * counts[0] - 59 / 2) / (60 / 2), 1)
    assert found.pair_correlation == pytest.approx(correlation)
    assert difference(found, "a", "b") == pytest.approx((0, NAT * math.sqrt((1 + correlation) / (120 / 4))))
    assert rate(without_pairs(even_match(*counts))).pair_correlation == 0


def test_few_pairs_of_games_tell_no_correlation():
    counts = (0, 0, 30, 0, 0)  # 29 to spare
    assert rate(even_match(*counts)).pair_correlation == 0
    found, plain = rate(even_match(*counts)), rate(without_pairs(even_match(*counts)))
    assert found.standard_error == pytest.approx(plain.standard_error)


def test_residuals_of_pairs_are_in_units_of_the_scatter_of_pairs():
    rng, names = np.random.default_rng(3), ["a", "b", "c", "d"]
    results = play_pool(rng, np.array([0, 50, 100, 200]), 40, 300.0)
    found = rate(results)
    assert found.pair_correlation < -0.3 and set(found.players) == set(names)
    z, plain = ({x[:2]: x.z for x in residuals(r, rate(r))} for r in (results, without_pairs(results)))
    growth = 1 / math.sqrt(1 + found.pair_correlation)
    assert all(z[pair] == pytest.approx(growth * plain[pair], rel=0.02) for pair in z)


def play_pool(rng, true: np.ndarray, num_openings: int, opening_sd: float, nu: float = 1.0) -> Results:
    """A round robin of pairs of games, from the same openings for all.

    Opening k gives white b_k Elo, normal of this deviation. Over these openings, each played both ways, a player d Elo
    stronger has Elo's expected score.
    """
    bias, names = rng.normal(0, opening_sd, num_openings), [chr(97 + k) for k in range(len(true))]
    grid = np.linspace(-3000, 3000, 301)
    mean_score = np.mean([expected_score(grid[:, None] + x).mean(axis=1) for x in (bias, -bias)], axis=0)
    rows, pairs = [], []
    for i, j in zip(*np.triu_indices(len(true), 1), strict=True):
        gap, points = np.interp(expected_score(true[i] - true[j]), mean_score, grid), np.zeros(num_openings, int)
        for color in (1, -1):
            chances = outcome_chances(expected_score(gap + color * bias), nu)
            lost = (rng.random((num_openings, 1)) > chances.cumsum(axis=1)[:, :2]).sum(axis=1)  # half points
            rows.append(Row(names[i], names[j], *np.bincount(lost, minlength=3).tolist(), color))
            points += 2 - lost
        pairs.append(Pairs(names[i], names[j], tuple(np.bincount(points, minlength=5).tolist())))
    return make_results(rows, names, pairs)


CASES = {  # true ratings, openings, deviation of their bias, Davidson's nu, pools
    "a third drawn": ([-100, -50, 50, 100], 30, 200.0, 1.0, 200),
    "no draws": ([-100, -50, 50, 100], 40, 300.0, 0.0, 200),
    "wide": ([-500, -200, 0, 300, 400], 40, 250.0, 1.0, 200),
    "scatter estimated": (range(-150, 160, 20), 20, 250.0, 1.0, 100),
}


@pytest.mark.parametrize(
    "case", [*list(CASES)[:1], *(pytest.param(case, marks=pytest.mark.whole) for case in list(CASES)[1:])]
)
def test_intervals_hold_the_truth_as_often_as_they_say_with_biased_openings(case):
    true, num_openings, sd, nu, num_pools = CASES[case]
    true, within = np.array([*true], dtype=np.float64), {True: [], False: []}
    for seed in range(num_pools):
        results = play_pool(np.random.default_rng(seed), true, num_openings, sd, nu)
        for by_pairs, shown in ((True, results), (False, without_pairs(results))):
            found = rate(shown)
            away = np.abs(found.rating - found.rating.mean() - true + true.mean())
            within[by_pairs].append(away < 1.96 * found.standard_error)
    assert 0.935 < np.mean(within[True]) < 0.965 < np.mean(within[False])


def test_a_match_score_holds_the_truth_as_often_as_it_says_with_biased_openings():
    within = []
    for seed in range(1000):
        results = play_pool(np.random.default_rng(seed), np.array([40.0, 0.0]), 60, 250.0)
        found = strength(results.pairs[0].counts)
        within.append(abs(found.elo - 40) < 1.96 / 2 * (found.upper - found.lower) / 2)
    assert 0.935 < np.mean(within) < 0.965


def test_history_takes_pairs_as_pairs():
    rng = np.random.default_rng(5)
    played = play_pool(rng, np.array([0.0, 50.0, 100.0, 150.0, 200.0]), 60, 300.0)
    names = {name: f"run/{k}" for k, name in enumerate(played.players)}
    rows, pairs = (
        [x._replace(player=names[x.player], opponent=names[x.opponent]) for x in part]
        for part in (played.rows, played.pairs)
    )
    results = make_results(rows, pairs=pairs)
    found, plain = rate(results, "history"), rate(without_pairs(results), "history")
    assert found.pair_correlation == rate(results).pair_correlation < -0.3
    narrowed = np.mean(found.standard_error**2) / np.mean(plain.standard_error**2)
    assert 1 + found.pair_correlation == pytest.approx(narrowed, rel=0.1)


def test_the_errors_of_gardner_two_hours_need_seven_tenths_of_the_games():
    results, _ = read_any_results(EVAL / "gardner_two_hours" / "games.pgn.gz")
    assert sum(sum(pair.counts) for pair in results.pairs) == 400
    found, plain = rate(results), rate(without_pairs(results))
    assert found.rating == pytest.approx(plain.rating, abs=1e-9)
    assert 1 + found.pair_correlation == pytest.approx(0.60, abs=0.01)
    assert np.max(found.standard_error**2 / plain.standard_error**2) < 0.7  # an error falls with the root of games


def test_a_table_of_counts_knows_no_pairs(tmp_path):
    results = play_pool(np.random.default_rng(0), np.array([0.0, 100.0]), 60, 300.0)
    write_results(results, tmp_path / "results.csv")
    again, _ = read_any_results(tmp_path / "results.csv")
    assert again.pairs == () and again == without_colors(results)
    assert rate(results, "wls").pair_correlation == 0 == rate(again).pair_correlation
