"""Ways to have an engine score all moves of a board: what each costs, and how far it is from much longer searches.

    python benchmarks/label_searches.py data/club --boards 100

One engine and one thread at a time. Milliseconds are processor time a board, of the engine and of the labelling; the
distance is the mean of |q - q'|, q of the way and q' of a search of its own of --deep nodes for each move, as
probabilities of winning: over all moves, and over those within 0.1 of the best; the last is what the best move of the
way loses, by q'.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import psutil

from alphagateau.data.label_files import LabelJob
from alphagateau.data.positions import board_name
from alphagateau.data.tables import BOARDS, read_table
from alphagateau.data.workers import label_board, open_engine
from alphagateau.engines.engine import Engine
from alphagateau.games.scores import win_probability
from alphagateau.games.variants import get_game
from alphagateau.matches.specs import parse_spec

NEAR = 0.1  # of the best move: one that may be played


def ways_of(order: LabelJob, deep: int) -> dict[str, LabelJob]:
    """What is compared, by name; the first is what the others are held against."""
    ways = {f"each move, {deep} nodes": order._replace(nodes=deep)}
    for nodes in (50, 100, 200):
        ways[f"each move, {nodes} nodes"] = order._replace(nodes=nodes)
        ways[f"the same, --clear board, {nodes} nodes"] = order._replace(nodes=nodes, clear="board")
    for nodes in (50, 100, 200, 400):
        ways[f"--multipv, {nodes} nodes a move"] = order._replace(nodes=nodes, multipv=True)
    return ways


def label_all(order: LabelJob, fens: list[str]) -> tuple[list[np.ndarray], float]:
    """Q of each board's moves, and milliseconds of processor time a board."""
    engine = open_engine(order)
    try:
        label_board(order, engine, fens[0])  # the first finds pages and tables cold
        began = processor_seconds(engine)
        found = [win_probability(np.array(label_board(order, engine, fen)["scores"])) for fen in fens]
        return found, 1000 * (processor_seconds(engine) - began) / len(fens)
    finally:
        engine.close()


def processor_seconds(engine: Engine) -> float:
    """Of this process and the engine, since they began."""
    times = psutil.Process(engine.process.pid).cpu_times()
    return time.process_time() + times.user + times.system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="boards that `alphagateau positions` gathered")
    parser.add_argument("--boards", type=int, default=100)
    parser.add_argument("--engine", default="stockfish")
    parser.add_argument("--deep", type=int, default=10_000)
    args = parser.parse_args()
    fens = read_table(args.folder / "test.parquet", BOARDS)[0]["fen"].to_pylist()
    count = max(1, args.boards)
    fens = fens[:: max(1, len(fens) // count)][:count]
    game = get_game(board_name(args.folder))
    engine = parse_spec(args.engine)
    order = LabelJob(game, args.folder, args.folder, engine.path, dict(engine.options), 0, "actions", "move", 1, 60.0)
    print(f"{len(fens)} boards\n{'':44}{'ms':>8}{'all moves':>12}{'near best':>12}{'lost':>10}")
    deep: list[np.ndarray] = []
    for name, way in ways_of(order, args.deep).items():
        found, milliseconds = label_all(way, fens)
        deep = deep or found
        far = np.concatenate([np.abs(q - p) for q, p in zip(found, deep, strict=True)])
        near = np.concatenate([p > p.max() - NEAR for p in deep])
        lost = np.mean([p.max() - p[q.argmax()] for q, p in zip(found, deep, strict=True)])
        print(f"{name:44}{milliseconds:8.2f}{far.mean():12.4f}{far[near].mean():12.4f}{lost:10.4f}")


if __name__ == "__main__":
    main()
