"""Quiet best moves, as in Giraffe's Table 5: which labelled best moves count as quiet."""

import sys
from pathlib import Path

import numpy as np

from alphagateau.data.packed import labels_of_row, pack_labels
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.suites.labelled_moves import read_boards

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from quiet_moves import quiet_best, row


def labelled(game, fen: str, best: str):
    """The board of `fen` with labels of all moves, `best` the highest; "": none is labelled."""
    moves = board_edges(game, board_from_fen(game, fen))
    scores = [100 if uci == best else 0 for uci in moves.values()]
    assert not best or best in moves.values()
    labels = {"edges": list(moves) if best else [], "scores": scores if best else [], "depths": [1] * len(scores)}
    return labels_of_row(fen, {"fen": fen, "game": 1, "ply": 0, "count": 1, "state_score": 0, "failed": ""} | labels)


def test_quiet_is_what_quiescence_would_not_follow(gardner):
    """A rook may take an undefended pawn (noisy), a defended one (quiet: worth less than it), or step aside."""
    open_pawn, held_pawn = "4k/5/p4/5/R3K w - - 0 1", "4k/1p3/p4/5/R3K w - - 0 1"
    queening = "4k/P4/5/5/4K w - - 0 1"
    cases = [
        (open_pawn, "a1a3", False),
        (open_pawn, "a1b1", True),
        (held_pawn, "a1a3", True),
        (queening, "a4a5q", False),
        (queening, "a4a5n", True),
        (open_pawn, "", False),
    ]
    boards = read_boards(gardner, pack_labels(gardner, [labelled(gardner, fen, best) for fen, best, _ in cases]))
    assert quiet_best(boards).tolist() == [is_quiet for *_, is_quiet in cases]


def test_a_row_counts_the_boards_of_each_kind():
    in_top = np.array([[1, 1], [0, 1], [0, 0], [1, 1]], bool)
    text = row("policy", in_top, {"all": np.ones(4, bool), "quiet": np.array([False, True, True, False])})
    cells = [cell.split()[0] for cell in text.strip("| ").split(" | ")]
    assert cells == ["policy", "50.0%", "75.0%", "0.0%", "50.0%"]
