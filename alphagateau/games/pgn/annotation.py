"""Writes an analyst's scores and judgements into the text of a game, and changes nothing else in it."""

import re

from alphagateau.games.pgn.accuracy import AnalysedGame, judgements
from alphagateau.games.pgn.pgn import MoveNote, plain_tag, write_note
from alphagateau.games.pgn.text import WrittenGame

EVAL = re.compile(r"\[%eval\s[^\[\]]*\]\s?")
Edit = tuple[int, int, str]  # from, to, what stands there instead


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
