"""What the kept games of old studies say with intervals of today, and without the engines that stalemate.

    python benchmarks/study_intervals.py eval/claims_* eval/learning

Each study's results are rated anew as its ladder was, but for the pool's own games, and each variant's last networks
are compared with the reference: as `study.json` has it, by the pooled variance of all runs (`ratings/over_seeds.py`),
the same without all games of the random mover and of engines at 1 and 10 nodes, whose draws put the scale's foot wrong
(docs/ratings.md), and by the games between last networks of equal seeds, where the ladder has them.
"""

import json
import sys
from pathlib import Path

import numpy as np

from alphagateau.ratings.over_seeds import Estimate, compare_over_seeds
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Results, make_results
from alphagateau.ratings.results_files import read_results

FOOT = {"random", "uci:fairy-stockfish?nodes=1", "uci:fairy-stockfish?nodes=10"}
WITHOUT_HISTORY = {"claims_network", "claims_mixed"}


def differences(study: dict, results: Results) -> dict[str, Estimate]:
    """Of each variant's last networks to the reference, by variant."""
    has_history = study["name"] not in WITHOUT_HISTORY
    ratings = rate(results, "history" if has_history else "bradley-terry")
    values, chosen = {}, []
    for run in study["runs"].values():
        name = f"{run['name']}/{run['iterations']}"
        if name in ratings.players and np.isfinite(ratings.rating[k := ratings.players.index(name)]):
            values[run["variant"], run["seed"]] = float(ratings.rating[k])
            chosen.append(k)
    found = compare_over_seeds(values, ratings.covariance[np.ix_(chosen, chosen)], study["reference"])
    return {variant: difference for variant, (_, difference) in found.items() if difference}


def direct_score(study: dict, results: Results, variant: str) -> str:
    """The points of a variant's last networks against the reference's of equal seeds, with 1.96 standard errors."""
    last = {(run["variant"], run["seed"]): f"{run['name']}/{run['iterations']}" for run in study["runs"].values()}
    meetings = {(name, last.get((study["reference"], seed))) for (own, seed), name in last.items() if own == variant}
    points = []
    for row in results.rows:
        if (row.player, row.opponent) in meetings:
            points += [1.0] * int(row.wins) + [0.5] * int(row.draws) + [0.0] * int(row.losses)
        elif (row.opponent, row.player) in meetings:
            points += [1.0] * int(row.losses) + [0.5] * int(row.draws) + [0.0] * int(row.wins)
    if not points:
        return "no games of equal seeds"
    return f"{np.mean(points):.3f} +- {1.96 * np.std(points) / np.sqrt(len(points)):.3f} of {len(points)} games"


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        study = json.loads((folder / "study.json").read_text())
        for file in sorted(folder.glob("ladder/**/results.csv")):
            board = next((name for name in study["num_games"] if name in file.parts), next(iter(study["num_games"])))
            results = read_results(file.read_text().splitlines(), file)
            if any("of a reference pool" in note for note in study.get("rating_notes", {}).get(board, ())):
                # whose games count for no rating there
                results = make_results(row for row in results.rows if "random" not in (row.player, row.opponent))
            footless = make_results(row for row in results.rows if not {row.player, row.opponent} & FOOT)
            published = study["measures"][f"Elo on {board}"]["variants"]
            pooled, without = differences(study, results), differences(study, footless)
            print(f"{folder.name}, {board}")
            for variant, now in pooled.items():
                old = published[variant]["difference"]
                shown = [f"{x['mean']:+.0f} +- {x['half_width']:.0f}" for x in [old] if x]
                both = (now, without.get(variant))
                shown += [f"{x.mean:+.0f} +- {x.half_width:.0f}, at once {x.at_once:.0f}" for x in both if x]
                shown.append(direct_score(study, results, variant))
                print(f"  {variant:28} {' | '.join(shown)}")


if __name__ == "__main__":
    main()
