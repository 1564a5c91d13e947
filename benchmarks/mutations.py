"""Breaks rules, targets, back-up and ratings in twenty places, one at a time, and runs the tests that should notice.

    python benchmarks/mutations.py            # some 20 minutes of two cores; exits 1 if a mutation is missed
    python benchmarks/mutations.py --only 3   # one of them

Each mutation is made in a copy of the package. A text that is no longer there is an error: the list goes with the code.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RULES = "tests/games/test_games.py tests/games/test_moves.py tests/games/test_legality.py"
SEARCH = "tests/search/gumbel"
MINIMAX = "tests/search/minimax"
TARGETS = "tests/training/selfplay/test_targets.py"
TD_LEAF = "tests/training/selfplay/test_td_leaf.py"
RATINGS = "tests/ratings/test_rate.py tests/ratings/test_results.py"


class Mutation(NamedTuple):
    """One change of a source file, and the tests that cover it."""

    file: str
    before: str
    after: str
    tests: str


MUTATIONS = (
    Mutation("games/rules.py", "halfmove_count >= NO_PROGRESS_LIMIT", "halfmove_count > NO_PROGRESS_LIMIT", RULES),
    Mutation("games/rules.py", "occurrences >= REPETITION_LIMIT", "occurrences > REPETITION_LIMIT", RULES),
    Mutation("games/rules.py", "jnp.where(can_take, en_passant, -1)", "en_passant", RULES),
    Mutation("games/rules.py", "(is_stuck & is_check)", "(is_stuck)", RULES),
    Mutation(
        "games/rules.py", "before.color == after.color, 1.0, -1.0", "before.color == after.color, 1.0, 1.0", SEARCH
    ),
    Mutation("games/moves.py", "jnp.where(is_pawn | is_capture, 0,", "jnp.where(is_pawn, 0,", RULES),
    Mutation("games/moves.py", "jnp.concatenate([castling[2:] & others,", "jnp.concatenate([castling[2:],", RULES),
    Mutation("games/legality.py", "king_to + step, step)].all()", "king_to + step, step)].any()", RULES),
    Mutation("games/legality.py", "(others == 1) & (knights > 0)", "(others == 2) & (knights > 0)", RULES),
    Mutation(
        "training/selfplay/targets.py", "known = known | (discount == 0)", "known = known | (discount != 0)", TARGETS
    ),
    Mutation("training/selfplay/targets.py", "(1 - td_lambda) * value_after", "td_lambda * value_after", TARGETS),
    Mutation(
        "training/selfplay/targets.py", "last = discount[-1] * search_value[-1]", "last = search_value[-1]", TARGETS
    ),
    Mutation(
        "training/selfplay/targets.py",
        "leaf.color == position.color, target, -target",
        "leaf.color == position.color, target, target",
        TD_LEAF,
    ),
    Mutation("training/selfplay/targets.py", "td_lambda * discount * later[-1]", "td_lambda * later[-1]", TD_LEAF),
    Mutation("search/gumbel/batched_mctx.py", "/ (count + 1.0)", "/ (count + 2.0)", SEARCH),
    Mutation("search/gumbel/batched_mctx.py", "tree.children_discounts[edge] * value", "value", SEARCH),
    Mutation("search/minimax/values.py", "jnp.maximum(best, nodes.value)", "best", MINIMAX),
    Mutation("ratings/wls.py", "(games.points + 0.5) / (games.total + 1)", "games.points / games.total", RATINGS),
    Mutation("ratings/model.py", "covariance[j, j] - 2 * covariance[i, j]", "covariance[j, j]", RATINGS),
    Mutation("ratings/bradley_terry.py", "prior * (0.5 - chance)", "prior * (1.0 - chance)", RATINGS),
)


def is_noticed(mutation: Mutation) -> bool:
    """Whether a test fails once the mutation is made. Raises ValueError if its text is not there exactly once."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("alphagateau", "tests", "experiments", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(folder, name))
        path = Path(folder, "alphagateau", mutation.file)
        text = path.read_text(encoding="utf-8")
        if text.count(mutation.before) != 1:
            raise ValueError(f"{mutation.file} has {mutation.before!r} {text.count(mutation.before)} times, expected 1")
        path.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", *mutation.tests.split()]
        environment = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests could not run: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.returncode == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, metavar="N", help="the N-th mutation alone, from 1")
    only = parser.parse_args().only
    missed = 0
    for number, mutation in enumerate(MUTATIONS, 1):
        if only in (None, number):
            noticed = is_noticed(mutation)
            missed += not noticed
            print(f"{number:2} {'noticed' if noticed else 'MISSED '} {mutation.file}: {mutation.after!r}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
