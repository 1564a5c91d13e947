"""A search's configuration in, the words that name it in players' specs, identities and PGN out."""

from typing import Any

from alphagateau.config.records import fields_of
from alphagateau.config.schema import SearchConfig

LONG_NAMES = {
    "simulations": "num_simulations",
    "considered": "max_num_considered_actions",
    "mirrors": "average_mirrors",
}
SHORT_NAMES = {name: short for short, name in LONG_NAMES.items()}
WITHOUT_NOISE = {"gumbel_scale": 0.0}  # what a search plays matches with, unless told otherwise


def option_types(record: Any) -> dict[str, Any]:
    """The type of each option of a search."""
    return {name: field.annotation for name, field in fields_of(record).items() if name != "algorithm"}


def describe_search(config: SearchConfig) -> str:
    """Such as "gumbel 64 simulations, 16 considered": the search's part of a player's identity."""
    values = {name: getattr(config, name) for name in option_types(config)}
    switches = {name: values.pop(name) for name in list(values) if isinstance(values[name], bool)}
    shown = [f"{value} {SHORT_NAMES.get(name, name)}" for name, value in values.items() if name not in WITHOUT_NOISE]
    shown += [f"{value:g} {name}" for name, value in values.items() if WITHOUT_NOISE.get(name, value) != value]
    shown += [SHORT_NAMES.get(name, name) for name, is_on in switches.items() if is_on]
    return f"{config.algorithm} {', '.join(shown)}".strip()
