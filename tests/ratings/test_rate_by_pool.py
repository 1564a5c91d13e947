"""Newcomers rated by a pool, against numbers worked by hand, other optimisers and simulated ladders."""

import csv
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from alphagateau.ratings.model import expected_score, outcome_chances
from alphagateau.ratings.pool import Pool, bracket, bracket_pairings, rate_by_pool
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import ResultsError, Row, make_results
from alphagateau.ratings.results_files import write_ratings

NAT = 173.7177928  # Elo
KNOWN = Pool(("a", "b"), np.array([1000.0, 1200.0]), np.diag([0.0, 1e-6]), "a", 1000.0)


def by_pool(pool: Pool, *rows):
    return rate_by_pool(make_results((Row(*row) for row in rows), pool.players), pool)


def of(ratings, name: str) -> tuple[float, float]:
    k = ratings.players.index(name)
    return ratings.rating[k], ratings.standard_error[k]


def play(rng, gap: float, num_games: int) -> list[int]:
    return rng.multinomial(num_games, outcome_chances(expected_score(gap), 1.0)).tolist()


def test_a_newcomer_beside_a_known_member_by_hand():
    rating, error = of(by_pool(KNOWN, ("new", "a", 30, 0, 10)), "new")
    assert rating == pytest.approx(1000 + 400 * math.log10(3), abs=1e-3)
    assert error == pytest.approx(NAT / math.sqrt(40 * 0.75 * 0.25), rel=1e-4)


def test_members_move_as_far_as_their_errors_allow():
    """The posterior of an uncertain member and a newcomer, by another optimiser."""
    pool = Pool(("a", "b"), np.array([1000.0, 1200.0]), np.diag([0.0, 80.0**2]), "a", 1000.0)
    ratings = by_pool(pool, ("new", "a", 30, 0, 10), ("new", "b", 30, 0, 10))

    def loss(x):
        gain = sum(30 * np.log(expected_score(x[0] - r)) + 10 * np.log(expected_score(r - x[0])) for r in (1000, x[1]))
        return -gain + (x[1] - 1200) ** 2 / (2 * 80.0**2)

    best = scipy.optimize.minimize(loss, [1200, 1200], method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-10}).x
    assert [of(ratings, "new")[0], of(ratings, "b")[0]] == pytest.approx(best, abs=0.01)
    assert of(ratings, "a") == (1000, 0) and of(ratings, "b")[1] < 80


def test_the_prior_stands_for_the_games_that_made_it():
    """One fit of all games and one by the pool's ratings agree; which member is held makes no difference."""
    rng = np.random.default_rng(1)
    true = {"a": 0.0, "b": 100.0, "c": 220.0, "d": 300.0}
    names = list(true)
    rows = [Row(a, b, *play(rng, true[a] - true[b], 400)) for i, a in enumerate(names) for b in names[i + 1 :]]
    new = [Row("new", b, *play(rng, 150 - true[b], 60)) for b in names]
    whole = rate(make_results([*rows, *new]), anchor="b", anchor_rating=1000, dispersion=1.0)
    of_pool = rate(make_results(rows), anchor="b", anchor_rating=1000, dispersion=1.0)
    pool = Pool(of_pool.players, of_pool.rating, of_pool.covariance, "b", 1000.0)
    found = rate_by_pool(make_results(new, pool.players), pool)
    assert of(found, "new")[0] == pytest.approx(of(whole, "new")[0], abs=1)
    assert of(found, "new")[1] == pytest.approx(of(whole, "new")[1], rel=0.03)  # the share of draws is another
    assert found.rating[:4] == pytest.approx(whole.rating[:4], abs=0.5)
    other = of_pool.rating - of_pool.rating[3] + 50, rate(make_results(rows), anchor="d", dispersion=1.0).covariance
    shifted = rate_by_pool(make_results(new, pool.players), Pool(pool.players, *other, "d", 50.0))
    assert shifted.rating - found.rating == pytest.approx(np.full(5, shifted.rating[0] - found.rating[0]), abs=0.01)


def simulated_pool(rng, true: np.ndarray) -> Pool:
    names = [f"p{k}" for k in range(len(true))]
    pairs = [(i, j) for i in range(len(true)) for j in range(i + 1, min(i + 3, len(true)))]
    rows = [Row(names[i], names[j], *play(rng, true[i] - true[j], 200)) for i, j in pairs]
    made = rate(make_results(rows, names), anchor="p0", anchor_rating=1000.0)
    return Pool(made.players, made.rating, made.covariance, "p0", 1000.0)


def test_one_network_on_ten_ladders_agrees_within_its_errors():
    """400 games split in ten: their spread is what their errors say, and they lie about the rating by all games."""
    rng = np.random.default_rng(5)
    true = 150.0 * np.arange(8)
    pool, met = simulated_pool(rng, true), (2, 3, 4, 5)
    ladders = [[Row("new", f"p{k}", *play(rng, 520 - true[k], 40)) for k in met] for _ in range(10)]
    found = np.array([of(by_pool(pool, *rows), "new") for rows in ladders])
    whole, error = of(by_pool(pool, *(row for rows in ladders for row in rows)), "new")
    known = (
        found[:, 1] ** 2 - (error**2 - np.mean(found[:, 1] ** 2) / 10) * 10 / 9
    )  # without the pool's, which all share
    spread = np.sum((found[:, 0] - found[:, 0].mean()) ** 2 / known)
    assert scipy.stats.chi2(9).ppf(0.01) < spread < scipy.stats.chi2(9).ppf(0.99)
    assert np.abs(found[:, 0] - whole).max() < 3 * found[:, 1].max()
    assert abs(whole - 1520) < 2.5 * error < 60


def test_members_that_are_far_off_tell_nothing_of_the_scatter():
    """Two games with each, won or lost as everybody expects: the errors are those of the games with the near ones."""
    names, levels = [f"p{k}" for k in range(16)], 1000.0 + 200 * np.arange(16)
    pool = Pool(tuple(names), levels, np.diag([0.0, *[1e-6] * 15]), "p0", 1000.0)
    near = {1: (16, 0, 4), 3: (12, 0, 8), -1: (8, 0, 12), -3: (4, 0, 16)}  # by hundreds of Elo below the newcomer
    rows = [
        (name, member, *near.get(round((rating - level) / 100), (2, 0, 0) if rating > level else (0, 0, 2)))
        for name, rating in (("one", 2100), ("two", 2500), ("three", 2900))
        for member, level in zip(names, levels, strict=True)
    ]
    alone = [row for row in rows if row[2:] in near.values()]
    found, expected = by_pool(pool, *rows), by_pool(pool, *alone)
    for name in ("one", "two", "three"):
        assert of(found, name)[1] == pytest.approx(of(expected, name)[1], rel=0.05)


def test_intervals_of_newcomers_cover_the_truth_as_often_as_they_should():
    rng, true, num_held = np.random.default_rng(7), 150.0 * np.arange(8), 0
    for _ in range(200):
        pool = simulated_pool(rng, true)
        rating, error = of(
            by_pool(pool, *(Row("new", f"p{k}", *play(rng, 520 - true[k], 20)) for k in range(2, 6))), "new"
        )
        num_held += abs(rating - 1520) < 1.96 * error
    assert 0.925 < num_held / 200 < 0.98


@pytest.mark.parametrize(("counts", "bounds"), [((10, 0, 0), (1140.2, math.inf)), ((0, 0, 10), (-math.inf, 859.8))])
def test_all_points_won_or_lost_are_a_bound_by_hand(tmp_path, counts, bounds):
    ratings = by_pool(KNOWN, ("new", "a", *counts), ("other", "new", 1, 1, 1), ("third", "a", 5, 0, 5))
    assert ratings.bounds["new"] == pytest.approx(bounds, abs=0.1)  # 0.025 ** 0.1 = 0.6915 of a point a game
    assert [math.isnan(of(ratings, name)[0]) for name in ("new", "other", "third")] == [True, True, False]
    where = "won every point against the rated: no rating, but above 1140"
    where = where if counts[0] else "lost every point against the rated: no rating, but below 860"
    assert any(f"new {where} Elo" in note for note in ratings.notes)
    assert "not rated, without games against the pool: other" in ratings.notes
    write_ratings(ratings, tmp_path / "ratings.csv")
    row = next(row for row in csv.DictReader((tmp_path / "ratings.csv").open()) if row["player"] == "new")
    assert row["rating"] == "nan" and [float(row["lower"]), float(row["upper"])] == pytest.approx(bounds, abs=0.1)


def test_games_against_the_random_mover_move_nobody():
    rows = [("new", "a", 30, 0, 10)]
    alone, beside = by_pool(KNOWN, *rows), by_pool(KNOWN, *rows, ("random", "new", 1, 8, 1), ("random", "a", 5, 0, 0))
    assert of(beside, "new") == of(alone, "new") and math.isnan(of(beside, "random")[0])
    assert "against random, whose games count for no rating: new 0.500 of 10 games, a 0.000 of 5 games" in beside.notes


def test_a_pool_without_its_members_is_refused():
    with pytest.raises(ResultsError, match="a of the pool is not one of the 2 players"):
        rate_by_pool(make_results([Row("new", "b", 1, 0, 1)]), KNOWN)


def test_uci_elo_levels_are_fitted_by_a_shift():
    names = [f"sf nodes=9 UCI_Elo={level}" for level in (1400, 1600)]
    found = rate(make_results([Row(*names, 10, 0, 30), Row("net", names[0], 20, 0, 20)]), anchor="UCI_Elo")
    gap = 400 * math.log10(3)
    assert found.rating == pytest.approx([1500 - gap / 2, 1500 + gap / 2, 1500 - gap / 2], abs=0.01)
    with pytest.raises(ResultsError, match="nor has one of them UCI_Elo=LEVEL in its name"):
        rate(make_results([Row("a", "b", 1, 1, 1)]), anchor="UCI_Elo")


def test_the_levels_that_tie_a_scale_are_of_one_part_of_it():
    """Two linked levels have their own mean, whatever a third is, apart from them or without games."""
    names = [f"sf UCI_Elo={level}" for level in (1500, 1700, 2500)]
    rows = [Row(*names[:2], 10, 0, 30), Row("net", names[0], 20, 0, 20)]
    for more in ([Row("other", names[2], 10, 0, 10)], []):
        found = rate(make_results([*rows, *more], names[::-1]), anchor="UCI_Elo")
        assert np.mean([of(found, name)[0] for name in names[:2]]) == pytest.approx(1600)


def test_a_newcomer_does_not_move_the_scale_by_its_name():
    pool = Pool(("sf UCI_Elo=1500", "b"), np.array([1500.0, 1700.0]), np.diag([0.0, 1e-6]), "UCI_Elo")
    found = [
        by_pool(pool, (name, "b", 10, 0, 10), (name, pool.players[0], 20, 0, 10)) for name in ("n", "n UCI_Elo=2800")
    ]
    assert found[0].rating == pytest.approx(found[1].rating) and of(found[0], "b")[0] == pytest.approx(1700, abs=0.1)


def test_a_lone_newcomer_has_the_scatter_of_the_pool_and_the_notes_of_a_misfit():
    plain = by_pool(KNOWN, ("new", "a", 50, 0, 0), ("new", "b", 0, 0, 50))
    wide = by_pool(KNOWN._replace(dispersion=4.0), ("new", "a", 50, 0, 0), ("new", "b", 0, 0, 50))
    assert of(wide, "new")[1] == pytest.approx(2 * of(plain, "new")[1], rel=0.01)
    assert "misfit" in plain.flags["new"] and {"misfit", "scatter"} <= {*wide.flags["new"]}


def test_the_bracket_has_two_members_on_each_side_where_there_are_any():
    members = dict(zip("abcdef", (100, 200, 300, 400, 500, 600), strict=True))
    assert [bracket(x, members) for x in (350, 50, 250, 999, 550)] == [
        list("edcb"),
        list("dcba"),
        list("dcba"),
        list("fedc"),
        list("fedc"),
    ]
    assert bracket(150, {"a": 1, "b": 2}) == ["b", "a"] and bracket(math.nan, members) == list("fedc")


def test_newcomers_meet_each_member_once_and_four_in_full_and_members_nobody_else():
    rng = np.random.default_rng(3)
    true = {f"p{k}": 150.0 * k for k in range(8)} | {"new": 520.0, "strong": 5000.0, "random": -600.0}
    pool = simulated_pool(rng, 150.0 * np.arange(8))
    results, players = make_results([], list(true)), list(true)
    while found := bracket_pairings(players, results, pool, 20):
        assert all(p.player in ("new", "strong") for p in found)
        rows = [Row(a, b, *play(rng, true[a] - true[b], games)) for a, b, games in found]
        results = make_results([*results.rows, *rows], results.players)
    games = {row[:2]: sum(row[2:5]) for row in results.rows}
    met = {name: {b if a == name else a for (a, b), n in games.items() if name in (a, b) and n == 20} for name in true}
    assert met["strong"] == {"p4", "p5", "p6", "p7", "random"} and met["new"] >= {"p2", "p3", "p4", "p5", "random"}
    assert len(met["new"]) < 8 and set(games.values()) == {2, 20}
    ratings = rate_by_pool(results, pool)
    assert "strong" in ratings.bounds and abs(of(ratings, "new")[0] - 1520) < 2 * of(ratings, "new")[1]
    again = bracket_pairings(players, results, pool, 20, target_error=5.0, closed=[frozenset(("new", "p3"))])
    assert {p.opponent for p in again} < met["new"] - {"p3"} and {p.games for p in again} == {20}
