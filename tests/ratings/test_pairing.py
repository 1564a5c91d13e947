"""Who plays whom: Algorithm 2 step by step, the better choice against it, and the SPRT."""

import math

import numpy as np
import pytest
import scipy.optimize

from alphagateau.ratings.bradley_terry import fit_bradley_terry
from alphagateau.ratings.model import POINTS, expected_score, game_arrays, outcome_chances, score_variance
from alphagateau.ratings.pairing import Pairing, PairingRules, informative_pairings, paper_pairings
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Results, Row, make_results
from alphagateau.ratings.sprt import pentanomial, sprt, strength


def play(rng, gap: float, num_games: int) -> list[int]:
    chances = outcome_chances(expected_score(gap), 1.0)
    return rng.multinomial(num_games, chances).tolist()


def add(results: Results, rng, true: dict[str, float], pairings) -> Results:
    rows = [Row(a, b, *play(rng, true[a] - true[b], games)) for a, b, games in pairings]
    return make_results([*results.rows, *rows], results.players)


def test_paper_pairing_starts_with_all_pairs_of_the_first_players():
    players = ["a", "b", "c", "d"]
    assert paper_pairings(players, Results(), 60, 3) == tuple(Pairing(*pair, 60) for pair in ("ab", "ac", "bc"))
    results = make_results([Row("a", "b", 30, 0, 30), Row("c", "a", 10, 0, 7)])
    assert paper_pairings(players, results, 60, 3) == (Pairing("a", "c", 43), Pairing("b", "c", 60))


def test_paper_pairing_meets_the_nearest_rated_player_not_yet_met_by_hand():
    # b 100 above a, c 100 below: a newcomer counts as 1000 and is nearest to a
    start = [Row("b", "a", 38, 0, 22), Row("a", "c", 38, 0, 22), Row("b", "c", 45, 0, 15)]
    players = ["a", "b", "c", "d", "e"]
    assert paper_pairings(players, make_results(start), 60, 3, 2) == (Pairing("d", "a", 60),)
    lost = make_results([*start, Row("d", "a", 10, 0, 50)])
    assert paper_pairings(players, lost, 60, 3, 2) == (Pairing("d", "c", 60),)
    won = make_results([*start, Row("d", "a", 50, 0, 10)])
    assert paper_pairings(players, won, 60, 3, 2) == (Pairing("d", "b", 60),)
    cut = make_results([*start, Row("d", "a", 10, 0, 50), Row("d", "c", 9, 0, 9)])
    assert paper_pairings(players, cut, 60, 3, 2) == (Pairing("d", "c", 42),)
    done = make_results([*start, Row("d", "a", 10, 0, 50), Row("d", "c", 30, 0, 30)])
    assert paper_pairings(players, done, 60, 3, 2)[0].player == "e"


def test_paper_pairing_ends_after_its_number_of_games():
    rng = np.random.default_rng(0)
    true = {f"p{k}": 100.0 * k for k in range(14)}
    results, opponents = make_results([], true), {}
    while pairings := paper_pairings(list(true), results):
        for pairing in pairings:
            opponents.setdefault(pairing.player, set()).add(pairing.opponent)
        results = add(results, rng, true, pairings)
    assert sum(sum(row[2:5]) for row in results.rows) == 45 * 60 + 4 * 5 * 60
    assert all(len(opponents[f"p{k}"]) == 5 for k in range(10, 14))
    assert paper_pairings(["a"], Results()) == () == paper_pairings([], Results())


def test_informative_pairings_spread_out_before_any_game():
    found = informative_pairings(list("abcdef"), Results(), num_pairings=3)
    assert sorted(name for pairing in found for name in pairing[:2]) == list("abcdef")
    assert informative_pairings(["a"], Results()) == ()


@pytest.mark.parametrize("anchor", [None, "e"])
def test_informative_pairing_is_the_one_that_lowers_the_summed_variance_most(anchor):
    players = list("abcde")
    rows = [Row("a", "b", 40, 20, 30), Row("b", "c", 9, 2, 9), Row("c", "d", 5, 2, 9)]
    results = make_results([*rows, Row("a", "c", 30, 20, 20), Row("d", "e", 4, 1, 1)])

    def summed_variance(pair) -> float:
        """From the information matrix itself, with the match's expected information added."""
        games = game_arrays(results, True)
        fit = fit_bradley_terry(games, np.ones(5))
        information = np.linalg.inv(fit.covariance[:-1, :-1])
        if pair:
            i, j = pair
            a = np.eye(5)[i] - np.eye(5)[j]
            spread = a @ fit.covariance[:-1, :-1] @ a
            k = 1 / math.sqrt(1 + math.pi * spread / 8)
            score = 1 / (1 + math.exp(-k * (fit.theta[i] - fit.theta[j])))
            game = k * (score * (1 - score)) ** 2 / score_variance(score, fit.draw_parameter)
            information += 20 * game * np.outer(a, a)
        origin = np.full(5, 1 / 5) if anchor is None else np.eye(5)[4]
        relative = np.eye(5) - origin
        return float(np.trace(relative @ np.linalg.inv(information) @ relative.T))

    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    best = min(pairs, key=summed_variance)
    assert summed_variance(best) < summed_variance(None)
    found = informative_pairings(players, results, num_games=20, anchor=anchor)
    assert found == (Pairing(players[best[0]], players[best[1]], 20),)


def test_informative_pairings_prefer_the_uncertain_and_the_close():
    # d was met least; it scored like b and c, far from a
    rows = [Row("a", "b", 97, 0, 3), Row("b", "c", 50, 0, 50), Row("c", "d", 3, 0, 3)]
    (found,) = informative_pairings(list("abcd"), make_results(rows))
    assert "d" in found and "a" not in found


def test_matches_being_played_are_reckoned_with_as_those_chosen_before():
    players = list("abcdef")
    results = make_results([Row("a", "b", 3, 1, 2), Row("b", "c", 5, 1, 0), Row("d", "e", 2, 2, 2)], players)
    both = informative_pairings(players, results, num_pairings=4, num_games=10)
    later = informative_pairings(players, results, 2, 10, rules=PairingRules(planned=both[:2]))
    assert later == both[2:] != both[:2]
    assert informative_pairings(list("abc"), Results(), 1, 2, rules=PairingRules(planned=[Pairing("a", "x", 9)]))


@pytest.mark.parametrize("pool", ["normal", "training curve"])
def test_informative_pairings_need_fewer_games_than_algorithm_2(pool):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        curve = 2000 * (1 - np.exp(-4 * np.linspace(0, 1, 20)))
        ratings = rng.normal(0, 150, 20) if pool == "normal" else rng.permutation(curve)
        true = {f"p{k}": float(r) for k, r in enumerate(ratings)}
        players, paper, new = list(true), make_results([], true), make_results([], true)
        while pairings := paper_pairings(players, paper):
            paper = add(paper, rng, true, pairings)
        target = rate(paper, dispersion=1.0)
        num_games = int(target.games.sum()) // 2
        while sum(sum(row[2:5]) for row in new.rows) < 0.9 * num_games:
            new = add(new, rng, true, informative_pairings(players, new, num_pairings=10))
        found = rate(new, dispersion=1.0)
        assert found.standard_error.max() < target.standard_error.max()
        assert np.mean(found.standard_error**2) < np.mean(target.standard_error**2)
        off = found.rating - 1000 - ratings + ratings.mean()
        assert np.mean(np.abs(off) < 2 * found.standard_error) > 0.8


def test_sprt_of_won_and_lost_pairs_by_hand():
    # Only two kinds of pair: sum of counts times log of the ratio of their chances
    found = sprt([40, 0, 0, 0, 60], elo0=0, elo1=50)
    share = 1 / (1 + 10 ** (-50 / 400))
    assert found.llr == pytest.approx(60 * math.log(2 * share) + 40 * math.log(2 - 2 * share), abs=0.01)
    assert found.strength.elo == pytest.approx(400 * math.log10(1.5))
    assert (found.lower, found.upper) == pytest.approx((-math.log(19), math.log(19)))
    assert found.strength.num_pairs == 100


@pytest.mark.parametrize(
    ("counts", "elo0", "elo1", "llr"),
    [
        ([39, 2226, 31451, 2412, 40], 0.2, 0.9, 2.1625425800),
        ([10789, 19328, 33806, 19402, 10543], -3, 1, 2.1310678118),
        ([0, 0, 0, 0, 10], 0, 10, 0.2837374828),
    ],
)
def test_sprt_agrees_with_fishtest(counts, elo0, elo1, llr):
    # Values of LLRcalc.LLR_logistic of github.com/official-stockfish/fishtest on its own examples
    assert sprt(counts, elo0, elo1).llr == pytest.approx(llr, abs=1e-6)


@pytest.mark.parametrize(
    ("counts", "elo0", "elo1", "llr"),
    [
        ([39, 2226, 31451, 2412, 40], 0.5, 2.5, 2.3379000175),
        ([10789, 19328, 33806, 19402, 10543], -3, 1, 0.3008697855),
        ([0, 0, 0, 0, 10], 0, 10, 0.3986714633),
        ([3, 30, 60, 20, 2], -20, 40, -4.8763584353),
    ],
)
def test_sprt_in_normalized_elo_agrees_with_fishtest(counts, elo0, elo1, llr):
    # Values by LLRcalc.LLR_normalized of the same program
    assert sprt(counts, elo0, elo1, is_normalized=True).llr == pytest.approx(llr, abs=1e-6)


def test_the_likelihood_in_normalized_elo_is_the_largest_under_its_constraint():
    """By a general optimizer: mean - 1/2 is 100 ln(10) / 800 standard deviations of a game."""
    counts, points = np.array([5, 20, 50, 35, 15]), np.linspace(0, 1, 5)

    def chances(x):
        return np.exp(x) / np.exp(x).sum()

    def excess(x):
        mean = chances(x) @ points
        return mean - 0.5 - 100 * math.log(10) / 800 * math.sqrt(2 * chances(x) @ (points - mean) ** 2)

    constraint = {"type": "eq", "fun": excess}
    best = scipy.optimize.minimize(
        lambda x: -counts @ np.log(chances(x) / (counts / 125)), np.zeros(5), constraints=constraint, tol=1e-12
    )
    found = sprt(counts.tolist(), 100, 150, is_normalized=True)
    assert abs(excess(best.x)) < 1e-9
    assert found.misfit == pytest.approx(best.fun - max(found.llr, 0), abs=1e-6)


@pytest.mark.parametrize("is_normalized", [False, True])
def test_a_test_that_both_hypotheses_have_lost_says_so(is_normalized):
    """80 of 80 games: with Elo 0 every pair has a chance of 1/2 at most, as many being lost as won."""
    won = sprt([0, 0, 0, 0, 40], 0, 10, is_normalized=is_normalized)
    assert won.decision == "continue" and 26 < won.misfit < 40 * math.log(2)
    assert str(won).endswith(f"; both hypotheses have lost, by {won.misfit:.2f}, against the score seen")
    fair = sprt([10, 30, 50, 32, 11], 0, 10, is_normalized=is_normalized)
    assert not fair.is_misfit and "lost" not in str(fair)


def test_sprt_is_symmetric_and_decides():
    assert sprt([5, 20, 50, 20, 5], -10, 10).llr == pytest.approx(0, abs=1e-9)
    one, two = sprt([10, 30, 50, 60, 25], -5, 10), sprt([25, 60, 50, 30, 10], -10, 5)
    assert one.llr == pytest.approx(-two.llr)
    assert sprt([10, 30, 50, 60, 50], 0, 10).decision == "H1"
    assert sprt([50, 60, 50, 30, 10], 0, 10).decision == "H0"
    assert sprt([1, 2, 3, 2, 1], 0, 10).decision == "continue"


def test_sprt_says_what_few_pairs_cannot_tell():
    with pytest.raises(ValueError, match="whose scores are not 0 or 1"):
        sprt([1, 1, 1, 1, 1], 0, 100_000)
    empty = sprt([0, 0, 0, 0, 0])
    assert (empty.decision, *empty.strength[1:3]) == ("continue", -math.inf, math.inf)
    won = strength([0, 0, 0, 0, 10])
    assert won.elo == math.inf and 0 < won.lower < 400 and won.upper == math.inf
    even = strength([0, 0, 10, 0, 0])
    assert even.elo == 0 and even.lower == pytest.approx(-even.upper) != 0


@pytest.mark.parametrize(
    ("counts", "options", "said"),
    [
        ([1, 2, 3], {}, r"pairs is \[1, 2, 3\], expected 5 counts"),
        ([1, 2, 3, 4, -1], {}, "expected 5 counts of at least 0"),
        ([1, 1, 1, 1, 1], {"elo0": 5, "elo1": 5}, "elo0 is 5 and elo1 5"),
        ([1, 1, 1, 1, 1], {"elo1": 201, "is_normalized": True}, "at most 200 normalized Elo"),
        ([1, 1, 1, 1, 1], {"alpha": 0.6, "beta": 0.6}, "sum below 1"),
    ],
)
def test_sprt_refuses_bad_input(counts, options, said):
    with pytest.raises(ValueError, match=said):
        sprt(counts, **options)


def test_strength_by_hand():
    # A mean score of 0.6, and 60.5 of 101 with half a pair won and half a pair lost
    found, mean = strength([0, 10, 40, 50, 0]), 60.5 / 101
    squares = zip([0.5, 10, 40, 50, 0.5], [0, 0.25, 0.5, 0.75, 1], strict=True)
    error = math.sqrt(sum(count * (score - mean) ** 2 for count, score in squares) / 100 / 101)
    assert found.elo == pytest.approx(400 * math.log10(0.6 / 0.4))
    assert found.lower == pytest.approx(400 * math.log10((mean - 2 * error) / (1 - mean + 2 * error)))
    assert found.superiority == pytest.approx(0.5 * math.erfc((0.5 - mean) / error / math.sqrt(2)))
    mirrored = strength([0, 50, 40, 10, 0])
    assert (mirrored.elo, mirrored.superiority) == pytest.approx((-found.elo, 1 - found.superiority))


def test_more_points_of_as_many_games_are_never_less_sure():
    """3.5 of 4 points said 99.9 %, and 4 of 4 said 89.7 %."""
    for number in (2, 3, 5):
        found = [strength([0, 0, 0, drawn, number - drawn]) for drawn in range(number, -1, -1)]
        assert [x.superiority for x in found] == sorted(x.superiority for x in found)
    assert strength([0, 0, 0, 1, 1]).superiority < 0.95


def test_strength_reads_as_a_sentence():
    assert str(strength([0, 10, 40, 50, 0])) == (
        "Elo +70 +- 25 (+45 to +95), likelihood of superiority 100.0 %, by 100 pairs of games"
    )
    assert str(strength([0, 0, 1, 0, 0])).startswith("Elo +0 ") and "by 1 pair of games" in str(
        strength([0, 0, 1, 0, 0])
    )
    assert str(strength([0] * 5)) == "Elo +0 (-inf to +inf), likelihood of superiority 50.0 %, by 0 pairs of games"
    assert str(strength([0, 1001, 0, 1000, 0])).startswith("Elo +0 ")  # never -0
    assert str(strength([0, 0, 0, 0, 2])).startswith("Elo +inf (-142 to +inf), ")
    assert str(sprt([10, 30, 50, 60, 50], 0, 10)).startswith(
        "accepts H1, the higher, after 200 pairs of games: log-likelihood ratio "
    )
    assert str(sprt([0, 0, 1, 0, 0], 0, 10)).startswith("is undecided after 1 pair of games: log-likelihood ratio ")


def test_pentanomial():
    assert pentanomial([0, 0.5, 1, 1, 2, 1.5, 2]) == (1, 1, 2, 1, 2)
    with pytest.raises(ValueError, match=r"expected 0, 0\.5, 1, 1\.5 or 2"):
        pentanomial([0.25])


@pytest.mark.slow
@pytest.mark.parametrize(("true", "right"), [(0.0, "H0"), (20.0, "H1")])
def test_sprt_errs_as_rarely_as_asked(true, right):
    wrong = 0
    chances = outcome_chances(expected_score(true), 1.0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        counts, decision = np.zeros(5, dtype=int), "continue"
        while decision == "continue":
            points = rng.choice(POINTS, (8, 2), p=chances).sum(axis=1)
            counts += np.array(pentanomial(points.tolist()))
            decision = sprt(counts.tolist(), 0, 20).decision
        wrong += decision != right
    assert wrong <= 20  # 5 % of 200 expected at most; 3 standard errors above
