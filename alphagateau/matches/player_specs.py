"""Players by name: a run, a checkpoint, `random` or an engine in, a player of the arena with its identity out.

checkpoints/quickstart            the newest checkpoint of a run
checkpoints/quickstart/checkpoints/3?simulations=64
PATH?search=policy                no search: the move of the highest prior
random                            the random mover
uci:COMMAND?nodes=50              an engine
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau.config import ConfigError, NetworkConfig, read_network
from alphagateau.games.variants import get_game
from alphagateau.matches.players import HostPlayer, Player, PlayerError, random_player
from alphagateau.networks.make_network import make_network
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import WEIGHTS, Checkpoint, CheckpointError
from alphagateau.runs.run_folder import newest
from alphagateau.search.baselines import make_policy_search
from alphagateau.search.gumbel import make_gumbel_search
from alphagateau.search.search import Search


class Entrant(NamedTuple):
    """A player that may be rated; two with the same identity are the same player."""

    name: str
    player: Player | HostPlayer
    identity: tuple[str, ...]  # (weights hash or engine, search, board)
    run: str  # "" if it is of no run
    iteration: int | None


@lru_cache
def match_search(
    game_name: str, network: NetworkConfig, num_simulations: int, max_num_considered_actions: int
) -> Search:
    """Search without noise, one object for all players that share its settings; 0 simulations: the raw policy."""
    game = get_game(game_name)
    if num_simulations == 0:
        return make_policy_search(game, make_network(game, network))
    return make_gumbel_search(
        game,
        make_network(game, network),
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        gumbel_scale=0.0,
    )


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """("PATH", options) of "PATH?a=1&b=2". Raises PlayerError."""
    path, _, query = spec.partition("?")
    options = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        options[key] = value
    for key, value in options.items():
        if not value:
            raise PlayerError(f"player {spec!r}: option {key!r} needs a value, as in ?simulations=32")
    return path, options


def network_config(found: Checkpoint) -> NetworkConfig:
    """The network that a checkpoint's manifest names. Raises CheckpointError."""
    try:
        return read_network(found.manifest["network"])
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(f"{found.path} names no network that this version knows: {error}") from None


def board_of(specs: list[str], game_name: str | None = None) -> str:
    """The board on which players meet: the one asked for, else the one that the first checkpoint learnt on."""
    for spec in specs:
        path, _ = split_spec(spec)
        if game_name is None and path != "random" and not path.startswith("uci:"):
            game_name = newest(Path(path)).manifest["game"]
    if game_name is None:
        raise PlayerError("no player says which board to play on: name it with --game gardner_chess or chess")
    return game_name


def load_player(spec: str, game_name: str, num_simulations: int | None = None) -> Entrant:
    """The player `spec` on a board; `num_simulations` (None: as in its training) where the spec says nothing.

    Raises PlayerError, CheckpointError.
    """
    path, options = split_spec(spec)
    if path == "random":
        return Entrant("random", random_player(), ("random", "", game_name), "", None)
    if path.startswith("uci:"):
        from alphagateau.matches.uci_player import load_engine

        engine = load_engine(spec, get_game(game_name))
        return Entrant(engine.name, engine, (engine.name, "uci", game_name), "", None)
    found = newest(Path(path))
    manifest, network = found.manifest, network_config(found)
    unknown = options.keys() - {"simulations", "search"}
    if unknown or options.get("search", "gumbel") not in ("gumbel", "policy"):
        raise PlayerError(f"player {spec!r}: expected ?simulations=N or ?search=gumbel or ?search=policy")
    simulations = options.get("simulations", num_simulations or manifest["search"]["num_simulations"])
    if not str(simulations).isdecimal():
        raise PlayerError(f"player {spec!r}: simulations must be a whole number, got {simulations!r}")
    simulations = 0 if options.get("search") == "policy" else int(simulations)
    considered = manifest["search"]["max_num_considered_actions"]
    search = match_search(game_name, network, simulations, considered)
    kind = f"gumbel {simulations} simulations, {considered} considered" if simulations else "policy"
    run = found.path.parents[1].name if found.path.parent.name == "checkpoints" else found.path.name
    name = f"{run}/{found.path.name}"
    variables = load_weights(found, game_name)
    identity = (manifest["weights_hash"], kind, game_name)
    return Entrant(name, Player(name, search, variables), identity, run, manifest["iteration"])


def load_weights(found: Checkpoint, game_name: str) -> Any:
    """The weights of a checkpoint, for use on any board. Raises CheckpointError."""
    import jax

    network = make_network(get_game(game_name), network_config(found))
    variables = checkpoint.load(found, WEIGHTS, jax.eval_shape(network.init, jax.random.key(0)))
    if checkpoint.weights_hash(variables) != found.manifest["weights_hash"]:
        raise CheckpointError(f"{found.path}: the weights are not those that its manifest names")
    return variables
