"""Writes the measured levels of a checkpoint, by which `alphagateau uci` limits its strength.

    alphagateau ladder "uci:alphagateau uci CHECKPOINT?nodes=1" ... --pool BOARD --boards BOARD --out FOLDER
    python benchmarks/uci_levels.py CHECKPOINT FOLDER/ratings.csv BOARD

Takes the players of the ladder that are this checkpoint at some nodes a move. What CHECKPOINT/levels.json has of other
boards stays.
"""

import argparse
import csv
import json
import re
from pathlib import Path

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
        rows = [(name.match(row["player"]), float(row["rating"])) for row in csv.DictReader(file)]
    levels = sorted((int(match[1]), round(rating)) for match, rating in rows if match and rating == rating)
    boards = {board: known._asdict() for board, known in read_levels(found).items()}
    simulations, elo = map(list, zip(*levels, strict=True))
    boards[arguments.board] = {"simulations": simulations, "elo": elo}
    path = found.path / FILE
    path.write_text(json.dumps({"weights_hash": weights, "boards": boards}, indent=1) + "\n", encoding="utf-8")
    read_levels(found)  # they rise
    print(path)


if __name__ == "__main__":
    main()
