"""Ratings along training curves: against an oracle, and on simulated runs whose strength is known."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from alphagateau.ratings.bradley_terry import fit_bradley_terry
from alphagateau.ratings.curves import curves_by_name, make_steps
from alphagateau.ratings.history import TAIL, fit_history
from alphagateau.ratings.model import expected_score, game_arrays, outcome_chances
from alphagateau.ratings.pairing import PairingRules, informative_pairings
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Results, Row, make_results

SMALL = [("r/0", "x", 6, 14), ("r/10", "x", 9, 11), ("r/20", "x", 11, 9), ("r/40", "x", 17, 3), ("r/40", "r/0", 9, 1)]


def test_names_say_who_is_which_iteration_of_which_run():
    names = ["a/0", "a/12", "b/c/3", "a/12 (policy, 0f3a9c)", "random", "1/2 x", "/3"]
    assert curves_by_name(names) == {
        "a/0": (("a", 0),),
        "a/12": (("a", 12),),
        "b/c/3": (("b/c", 3),),
        "a/12 (policy, 0f3a9c)": (("a (policy)", 12),),
    }


def test_steps_join_neighbours_of_each_curve():
    curves = {"p": [("a", 0)], "q": [("a", 5), ("b", 0)], "r": [("b", 2)], "s": [("c", 1)]}
    steps = make_steps(list("pqrs"), curves)
    assert list(zip(steps.before, steps.after, steps.length, steps.curve, strict=True)) == [(0, 1, 5, 0), (1, 2, 2, 1)]
    assert steps.names == ("a", "b")  # c has one player


def test_without_curves_it_is_bradley_terry():
    rng = np.random.default_rng(0)
    results = make_results(Row(f"p {i}", f"p {j}", *rng.integers(1, 9, 3).tolist()) for i in range(6) for j in range(i))
    plain, found = rate(results), rate(results, "history")
    assert found.rating == pytest.approx(plain.rating, abs=1e-6)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-6)
    assert "no two players are iterations of one run" in found.notes[-1]


def test_ratings_and_rates_are_those_of_an_independent_maximisation():
    """Without draws a game weighs 1: log-likelihood and prior by hand, maximised and differentiated by scipy."""
    results = make_results(Row(a, b, won, 0, lost) for a, b, won, lost in SMALL)
    steps = make_steps(results.players, curves_by_name(results.players))
    games = game_arrays(results, use_colors=False)
    plain = fit_bradley_terry(games, np.zeros(5))
    games = games._replace(links=np.stack([steps.before, steps.after], axis=1))
    fit, walk = fit_history(games, np.zeros(5), steps, plain, dispersion=1.0)
    scale = walk.rates[0] * walk.factors * steps.length

    def loss(free):  # the first is held at 0
        theta = np.append(0.0, free)
        gap = theta[games.first] - theta[games.second]
        won, lost = games.points, games.total - games.points
        likelihood = won @ scipy.special.log_expit(gap) + lost @ scipy.special.log_expit(-gap)
        return -likelihood + np.sum((theta[steps.after] - theta[steps.before]) ** 2 / scale) / 2

    best = scipy.optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert fit.theta[1:] - fit.theta[0] == pytest.approx(best.x, abs=1e-3)

    def second(a, b, h=1e-4):
        ends = [((1, 1), 1), ((1, -1), -1), ((-1, 1), -1), ((-1, -1), 1)]
        return sum(sign * loss(best.x + h * (i * a + j * b)) for (i, j), sign in ends) / (4 * h * h)

    hessian = [[second(a, b) for b in np.eye(4)] for a in np.eye(4)]
    covariance = np.zeros((5, 5))
    covariance[1:, 1:] = np.linalg.inv(hessian)
    contrast = np.zeros((len(steps.before), 5))
    contrast[range(len(contrast)), steps.after], contrast[range(len(contrast)), steps.before] = 1, -1
    squares = (contrast @ np.append(0, best.x)) ** 2 + np.diag(contrast @ covariance @ contrast.T)
    squares /= steps.length
    rate_of_step = walk.rates[0]
    assert walk.factors == pytest.approx((TAIL + squares / rate_of_step) / (TAIL + 1), rel=0.05)
    assert rate_of_step == pytest.approx(np.sum(squares / walk.factors) / (len(squares) - 1), rel=0.05)


def test_a_checkpoint_that_never_played_is_rated_by_its_neighbours():
    results = make_results([Row(a, b, won, 0, lost) for a, b, won, lost in SMALL], ["r/0", "r/10", "r/15", "r/20"])
    found = rate(results, "history")
    k, at = {name: k for k, name in enumerate(found.players)}, found.rating
    assert at[k["r/10"]] <= at[k["r/15"]] <= at[k["r/20"]] and found.games[k["r/15"]] == 0
    assert found.standard_error[k["r/15"]] > found.standard_error[k["r/10"]]
    assert np.isnan(rate(results).rating[k["r/15"]])


def test_a_run_that_joins_two_groups_makes_them_one_pool():
    rows = [Row("r/0", "x", 5, 0, 5), Row("x", "y", 5, 0, 5), Row("r/1", "z", 5, 0, 5), Row("r/2", "z", 4, 0, 6)]
    assert len(set(rate(make_results(rows)).component)) == 2
    found = rate(make_results(rows), "history", anchor="x")
    assert (found.component == 0).all() and np.isfinite(found.standard_error).all()


def test_a_rate_that_games_do_not_tell_is_not_told():
    """It was 2 000 Elo an iteration, the most that is fitted."""
    rows = [Row("r/0", "random", 5, 0, 15), Row("r/33", "random", 20, 0, 0), Row("r/33", "r/0", 20, 0, 0)]
    found = rate(make_results(rows), "history", anchor="random")
    assert not found.rates and not any("usual change" in note for note in found.notes)


def test_without_a_run_history_is_bradley_terry_as_it_says():
    """Also where some players are joined to others by virtual draws alone."""
    results = make_results([Row("c", "d", 1, 0, 0), Row("a", "b", 3, 2, 1)])
    plain, found = rate(results), rate(results, "history")
    np.testing.assert_array_equal(found.rating, plain.rating)
    np.testing.assert_array_equal(found.standard_error, plain.standard_error)
    assert any("history is bradley-terry here" in note for note in found.notes)


def smooth(rng, n):
    return 600 * (1 - np.exp(-3 * np.linspace(0, 1, n))) + 30 * np.sin(6 * np.linspace(0, 1, n) + rng.uniform(0, 6))


def jumps(rng, n):
    y = np.cumsum(rng.normal(0, 10, n))
    for k in rng.choice(n - 1, 2, replace=False):
        y[k + 1 :] += rng.uniform(200, 400)
    return y


def collapse(rng, n):
    y, k = smooth(rng, n), rng.integers(n // 3, n - 4)
    y[k : k + 3] -= rng.uniform(400, 700)
    return y


def plateaus(rng, n):
    return np.interp(np.arange(n), [0, 0.3 * n, 0.5 * n, 0.6 * n, n], [0, 500, 500, 650, 650]) + rng.normal(0, 5, n)


def play(rng, true, pairs, num_games, names):
    chances = [(i, j, outcome_chances(expected_score(true[i] - true[j]), 1.0)) for i, j in sorted(pairs)]
    return make_results(
        (Row(names[i], names[j], *rng.multinomial(num_games, c).tolist()) for i, j, c in chances), names
    )


def simulate(curve, seed, num_games, size=40):
    """(true ratings, results, pairs that did not meet) of two runs and two outside players."""
    rng = np.random.default_rng(seed)
    true = np.concatenate([curve(rng, size), 0.8 * curve(rng, size), [100, 400]])
    names = [*(f"a/{k}" for k in range(size)), *(f"b/{k}" for k in range(size)), "engine 1", "engine 2"]

    def meetings(num):
        chance = np.exp(-np.abs(true[:, None] - true) / 150) * (1 - np.eye(len(true)))
        asked = ((i, rng.choice(len(true), num, False, c / c.sum())) for i, c in enumerate(chance))
        return {(min(i, int(j)), max(i, int(j))) for i, others in asked for j in others}

    pairs = meetings(4)
    held_out = np.array(sorted(meetings(3) - pairs)).T
    return true, play(rng, true, pairs, num_games, names), held_out


def errors_of(found, true, held_out):
    """(off by, missed score of meetings that were not rated)."""
    i, j = held_out
    gap = expected_score(true[i] - true[j]) - expected_score(found.rating[i] - found.rating[j])
    return found.rating - found.rating.mean() - (true - true.mean()), float(np.mean(gap**2))


@pytest.mark.whole
def test_intervals_hold_the_truth_and_no_pool_is_predicted_worse():
    """All of a run's errors are off together, so that only many pools tell: docs/ratings.md has each kind of curve."""
    inside, kinds = [], (smooth, jumps, collapse, plateaus)
    for curve, (seed, num_games) in itertools.product(kinds, ((0, 24), (1, 6), (2, 12))):
        true, results, held_out = simulate(curve, seed, num_games)
        (_, plain), found = errors_of(rate(results), true, held_out), rate(results, "history")
        off, missed = errors_of(found, true, held_out)
        assert missed < plain
        inside.append(np.abs(off[:80]) < 2 * found.standard_error[:80])
    assert 0.92 <= np.mean(inside) <= 0.98


@pytest.mark.whole
def test_an_eighth_of_the_games_does_on_a_smooth_curve():
    """To predict the scores of meetings, with checkpoints that are near one another."""

    def missed(method, num_games):
        pools = [simulate(smooth, seed, num_games, size=120) for seed in (0, 1)]
        return np.mean([errors_of(rate(results, method), true, held)[1] for true, results, held in pools])

    assert missed("history", 3) <= missed("bradley-terry", 24)


def test_informative_pairing_goes_by_the_covariance_of_the_curves():
    """A checkpoint whose neighbours are known needs no game, and who stands on no curve does."""
    played = [f"r/{k}" for k in (0, 1, 2, 4, 5, 6)]
    names = [*played, "r/3", "x"]
    rows = [Row(a, b, 100, 0, 100) for k, a in enumerate(played) for b in played[:k]] + [Row("x", "r/0", 5, 0, 5)]
    curves = curves_by_name(names)
    (plain,) = informative_pairings(names, make_results(rows, names))
    (found,) = informative_pairings(names, make_results(rows, names), 1, 20, None, PairingRules(curves))
    assert "r/3" in plain[:2] and "x" in found[:2] and "r/3" not in found[:2]
    closed = [frozenset(found[:2])]
    (other,) = informative_pairings(names, make_results(rows, names), 1, 20, None, PairingRules(curves, closed))
    assert frozenset(other[:2]) not in closed
    assert informative_pairings(["x", "y"], Results(), rules=PairingRules(closed=[frozenset("xy")])) == ()


def test_a_rate_is_that_of_the_run():
    """Cauchy steps of 20 Elo, ten iterations apart, many games: about 20 / sqrt(10) an iteration."""
    rng = np.random.default_rng(3)
    true = np.cumsum(np.clip(rng.standard_cauchy(60) * 20, -200, 200))
    names = [f"r/{10 * k}" for k in range(60)]
    pairs = [(i, j) for i in range(60) for j in range(i + 1, min(i + 4, 60))]
    found = rate(play(rng, true, pairs, 2000, names), "history")
    assert found.rates["r"] == pytest.approx(20 / np.sqrt(10), rel=0.35)
