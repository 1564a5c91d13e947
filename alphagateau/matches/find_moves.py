"""States and a player in, the edges it plays and the States after them out: one device call, or one answer."""

from collections.abc import Callable
from functools import lru_cache

import jax
import numpy as np
from jax.sharding import Mesh

from alphagateau.distributed.mesh import BY_FIRST, REPLICATED, per_device
from alphagateau.games.notation import uci_to_edge
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import one_state, step_states
from alphagateau.matches.players import HostPlayer, PlayerError
from alphagateau.networks.network import Variables
from alphagateau.search.search import Search


@lru_cache(maxsize=64)
def compiled_search(game_name: str, search: Search, mesh: Mesh) -> Callable:
    """(variables, draws uint32 [rows, 3], states [rows]) -> (edges [rows], states after [rows]), numpy.

    A draw is (seed, game, ply): a row's key comes from it alone.
    """
    game = get_game(game_name)

    def key_of(draw: Array) -> Array:
        key = jax.random.fold_in(jax.random.key(draw[0]), draw[1])
        return jax.random.fold_in(key, draw[2])

    @jax.jit
    @per_device(mesh, (REPLICATED, BY_FIRST, BY_FIRST), BY_FIRST)
    def search_and_step(variables: Variables, draws: Array, states: State) -> tuple[Array, State]:
        edges = search(variables, jax.vmap(key_of)(draws), states).edge
        return edges, jax.vmap(game.step)(states, edges)

    return lambda *arguments: jax.device_get(search_and_step(*arguments))


def ask_host_player(
    game: Game, player: HostPlayer, start_fen: str, moves: tuple[str, ...], before: State
) -> tuple[np.ndarray, State]:
    """The player's edge [1] in the State [1], and the State after it. Raises PlayerError."""
    uci = player.move(start_fen, moves)
    try:
        edge = np.array([uci_to_edge(game, one_state(before, 0), uci)], np.int16)
    except ValueError as error:
        raise PlayerError(f"{player.name} broke the rules: {error}") from None
    return edge, step_states(game, before, edge)
