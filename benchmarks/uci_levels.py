"""Writes the measured levels of a checkpoint, by which `alphagateau uci` limits its strength.

    alphagateau ladder "uci:alphagateau uci CHECKPOINT?nodes=1" ... --pool BOARD --boards BOARD --out FOLDER
    python benchmarks/uci_levels.py CHECKPOINT FOLDER/ratings.csv BOARD

Takes the players of the ladder that are this checkpoint at some nodes a move. Levels whose ratings fall where they
should rise become one between them (isotonic regression). What CHECKPOINT/levels.json has of other boards stays.
"""

import argparse
import csv
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

from alphagateau.play.levels import FILE, read_levels
from alphagateau.runs.newest import newest_checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("ratings", type=Path)
    parser.add_argument("board")
    arguments = parser.parse_args()
    found = newest_checkpoint(arguments.checkpoint)
    weights = found.manifest["weights_hash"]
    name = re.compile(rf"AlphaGateau \S+ {weights} .*nodes=(\d+)$")
    with arguments.ratings.open(encoding="utf-8") as file:
        rows = [(name.match(row["player"]), row["rating"], row["standard_error"]) for row in csv.DictReader(file)]
    known = sorted((int(match[1]), float(elo), float(error)) for match, elo, error in rows if match and elo != "nan")
    if not known:
        parser.error(f"{arguments.ratings} has no rating of {arguments.checkpoint} at some nodes a move")
    simulations, ratings, errors = np.array(known).T
    rising = isotonic_regression(ratings, weights=errors**-2.0).x
    levels = [(round(np.exp(np.log(simulations[rising == elo]).mean())), round(elo)) for elo in np.unique(rising)]
    if len(levels) < 2 or not all(a < b for column in zip(*levels, strict=True) for a, b in pairwise(column)):
        parser.error(f"{arguments.ratings} gives the levels {levels}, expected two or more that rise in both numbers")
    boards = {board: measured._asdict() for board, measured in read_levels(found).items()}
    boards[arguments.board] = dict(zip(("simulations", "elo"), map(list, zip(*levels, strict=True)), strict=True))
    path = found.path / FILE
    path.write_text(json.dumps({"weights_hash": weights, "boards": boards}, indent=1) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
