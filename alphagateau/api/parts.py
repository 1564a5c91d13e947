"""Makes the parts of a training algorithm: a board, a network, a search, self-play and a learner.

Each is a record of pure functions for `jax.jit`; examples/minimal_alphazero.py composes them into the whole algorithm.
Values are for the player to move, in [-1, 1]; slots S are the legal moves of a position in rising order of their edge.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from alphagateau.config import NETWORKS, SEARCHES, NetworkConfig, SearchConfig, SelfPlayConfig, TargetsConfig
from alphagateau.config.losses import HEADS, LOSSES
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.networks import make_network as networks
from alphagateau.networks.network import Network, Variables
from alphagateau.search import make_search as searches
from alphagateau.search.search import Search
from alphagateau.training import learner as learners
from alphagateau.training.frames import Frame
from alphagateau.training.learner import Learner
from alphagateau.training.losses.terms import LossFn
from alphagateau.training.selfplay import selfplay as plays
from alphagateau.training.selfplay.targets import frames_from

if TYPE_CHECKING:
    from alphagateau.envs.pgx_env import PgxEnv


class SelfPlay(NamedTuple):
    """Games of a search against itself.

    init: `() -> State [B]`, new games.
    play: `(variables, key, states [B]) -> (states [B], Frames [T * B])`, T plies on; a game that ends starts anew.
    """

    init: Callable[[], State]
    play: Callable[[Variables, Array, State], tuple[State, Frame]]


def make_game(name: str) -> Game:
    """The board: `init() -> State`, `step(State, edge) -> State`, `position(State) -> Position`. Raises ValueError."""
    return get_game(name)


def make_env(game: str | Game) -> "PgxEnv":
    """The pgx environment of a Game or of a board by name, with pgx's actions and planes. Raises ValueError."""
    from alphagateau.envs.pgx_env import PgxEnv  # pgx compiles programs when it is imported

    return PgxEnv(game if isinstance(game, Game) else get_game(game))


def make_network(game: Game, config: Mapping[str, Any] | NetworkConfig | None = None) -> Network:
    """A network for `game`: `init(key) -> variables`, `apply(variables, positions [B]) -> (Evaluation [B], _)`.

    `config` has the keys of an experiment's [network], such as {"architecture": "chessformer", "num_blocks": 2}. Raises
    ConfigError for an unknown key or an impossible value.
    """
    return networks.make_network(game, config if isinstance(config, NetworkConfig) else NETWORKS.read(config or {}))


def make_search(game: Game, network: Network, config: Mapping[str, Any] | SearchConfig | None = None) -> Search:
    """A search: `(variables, keys [B], states [B]) -> SearchOutput [B]`.

    `config` has the keys of an experiment's [search], such as {"num_simulations": 32}. Raises ConfigError as
    `make_network`.
    """
    networks.check_part("game", game, Game)
    networks.check_part("network", network, Network)
    keys = config if isinstance(config, SearchConfig) else SEARCHES.read(config or {})
    return searches.make_search(game, network, keys)


def make_selfplay(
    game: Game,
    search: Search,
    num_games: int,
    num_plies: int,
    *,
    heads: tuple[str, ...] = (),
    td_lambda: float = 1.0,
    search_value_weight: float = 0.0,
    bootstrap: bool = False,
) -> SelfPlay:
    """B = `num_games` games at once, T = `num_plies` plies a call.

    A frame's value is known (`value_mask`) from the last finished game of its row back.

    Args:
        heads: the network's auxiliary heads, such as "reply_edge", whose targets enter `Frame.extra`.
        td_lambda, search_value_weight, bootstrap: of the value's target, as in [targets] (docs/selfplay.md).

    Raises ConfigError for numbers that an experiment may not have.
    """
    networks.check_part("game", game, Game)
    if isinstance(heads, str):
        raise TypeError(f"heads must be a tuple of names, got {heads!r}")
    targets = {"td_lambda": td_lambda, "search_value_weight": search_value_weight, "bootstrap": bootstrap}
    TargetsConfig(**targets)  # which checks them, as the next one does
    SelfPlayConfig(num_games=num_games, num_plies=num_plies)
    rows, first_ply, taught = jnp.arange(num_games), jnp.int32(0), [HEADS.entry(name) for name in heads]
    selfplay = plays.make_selfplay(game, search, num_plies)

    def play(variables: Variables, key: Array, states: State) -> tuple[State, Frame]:
        games, trajectory = selfplay(variables, key, rows, first_ply, plays.Games(states))
        frames = frames_from(trajectory, taught, **targets)
        return games.states, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), frames)

    return SelfPlay(lambda: plays.start_games(game, num_games), play)


def make_learner(
    game: Game,
    network: Network,
    loss: str | LossFn = "policy_value",
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """A learner: `init(variables) -> TrainState`, `step(TrainState, Frames [B]) -> (TrainState, metrics)`.

    Args:
        loss: a name as in `training.loss` (else ConfigError), or `(game, Evaluation, Frames [B]) -> LossTerms`.
        optimizer: None: Adam at a rate of 0.001.
    """
    networks.check_part("game", game, Game)
    networks.check_part("network", network, Network)
    if not isinstance(optimizer, optax.GradientTransformation | None):
        raise TypeError(f"optimizer must be optax's, such as optax.adam(0.001), got {optimizer!r}")
    terms = LOSSES.entry(loss).terms if isinstance(loss, str) else loss
    return learners.make_learner(game, network, terms, optimizer or optax.adam(1e-3))
