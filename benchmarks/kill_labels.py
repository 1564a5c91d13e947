"""Kills a labelling and continues it, and says how often it ended with the same bytes; counts of docs/reliability.md.

    python benchmarks/kill_labels.py [--every 1] [--random 40] [--json FILE]

Boards of random games on 5x5 are labelled in parts by an engine of a few lines (`tests/fake_engine.py`). The process is
killed before every change of its folder (`--every 5`: every fifth) and at random times; the same order, by another
number of workers, must then end with the files of a labelling that nobody killed, and leave nothing half written.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from kills import copy_of, die_at, forked

from alphagateau.data import label_files
from alphagateau.data.label_files import LabelJob
from alphagateau.data.labelling import label
from alphagateau.data.positions import gather
from alphagateau.games.notation import board_from_fen, board_outcome
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game

ENGINE = f"{sys.executable} {Path(__file__).parents[1] / 'tests' / 'fake_engine.py'}"
BOARDS_OF_A_PART = 24
MOST_CHANGES = 1000  # of one labelling, far more than there are


def random_game(game: Game, rng: random.Random) -> GameRecord:
    board, moves = board_from_fen(game, game.start_fen), []
    while board_outcome(game, board, 1)[0] == "*":
        moves.append(rng.choice(sorted(move.uci() for move in board.legal_moves)))
        board.push_uci(moves[-1])
    return GameRecord(game.name, game.start_fen, tuple(moves), board_outcome(game, board, 1)[0])


def files_of(folder: Path) -> dict[str, bytes]:
    """All that lies there but the file that a lock is held on."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.endswith(".lock")}


def kill(order: LabelJob, expected: dict[str, bytes], change: int, seconds: float | None = None) -> tuple[bool, str]:
    """(whether a kill hit, what was wrong after it, if anything)."""
    folder = copy_of(None, order.output)

    def start() -> None:
        folder.mkdir()
        die_at(change, folder)
        label(order, lambda: False, lambda pace: None)

    code = forked(start, seconds)
    code_after = forked(lambda: label(order._replace(workers=1), lambda: False, lambda pace: None))
    if code not in (0, -signal.SIGKILL) or code_after != 0:
        return True, f"exit codes {code} and {code_after}"
    if (found := files_of(folder)) != expected:
        differing = [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]
        return True, f"other files: {', '.join(differing)}"
    return code == -signal.SIGKILL, ""


def kills(work: Path, every: int, count: int) -> dict[str, int | list[str]]:
    """The kills that hit, and those after which something was wrong."""
    label_files.UNIT = BOARDS_OF_A_PART
    game, rng = get_game("gardner_chess"), random.Random(0)
    (work / "boards").mkdir()
    gather(game, [random_game(game, rng) for _ in range(4)], work / "boards", 0.25)
    order = LabelJob(game, work / "boards", work / "whole", ENGINE, {}, 50, "actions", "move", 2, 20.0)
    began = time.perf_counter()
    if forked(lambda: label(order, lambda: False, lambda pace: None)) != 0:
        raise SystemExit("the boards could not be labelled")
    seconds, expected = time.perf_counter() - began, files_of(work / "whole")
    order, failures, by_change, at_times = order._replace(output=work / "labels"), [], 0, 0
    for change in range(1, MOST_CHANGES, every):
        was_hit, why = kill(order, expected, change)
        failures += [f"change {change}: {why}"] if why else []
        if not was_hit:
            break
        by_change += 1
    for _ in range(count):
        after = rng.uniform(0, seconds)
        was_hit, why = kill(order, expected, 0, after)
        failures += [f"{after:.3f} s: {why}"] if why else []
        at_times += was_hit
    return {"before a change": by_change, "at a random time": at_times, "failures": failures}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--random", type=int, default=40, metavar="KILLS")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = kills(Path(work), options.every, options.random)
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
