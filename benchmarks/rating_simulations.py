"""Simulates pools of known ratings and measures what docs/ratings.md says of methods and matching.

    python benchmarks/rating_simulations.py coverage|pairs|wide|matching|rounds|sprt|speed [--pools 200]

`matching --figure docs/ratings_matching.svg` draws the figure. Prints Markdown tables.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from alphagateau.ratings.model import POINTS, expected_score, outcome_chances
from alphagateau.ratings.pairing import PairingRules, informative_pairings, paper_pairings
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Pairs, Results, Row, make_results
from alphagateau.ratings.sprt import pentanomial, sprt
from alphagateau.reports.drawing.charts import Labels, Series, line_chart, standalone

METHODS = ("bradley-terry", "wls")  # these pools have no training curves


def play(rng, difference: float, num_games: int, nu: float) -> list[int]:
    """Wins, draws, losses of games at a difference in Elo."""
    return rng.multinomial(num_games, outcome_chances(expected_score(difference), nu)).tolist()


def names(num_players: int) -> list[str]:
    return [f"p{k}" for k in range(num_players)]


def round_robin(rng, true, num_games: int, nu=1.0, pair_sd: float = 0.0) -> Results:
    """All pairs; nu a number or a function of the two ratings; pair_sd: Elo no rating explains."""
    players, rows = names(len(true)), []
    for i in range(len(true)):
        for j in range(i + 1, len(true)):
            draws = nu(true[i], true[j]) if callable(nu) else nu
            gap = true[i] - true[j] + pair_sd * rng.normal()
            rows.append(Row(players[i], players[j], *play(rng, gap, num_games, draws)))
    return make_results(rows, players)


def errors(ratings, true) -> np.ndarray:
    return ratings.rating - ratings.rating.mean() - (true - true.mean())


def coverage(num_pools: int) -> None:
    def uneven(a, b):  # near the bottom most games are drawn, at the top few
        return 6.0 if min(a, b) < -150 else 0.5

    cases = {
        "10 players, sd 100, 60 games a pair, no draws": (10, 100, 60, 0.0, 0),
        "10 players, sd 100, 60 games a pair, a third drawn": (10, 100, 60, 1.0, 0),
        "10 players, sd 300, 60 games a pair, a third drawn": (10, 300, 60, 1.0, 0),
        "20 players, sd 200, 10 games a pair, half drawn": (20, 200, 10, 2.0, 0),
        "20 players, sd 150, 1 game a pair, a third drawn": (20, 150, 1, 1.0, 0),
        "10 players, sd 200, 60 games, draws uneven": (10, 200, 60, uneven, 0),
        "10 players, sd 200, 60 games, pairs off by sd 60 Elo": (10, 200, 60, 1.0, 60),
    }
    variants = {"wls": {"method": "wls"}, "bradley-terry": {}}
    variants["bradley-terry, dispersion 1"] = {"dispersion": 1.0}
    print(f"| pool | {' | '.join(variants)} |\n|---|{'---|' * len(variants)}")
    for label, (num_players, sd, num_games, nu, pair_sd) in cases.items():
        inside = {name: [] for name in variants}
        for seed in range(num_pools):
            rng = np.random.default_rng(seed)
            true = rng.normal(0, sd, num_players)
            results = round_robin(rng, true, num_games, nu, pair_sd)
            for name, options in variants.items():
                found = rate(results, **options)
                inside[name].append(np.abs(errors(found, true)) < 2 * found.standard_error)
        print(f"| {label} | {' | '.join(f'{np.mean(x):.1%}' for x in inside.values())} |")


def play_pairs(rng, true, num_openings: int, opening_sd: float, nu: float = 1.0) -> Results:
    """All pairs of players, each opening both ways; over these openings the expected scores are Elo's."""
    bias, players, rows, pairs = rng.normal(0, opening_sd, num_openings), names(len(true)), [], []
    grid = np.linspace(-3000, 3000, 301)
    score = np.mean([expected_score(grid[:, None] + x).mean(axis=1) for x in (bias, -bias)], axis=0)
    for i, j in zip(*np.triu_indices(len(true), 1), strict=True):
        gap, points = np.interp(expected_score(true[i] - true[j]), score, grid), np.zeros(num_openings, int)
        for color in (1, -1):
            chances = outcome_chances(expected_score(gap + color * bias), nu).cumsum(axis=1)
            lost = (rng.random((num_openings, 1)) > chances[:, :2]).sum(axis=1)  # half points
            rows.append(Row(players[i], players[j], *np.bincount(lost, minlength=3).tolist(), color))
            points += 2 - lost
        pairs.append(Pairs(players[i], players[j], tuple(np.bincount(points, minlength=5).tolist())))
    return make_results(rows, players, pairs)


def pairs(num_pools: int) -> None:
    print("| pool | variance of a pair | games one by one: covered | mean error | by pairs: covered | mean error |")
    print("|---|---|---|---|---|---|")
    for num_players, sd, num_openings, opening_sd in (
        *((4, 100, 20, 200), (10, 100, 10, 0), (10, 100, 10, 200), (10, 100, 30, 200)),
        *((10, 300, 30, 200), (20, 200, 10, 200)),
    ):
        found = []
        for seed in range(num_pools):
            rng = np.random.default_rng(seed)
            true = rng.normal(0, sd, num_players)
            results = play_pairs(rng, true, num_openings, opening_sd)
            one_by_one, by_pairs = rate(make_results(results.rows, results.players)), rate(results)
            away = np.abs(errors(by_pairs, true))
            for one in (one_by_one, by_pairs):
                found += [np.mean(away < 1.96 * one.standard_error), one.standard_error.mean()]
            found.append(1 + by_pairs.pair_correlation)
        *rest, ratio = np.reshape(found, (num_pools, 5)).mean(axis=0)
        shown = f"{rest[0]:.1%} | {rest[1]:.1f} | {rest[2]:.1%} | {rest[3]:.1f}"
        pool = f"{num_players} players, sd {sd}, {num_openings} openings, sd {opening_sd}"
        print(f"| {pool} | {ratio:.2f} | {shown} |", flush=True)


def wide(num_pools: int) -> None:
    print("| span, Elo | method | strongest off by | weakest off by | rms error | covered |")
    print("|---|---|---|---|---|---|")
    for span in (200, 400, 800, 1600, 2400):
        true = np.linspace(span / 2, -span / 2, 10)
        off = {method: [] for method in METHODS}
        inside = {method: [] for method in METHODS}
        for seed in range(num_pools):
            results = round_robin(np.random.default_rng(seed), true, 60)
            for method in METHODS:
                found = rate(results, method)
                off[method].append(errors(found, true))
                inside[method].append(np.abs(off[method][-1]) < 2 * found.standard_error)
        for method in METHODS:
            mean, rms = np.mean(off[method], axis=0), np.sqrt(np.mean(np.square(off[method])))
            ends = f"{mean[0]:+.1f} | {mean[-1]:+.1f}"
            print(f"| {span} | {method} | {ends} | {rms:.1f} | {np.mean(inside[method]):.1%} |")


def training_curve(rng, num_players: int) -> np.ndarray:
    """Ratings of checkpoints: steep, then flat, 2000 Elo in all, in random order."""
    progress = np.linspace(0, 1, num_players)
    return rng.permutation(2000 * (1 - np.exp(-4 * progress)) + rng.normal(0, 40, num_players))


POOLS = {
    "normal, sd 150": lambda rng, n: rng.normal(0, 150, n),
    "uniform over 2000": lambda rng, n: rng.uniform(0, 2000, n),
    "training curve": training_curve,
}


def schedule(rng, true, next_pairings, rounds: int):
    """Yields games played, largest and rms standard error, true rms error, after each round."""
    players = names(len(true))
    index = {name: k for k, name in enumerate(players)}
    before, latest, planned = [], [], ()
    for _ in range(rounds):
        pairings = next_pairings(players, before, latest, planned)
        if not pairings:
            return
        before, latest, planned = before + latest, [], pairings
        for a, b, num_games in pairings:
            latest.append(Row(a, b, *play(rng, true[index[a]] - true[index[b]], num_games, 1.0)))
        found = rate(make_results(before + latest, players), dispersion=1.0)
        error = found.standard_error
        off = np.sqrt(np.mean(errors(found, true) ** 2))
        if (found.component == 0).all():
            yield found.games.sum() // 2, error.max(), np.sqrt(np.mean(error**2)), off


def by_paper(players, before, latest, planned):
    return paper_pairings(players, make_results(before + latest, players))[:1]


def by_information(players, before, latest, planned):
    return informative_pairings(players, make_results(before + latest, players), num_pairings=8, num_games=20)


def by_information_before(players, before, latest, planned):
    """As a ladder does, which chooses a round while the latest is being played."""
    rules = PairingRules(planned=planned)
    return informative_pairings(players, make_results(before, players), 8, 20, rules=rules)


def rounds(num_pools: int, num_players: int) -> None:
    """Games to a rms standard error of 30 Elo, with rounds one after another and with rounds that overlap."""
    print("| pool | one after another: games | overlapping: games | rms error | rms error |\n|---|---|---|---|---|")
    for label, draw in POOLS.items():
        rows = []
        for seed in range(num_pools):
            found = []
            for choose in (by_information, by_information_before):
                rng = np.random.default_rng(seed)
                after = schedule(rng, draw(rng, num_players), choose, 1000)
                found.append(next((games, off) for games, _, rms, off in after if rms <= 30.0))
            rows.append([x for pair in zip(*found, strict=True) for x in pair])
        m = np.sqrt(np.mean(np.square(rows), axis=0))
        print(f"| {label} | {m[0]:.0f} | {m[1]:.0f} | {m[2]:.1f} | {m[3]:.1f} |", flush=True)


def matching(num_pools: int, num_players: int, figure: Path | None) -> None:
    print(
        "| pool | Algorithm 2: games | largest s.e. | rms s.e. | rms error "
        "| informative: games to the same largest s.e. | to the same rms s.e. | rms error there |"
    )
    print("|---|---|---|---|---|---|---|---|")
    curves = {}
    for label, draw in POOLS.items():
        rows = []
        for seed in range(num_pools):
            rng = np.random.default_rng(seed)
            true = draw(rng, num_players)
            paper = np.array(list(schedule(rng, true, by_paper, 1000)))
            games, largest, rms, off = paper[-1]
            new = np.array(list(schedule(rng, true, by_information, int(games / 160) + 1)))
            to_largest = new[np.argmax(new[:, 1] <= largest)]
            to_rms = new[np.argmax(new[:, 2] <= rms)]
            rows.append([games, largest, rms, off, to_largest[0], to_rms[0], to_rms[3]])
            curves.setdefault(label, (paper, new))
        m = np.sqrt(np.mean(np.square(rows), axis=0))
        left = f"| {label} | {m[0]:.0f} | {m[1]:.1f} | {m[2]:.1f} | {m[3]:.1f} "
        print(left + f"| {m[4]:.0f} ({m[4] / m[0]:.0%}) | {m[5]:.0f} ({m[5] / m[0]:.0%}) | {m[6]:.1f} |")
    if figure:
        draw_matching(curves, figure)


def draw_matching(curves, path: Path) -> None:
    panels = []
    for label, (paper, new) in curves.items():
        series, levels = [], []
        shown, (games, *reached, _) = new[new[:, 1] <= 300], paper[-1].tolist()
        for column, name in ((1, "largest"), (2, "rms")):
            series.append(Series(f"informative, {name}", shown[:, 0].tolist(), shown[:, column].tolist()))
            series.append(Series(f"Algorithm 2, {name}", [games], [reached[column - 1]]))
            levels.append(("", reached[column - 1]))
        panels.append(line_chart(series, Labels(label, "games", "standard error, Elo"), is_log=True, levels=levels))
    path.write_text(standalone("Standard error against games", panels), encoding="utf-8")


def sequential(num_pools: int) -> None:
    print("| true Elo | H1 accepted | H0 accepted | mean pairs |\n|---|---|---|---|")
    for true in (-10, 0, 5, 10, 20):
        decided, lengths = [], []
        chance = outcome_chances(expected_score(true), 1.0)
        for seed in range(num_pools):
            rng = np.random.default_rng(seed)
            counts, decision = np.zeros(5, dtype=int), "continue"
            while decision == "continue":
                points = rng.choice(POINTS, (16, 2), p=chance).sum(axis=1)
                counts += np.array(pentanomial(points.tolist()))
                decision = sprt(counts.tolist(), 0, 10).decision
            decided.append(decision)
            lengths.append(counts.sum())
        shares = [np.mean([d == h for d in decided]) for h in ("H1", "H0")]
        print(f"| {true} | {shares[0]:.1%} | {shares[1]:.1%} | {np.mean(lengths):.0f} |")


def speed() -> None:
    print("| players | pairs | method | CPU seconds |\n|---|---|---|---|")
    for num_players, num_pairs in ((100, 1000), (2000, 12000), (4000, 24000)):
        rng = np.random.default_rng(0)
        true, players, rows = rng.normal(0, 300, num_players), names(num_players), []
        for _ in range(num_pairs):
            i, j = rng.choice(num_players, 2, replace=False)
            rows.append(Row(players[i], players[j], *play(rng, true[i] - true[j], 20, 1.0)))
        results = make_results(rows, players)
        for method in METHODS:
            begin = time.process_time()
            rate(results, method)
            seconds = time.process_time() - begin
            print(f"| {num_players} | {num_pairs} | {method} | {seconds:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "pairs", "wide", "matching", "rounds", "sprt", "speed"])
    parser.add_argument("--pools", type=int, default=200)
    parser.add_argument("--players", type=int, default=24, help="for matching and rounds")
    parser.add_argument("--figure", type=Path, help="for matching")
    options = parser.parse_args()
    if options.what == "matching":
        matching(options.pools, options.players, options.figure)
    elif options.what == "rounds":
        rounds(options.pools, options.players)
    elif options.what == "speed":
        speed()
    else:
        {"coverage": coverage, "pairs": pairs, "wide": wide, "sprt": sequential}[options.what](options.pools)


if __name__ == "__main__":
    main()
