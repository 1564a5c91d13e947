"""Costs of a run by its metrics, and of its weights with those of the runs that they began from."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from alphagateau import config
from alphagateau.config import BudgetConfig, ConfigError, Experiment, board_experiments
from alphagateau.config.searches import simulations_per_ply
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import PUBLISHED, CheckpointError
from alphagateau.runs.logging.log import ENERGY, read_metrics
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.run_record import read_record


class Prices(NamedTuple):
    """The cost of a frame and of an optimizer step of an experiment."""

    iteration_frames: int  # played by self-play in an iteration
    frame_flops: float  # of playing a frame, searched in full
    step_flops: float  # of an optimizer step; of several boards, the mean by their games
    cheap_frame_flops: float = 0.0  # of playing a frame that is not searched in full
    board_step_flops: Mapping[str, float] = MappingProxyType({})  # of a step on each of several boards


class Cost(NamedTuple):
    """The cost of a run so far, without what was done again after a kill and the time between starts."""

    iterations: int = 0
    frames: int = 0  # positions played by self-play, whether or not the window kept them
    steps: int = 0
    flops: float = 0.0  # operations of the networks' matrix products
    seconds: float = 0.0  # of all phases, checkpoints too


def make_prices(experiment: Experiment, forward_flops: Mapping[str, float] = MappingProxyType({})) -> Prices:
    """The prices, by the FLOPs of a forward pass on one position of each board (0 where missing).

    A ply takes a pass for its root and one for each simulation, twice as many where mirrors are averaged; children that
    `state_value` evaluates are not counted. A frame of a step takes three: backward is two forward passes (Kaplan et
    al. 2020, arXiv 2001.08361, section 2.1; what is computed again to save memory is not counted).
    """
    selfplay, batch_size = experiment.selfplay, experiment.training.batch_size
    frames = selfplay.num_games * selfplay.num_plies if selfplay else 0
    games = {part.game: part.selfplay.num_games if part.selfplay else 1 for part in board_experiments(experiment)}
    mean = sum(n * forward_flops.get(board, 0.0) for board, n in games.items()) / sum(games.values())
    passes = 2 if experiment.search.average_mirrors else 1
    full, cheap = (passes * mean * (simulations_per_ply(experiment, share) + 1) for share in (1.0, 0.0))
    steps = {board: 3 * forward_flops.get(board, 0.0) * batch_size for board in games}
    return Prices(frames, full, 3 * mean * batch_size, cheap, steps if len(steps) > 1 else {})


def costs(rows: Sequence[Mapping[str, Any]], prices: Prices) -> list[Cost]:
    """The cost after each row of metrics.jsonl, whose first is iteration 1."""
    found, seconds, flops, before = [], 0.0, 0.0, 0
    for row in rows:
        seconds += sum(value for name, value in row.items() if name.startswith("time/"))
        full_share = row.get("selfplay/full_search_rate", 1.0)
        a_frame = full_share * prices.frame_flops + (1 - full_share) * prices.cheap_frame_flops
        frames, steps = row["iteration"] * prices.iteration_frames, int(row.get("train/steps", 0))
        on_boards = {name: row.get(f"train/board_steps/{name}", 0) for name in prices.board_step_flops}
        trained = sum(n * prices.board_step_flops[name] for name, n in on_boards.items())
        flops += prices.iteration_frames * a_frame + (trained or (steps - before) * prices.step_flops)
        found.append(Cost(row["iteration"], frames, steps, flops, seconds))
        before = steps
    return found


def reached(cost: Cost, budget: BudgetConfig) -> str | None:
    """The limit of the budget that the cost has reached, such as "7.5 seconds"; None: none yet."""
    for unit, limit in vars(budget).items():
        if limit and getattr(cost, unit) >= limit:
            return f"{limit:g} {unit}"
    return None


ForwardFlops = Callable[[Experiment], Mapping[str, float]]  # of one position, on each board of an experiment


class Spent(NamedTuple):
    """The cost of weights since the first ones were drawn."""

    frames: float = 0.0
    device_seconds: float = 0.0  # seconds of all phases, times the run's devices
    simulations: float = 0.0  # of self-play's searches
    flops: float = 0.0
    joules: float = 0.0  # NaN where an iteration was not measured
    devices: tuple[str, ...] = ()  # their kinds


def read_spent(folder: Path, forward_flops: ForwardFlops, depth: int = 8) -> dict[int, Spent]:
    """The cost by iteration, from 0 on; {} for a folder without a record.

    A run that began from another's weights includes their cost, if that run is still there.
    """
    if published := find_published(folder):
        return {published.manifest["iteration"]: spent_of(published.manifest)}
    try:
        experiment, record = config.load(folder / "config.toml"), read_record(folder)
    except (ConfigError, RunError):
        return {}
    rows = read_metrics(folder / "metrics.jsonl")
    spent, origin = Spent(), find_origin(folder, record)
    if origin and depth:
        spent = read_spent(origin[0], forward_flops, depth - 1).get(origin[1], spent)
    found = {0: spent}
    frames = flops = 0.0
    for row, cost in zip(rows, costs(rows, make_prices(experiment, forward_flops(experiment))), strict=True):
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
    for source in (Path(path), folder.parent / Path(path).name):
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


def spent_of(manifest: Mapping[str, Any]) -> Spent:
    """The cost of a published checkpoint's weights, by its manifest."""
    cost = {name: x for name, x in manifest[PUBLISHED].get("spent", {}).items() if name in Spent._fields}
    return Spent(**{"joules": math.nan, **cost, "devices": tuple(cost.get("devices", ()))})


def find_published(folder: Path) -> checkpoint.Checkpoint | None:
    """The published checkpoint in a folder, if there is one."""
    try:
        found = checkpoint.open_checkpoint(folder)
    except CheckpointError:
        return None
    return found if PUBLISHED in found.manifest else None
