"""Loads players by spec: a run, a checkpoint, `random` or an engine; docs/play.md has a table of specs."""

import contextlib
import dataclasses
import itertools
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from alphagateau.config import NETWORKS, SEARCHES, ConfigError, NetworkConfig, SearchConfig
from alphagateau.config.records import suggestion
from alphagateau.config.searches import LONG_NAMES, SHORT_NAMES, WITHOUT_NOISE, option_types
from alphagateau.games.pgn.pgn import Identity
from alphagateau.games.variants import get_endless_game, get_game
from alphagateau.matches.players import Player, random_player
from alphagateau.matches.specs import PlayerSpec, SpecError, name_of, run_of
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import SPLITS, load_weights, network_config, player_search_name
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.search.make_search import make_search
from alphagateau.search.minimax.config import MinimaxConfig
from alphagateau.search.search import Search


def searches() -> dict[str, type[SearchConfig]]:
    """The records of keys of the searches that need weights, by name."""
    return {name: kind for name, kind in SEARCHES.configs.items() if name != "random"}


def match_search(game_name: str, network: NetworkConfig, config: SearchConfig, is_endless: bool = False) -> Search:
    """One object for all players that share its settings, and so one compiled program. Raises SpecError.

    is_endless: it searches beyond the limit of plies.
    """
    declared = NETWORKS.entry(network.architecture), SEARCHES.entry(config.algorithm)  # either may be registered again
    return _match_search(game_name, network, config, is_endless, declared)


@lru_cache
def _match_search(game_name: str, network: Any, config: Any, is_endless: bool, _declared: Any) -> Search:
    game, finish = get_game(game_name), None
    if finisher := config.finisher:
        from alphagateau.matches.uci_player import make_finish

        finish = make_finish(game_name, finisher)
    rules = get_endless_game(game_name) if is_endless else game
    return make_search(rules, make_network(game, network), config, finish)


def match_config(values: Mapping[str, Any]) -> SearchConfig:
    """The search that `values` name, as a manifest does, without noise; what it has no keys for is left out.

    Raises SpecError for one under which no network plays.
    """
    if (algorithm := values["algorithm"]) not in searches():
        raise SpecError(f"search is {algorithm!r}, expected one of {', '.join(searches())}")
    record = searches()[algorithm]
    known = {**values, **WITHOUT_NOISE}
    return record(**{name: known[name] for name in option_types(record) if name in known})


def search_of(
    spec: PlayerSpec, trained: Mapping[str, Any], num_simulations: int | None = None, gumbel_scale: float = 0.0
) -> SearchConfig:
    """The search of a checkpoint's player, which its spec decides first, then what is given here, then its training.

    0 simulations are the raw policy. Raises SpecError.
    """
    texts = {LONG_NAMES.get(name, name): text for name, text in spec.options.items()}
    if len(texts) < len(spec.options):
        raise SpecError(f"player {spec.text!r}: expected an option once, by its long or its short name")
    algorithm = texts.pop("search", trained["algorithm"])
    if algorithm not in (known := searches()):
        hint = suggestion(algorithm, known)
        raise SpecError(f"player {spec.text!r}: search is {algorithm!r}, expected one of {', '.join(known)}{hint}")
    values, types = {**trained, "algorithm": algorithm}, option_types(known[algorithm])
    if num_simulations is not None and "num_simulations" in types:
        texts.setdefault("num_simulations", str(num_simulations))
    if texts.get("num_simulations") == "0" and "num_simulations" not in types:
        del texts["num_simulations"]  # it makes none in any case
    if unknown := [SHORT_NAMES.get(name, name) for name in texts if name not in types]:
        allowed = ["search", *(SHORT_NAMES.get(name, name) for name in types)]
        expected = ", ".join(allowed) + suggestion(unknown[0], allowed)
        raise SpecError(f"player {spec.text!r}: {unknown[0]!r} is no option of search {algorithm}, expected {expected}")
    if texts.get("num_simulations") == "0":
        values["algorithm"], types = "policy", option_types(known["policy"])
        texts = {name: text for name, text in texts.items() if name in types}
    given = {"gumbel_scale": gumbel_scale} if "gumbel_scale" in types else {}
    given |= {name: _read_option(types[name], text) for name, text in texts.items()}
    try:
        return dataclasses.replace(match_config(values), **given)
    except ConfigError as error:
        raise SpecError(f"player {spec.text!r}: {error}") from None


def _read_option(kind: Any, text: str) -> Any:
    """The value of an option of this type; a text that is none stays, for its record to refuse."""
    if kind is bool:
        return {"true": True, "false": False}.get(text, text)
    with contextlib.suppress(ValueError):
        return kind(text) if kind in (int, float) else text
    return text


def check_search(spec: PlayerSpec, search: SearchConfig, network: NetworkConfig) -> None:
    """Raises SpecError if a player's network lacks what its search needs."""
    if search.needs_action_values and not network.action_values:
        expected = "one with network.action_values = true"
        raise SpecError(f"player {spec.text!r}: its network values no moves, expected {expected}")


def distinct(player: Player, taken: Collection[str]) -> Player:
    """The player, by a name with its search and weights, or with a number, if its own is another's."""
    if player.name not in taken:
        return player
    name = f"{player.name} ({player.key[1]}, {player.key[0][:6]})" if player.network else player.name
    names = itertools.chain([name], (f"{name} {n}" for n in itertools.count(2)))
    return player._replace(name=next(one for one in names if one not in taken))


def load_player(
    spec: PlayerSpec, game_name: str, num_simulations: int | None = None, gumbel_scale: float = 0.0
) -> Player:
    """The player of `spec` on a board; the rest, as in `search_of`, where the spec has no option.

    Raises SpecError, CheckpointError.
    """
    if spec.fault:
        raise spec.fault
    if spec.path == "random":
        if spec.options:
            raise SpecError(f"player {spec.text!r}: the random mover has no options")
        return random_player()._replace(key=("random", "", game_name), has_noise=True)
    if spec.path.startswith("uci:"):
        from alphagateau.matches.uci_player import load_uci_player

        engine = load_uci_player(spec, get_game(game_name))
        return engine._replace(key=(engine.name, "uci", game_name))
    found = spec.found
    search = search_of(spec, found.manifest["search"], num_simulations, gumbel_scale)
    network = network_config(found)
    check_search(spec, search, network)
    if (split := search.split) not in SPLITS:  # a run's, which may go on to learn
        search = dataclasses.replace(search, split=str(newest_checkpoint(Path(split)).path))
    is_minimax = isinstance(search, MinimaxConfig)  # which plays its best move at any temperature
    iteration, weights = found.manifest["iteration"], found.manifest["weights_hash"]
    known = Identity(run_of(found), iteration, weights, player_search_name(search))
    return Player(
        name_of(found),
        match_search(game_name, network, search),
        load_weights(found, game_name),
        known,
        key=(known.weights, known.search, game_name),
        has_noise=search.gumbel_scale > 0 or (search.temperature > 0 and not is_minimax),
        folder=found.run,
        network=network,
    )
