"""What a Chessformer's heads attend to: python benchmarks/attention.py checkpoints/chess_strong --square c3

Writes a page (of attention_page.html) that names the heads that follow a piece's moves, squares of one
color or pieces, by correlation over positions of random games, and draws each head's attention from one square of one
position. Prints how many heads follow which pattern. `alphagateau board` shows the other squares.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.games.actions import legal_edge_mask, random_positions
from alphagateau.games.entries import QUEEN
from alphagateau.games.notation import from_fen, normalize_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.network import make_square_attention
from alphagateau.networks.trained import load_weights, network_config
from alphagateau.reports.drawing.diagrams import Diagram, diagram
from alphagateau.reports.drawing.pages import environment
from alphagateau.reports.drawing.tables import Table, number_cell, table
from alphagateau.runs import files
from alphagateau.runs.newest import newest_checkpoint

RANDOM_PLIES = 16  # of the games whose positions correlations are taken over
TEMPLATE = Path(__file__).with_name("attention_page.html")


class HeadStudy(NamedTuple):
    """Statistics [L, H] of a network's heads over B positions."""

    correlations: Mapping[str, np.ndarray]  # by pattern, of a head's weights and the pattern; NaN: no position has it
    stillness: np.ndarray  # 0 to 1, the share of the weights' variance that all positions have in common
    on_itself: np.ndarray  # mean weight of a square on itself


def piece_patterns(game: Game) -> dict[str, np.ndarray]:
    """Masks bool [N, N] by name: whether that piece moves from query to key on an empty board.

    "pawn" is a capture by either side, "color" another square of the query's color.
    """
    file, rank = np.divmod(np.arange(game.num_squares), game.size)
    files, ranks = np.abs(file[:, None] - file), np.abs(rank[:, None] - rank)
    far = np.maximum(files, ranks)
    diagonal, straight = (files == ranks) & (far > 0), (np.minimum(files, ranks) == 0) & (far > 0)
    return {
        "pawn": (files == 1) & (ranks == 1),
        "knight": (files * ranks) == 2,
        "bishop": diagonal,
        "rook": straight,
        "queen": diagonal | straight,
        "king": far == 1,
        "color": ((files + ranks) % 2 == 0) & (far > 0),
    }


def position_patterns(game: Game, positions: Position) -> dict[str, np.ndarray]:
    """Masks bool [B, N, N] by name, of the piece on the key square.

    "arrivals": it is the player's to move, and can move to the query.
    """
    board, size = np.asarray(positions.boards[:, 0]), (len(positions.color), game.num_squares, game.num_squares)
    arrivals = np.zeros(size, bool)
    batch, edges = np.nonzero(np.asarray(legal_edge_mask(game, positions)))
    arrivals[batch, game.receivers[edges], game.senders[edges]] = True
    pieces = {"own pieces": board > 0, "their pieces": board < 0, "their queen": board == -QUEEN}
    return {name: np.broadcast_to(mask[:, None], size) for name, mask in pieces.items()} | {"arrivals": arrivals}


def study_heads(game: Game, positions: Position, weights: np.ndarray) -> HeadStudy:
    """The HeadStudy of weights [B, L, H, N, N] in B positions."""
    patterns = {name: mask[None] for name, mask in piece_patterns(game).items()}
    patterns |= position_patterns(game, positions)
    pairs = weights.reshape(*weights.shape[:3], -1)
    mean = pairs.mean(axis=0)
    return HeadStudy(
        {name: correlation(pairs, mask.reshape(len(mask), -1)) for name, mask in patterns.items()},
        stillness=mean.var(axis=-1) / np.maximum(pairs.var(axis=-1).mean(axis=0), 1e-12),
        on_itself=np.diagonal(weights, axis1=-2, axis2=-1).mean(axis=(0, -1)),
    )


def correlation(pairs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Pearson's correlation [L, H] of weights [B, L, H, P] and a pattern [B or 1, P], over positions that have it."""
    has_pattern = np.broadcast_to(mask.any(axis=-1) & ~mask.all(axis=-1), len(pairs))
    if not has_pattern.any():
        return np.full(pairs.shape[1:3], np.nan)
    mask = np.broadcast_to(mask, (len(pairs), mask.shape[-1]))[has_pattern].astype(float)
    x = pairs[has_pattern] - pairs[has_pattern].mean(axis=-1, keepdims=True)
    y = (mask - mask.mean(axis=-1, keepdims=True))[:, None, None]
    spread = np.sqrt((x * x).mean(axis=-1) * (y * y).mean(axis=-1))
    return ((x * y).mean(axis=-1) / np.maximum(spread, 1e-12)).mean(axis=0)


def best_patterns(study: HeadStudy, least: float) -> list[list[str]]:
    """For each layer and head the pattern of highest correlation, "" where that is below `least`."""
    names = [*study.correlations, ""]
    stacked = np.nan_to_num(np.stack(list(study.correlations.values())), nan=-1.0)
    best = np.where(stacked.max(axis=0) >= least, stacked.argmax(axis=0), -1)
    return [[names[i] for i in heads] for heads in best]


def count_followers(names: list[list[str]]) -> str:
    """Such as "7 of 12 heads follow a pattern (4 rook, 3 knight)"."""
    counts = Counter(sorted(name for heads in names for name in heads))
    num_heads, num_others = counts.total(), counts.pop("", 0)
    listed = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return f"{num_heads - num_others} of {num_heads} heads follow a pattern" + (f" ({listed})" if listed else "")


def attention_page(
    name: str, fen: str, square: int, study: HeadStudy, follows: Sequence[Sequence[str]], weights: Any
) -> str:
    """The HTML of a network's L layers of H heads.

    Args:
        square: the query in the position `fen`; squares are numbered file by file as the player to move sees them.
        study: of these heads.
        follows: the pattern of each layer and head, or "".
        weights: float [L, H, N], of the query on each square.
    """
    board = diagram(fen, "the maps")
    template = environment().from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=f"Attention of {name}",
        subtitle=f"layers: {len(follows)}, heads of each: {len(follows[0])}",
        heads=heads_table(study, follows),
        summary=summary_table(follows),
        board=board,
        query=place_of(board, fen, square),
        layers=[
            [(name, head_map(board, fen, w)) for name, w in zip(*layer, strict=True)]
            for layer in zip(follows, weights, strict=True)
        ],
        fen=fen,
    )


def summary_table(follows: Sequence[Sequence[str]]) -> Table:
    """The number of heads that follow each pattern, a row a layer."""
    names = sorted({name for heads in follows for name in heads if name})
    rows = [[i, *(list(heads).count(name) for name in names)] for i, heads in enumerate(follows, 1)]
    return table(["layer", *names], rows if names else [])


def heads_table(study: HeadStudy, follows: Sequence[Sequence[str]]) -> Table:
    """One row a head."""
    rows = []
    for i, heads in enumerate(follows):
        for j, name in enumerate(heads):
            found = [number_cell(float(x[i, j]), ".2f") for x in study.correlations.values()]
            others = [number_cell(float(x[i, j]), ".2f") for x in (study.stillness, study.on_itself)]
            rows.append([i + 1, j + 1, name or "–", *found, *others])
    return table(["layer", "head", "follows", *study.correlations, "stillness", "on itself"], rows)


def head_map(board: Diagram, fen: str, weights: Any) -> list[tuple[int, int, float, float]]:
    """The squares (x, y, share of the largest weight, percent) of a head's weights [N]."""
    most = max(float(weights.max()), 1e-9)
    return [(*place_of(board, fen, i), float(x) / most, 100 * float(x)) for i, x in enumerate(weights)]


def place_of(board: Diagram, fen: str, square: int) -> tuple[int, int]:
    """The place (x, y) of a square on the diagram, which has White below."""
    file, rank = divmod(square, board.size)
    is_white = fen.split()[1] == "w"
    return 100 * file, 100 * (board.size - 1 - rank if is_white else rank)


def square_number(size: int, name: str, is_white: bool) -> int:
    """The number of a square as the player to move sees it."""
    file, rank = ord(name[:1] or "?") - ord("a"), int(name[1:]) - 1 if name[1:].isdecimal() else -1
    if not (0 <= file < size and 0 <= rank < size):
        raise ValueError(f"--square must be a1 to {chr(ord('a') + size - 1)}{size}, got {name!r}")
    return file * size + (rank if is_white else size - 1 - rank)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint, or a run: its newest one")
    parser.add_argument("--output", type=Path, default=Path("attention.html"), help="where the page goes")
    parser.add_argument("--game", help="the board; the one it learnt on")
    parser.add_argument("--fen", help="the position that is drawn; the start")
    parser.add_argument("--square", help="the square that attends; one in the middle")
    parser.add_argument("--positions", type=int, default=32, help="of random games, for correlations")
    parser.add_argument("--least", type=float, default=0.5, help="correlation from which a head follows a pattern")
    parser.add_argument("--json", type=Path, help="also write the correlations")
    args = parser.parse_args(words)
    try:
        show(args)
    except ValueError as error:  # about what the user named or wrote
        parser.error(str(error))


def show(args: argparse.Namespace) -> None:
    """Writes the page and prints how many heads follow which pattern."""
    if not 1 <= args.positions <= 1024:
        raise ValueError(f"--positions must be a whole number, from 1 to 1024, got {args.positions}")
    if not 0 <= args.least <= 1:
        raise ValueError(f"--least must be a number, from 0 to 1, got {args.least}")
    found = newest_checkpoint(args.checkpoint)
    game = get_game(args.game or found.manifest["game"])
    fen = normalize_fen(args.fen or game.start_fen)
    state = from_fen(game, fen)
    middle = game.size // 2 * (game.size + 1)
    square = middle if args.square is None else square_number(game.size, args.square, int(state.color) == 0)
    attention = make_square_attention(game, network_config(found))
    if attention is None:
        raise ValueError(f"{found.path} holds no Chessformer: expected one, for its attention between squares")
    use_compilation_cache()
    attend, variables = jax.jit(attention), load_weights(found, game.name)
    sample = random_positions(game, args.positions, RANDOM_PLIES)
    study = study_heads(game, sample, np.asarray(attend(variables, sample)))
    shown = np.asarray(attend(variables, jax.tree.map(lambda x: x[None], game.position(state))))[0]
    names = best_patterns(study, args.least)
    page = attention_page(args.checkpoint.name, fen, square, study, names, shown[:, :, square])
    files.write_result(args.output, page)
    print(f"{args.output}: {count_followers(names)}")
    if args.json:
        rounded = {name: [[round(r, 4) for r in row] for row in x.tolist()] for name, x in study.correlations.items()}
        files.write_json(args.json, {"follows": names, "correlations": rounded})


if __name__ == "__main__":
    main()
