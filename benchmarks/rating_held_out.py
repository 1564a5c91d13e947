"""Measures how well each method of rating predicts games of published ladders that it was not fitted to.

    python benchmarks/rating_held_out.py eval/*/games.pgn.gz eval/*/ladder/games.pgn.gz

Of each pair's games a random half is rated, and the score that its ratings expect of the other half compared with the
points there: the mean logarithmic loss, in nats a game, over --splits such halves.
"""

import argparse
from pathlib import Path

import numpy as np

from alphagateau.matches.recorded_results import read_any_results
from alphagateau.ratings.model import expected_score
from alphagateau.ratings.rate import METHODS, rate
from alphagateau.ratings.results import Results, Row, make_results, without_colors


def halves(results: Results, rng: np.random.Generator) -> tuple[Results, Results]:
    """Two tables that hold the games of each pair, one game more in the second if they are odd."""
    first, second = [], []
    for row in results.rows:
        counts = np.array(row[2:5])
        half = rng.multivariate_hypergeometric(counts, counts.sum() // 2)
        first.append(Row(*row[:2], *half.tolist()))
        second.append(Row(*row[:2], *(counts - half).tolist()))
    return make_results(first, results.players), make_results(second, results.players)


def losses(fitted: Results, others: Results) -> np.ndarray:
    """[methods] mean logarithmic loss of the games of `others` between players of one component, nats."""
    found = []
    for method in METHODS:
        ratings = rate(fitted, method)
        place = {name: k for k, name in enumerate(ratings.players)}
        total, num_games = 0.0, 0
        for player, opponent, wins, draws, lost, _ in others.rows:
            i, j = place[player], place[opponent]
            if ratings.component[i] == ratings.component[j]:
                score = expected_score(ratings.rating[i] - ratings.rating[j])
                total -= (wins + draws / 2) * np.log(score) + (lost + draws / 2) * np.log1p(-score)
                num_games += wins + draws + lost
        found.append(total / num_games)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("games", nargs="+", type=Path)
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    print(f"| ladder | games | {' | '.join(METHODS)} |\n|---|---|{'---|' * len(METHODS)}")
    for path in arguments.games:
        results = without_colors(read_any_results(path)[0])
        rng = np.random.default_rng(0)
        found = [losses(*halves(results, rng)) for _ in range(arguments.splits)]
        num_games = sum(sum(row[2:5]) for row in results.rows)
        name = path.parent.parent.name if path.parent.name == "ladder" else path.parent.name
        print(f"| {name} | {num_games} | {' | '.join(f'{loss:.4f}' for loss in np.mean(found, axis=0))} |", flush=True)


if __name__ == "__main__":
    main()
