"""Simulates training runs of known strength and measures what docs/ratings.md says of `--method history`.

    python benchmarks/rating_curves.py curves|pairing|speed [--pools 20] [--checkpoints 40]

Two runs and four outside players a pool; a third of the games between equals is drawn. Prints Markdown tables.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from alphagateau.ratings.curves import curves_by_name
from alphagateau.ratings.model import expected_score, outcome_chances
from alphagateau.ratings.pairing import PairingRules, informative_pairings
from alphagateau.ratings.rate import Ratings, rate
from alphagateau.ratings.results import Results, Row, make_results

METHODS = ("bradley-terry", "history")
FULL = 24  # games a meeting
MEETINGS = 4  # that each player asks for


def smooth(rng, n: int) -> np.ndarray:
    progress = np.linspace(0, 1, n)
    return 1000 * (1 - np.exp(-3 * progress)) + 30 * np.sin(6 * progress + rng.uniform(0, 6))


def jumps(rng, n: int) -> np.ndarray:
    """10 Elo an iteration, and three times 200 to 400 at once."""
    y = np.cumsum(rng.normal(0, 10, n))
    for k in rng.choice(n - 1, 3, replace=False):
        y[k + 1 :] += rng.choice([1, 1, -1]) * rng.uniform(200, 400)
    return y


def collapse(rng, n: int) -> np.ndarray:
    """Three iterations 400 to 700 Elo below a smooth curve."""
    y, k = smooth(rng, n), rng.integers(n // 3, n - 4)
    y[k : k + 3] -= rng.uniform(400, 700)
    return y


def plateaus(rng, n: int) -> np.ndarray:
    turns = [0, 0.3 * n, 0.5 * n, 0.6 * n, n]
    return np.interp(np.arange(n), turns, [0, 500, 500, 650, 650]) + rng.normal(0, 5, n)


def brownian(rng, n: int) -> np.ndarray:
    """50 Elo an iteration, with steps of no heavy tails."""
    return np.cumsum(rng.normal(0, 50, n))


CURVES: dict[str, Callable] = {
    "smooth": smooth,
    "jumps": jumps,
    "collapse": collapse,
    "plateaus": plateaus,
    "Brownian": brownian,
}


def make_pool(rng, curve: Callable, n: int) -> dict[str, float]:
    """Name -> true rating."""
    runs = {f"{run}/{k}": scale * y for run, scale in (("a", 1.0), ("b", 0.8)) for k, y in enumerate(curve(rng, n))}
    low, high = min(runs.values()), max(runs.values())
    return runs | {f"engine {k}": rng.uniform(low, high) for k in range(4)}


def meetings(rng, true: np.ndarray, num: int) -> set[tuple[int, int]]:
    """Of each player with `num` others, the nearer in strength the likelier."""
    found = set()
    for i, own in enumerate(true):
        chance = np.exp(-np.abs(true - own) / 150)
        chance[i] = 0
        others = rng.choice(len(true), num, replace=False, p=chance / chance.sum())
        found |= {(min(i, int(j)), max(i, int(j))) for j in others}
    return found


def play(rng, pool: dict[str, float], pairs, num_games: int) -> list[Row]:
    names, true = list(pool), list(pool.values())
    chances = [(i, j, outcome_chances(expected_score(true[i] - true[j]), 1.0)) for i, j in sorted(pairs)]
    return [Row(names[i], names[j], *rng.multinomial(num_games, chance).tolist()) for i, j, chance in chances]


def measure(found: Ratings, pool: dict[str, float], held_out) -> tuple[float, float, float]:
    """Mean squared error in Elo, checkpoints whose 2-sigma interval holds the truth, error of a meeting's score."""
    true = np.array(list(pool.values()))
    off = found.rating - found.rating.mean() - (true - true.mean())
    inside = np.abs(off) < 2 * found.standard_error
    is_checkpoint = np.array(["/" in name for name in pool])
    i, j = np.array(sorted(held_out)).T
    gap = expected_score(true[i] - true[j]) - expected_score(found.rating[i] - found.rating[j])
    return float(np.mean(off**2)), float(np.mean(inside[is_checkpoint])), float(np.mean(gap**2))


def curves(num_pools: int, num_checkpoints: int) -> None:
    header = [f"{method}: {what}" for method in METHODS for what in ("rms error", "covered", "held-out")]
    print(f"| curves | games a meeting | {' | '.join(header)} |\n|---|---|{'---|' * len(header)}")
    for label, curve in CURVES.items():
        for share in (1, 2, 4, 8):
            rows = {method: [] for method in METHODS}
            for seed in range(num_pools):
                rng = np.random.default_rng(seed)
                pool = make_pool(rng, curve, num_checkpoints)
                true = np.array(list(pool.values()))
                pairs = meetings(rng, true, MEETINGS)
                held_out = meetings(rng, true, 3) - pairs
                results = make_results(play(rng, pool, pairs, FULL // share), pool)
                for method in METHODS:
                    rows[method].append(measure(rate(results, method), pool, held_out))
            cells = []
            for method in METHODS:
                square, inside, missed = np.mean(rows[method], axis=0)
                cells.append(f"{np.sqrt(square):.1f} | {inside:.1%} | {missed:.4f}")
            print(f"| {label} | {FULL // share} | {' | '.join(cells)} |", flush=True)


def pairing(num_pools: int, num_checkpoints: int) -> None:
    """Informative pairing by the covariance of each method, rated by it: games to an rms error of 30 Elo."""
    print("| curves | bradley-terry: games | history: games |\n|---|---|---|")
    for label, curve in CURVES.items():
        needed = {method: [] for method in METHODS}
        for seed in range(num_pools):
            for method in METHODS:
                needed[method].append(games_to(30.0, np.random.default_rng(seed), curve, num_checkpoints, method))
        print(f"| {label} | {' | '.join(f'{np.mean(x):.0f}' for x in needed.values())} |", flush=True)


def games_to(target: float, rng, curve: Callable, num_checkpoints: int, method: str) -> int:
    """Played by a ladder of this method when the rms error is at most `target`, Elo."""
    pool = make_pool(rng, curve, num_checkpoints)
    names, places = list(pool), {name: k for k, name in enumerate(pool)}
    rules = PairingRules(curves_by_name(names) if method == "history" else None)
    results = Results(tuple(names))
    while True:
        found = informative_pairings(names, results, len(names) // 2, 8, None, rules)
        rows = [row for a, b, n in found for row in play(rng, pool, [(places[a], places[b])], n)]
        results = make_results([*results.rows, *rows], names)
        rated = rate(results, method)
        if (rated.component == 0).all() and np.sqrt(measure(rated, pool, [(0, 1)])[0]) <= target:
            return int(rated.games.sum()) // 2


def speed() -> None:
    """CPU time of a fit by history over that of a fit by bradley-terry, in one process."""
    print("| players | pairs | history / bradley-terry |\n|---|---|---|")
    for num_checkpoints in (40, 160):
        rng = np.random.default_rng(0)
        pool = make_pool(rng, smooth, num_checkpoints)
        pairs = meetings(rng, np.array(list(pool.values())), MEETINGS)
        results, took = make_results(play(rng, pool, pairs, FULL), pool), []
        for method in METHODS:
            begin = time.process_time()
            rate(results, method)
            took.append(time.process_time() - begin)
        print(f"| {len(pool)} | {len(pairs)} | {took[1] / took[0]:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["curves", "pairing", "speed"])
    parser.add_argument("--pools", type=int, default=20)
    parser.add_argument("--checkpoints", type=int, default=40, help="of each run")
    parser.add_argument("--only", nargs="*", choices=list(CURVES), default=list(CURVES), help="kinds of curve")
    options = parser.parse_args()
    for name in set(CURVES) - set(options.only):
        del CURVES[name]
    if options.what == "speed":
        speed()
    else:
        {"curves": curves, "pairing": pairing}[options.what](options.pools, options.checkpoints)


if __name__ == "__main__":
    main()
