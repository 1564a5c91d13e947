"""Files of earlier versions: a table as they wrote it in, a table as this version reads it out."""

from collections.abc import Mapping
from typing import Any

MOVED = {  # key of [selfplay] that [search] has now
    "num_simulations",
    "max_num_considered_actions",
    "gumbel_scale",
}


def migrate(table: Mapping[str, Any]) -> dict[str, Any]:
    """The same experiment in today's keys; a key given in its old and its new place stays in both, to be refused."""
    new = {**table}
    selfplay, search = new.get("selfplay"), new.get("search", {})
    if isinstance(selfplay, Mapping) and isinstance(search, Mapping):
        moved = {name: selfplay[name] for name in selfplay if name in MOVED and name not in search}
        new["selfplay"] = {name: value for name, value in selfplay.items() if name not in moved}
        if moved:
            new["search"] = {**search, **moved}
    if isinstance(new.get("network"), Mapping):
        new["network"] = migrate_network(new["network"])
    return new


def migrate_network(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a network; one record of all architectures once gave the CNN a key that it never read."""
    has_message = table.get("architecture") != "alphazero"
    return {name: value for name, value in table.items() if has_message or name != "message"}
