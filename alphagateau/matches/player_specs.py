"""Loads players by spec: a run, a checkpoint, `random` or an engine.

checkpoints/quickstart            the newest checkpoint of a run
checkpoints/quickstart/checkpoints/3?simulations=64
PATH?search=policy                another search, with its own options: no search, the move of the highest prior
PATH?search=action_value          the move that the network values highest
PATH?search=state_value           the move to the position that it values lowest for the opponent
PATH?gumbel_scale=1.0              with the noise of its training; without it none is added
PATH?search=probability&nodes=256 minimax over likely moves; PATH?search=depth&plies=2, over all
PATH?search=probability&split=CKPT likely by the policy of another network
PATH?mirrors=true                 each evaluation averaged over a position and its mirror image
random                            the random mover
uci:COMMAND?nodes=50              an engine
"""

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from alphagateau.config import SEARCHES, ConfigError, NetworkConfig, SearchConfig
from alphagateau.config.records import suggestion
from alphagateau.config.searches import LONG_NAMES, SHORT_NAMES, WITHOUT_NOISE, option_types
from alphagateau.games.pgn.pgn import Identity
from alphagateau.games.variants import get_endless_game, get_game
from alphagateau.matches.players import HostPlayer, Player, SpecError, parse_count, random_player, split_spec
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import SPLITS, load_weights, network_config, player_search_name
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.search.config import ActionValueConfig
from alphagateau.search.make_search import make_search
from alphagateau.search.search import Search

NOT_PATHS = ("random",)  # players that are no checkpoints
MAY_BE_ZERO = ("quiescence_plies",)


class RatedPlayer(NamedTuple):
    """A player that may be rated; two with the same identity are the same player."""

    name: str
    player: Player | HostPlayer
    identity: tuple[str, ...]  # (weights hash or engine, search, board)
    run: str  # "" if it is of no run
    iteration: int | None
    has_noise: bool = False  # its games may differ though they began alike
    folder: Path | None = None  # of the run
    also: tuple[tuple[Path, int], ...] = ()  # other runs and iterations with these weights and this search
    network: NetworkConfig | None = None  # None: it has none


def searches() -> dict[str, type[SearchConfig]]:
    """The records of keys of the searches that need weights, by name."""
    return {name: kind for name, kind in SEARCHES.configs.items() if name != "random"}


@lru_cache
def match_search(game_name: str, network: NetworkConfig, config: SearchConfig, is_endless: bool = False) -> Search:
    """One object for all players that share its settings, and so one compiled program. Raises UciError.

    is_endless: it looks beyond the limit of plies.
    """
    game, finish = get_game(game_name), None
    if finisher := config.finisher:
        from alphagateau.matches.engine_tie_break import make_finish

        finish = make_finish(game_name, finisher)
    rules = get_endless_game(game_name) if is_endless else game
    return make_search(rules, make_network(game, network), config, finish)


def match_config(values: Mapping[str, Any]) -> SearchConfig:
    """The search that `values` name, as a manifest does, without noise; what it has no keys for is left out.

    Raises SpecError for one under which no network plays.
    """
    if (algorithm := _algorithm_of(values)) not in searches():
        raise SpecError(f"search is {algorithm!r}, expected one of {', '.join(searches())}")
    record = searches()[algorithm]
    known = {**values, **WITHOUT_NOISE}
    return record(**{name: known[name] for name in option_types(record) if name in known})


def _algorithm_of(values: Mapping[str, Any]) -> str:
    return values.get("algorithm", "gumbel")  # the first manifests name none


def search_of(spec: str, options: Mapping[str, str], trained: Mapping[str, Any]) -> SearchConfig:
    """What the options of a player's spec ask for; else `trained`, the search that its checkpoint names.

    0 simulations are the raw policy. Raises SpecError.
    """
    texts = {LONG_NAMES.get(name, name): text for name, text in options.items()}
    values = {**trained, "algorithm": texts.pop("search", _algorithm_of(trained))}
    algorithm = values["algorithm"]
    if algorithm not in (known := searches()):
        hint = suggestion(algorithm, known)
        raise SpecError(f"player {spec!r}: search is {algorithm!r}, expected one of {', '.join(known)}{hint}")
    if texts.get("num_simulations") == "0":
        if "num_simulations" in option_types(known[algorithm]):
            values["algorithm"] = algorithm = "policy"
        texts = {name: text for name, text in texts.items() if name in option_types(known[algorithm])}
    types = option_types(known[algorithm])
    if unknown := [SHORT_NAMES.get(name, name) for name in texts if name not in types]:
        allowed = ["search", *(SHORT_NAMES.get(name, name) for name in types)]
        said = f"player {spec!r}: {unknown[0]!r} is no option of search {algorithm}, expected {', '.join(allowed)}"
        raise SpecError(said + suggestion(unknown[0], allowed))
    asked = {name: _parse(types[name], spec, name, text) for name, text in texts.items()}
    try:
        return dataclasses.replace(match_config(values), **asked)
    except ConfigError as error:
        raise SpecError(f"player {spec!r}: {error}") from None


def _parse(kind: Any, spec: str, name: str, text: str) -> Any:
    """The value of an option of this type. Raises SpecError."""
    if choices := get_args(kind):  # of a Literal
        return _parse_choice(spec, name, text, choices)
    if kind is str or (text == "0" and name in MAY_BE_ZERO):
        return kind(text)
    return {int: parse_count, float: _parse_number, bool: _parse_switch}[kind](spec, name, text)


def player_search(
    spec: str, trained: Mapping[str, Any], num_simulations: int | None = None, gumbel_scale: float = 0.0
) -> SearchConfig:
    """The search of a checkpoint's player, which its spec decides first, then what is given here, then its training.

    Raises SpecError.
    """
    _, options = split_spec(spec)
    search = search_of(spec, options, {**trained, **({"num_simulations": num_simulations} if num_simulations else {})})
    if "gumbel_scale" in option_types(type(search)) and "gumbel_scale" not in options:
        search = dataclasses.replace(search, gumbel_scale=gumbel_scale)
    return search


def _parse_number(spec: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise SpecError(f"player {spec!r}: {name} is {text!r}, expected a number, 0 or more")
    return value


def _parse_choice(spec: str, name: str, text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        raise SpecError(f"player {spec!r}: {name} is {text!r}, expected {', '.join(choices)}")
    return text


def _parse_switch(spec: str, name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise SpecError(f"player {spec!r}: {name} is {text!r}, expected true or false")
    return text == "true"


def check_search(spec: str, search: SearchConfig, network: NetworkConfig) -> None:
    """Raises SpecError if a player's network has not what its search asks it for."""
    if isinstance(search, ActionValueConfig) and not network.action_values:
        raise SpecError(f"player {spec!r}: its network values no moves, expected one with network.action_values = true")


def board_of(specs: Sequence[str], game_name: str | None = None) -> str:
    """The board on which players meet: the one asked for, else the one that the first checkpoint learnt on."""
    for spec in specs:
        path, _ = split_spec(spec)
        if game_name is None and path != "random" and not path.startswith("uci:"):
            game_name = newest_checkpoint(Path(path), NOT_PATHS).manifest["game"]
    if game_name is None:
        said = "name it, such as gardner_chess, with --game, or of a ladder with --boards"
        raise SpecError(f"no player says which board to play on: {said}")
    return game_name


def distinct(player: RatedPlayer, taken: Collection[str]) -> RatedPlayer:
    """The player, by a name with its search and weights, or with a number, if its own is another's."""
    if player.name not in taken:
        return player
    name = f"{player.name} ({player.identity[1]}, {player.identity[0][:6]})" if player.network else player.name
    name = next(made for n in itertools.count(1) if (made := f"{name} {n}" if n > 1 else name) not in taken)
    return player._replace(name=name, player=player.player._replace(name=name))


def load_player(
    spec: str, game_name: str, num_simulations: int | None = None, gumbel_scale: float = 0.0
) -> RatedPlayer:
    """The player `spec` on a board; the rest, as in `player_search`, where the spec says nothing.

    Raises SpecError, CheckpointError.
    """
    path, options = split_spec(spec)
    if path == "random":
        if options:
            raise SpecError(f"player {spec!r}: the random mover has no options")
        return RatedPlayer("random", random_player(), ("random", "", game_name), "", None, has_noise=True)
    if path.startswith("uci:"):
        from alphagateau.matches.uci_player import load_uci_player

        player = load_uci_player(spec, get_game(game_name))
        return RatedPlayer(player.name, player, (player.name, "uci", game_name), "", None)
    found = newest_checkpoint(Path(path), NOT_PATHS)
    search = player_search(spec, found.manifest["search"], num_simulations, gumbel_scale)
    network = network_config(found)
    check_search(spec, search, network)
    if (split := search.split) not in SPLITS:  # a run's, which may go on to learn
        search = dataclasses.replace(search, split=str(newest_checkpoint(Path(split)).path))
    folder = found.run
    run = folder.name if folder else found.path.name
    name = f"{run}/{found.path.name}" if folder else run
    known = Identity(run, found.manifest["iteration"], found.manifest["weights_hash"], player_search_name(search))
    made = match_search(game_name, network, search)
    player = Player(name, made, load_weights(found, game_name), known)
    identity = known.weights, known.search, game_name
    has_noise = search.gumbel_scale > 0 or search.temperature > 0
    return RatedPlayer(name, player, identity, run, known.iteration, has_noise, folder, network=network)
