"""Labels boards by the searches of a network's player."""

from collections.abc import Sequence
from functools import partial

import jax
import numpy as np

from alphagateau.data.labelling import Labeller
from alphagateau.data.workers import SearchResult
from alphagateau.games.notation import edge_to_uci, from_fens
from alphagateau.games.rules import Game
from alphagateau.games.scores import centipawns
from alphagateau.matches.openings import one_state
from alphagateau.matches.players import Player
from alphagateau.matches.specs import SpecError

ROWS = 64  # boards of a device call


def make_labeller(game: Game, player: Player) -> Labeller:
    """The Labeller of a player. Raises SpecError for one without a network."""
    if player.search is None or not player.variables:
        raise SpecError(f"player {player.name!r} has no network: expected a run or a checkpoint")
    search_batch, variables = jax.jit(player.search), jax.device_put(player.variables)

    def search(fens: Sequence[str]) -> list[SearchResult]:
        return [found for first in range(0, len(fens), ROWS) for found in search_rows(fens[first : first + ROWS])]

    def search_rows(fens: Sequence[str]) -> list[SearchResult]:
        states = from_fens(game, [*fens, *[fens[0]] * (ROWS - len(fens))])
        made = jax.device_get(search_batch(variables, jax.random.split(jax.random.key(0), ROWS), states))
        host = jax.device_get(states)
        moves = map(partial(edge_to_uci, game), (one_state(host, row) for row in range(len(fens))), made.edge)
        scores = (centipawns(float(value)) for value in np.asarray(made.search_value))
        return [SearchResult(score, 0, move) for move, score in zip(moves, scores, strict=False)]

    about = {"name": player.name, "weights": player.identity.weights, "search": player.identity.search}
    return Labeller(about, search)
