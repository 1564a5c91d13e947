"""Policies on quiet best moves, as in Giraffe's Table 5: python benchmarks/quiet_moves.py LABELS CHECKPOINT...

Prints how often the labelled best move is the first, or of the first three, by the prior, on all held-out boards and on
those where it is quiet: what minimax's quiescence would not follow, so neither a promotion to a queen nor a capture of
an undefended piece or of one of at least the capturer's worth (Lai 2015 leaves out moves that win an exchange). Moves
alike share a place; +- two standard errors. `chance` is the prior that all moves share.
"""

import argparse
from functools import partial
from pathlib import Path

import jax
import numpy as np

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.data.label_files import read_manifest
from alphagateau.data.packed import open_packed
from alphagateau.games.variants import get_game
from alphagateau.matches.player_specs import load_player
from alphagateau.matches.specs import read_spec
from alphagateau.ratings.intervals import share
from alphagateau.search.minimax.minimax import noisy_moves
from alphagateau.suites.labelled_moves import TOPS, LabelledBoards, predict, read_boards


def quiet_best(boards: LabelledBoards) -> np.ndarray:
    """bool [R]: whether a board's best move is labelled and quiet."""
    is_noisy, _ = jax.jit(jax.vmap(partial(noisy_moves, boards.game)))(boards.states)
    best = boards.rows.best
    return (best >= 0) & ~np.asarray(is_noisy)[np.arange(len(best)), np.maximum(best, 0)]


def row(name: str, in_top: np.ndarray, kinds: dict[str, np.ndarray]) -> str:
    found = [share(float(in_top[kind, i].sum()), int(kind.sum())) for kind in kinds.values() for i in range(len(TOPS))]
    cells = [f"{x.value:.1%} ({100 * x.lower:.1f} - {100 * x.upper:.1f})" for x in found]
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, help="folder of labels")
    parser.add_argument("checkpoints", nargs="+", help="runs or checkpoints with a policy")
    parser.add_argument("--max-boards", type=int, default=0, help="the first so many; 0: all")
    args = parser.parse_args()
    use_compilation_cache()
    game = get_game(read_manifest(args.labels)["game"])
    boards = read_boards(game, open_packed(args.labels, "test", "graded"), args.max_boards)
    kinds = {"all": boards.rows.best >= 0, "quiet": quiet_best(boards)}
    print("| prior of | " + " | ".join(f"{kind}, first {top}" for kind in kinds for top in TOPS) + " |")
    print("|---" * (1 + len(kinds) * len(TOPS)) + "|")
    moves = np.maximum((boards.states.legal_edges >= 0).sum(axis=1, keepdims=True), 1)
    print(row("chance", np.minimum(np.array(TOPS) / moves, 1), kinds))
    for text in args.checkpoints:
        player = load_player(read_spec(f"{text}?search=policy"), game.name)
        print(row(text, predict(boards, player, 0, lambda done: None).in_top, kinds), flush=True)
    print(f"{kinds['all'].sum()} boards, of {kinds['quiet'].sum()} the best move is quiet")


if __name__ == "__main__":
    main()
