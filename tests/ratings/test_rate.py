"""Ratings against hand-worked numbers, independent solutions and pools of known ratings."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest
from fuzzing import fuzzed
from hypothesis import example, given
from hypothesis import strategies as st

from alphagateau.ratings import wls
from alphagateau.ratings.model import expected_score, outcome_chances, score_variance
from alphagateau.ratings.pairs import difference, residuals, superiority
from alphagateau.ratings.rate import METHODS, rate
from alphagateau.ratings.results import Results, ResultsError, Row, make_results

NAT = 173.7177928  # Elo


def table(*rows) -> Results:
    return make_results(Row(*row) for row in rows)


def play(rng, gap: float, num_games: int, nu: float) -> list[int]:
    """Wins, draws, losses at a difference in Elo: Elo's expected score, Davidson's draws."""
    chances = outcome_chances(expected_score(gap), nu)
    return rng.multinomial(num_games, chances).tolist()


def round_robin(rng, true, num_games: int, nu: float, pair_sd: float = 0.0) -> Results:
    names = [f"p{k}" for k in range(len(true))]
    return make_results(
        Row(a, b, *play(rng, true[i] - true[j] + pair_sd * rng.normal(), num_games, nu))
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i < j
    )


def minorise_maximise(results: Results) -> np.ndarray:
    """Bradley-Terry ratings by Hunter's (2004) MM steps, Ann. Statist. 32, 384-406; mean 1000."""
    index = {name: k for k, name in enumerate(results.players)}
    games = np.zeros((len(index), len(index)))
    points = np.zeros(len(index))
    for a, b, wins, draws, losses, _ in results.rows:
        games[index[a], index[b]] += wins + draws + losses
        points[index[a]] += wins + draws / 2
        points[index[b]] += losses + draws / 2
    games += games.T
    strength = np.ones(len(index))
    for _ in range(100_000):
        old = strength
        strength = points / (games / (old[:, None] + old[None, :])).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
        if np.abs(np.log(strength / old)).max() < 1e-9:
            break
    return 1000 + NAT * np.log(strength)


def test_modules_import_without_jax():
    code = "import sys; sys.modules['jax'] = None\n"
    code += "from alphagateau.ratings import bradley_terry, wls, rate, results_files, pairing, sprt\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_expected_score_and_chances_by_hand():
    assert expected_score(400) == pytest.approx(10 / 11)
    assert outcome_chances(0.75, 2.0) == pytest.approx([0.5625, 0.375, 0.0625])
    assert outcome_chances(0.5, 1.0) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert outcome_chances(0.9, 0.0) == pytest.approx([0.9, 0, 0.1])
    assert score_variance(0.75, 2.0) == pytest.approx(0.75 * 0.25 / 2)


@pytest.mark.parametrize("nu", [0.1, 1.0, 2.0, 7.0, 100.0])
def test_chances_keep_davidsons_relation_and_the_expected_score(nu):
    score = np.linspace(0.01, 0.99, 31)
    win, draw, loss = outcome_chances(score, nu).T
    assert draw == pytest.approx(nu * np.sqrt(win * loss), rel=1e-6)
    assert win + draw / 2 == pytest.approx(score)
    assert win + draw + loss == pytest.approx(np.ones(31))


def test_wls_of_one_pair_by_hand():
    # p = 35.5 / 61, difference 400 log10(35.5 / 25.5), variance NAT^2 / (60 p (1 - p))
    found = rate(table(("a", "b", 30, 10, 20)), "wls")
    assert found.rating == pytest.approx([1000 + 28.7376, 1000 - 28.7376], abs=1e-3)
    error = NAT / math.sqrt(60 * 35.5 / 61 * 25.5 / 61)
    assert found.standard_error == pytest.approx([error / 2, error / 2])
    assert difference(found, "a", "b")[1] == pytest.approx(error)


def test_wls_weighs_pairs_by_their_variance_by_hand():
    # Three equations d_ab, d_bc, d_ac of weights 1 : 1 : w share the closing error e as 1 : 1 : 1 / w
    found = rate(table(("a", "b", 30, 0, 30), ("b", "c", 30, 0, 30), ("a", "c", 90, 0, 30)), "wls")
    share = 90.5 / 121
    closing = NAT * math.log(share / (1 - share))
    weight = (120 * share * (1 - share)) / (60 / 4)
    gap = closing / (2 + 1 / weight)
    assert difference(found, "a", "b")[0] == pytest.approx(gap)
    assert difference(found, "b", "c")[0] == pytest.approx(gap)


def test_statsmodels_and_normal_equations_agree(monkeypatch):
    rng = np.random.default_rng(0)
    results = round_robin(rng, rng.normal(0, 300, 12), 20, 1.0)
    by_statsmodels = rate(results, "wls")
    monkeypatch.setattr(wls, "MAX_STATSMODELS_PLAYERS", 0)
    by_equations = rate(results, "wls")
    assert by_equations.rating == pytest.approx(by_statsmodels.rating, abs=1e-6)
    assert by_equations.covariance == pytest.approx(by_statsmodels.covariance, abs=1e-6)


def test_bradley_terry_of_one_pair_by_hand():
    # 45 to 15: 400 log10(3); variance of theta 1 / (60 * 3/4 * 1/4)
    found = rate(table(("a", "b", 45, 0, 15)))
    assert difference(found, "a", "b")[0] == pytest.approx(190.8485, abs=1e-3)
    assert difference(found, "a", "b")[1] == pytest.approx(NAT / math.sqrt(60 * 3 / 16))
    assert superiority(found, "a", "b") == pytest.approx(0.99989, abs=1e-4)
    assert superiority(found, "a", "a") == 0.5


def test_draws_narrow_the_errors_by_hand():
    # Half of 60 games between equals drawn: nu = 2, a game's points have variance 1/8 and not 1/4
    found = rate(table(("a", "b", 15, 30, 15)))
    assert found.draw_parameter == pytest.approx(2)
    assert difference(found, "a", "b") == pytest.approx((0, NAT * math.sqrt(1 / 8 / (60 / 16))))


@pytest.mark.parametrize("nu", [0.0, 1.0])
@pytest.mark.parametrize("sd", [100, 500])
def test_bradley_terry_agrees_with_an_independent_solution(nu, sd):
    rng = np.random.default_rng(1)
    results = round_robin(rng, rng.normal(0, sd, 9), 200, nu)
    assert np.abs(rate(results).rating - minorise_maximise(results)).max() < 0.01


def test_white_advantage_is_found_and_does_not_leak_into_ratings():
    gaps = {("a", "b"): 100, ("b", "c"): 50, ("a", "c"): 150}
    rows = []
    for (a, b), gap in gaps.items():
        for color in (1, -1):
            win, draw, loss = outcome_chances(expected_score(gap + 40 * color), 1.0)
            rows.append(Row(a, b, *(round(1e6 * x) for x in (win, draw, loss)), color))
    found = rate(make_results(rows))
    assert found.white_advantage == pytest.approx(40, abs=0.05)
    assert found.rating - found.rating[2] == pytest.approx([150, 50, 0], abs=0.05)
    assert 0 < found.white_advantage_error < 1
    assert rate(make_results(rows), "wls").white_advantage == 0


def test_anchor_shifts_the_scale_and_makes_errors_relative_to_it():
    results = table(("a", "b", 12, 4, 8), ("b", "random", 20, 3, 1), ("a", "random", 22, 1, 1))
    for method in METHODS:
        free, tied = rate(results, method), rate(results, method, "random")
        assert tied.rating == pytest.approx(free.rating - free.rating[2])
        assert (tied.rating[2], tied.standard_error[2]) == (0, 0)
        assert tied.standard_error[0] == pytest.approx(difference(free, "a", "random")[1])
        assert superiority(tied, "a", "b") == pytest.approx(superiority(free, "a", "b"))
    assert rate(results, anchor="b", anchor_rating=1500.0).rating[1] == 1500


def test_unknown_anchor_and_method_are_refused():
    with pytest.raises(ResultsError, match="'x' is not one of the 2 players"):
        rate(table(("a", "b", 1, 1, 1)), anchor="x")
    with pytest.raises(ResultsError, match="'glicko' is not one of bradley-terry, history, wls"):
        rate(table(("a", "b", 1, 1, 1)), "glicko")


@pytest.mark.parametrize("method", METHODS)
def test_empty_table_one_player_and_one_game(method):
    empty = rate(Results(), method)
    assert len(empty.rating) == 0 and "the table has no games" in empty.notes
    alone = rate(make_results([], ["a"]), method)
    assert np.isnan(alone.rating).all() and np.isnan(alone.standard_error).all()
    one = rate(table(("a", "b", 0, 1, 0)), method)
    assert one.rating == pytest.approx([1000, 1000])
    assert (one.standard_error > 50).all()


def test_player_that_lost_everything_is_finite_and_said():
    results = table(("a", "b", 10, 5, 5), ("a", "zero", 20, 0, 0), ("b", "zero", 20, 0, 0))
    found = rate(results)
    assert found.rating[2] < 600 and found.standard_error[2] > 100
    assert any(note.startswith("zero lost every game") for note in found.notes)
    assert any("1 virtual draw" in note for note in found.notes)
    assert any("scored nothing" in note for note in rate(results, "wls").notes)


def test_groups_that_never_scored_against_each_other_are_said():
    rows = [("a", "b", 1, 0, 1), ("c", "d", 1, 0, 1), ("a", "c", 5, 0, 0), ("b", "d", 5, 0, 0)]
    found = rate(table(*rows))
    assert np.isfinite(found.rating).all()
    assert any("never scored against another" in note for note in found.notes)


@pytest.mark.parametrize("method", METHODS)
def test_disconnected_groups_have_their_own_scales(method):
    results = table(("a", "b", 3, 0, 1), ("c", "d", 5, 1, 2), ("d", "e", 2, 2, 2))
    found = rate(results, method, anchor="b")
    assert found.component.tolist() == [1, 1, 0, 0, 0]
    assert found.rating[1] == 0 and found.rating[2:].mean() == pytest.approx(1000)
    assert all(math.isnan(x) for x in difference(found, "a", "c"))
    assert math.isnan(superiority(found, "a", "c"))
    assert any("2 groups that never met" in note for note in found.notes)
    assert any("anchor b ties only" in note for note in found.notes)


def test_over_dispersed_results_widen_the_errors():
    rng = np.random.default_rng(0)
    results = round_robin(rng, rng.normal(0, 100, 10), 200, 1.0, pair_sd=80)
    found, plain = rate(results), rate(results, dispersion=1.0)
    assert found.dispersion > 3
    ratio = found.standard_error / plain.standard_error
    assert ratio == pytest.approx(math.sqrt(found.dispersion))
    assert any("scatter" in note for note in found.notes)


def test_residuals_by_hand():
    # theta is off by ln 2 around the circle, shared by all three; two players can be rated to fit
    results = table(("a", "b", 30, 0, 30), ("b", "c", 30, 0, 30), ("a", "c", 40, 0, 20))
    found = residuals(results, rate(results))
    by_pair = {(r.player, r.opponent): r for r in found}
    assert by_pair["a", "c"].score - by_pair["a", "c"].expected == pytest.approx(by_pair["a", "b"].expected - 30)
    z = math.log(2) / math.sqrt(4 / 60 + 4 / 60 + 1 / (60 * 2 / 9))
    assert [abs(r.z) for r in found] == pytest.approx([z] * 3, abs=0.01)
    two = table(("a", "b", 30, 0, 10))
    assert residuals(two, rate(two))[0].z == 0


def test_residuals_point_at_the_pair_that_misfits():
    rng = np.random.default_rng(2)
    results = round_robin(rng, rng.normal(0, 100, 10), 100, 1.0)
    first = results.rows[7]
    odd = first._replace(wins=first.losses + 40, losses=first.wins)
    results = make_results([*results.rows[:7], odd, *results.rows[8:]])
    for method in METHODS:
        worst = residuals(results, rate(results, method))[0]
        assert (worst.player, worst.opponent) == first[:2] and abs(worst.z) > 3


@pytest.mark.parametrize(
    ("method", "num_games", "nu"),
    [("wls", 400, 0.0), ("bradley-terry", 60, 1.0), ("bradley-terry", 60, 8.0)],
)
def test_simulated_pools_unbiased_and_covered(method, num_games, nu):
    # Of wls, its own assumptions: no draws, many games, a narrow pool. docs/ratings.md has others.
    true = np.linspace(-120, 120, 7)
    off, inside = [], []
    for seed in range(200):
        found = rate(round_robin(np.random.default_rng(seed), true, num_games, nu), method)
        off.append(found.rating - 1000 - true)
        inside.append(np.abs(off[-1]) < 2 * found.standard_error)
    error = np.std(off, axis=0) / math.sqrt(200)
    assert (np.abs(np.mean(off, axis=0)) < 3 * error).all()
    assert 0.92 < np.mean(inside) < 0.98


def test_wide_pools_are_compressed_by_wls_and_not_by_bradley_terry():
    true = np.linspace(-800, 800, 9)
    mean = {
        method: np.mean(
            [rate(round_robin(np.random.default_rng(s), true, 60, 1.0), method).rating for s in range(20)],
            axis=0,
        )
        for method in METHODS
    }
    assert abs(mean["bradley-terry"][-1] - 1800) < 30
    assert mean["wls"][-1] < 1740


COUNT = st.one_of(st.integers(0, 3), st.integers(0, 10**9))
ROW = st.tuples(st.integers(0, 5), st.integers(0, 5), COUNT, COUNT, COUNT, st.integers(-1, 1))


@fuzzed(100)
@given(st.lists(ROW, max_size=12), st.sampled_from(METHODS))
@example([(0, 1, 0, 38_137, 363_615, 1), (0, 2, 0, 463_129_087, 2, 1)], "bradley-terry")  # a variance of -3e-14
@example([(0, 1, 0, 0, 3, 1), (2, 1, 1, 3, 2, -1), (3, 1, 2, 551_455_949, 2, -1)], "history")  # nearly all drawn
@example([(0, 1, 2, 217_392_226, 0, 0), (2, 3, 126_587_961, 0, 0, 1)], "history")  # a step of rounding alone
def test_any_table_is_rated_or_said_not_to_be(rows, method):
    results = make_results(Row(f"p{a}", f"p{b}", *n) for a, b, *n in rows if a != b)
    found = rate(results, method)
    rated = found.games > 0
    assert np.isfinite(found.rating[rated]).all() and np.isnan(found.rating[~rated]).all()
    assert np.isfinite(found.standard_error[rated]).all()
    assert rated.all() or any("without games" in n or "no games" in n for n in found.notes)
    for label in np.unique(found.component[rated]):
        assert found.rating[found.component == label].mean() == pytest.approx(1000, abs=1e-3)
    assert all(math.isfinite(r.z) for r in residuals(results, found))


def test_order_of_rows_and_players_does_not_matter():
    results = round_robin(np.random.default_rng(3), np.linspace(0, 500, 6), 30, 1.0)
    turned = [Row(b, a, x, d, w) for a, b, w, d, x, _ in reversed(results.rows)]
    for method in METHODS:
        one, two = rate(results, method), rate(make_results(turned), method)
        again = [two.rating[two.players.index(name)] for name in one.players]
        assert again == pytest.approx(one.rating, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_2000_players_and_12000_pairs_in_10_seconds(method):
    rng = np.random.default_rng(0)
    true = rng.normal(0, 300, 2000)
    rows = []
    for _ in range(12000):
        i, j = rng.choice(2000, 2, replace=False)
        rows.append(Row(f"p{i}", f"p{j}", *play(rng, true[i] - true[j], 20, 1.0)))
    results = make_results(rows)
    begin = time.process_time()
    found = rate(results, method)
    assert time.process_time() - begin < 10
    assert np.isfinite(found.standard_error).all()
