"""Sums the costs of a run's iterations, with those of the weights that it began from."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau import config
from alphagateau.config import ConfigError, Experiment
from alphagateau.config.searches import simulations_per_ply
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import PUBLISHED, CheckpointError
from alphagateau.runs.costs import costs
from alphagateau.runs.logging.log import ENERGY, read_metrics
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.run_record import read_record

ForwardFlops = Callable[[Experiment], Mapping[str, float]]  # of one position, on each board of an experiment


class Spent(NamedTuple):
    """The cost of weights since the first ones were drawn."""

    frames: float = 0.0
    device_seconds: float = 0.0  # of all phases and of compilation, times the run's devices
    simulations: float = 0.0  # of self-play's searches
    flops: float = 0.0
    joules: float = 0.0  # NaN where an iteration was not measured
    devices: tuple[str, ...] = ()  # their kinds


def read_spent(folder: Path, forward_flops: ForwardFlops, depth: int = 8) -> dict[int, Spent]:
    """The cost by iteration, from 0 on; {} for a folder without a record.

    A run that began from another's weights includes their cost, if that run is still there.
    """
    if published := find_published(folder):
        cost = {name: x for name, x in published.manifest[PUBLISHED].get("spent", {}).items() if name in Spent._fields}
        spent = Spent(**{"joules": math.nan, **cost, "devices": tuple(cost.get("devices", ()))})
        return {published.manifest["iteration"]: spent}
    try:
        experiment, record = config.load(folder / "config.toml"), read_record(folder)
    except (ConfigError, RunError):
        return {}
    rows = read_metrics(folder / "metrics.jsonl")
    spent, origin = Spent(), find_origin(folder, record)
    if origin and depth:
        spent = read_spent(origin[0], forward_flops, depth - 1).get(origin[1], spent)
    found, frames, flops = {0: spent}, 0.0, 0.0
    for row, cost in zip(rows, costs(rows, experiment, forward_flops(experiment)), strict=True):
        devices = _devices(record["starts"], row["iteration"])
        seconds = sum(value for name, value in row.items() if name.startswith("time/"))
        per_ply = simulations_per_ply(experiment, row.get("selfplay/full_search_rate", 1.0))
        spent = Spent(
            spent.frames + cost.frames - frames,
            spent.device_seconds + seconds * max(len(devices), 1),
            spent.simulations + (cost.frames - frames) * per_ply,
            spent.flops + cost.flops - flops,
            spent.joules + float(row.get(ENERGY, math.nan)),
            tuple(dict.fromkeys((*spent.devices, *devices))),
        )
        frames, flops = cost.frames, cost.flops
        found[row["iteration"]] = spent
    return found


def _devices(starts: Sequence[Mapping[str, Any]], iteration: int) -> list[str]:
    """The devices of the last start before an iteration, such as "gpu NVIDIA H100"."""
    before = [start for start in starts if start.get("iteration", 0) < iteration] or starts[:1]
    return before[-1]["devices"] if before else []


def find_origin(folder: Path, record: Mapping[str, Any]) -> tuple[Path, int] | None:
    """The run, and its iteration, whose weights a run began from, by their hash; None: from none, or they are gone."""
    path, begun = record.get("init_from"), record.get("init_from_hash")
    if not path:
        return None
    for source in (Path(path), *(folder.parent / part for part in Path(path).parts[-3:])):  # moved together
        published = find_published(source)
        if published and published.manifest["weights_hash"] == begun:
            return source, published.manifest["iteration"]
        is_run = (source / "checkpoints").is_dir()  # runs themselves lie in a folder of that name
        source = source.parents[1] if source.parent.name == "checkpoints" and not is_run else source
        if source.resolve() != folder.resolve() and (source / "checkpoints").is_dir():
            for found in checkpoint.find(source / "checkpoints")[0]:
                if found.manifest["weights_hash"] == begun:
                    return source, found.manifest["iteration"]
    return None


def find_published(folder: Path) -> checkpoint.Checkpoint | None:
    """The published checkpoint in a folder, if there is one."""
    try:
        found = checkpoint.open_checkpoint(folder)
    except CheckpointError:
        return None
    return found if PUBLISHED in found.manifest else None
