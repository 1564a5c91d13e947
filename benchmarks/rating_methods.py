"""Draws how far Bradley-Terry's ratings lie from those of `wls` on the same games, as the AlphaGateau paper's Figure 8.

    python benchmarks/rating_methods.py eval/pools/gardner_chess/results.csv [--figure docs/ratings_methods.svg]

Each method's mean is taken off its ratings, as in the figure. The standard error of a difference is that of ratings of
resampled games: each pair's are drawn anew from its own, and both methods rate them. Prints Markdown tables.
"""

import argparse
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alphagateau.matches.recorded_results import read_any_results
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Results, Row, make_results, without_colors
from alphagateau.reports.drawing.charts import Labels, Series, line_chart, standalone


class Compared(NamedTuple):
    """Ratings of K players by both methods, Elo, by rising `wls`."""

    players: list[str]
    wls: np.ndarray  # [K], of mean 0
    bradley_terry: np.ndarray  # [K], of mean 0
    error: np.ndarray  # [K], the standard error of bradley_terry - wls


def ratings_of(results: Results) -> np.ndarray:
    """[2, K], by `wls` and by `bradley-terry`, of mean 0 each. Raises ValueError for a pool in parts."""
    found = [rate(results, method, dispersion=1.0) for method in ("wls", "bradley-terry")]
    if found[0].component.any():
        raise ValueError("expected players who are all linked by games")
    return np.array([one.rating - one.rating.mean() for one in found])


def resampled(results: Results, rng: np.random.Generator) -> Results:
    """As many games of each pair, each drawn from those that it played."""
    rows = []
    for row in results.rows:
        counts = np.array(row[2:5])
        rows.append(Row(*row[:2], *rng.multinomial(counts.sum(), counts / counts.sum()).tolist()))
    return make_results(rows, results.players)


def compare(results: Results, draws: int) -> Compared:
    rng = np.random.default_rng(0)
    wls, bradley_terry = ratings_of(results)
    anew = np.array([ratings_of(resampled(results, rng)) for _ in range(draws)])
    error, order = (anew[:, 1] - anew[:, 0]).std(axis=0), np.argsort(wls)
    return Compared([results.players[k] for k in order], wls[order], bradley_terry[order], error[order])


def describe(name: str, results: Results, found: Compared) -> str:
    """The row of a ladder: widths, slope of Bradley-Terry on `wls`, and pairs of players in the other order."""
    slope = found.wls @ found.bradley_terry / (found.wls @ found.wls)
    num_games = sum(sum(row[2:5]) for row in results.rows)
    turned = sum(a > b for a, b in combinations(found.bradley_terry, 2))
    order = f"{turned} of {len(found.wls) * (len(found.wls) - 1) // 2}"
    widths = " | ".join(f"{np.ptp(ratings):.0f}" for ratings in (found.wls, found.bradley_terry))
    return f"| {name} | {len(found.wls)} | {num_games} | {widths} | {slope:.2f} | {order} |"


def draw(compared: dict[str, Compared], path: Path) -> None:
    series = [
        Series(name, x.wls.tolist(), (x.bradley_terry - x.wls).tolist(), x.error.tolist())
        for name, x in compared.items()
    ]
    labels = Labels(x="rating by wls less its mean, Elo", y="bradley-terry less wls, Elo")
    chart = line_chart(series, labels, levels=[("the same rating", 0.0)], kind="wide")
    path.write_text(standalone("Bradley-Terry against WLS on the same games", [chart]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("games", nargs="+", type=Path, help="results.csv or games.pgn of ladders")
    parser.add_argument("--draws", type=int, default=60, help="resampled tables of results")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    compared = {}
    print("| ladder | players | games | span by `wls` | by `bradley-terry` | slope | pairs in another order |")
    print("|---|---|---|---|---|---|---|")
    for path in arguments.games:
        results, name = without_colors(read_any_results(path)[0]), path.parent.name
        compared[name] = compare(results, arguments.draws)
        print(describe(name, results, compared[name]), flush=True)
    for name, found in compared.items():
        print(f"\n| player of `{name}` | `wls` | `bradley-terry` | difference |\n|---|---|---|---|")
        for player, wls, other, error in reversed(list(zip(*found, strict=True))):
            print(f"| {player} | {wls:+.0f} | {other:+.0f} | {other - wls:+.0f} +- {2 * error:.0f} |")
    if arguments.figure:
        draw(compared, arguments.figure)


if __name__ == "__main__":
    main()
