"""Labels boards by the searches of a network's player."""

from collections.abc import Sequence

import jax

from alphagateau.data.labelling import Labeller
from alphagateau.data.workers import SearchResult
from alphagateau.games.notation import edge_to_uci, from_fens
from alphagateau.games.rules import Game
from alphagateau.games.scores import centipawns
from alphagateau.games.state import pad_rows
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
        found, keys = [], jax.random.split(jax.random.key(0), ROWS)
        for first in range(0, len(fens), ROWS):
            part = fens[first : first + ROWS]
            states = from_fens(game, pad_rows(part, ROWS))
            made, host = jax.device_get((search_batch(variables, keys, states), states))
            for row in range(len(part)):
                move = edge_to_uci(game, one_state(host, row), made.edge[row])
                found.append(SearchResult(centipawns(float(made.search_value[row])), 0, move))
        return found

    about = {"name": player.name, "weights": player.identity.weights, "search": player.identity.search}
    return Labeller(about, search)
