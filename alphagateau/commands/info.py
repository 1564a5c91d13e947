"""Describes a run or a checkpoint, as a table or JSON."""

import dataclasses
from pathlib import Path
from typing import Any

import tyro
from rich.table import Table

from alphagateau.runs.files import to_json
from alphagateau.runs.logging.progress import VisibleConsole


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Describe a run or a checkpoint: board, network, iteration, weights hash, size, search.

    Example: alphagateau info checkpoints/quickstart --json
    """

    path: tyro.conf.Positional[Path]
    """a checkpoint, or a run for its newest one"""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """print JSON"""


def run(arguments: Arguments) -> int:
    """Prints the description."""
    print_description(description_of(arguments.path), arguments.json)
    return 0


def description_of(path: Path) -> dict[str, Any]:
    """The facts of a checkpoint, or of the newest of a run, its files verified. Raises CheckpointError."""
    from alphagateau.runs import checkpoint
    from alphagateau.runs.newest import newest_checkpoint
    from alphagateau.runs.run_record import read_record

    found = newest_checkpoint(path)
    manifest = found.manifest
    sizes = [size for size, _ in manifest["files"].values()]
    for part in manifest["parts"]:
        if part != checkpoint.TRAINING:  # a start reads it whole, and it may be large
            checkpoint.verify(found, part)
    run = found.run
    checkpoints = checkpoint.find(run / "checkpoints")[0] if run else []
    return {
        "path": str(found.path),
        "run": str(run) if run else None,
        "published": manifest.get(checkpoint.PUBLISHED),
        "game": manifest["game"],
        "boards": manifest.get("boards", [manifest["game"]]),
        "iteration": manifest["iteration"],
        "is_between_iterations": manifest["order"][1:] == [0, 0],
        "symptoms": manifest["symptoms"],
        "stopped_by_health": read_record(run).get("unhealthy") if run else None,
        "optimizer_steps": manifest["optimizer_steps"],
        "weights_hash": manifest["weights_hash"],
        "parameters": manifest["parameters"],
        "network": manifest["network"],
        "protocol": manifest["search"],
        "schema": manifest["schema"],
        "holds": manifest["parts"],
        "bytes": sum(sizes),
        "checkpoints": sorted(c.order[0] for c in checkpoints),
    }


def print_description(description: dict[str, Any], as_json: bool) -> None:
    """Prints the facts as a table or JSON."""
    if as_json:
        print(to_json(description))
        return
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in description.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        elif isinstance(value, list):
            value = " ".join(map(str, value)) or "-"
        table.add_row(name.replace("_", " "), str(value))
    VisibleConsole(soft_wrap=True).print(table)
