"""Scores a player's moves on positions whose moves have points."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from alphagateau.games.notation import from_fens
from alphagateau.games.rules import Game
from alphagateau.matches.players import Player
from alphagateau.suites.answers import Positions, find_answers, key_parts_of
from alphagateau.suites.epd import ScoredPosition


class Answer(NamedTuple):
    """A player's move in a position."""

    move: str  # UCI
    points: int
    best: int  # the most there were
    num_nodes: float  # positions visited; NaN: not counted


class ThemeScore(NamedTuple):
    """What a player made of some of the positions."""

    theme: str
    positions: int
    score: int
    total: int
    best_moves: int  # positions in which it played a move with the most points
    nodes: float  # a position, on average
    random: float  # what the random mover is expected to score

    @property
    def standard_error(self) -> float:
        """Of the score, if each position counted as one draw of a share of its points."""
        share = self.score / self.total
        return self.total * math.sqrt(max(share * (1 - share), 0.0) / self.positions)


def answer(
    game: Game, player: Player, positions: Sequence[ScoredPosition], seed: int, report: Callable[[int], None]
) -> list[Answer]:
    """An Answer for each position; `report` takes the number of them that are done. Raises PlayerError."""
    found: list[Answer] = []
    to_search = Positions(
        key_parts_of(seed, range(len(positions))),
        lambda rows: from_fens(game, [positions[row].fen for row in rows]),
        lambda row: (positions[row].fen, ()),
    )
    for part in find_answers(game, player, to_search):
        for row, move, nodes in zip(part.rows, part.moves, part.nodes, strict=True):
            points = positions[row].points
            found.append(Answer(move, points.get(move, 0), max(points.values()), nodes))
        report(len(found))
    return found


def scores(positions: Sequence[ScoredPosition], answers: Sequence[Answer]) -> list[ThemeScore]:
    """By theme, in the themes' order, and at last of all together, called "total"."""
    themes = sorted({position.theme for position in positions})
    pairs = list(zip(positions, answers, strict=True))
    found = [_score(theme, [pair for pair in pairs if pair[0].theme == theme]) for theme in themes]
    return [*found, _score("total", pairs)]


def _score(theme: str, pairs: Iterable[tuple[ScoredPosition, Answer]]) -> ThemeScore:
    positions, answers = zip(*pairs, strict=True)
    return ThemeScore(
        theme=theme.strip(),
        positions=len(positions),
        score=sum(one.points for one in answers),
        total=sum(one.best for one in answers),
        best_moves=sum(one.points == one.best for one in answers),
        nodes=sum(one.num_nodes for one in answers) / len(answers),
        random=sum(sum(one.points.values()) / one.num_moves for one in positions),
    )
