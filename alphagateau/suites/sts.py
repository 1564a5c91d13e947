"""Scores a player's moves on positions whose moves have points."""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np

from alphagateau.games.notation import edge_to_uci, from_fens
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.matches.players import Player, Reply
from alphagateau.search.search import Search
from alphagateau.suites.epd import ScoredPosition

ROWS = 64  # positions of a device call

Tell = Callable[[int], None]  # hears how many positions are done


class Answer(NamedTuple):
    """A player's move in a position."""

    move: str  # UCI
    points: int
    best: int  # the most there were
    num_nodes: float  # positions looked at; NaN: it did not say


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


def answer(game: Game, player: Player, positions: Sequence[ScoredPosition], seed: int, tell: Tell) -> list[Answer]:
    """An Answer for each position. Raises PlayerError."""
    if player.move:
        return _ask(player, positions, tell)
    return _search(game, player, positions, seed, tell)


def _search(game: Game, player: Player, positions: Sequence[ScoredPosition], seed: int, tell: Tell) -> list[Answer]:
    look, found = _compiled(player.search), []
    for first in range(0, len(positions), ROWS):
        rows = np.minimum(np.arange(first, first + ROWS), len(positions) - 1)
        fens = [positions[row].fen for row in rows]
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed % 2**32), rows)
        states = from_fens(game, fens)
        edges, nodes = jax.device_get(look(player.variables, keys, states))
        host = jax.device_get(states)
        for i, row in enumerate(rows[: len(positions) - first].tolist()):
            state = jax.tree.map(lambda x, i=i: x[i], host)
            found.append(_judge(positions[row], edge_to_uci(game, state, edges[i]), float(nodes[i])))
        tell(len(found))
    return found


@lru_cache
def _compiled(search: Search) -> Callable[..., tuple[Array, Array]]:
    def look(variables, keys, states) -> tuple[Array, Array]:
        found = search(variables, keys, states)
        nodes = jax.numpy.full(found.edge.shape, jax.numpy.nan) if found.num_nodes is None else found.num_nodes
        return found.edge, nodes

    return jax.jit(look)


def _ask(player: Player, positions: Sequence[ScoredPosition], tell: Tell) -> list[Answer]:
    def play(number: int) -> Answer:
        reply = player.move(positions[number].fen, ())
        reply = reply if isinstance(reply, Reply) else Reply(reply)
        tell(number + 1)
        return _judge(positions[number], reply.move, math.nan if reply.nodes is None else reply.nodes)

    with ThreadPoolExecutor(player.num_workers) as pool:
        return list(pool.map(play, range(len(positions))))


def _judge(position: ScoredPosition, move: str, num_nodes: float) -> Answer:
    return Answer(move, position.points.get(move, 0), max(position.points.values()), num_nodes)


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
