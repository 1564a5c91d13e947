"""Games with an analyst's scores: judgements of the moves that lost much, by winning chances as Lichess has them.

Thresholds are those of Advice.scala of https://github.com/lichess-org/lila; chances are the analyst's own.
`annotated_text` writes scores and judgements into the text of a game, and changes nothing else in it.
"""

import re
from typing import NamedTuple

import chess.engine
import chess.pgn

from alphagateau.games.pgn.pgn import GameRecord, MoveNote, plain_tag, write_note
from alphagateau.games.pgn.text import MAX_JUDGEMENT, WrittenGame

EVAL = re.compile(r"\[%eval\s[^\[\]]*\]\s?")
_REMOVED = "\0"  # where a comment was
_EMPTIED = re.compile(f"(?m)^[ \t]*{_REMOVED}[ \t{_REMOVED}]*\n")  # a line that held no more: if empty, it ends a game
Edit = tuple[int, int, str]  # from, to, what stands there instead


class AnalysedGame(NamedTuple):
    """A game of n moves with an analyst's scores of its n + 1 positions."""

    record: GameRecord
    scores: tuple[chess.engine.Score, ...]  # White's, [n + 1]
    chances: tuple[float, ...]  # of White to win, percent, [n + 1]
    best: tuple[str, ...]  # UCI, [n + 1]; "" where the game is over
    analyst: str


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


def judgements(game: AnalysedGame) -> list[Judgement | None]:
    """The Judgement of each move, [n]; None if it lost little, or is the analyst's own choice."""
    found = []
    for ply, move in enumerate(game.record.moves):
        lost = (game.chances[ply] - game.chances[ply + 1]) * (1 if (ply % 2 == 0) == game.record.white_begins else -1)
        judgement = next((judgement for judgement in JUDGEMENTS if lost >= judgement.least), None)
        found.append(None if move == game.best[ply] else judgement)
    return found


def annotated_text(written: WrittenGame, game: AnalysedGame) -> str:
    """The kept text of a game with the analyst's scores and judgements in the place of others.

    Variations, comments and tags stay as they are.
    """
    edits = [*_without_scores(written), _annotator(written, game.analyst)]
    for move, score, judgement in zip(written.moves, game.scores[1:], judgements(game), strict=True):
        note = write_note(MoveNote(score))
        nag = f" ${judgement.nag}" if judgement else ""
        if nag and 0 < move.nag <= MAX_JUDGEMENT:
            edits.append((move.nag_start, move.nag_end, ""))
        edits.append((move.end, move.end, f"{nag} {{ {note} }}" if note else nag))
    parts, last = [], 0
    for start, end, new in sorted(edits):
        parts += [written.text[last:start], new]
        last = end
    return _EMPTIED.sub("", "".join([*parts, written.text[last:]])).replace(_REMOVED, "")


def _without_scores(written: WrittenGame) -> list[Edit]:
    edits: list[Edit] = []
    for start, end in written.comment_places:
        found = list(EVAL.finditer(written.text, start, end))
        if found and not EVAL.sub("", written.text[start:end]).strip():
            edits.append((start - 1, end + 1, _REMOVED))  # its braces too
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
