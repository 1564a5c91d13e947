"""Accuracy of both sides of a game by winning chances, and judgements of the moves that lost much.

Formulas are Lichess's: of a move https://lichess.org/page/accuracy; of a game AccuracyPercent.scala, of judgements
Advice.scala of https://github.com/lichess-org/lila. That program also adds 1 % to each move for the doubt of its own
analysis, takes the start for 15 centipawns, and scores beyond 1000 for 1000; here chances are the analyst's own.
`annotated_text` writes scores and judgements into the text of a game, and changes nothing else in it.
"""

import itertools
import math
import re
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import chess.engine
import chess.pgn

from alphagateau.games.pgn.pgn import GameRecord, MoveNote, plain_tag, write_note
from alphagateau.games.pgn.text import WrittenGame

WINDOW_SHARE, WINDOW_BOUNDS = 10, (2, 8)  # moves of a window of volatility: a tenth of the game's, within these
WEIGHT_BOUNDS = (0.5, 12.0)
EVAL = re.compile(r"\[%eval\s[^\[\]]*\]\s?")
Edit = tuple[int, int, str]  # from, to, what stands there instead


class AnalysedGame(NamedTuple):
    """A game of n moves with an analyst's scores of its n + 1 positions."""

    record: GameRecord
    scores: tuple[chess.engine.Score, ...]  # White's, [n + 1]
    chances: tuple[float, ...]  # of White to win, percent, [n + 1]
    best: tuple[str, ...]  # UCI, [n + 1]; "" where the game is over
    analyst: str

    @property
    def white_begins(self) -> bool:
        return self.record.start_fen.split()[1] == "w"


class Judgement(NamedTuple):
    """The name and signs of a move that loses `least` percent of winning chances or more."""

    name: str
    least: float
    nag: int
    glyph: str


JUDGEMENTS = (
    Judgement("blunder", 15.0, chess.pgn.NAG_BLUNDER, "??"),
    Judgement("mistake", 10.0, chess.pgn.NAG_MISTAKE, "?"),
    Judgement("inaccuracy", 5.0, chess.pgn.NAG_DUBIOUS_MOVE, "?!"),
)


def move_accuracy(before: float, after: float) -> float:
    """0 to 100, of the mover's winning chances before and after."""
    return min(max(103.1668 * math.exp(-0.04354 * max(before - after, 0.0)) - 3.1669, 0.0), 100.0)


def judgement_of(before: float, after: float) -> Judgement | None:
    """The Judgement by the mover's winning chances before and after; None if the move lost little."""
    return next((judgement for judgement in JUDGEMENTS if before - after >= judgement.least), None)


def judgements(game: AnalysedGame) -> list[Judgement | None]:
    """The Judgement of each move, [n]; None for the analyst's own choice, too."""
    changes = zip(game.record.moves, game.best, _movers_chances(game.chances, game.white_begins), strict=False)
    return [None if move == best else judgement_of(before, after) for move, best, (_, before, after) in changes]


def _movers_chances(chances: Sequence[float], white_begins: bool) -> Iterator[tuple[bool, float, float]]:
    """(whether White moved, the mover's winning chances before and after) of each move, of White's chances [n + 1]."""
    for ply, (before, after) in enumerate(itertools.pairwise(chances)):
        is_white = (ply % 2 == 0) == white_begins
        yield (is_white, before, after) if is_white else (is_white, 100 - before, 100 - after)


def game_accuracy(chances: Sequence[float], white_begins: bool = True) -> tuple[float | None, float | None]:
    """White's and Black's accuracy, by White's winning chances [n + 1]; None for a side without moves.

    The mean of two: the mean weighted by how much the chances swung around each move, and the harmonic mean.
    """
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # by whether White moved: (accuracy, weight)
    for (is_white, before, after), weight in zip(
        _movers_chances(chances, white_begins), _weights(chances), strict=True
    ):
        found[is_white].append((move_accuracy(before, after), weight))
    return _mean(found[True]), _mean(found[False])


def _weights(chances: Sequence[float]) -> list[float]:
    """How volatile the game was around each move: the standard deviation of the chances in a window."""
    num_moves, (least, most) = len(chances) - 1, WINDOW_BOUNDS
    if num_moves < 1:
        return []
    size = min(max(num_moves // WINDOW_SHARE, least), most)
    starts = [0] * (min(size, len(chances)) - 2) + list(range(len(chances) - size + 1))
    low, high = WEIGHT_BOUNDS
    return [min(max(statistics.pstdev(chances[start : start + size]), low), high) for start in starts]


def _mean(moves: Sequence[tuple[float, float]]) -> float | None:
    if not moves:
        return None
    weighted = sum(accuracy * weight for accuracy, weight in moves) / sum(weight for _, weight in moves)
    harmonic = len(moves) / sum(1 / max(1.0, accuracy) for accuracy, _ in moves)
    return (weighted + harmonic) / 2


def annotated_text(written: WrittenGame, game: AnalysedGame) -> str:
    """The kept text of a game with the analyst's scores and judgements in the place of others.

    Variations, comments and tags stay as they are.
    """
    edits = [*_without_scores(written), _annotator(written, game.analyst)]
    for move, score, judgement in zip(written.moves, game.scores[1:], judgements(game), strict=True):
        note = write_note(MoveNote(score))
        nag = f" ${judgement.nag}" if judgement else ""
        if nag and move.nag:
            edits.append((move.nag_start, move.nag_end, ""))
        edits.append((move.end, move.end, f"{nag} {{ {note} }}" if note else nag))
    parts, last = [], 0
    for start, end, new in sorted(edits):
        parts += [written.text[last:start], new]
        last = end
    return "".join([*parts, written.text[last:]])


def _without_scores(written: WrittenGame) -> list[Edit]:
    edits: list[Edit] = []
    for start, end in written.comment_places:
        found = list(EVAL.finditer(written.text, start, end))
        if found and not EVAL.sub("", written.text[start:end]).strip():
            edits.append((start - 1, end + 1, ""))  # its braces too
        else:
            edits += [(*one.span(), "") for one in found]
    return edits


def _annotator(written: WrittenGame, analyst: str) -> Edit:
    tag = f'[Annotator "{plain_tag(analyst)}"]'
    if "Annotator" in written.tag_places:
        return (*written.tag_places["Annotator"], tag)
    if not written.tag_places:
        return 0, 0, f"{tag}\n\n"
    last = max(end for _, end in written.tag_places.values())
    return last, last, f"\n{tag}"
