"""How engines take the positions of `eval/style/positions.epd`: python benchmarks/style.py --engine stockfish 1 1000

Fortresses and trapped pieces, each beside a position that differs by little and has none, and walks of a king, as in
Figure 5 of Monroe and Chalmers (2024). A UCI engine is asked at each number of nodes: at 1 a network plays its policy.
A chance is the engine's for the player to move, W + D / 2 of its `wdl`, by Stockfish 15's formula where it gives none.
"""

import argparse
import shlex
import statistics
from collections import defaultdict
from pathlib import Path

import chess
import chess.engine

KINDS = ("fortress", "open", "trapped", "free", "walk")


def read(path: Path) -> dict[str, list[tuple[chess.Board, list[chess.Move]]]]:
    """Positions and their best moves, by the first word of their names."""
    found = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        board, operations = chess.Board.from_epd(line)
        found[str(operations["id"]).split()[0]].append((board, operations.get("bm", [])))
    return found


def answer(engine: chess.engine.SimpleEngine, board: chess.Board, nodes: int) -> tuple[chess.Move, float]:
    """The engine's move, and its chance for the player to move."""
    info = engine.analyse(board, chess.engine.Limit(nodes=nodes), game=object())
    wdl = info.get("wdl") or info["score"].wdl(model="sf15", ply=board.ply())
    return info["pv"][0], wdl.pov(board.turn).expectation()


def row(name: str, answers: dict[str, list[tuple[bool, float]]]) -> str:
    """A line of the table."""
    chance = {kind: statistics.mean(chance for _, chance in answers[kind]) for kind in KINDS}
    hits = {kind: f"{sum(hit for hit, _ in answers[kind])} of {len(answers[kind])}" for kind in KINDS}
    pairs = [f"{chance[one]:.2f}, {chance[other]:.2f}" for one, other in (("fortress", "open"), ("trapped", "free"))]
    return f"| {name} | {pairs[0]} | {pairs[1]} | {hits['trapped']} | {hits['walk']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positions", type=Path, default=Path("eval/style/positions.epd"))
    parser.add_argument("--engine", nargs="+", action="append", required=True, help="command, then numbers of nodes")
    args = parser.parse_args()
    positions = read(args.positions)
    print("| engine, nodes | chance in fortresses, open | trapped, free | trap found | king's walk |")
    print("|---|---|---|---|---|")
    for command, *numbers in args.engine:
        with chess.engine.SimpleEngine.popen_uci(shlex.split(command), timeout=600) as engine:
            if "UCI_ShowWDL" in engine.options:
                engine.configure({"UCI_ShowWDL": True})
            for nodes in map(int, numbers):
                answers = defaultdict(list)
                for kind, boards in positions.items():
                    for board, best in boards:
                        move, chance = answer(engine, board, nodes)
                        answers[kind].append((move in best, chance))
                print(row(f"{command}, {nodes}", answers), flush=True)


if __name__ == "__main__":
    main()
