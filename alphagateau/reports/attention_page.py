"""Turns the attention of a network's heads into their page (templates/attention.html): a table, and a map a head."""

from collections.abc import Sequence
from typing import Any

from alphagateau.reports.drawing.diagrams import Diagram, diagram
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Table, number_cell, table


def attention_page(name: str, fen: str, square: int, study: Any, follows: Sequence[Sequence[str]], weights: Any) -> str:
    """The HTML of a network's L layers of H heads.

    Args:
        square: the query in the position `fen`; squares are numbered file by file as the player to move sees them.
        study: a `HeadStudy` of `networks/chessformer/attention.py`.
        follows: the pattern of each layer and head, or "".
        weights: float [L, H, N], of the query on each square.
    """
    board = diagram(fen, "the maps")
    return render(
        "attention.html",
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


def heads_table(study: Any, follows: Sequence[Sequence[str]]) -> Table:
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
