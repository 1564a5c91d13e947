"""Makes the Search of a record of keys."""

import jax
import jax.numpy as jnp

from alphagateau.config.records import ConfigError, show
from alphagateau.config.registers import SEARCHES, SearchConfig
from alphagateau.games.rules import Game
from alphagateau.networks.make_network import average_mirrors
from alphagateau.networks.network import Network
from alphagateau.search.move_values import TieBreak
from alphagateau.search.search import Search, SearchOutput


def make_search(game: Game, network: Network, config: SearchConfig, tie_break: TieBreak | None = None) -> Search:
    """The search of a record of keys; the `tie_break` of a player of values chooses among winning moves.

    Raises ConfigError if the search is not registered or makes something else, CheckpointError if `config.split` is no
    path of a checkpoint.
    """
    if config.average_mirrors:
        network = average_mirrors(game, network)
    search = SEARCHES.make(config, game, network, config, tie_break)
    if SEARCHES.is_of_plugin(config.algorithm):
        check_search(game, network, config, search)
    return search


def check_search(game: Game, network: Network, config: SearchConfig, search: Search) -> None:
    """Raises ConfigError unless a search makes what games and learning read; nothing is computed."""
    name, rows, slots = f"search {show(config.algorithm)}", (2,), (2, game.max_legal_moves)
    if not callable(search):
        raise ConfigError(f"{name}: make must be a function that returns a Search, got {type(search).__name__}")
    variables = jax.eval_shape(network.init, jax.random.key(0))
    states = jax.eval_shape(jax.vmap(lambda _: game.init()), jnp.zeros(2))
    found = jax.eval_shape(search, variables, jax.random.split(jax.random.key(0), 2), states)
    if not isinstance(found, SearchOutput):
        raise ConfigError(f"{name} must return a SearchOutput, got {type(found).__name__}")
    kinds = [("edge", jnp.int16, rows), ("action_weights", jnp.float32, slots), ("prior_logits", jnp.float32, slots)]
    for field, kind, shape in [*kinds, ("value", jnp.float32, rows), ("search_value", jnp.float32, rows)]:
        output = getattr(found, field)
        if (output.shape, output.dtype) != (shape, kind):
            got = f"{output.dtype}{list(output.shape)} for two games"
            raise ConfigError(f"{name}: {field} must be {jnp.dtype(kind)}{list(shape)}, got {got}")
