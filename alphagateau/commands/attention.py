"""Writes a page of what the heads of a Chessformer attend to."""

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from alphagateau.cli.arguments import UsageError, number, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import HTML, JSON
from alphagateau.runs import files

if TYPE_CHECKING:
    import numpy as np

    from alphagateau.games.rules import Game
    from alphagateau.games.state import State
    from alphagateau.networks.chessformer.attention import HeadStudy
    from alphagateau.runs.checkpoint import Checkpoint

RANDOM_PLIES = 16  # of the games whose positions correlations are taken over


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Show what the heads of a Chessformer attend to, on one page.

    The page names the heads that follow a piece's moves, squares of one color or pieces, by correlation over positions
    of random games, and draws each head's attention from one square of one position. `alphagateau board` shows the
    other squares.

    Example: alphagateau attention checkpoints/chessformer_gardner --square c3 --output attention.html
    """

    path: tyro.conf.Positional[Path]
    """a checkpoint, or a run: its newest one"""
    output: Annotated[Path | None, tyro.conf.arg(metavar="PAGE.html"), HTML] = None
    """where the page goes; None: attention.html in the current folder"""
    game: str | None = None
    """the board; None: the one it learnt on"""
    fen: str | None = None
    """the position that is drawn; None: the start"""
    square: str | None = None
    """the square that attends; None: one in the middle"""
    positions: Annotated[int, number(int, 1, 1024)] = 32
    """positions of random games over which correlations are taken"""
    least: Annotated[float, number(float, 0, 1)] = 0.5
    """correlation from which a head counts as following a pattern"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """also write the correlations"""


def run(arguments: Arguments) -> int:
    """Writes the page and prints how many heads follow which pattern."""
    use_compilation_cache()
    from alphagateau.games.notation import from_fen, normalize_fen
    from alphagateau.games.variants import get_game
    from alphagateau.networks.chessformer.attention import best_patterns
    from alphagateau.reports.attention_page import attention_page
    from alphagateau.runs.newest import newest_checkpoint

    found = newest_checkpoint(arguments.path)
    with usage_errors("--game"):
        game = get_game(arguments.game or found.manifest["game"])
    fen = normalize_fen(arguments.fen or game.start_fen)
    with usage_errors("--fen"):
        state = from_fen(game, fen)
    square = _square(game, state, arguments.square)
    study, shown = study_checkpoint(found, game, state, arguments.positions)
    names, output = best_patterns(study, arguments.least), arguments.output or Path("attention.html")
    files.write_result(output, attention_page(arguments.path.name, fen, square, study, names, shown[:, :, square]))
    print(f"{output}: {count_followers(names)}")
    if arguments.json:
        table = {name: [[round(r, 4) for r in row] for row in x.tolist()] for name, x in study.correlations.items()}
        files.write_json(arguments.json, {"follows": names, "correlations": table})
    return 0


def study_checkpoint(
    found: "Checkpoint", game: "Game", state: "State", num_positions: int
) -> "tuple[HeadStudy, np.ndarray]":
    """The correlations of heads over positions of random games, and their weights [L, H, N, N] in `state`.

    Raises CheckpointError if the weights do not fit the board, UsageError if they are no Chessformer's.
    """
    import jax
    import numpy as np

    from alphagateau.games.actions import random_positions
    from alphagateau.networks.chessformer.attention import make_square_attention, study_heads
    from alphagateau.networks.trained import load_weights, network_config

    attention = make_square_attention(game, network_config(found))
    if attention is None:
        raise UsageError(f"{found.path} holds no Chessformer: expected one, for its attention between squares")
    attend, variables = jax.jit(attention), load_weights(found, game.name)
    sample = random_positions(game, num_positions, RANDOM_PLIES)
    study = study_heads(game, sample, np.asarray(attend(variables, sample)))
    return study, np.asarray(attend(variables, jax.tree.map(lambda x: x[None], game.position(state))))[0]


def count_followers(names: list[list[str]]) -> str:
    """Such as "7 of 12 heads follow a pattern (4 rook, 3 knight)"."""
    counts = Counter(sorted(name for heads in names for name in heads))
    num_heads, num_others = counts.total(), counts.pop("", 0)
    listed = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return f"{num_heads - num_others} of {num_heads} heads follow a pattern" + (f" ({listed})" if listed else "")


def _square(game: "Game", state: "State", name: str | None) -> int:
    """The number of a square as the player to move sees it."""
    size = game.size
    if name is None:
        return size // 2 * (size + 1)
    file, rank = ord(name[0]) - ord("a") if name else -1, int(name[1:]) - 1 if name[1:].isdecimal() else -1
    if not (0 <= file < size and 0 <= rank < size):
        raise UsageError(f"--square must be a1 to {chr(ord('a') + size - 1)}{size}, got {name!r}")
    return file * size + (rank if int(state.color) == 0 else size - 1 - rank)
