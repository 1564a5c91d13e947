"""Players on the Strategic Test Suite, a row each, as in Giraffe's Table 3: python benchmarks/sts_table.py FILE

FILE is the suite's EPD. Players are those of `PLAYERS` or of `--players`, as `alphagateau sts` takes them; each is a
process of that command, one after another. Points are of 10 a position, +- two standard errors over positions.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PLAYERS = (
    "random",
    *(f"uci:stockfish?nodes={nodes}&Hash=1" for nodes in (1, 10, 100, 1000, 10_000, 100_000)),
    *(f"uci:fairy-stockfish?nodes={nodes}&Hash=1" for nodes in (100, 1000, 10_000)),
    *(
        f"checkpoints/{name}?{search}"
        for name in ("chess_strong", "chess_labelled")
        for search in ("search=policy", "search=state_value", "simulations=16", "simulations=64")
    ),
    "checkpoints/chess_giraffe?search=probability&nodes=1000&threshold=0&split=uniform",
    *(f"checkpoints/{name}?search=policy" for name in ("chess_selfplay", "los_alamos_selfplay")),
    *(f"checkpoints/{name}?simulations=64" for name in ("chess_selfplay", "los_alamos_selfplay")),
)


def scored(player: str, suite: Path, options: list[str]) -> dict:
    """What `alphagateau sts --json` writes of a player."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.json"
        command = [sys.executable, "-m", "alphagateau.commands.main", "sts", player, str(suite), "--json", str(path)]
        subprocess.run([*command, "--game", "chess", *options], check=True, stdout=subprocess.DEVNULL)
        return json.loads(path.read_text(encoding="utf-8"))


def row(player: str, found: dict) -> str:
    """A line of the table."""
    points = found["points"]
    error = 2 * statistics.stdev(points) * math.sqrt(len(points))
    nodes = "" if found["nodes"] is None or math.isnan(found["nodes"]) else f"{found['nodes']:,.0f}"
    best = f"{found['best_moves'] / found['positions']:.1%}"
    return f"| {player} | {nodes} | {found['score']:,} +- {error:.0f} | {best} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--players", nargs="+", default=PLAYERS)
    parser.add_argument("--first", default="0", help="only so many positions of each theme")
    args = parser.parse_args()
    print("| player | nodes | points | best moves |\n|---|---|---|---|")
    for player in args.players:
        print(row(player, scored(player, args.file, ["--first", args.first])), flush=True)


if __name__ == "__main__":
    main()
