"""Names of searches and their options, in players' specs, identities and PGN."""

from typing import Any

from alphagateau.config.records import fields_of
from alphagateau.config.registers import WITHOUT_NOISE, SearchConfig
from alphagateau.config.schema import Experiment

LONG_NAMES = {
    "simulations": "num_simulations",
    "considered": "max_num_considered_actions",
    "mirrors": "average_mirrors",
    "nodes": "num_nodes",
    "plies": "depth",
    "quiescence": "quiescence_plies",
}
SHORT_NAMES = {name: short for short, name in LONG_NAMES.items()}
ALWAYS_SHOWN = ("num_simulations", "max_num_considered_actions", "depth", "num_nodes")


def option_types(record: Any) -> dict[str, Any]:
    """The type of each option of a search."""
    return {name: field.annotation for name, field in fields_of(record).items() if name != "algorithm"}


def describe_search(config: SearchConfig) -> str:
    """Such as "gumbel 64 simulations, 16 considered": the search's part of a player's identity.

    Then come options that differ from their values in matches, as "0.5 value_scale, mirrors" and "no rescale_values".
    """
    fields = {name: field for name, field in fields_of(type(config)).items() if name != "algorithm"}
    usual = {**{name: field.default for name, field in fields.items()}, **WITHOUT_NOISE}
    values = {name: getattr(config, name) for name in fields}
    shown = [f"{values[name]} {SHORT_NAMES[name]}" for name in ALWAYS_SHOWN if name in values]
    for name in fields:
        if name not in ALWAYS_SHOWN and values[name] != usual[name]:
            shown.append(f"{_amount(values[name])}{SHORT_NAMES.get(name, name)}")
    return f"{config.algorithm} {', '.join(shown)}".strip()


def _amount(value: float | bool | str | tuple) -> str:
    if isinstance(value, bool):
        return "" if value else "no "
    text = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return f"{text} " if isinstance(text, str) else f"{text:g} "


def simulations_per_ply(experiment: Experiment, full_share: float | None = None) -> float:
    """Of self-play, on average; `full_share`: of its plies that were searched in full (None: as expected)."""
    full, selfplay = experiment.search.num_evaluations, experiment.selfplay
    if selfplay is None or selfplay.full_search_share == 1:
        return full
    share = selfplay.full_search_share if full_share is None else full_share
    return share * full + (1 - share) * selfplay.cheap_simulations
