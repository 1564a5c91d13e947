"""Costs of a run by its metrics: iterations, frames, optimizer steps, FLOPs, seconds."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from alphagateau.config import BudgetConfig, Experiment, board_experiments
from alphagateau.config.searches import simulations_per_ply
from alphagateau.runs.logging.progress import COMPILE


class Cost(NamedTuple):
    """The cost of a run so far, without what was done again after a kill and the time between starts."""

    iterations: int = 0
    frames: int = 0  # positions played by self-play, whether or not the window kept them
    steps: int = 0
    flops: float = 0.0  # operations of the networks' matrix products
    seconds: float = 0.0  # of all phases, checkpoints too, without waiting for programs to be compiled


def costs(
    rows: Sequence[Mapping[str, Any]], experiment: Experiment, forward_flops: Mapping[str, float] = MappingProxyType({})
) -> list[Cost]:
    """The cost after each row of metrics.jsonl, whose first is iteration 1.

    `forward_flops` are those of a forward pass on one position of each board (0 where missing). A ply takes a pass for
    its root and one for each simulation, twice as many where mirrors are averaged; children that `state_value`
    evaluates are not counted. A frame of a step takes three: backward is two forward passes (Kaplan et al. 2020, arXiv
    2001.08361, section 2.1; what is computed again to save memory is not counted).
    """
    selfplay, batch_size = experiment.selfplay, experiment.training.batch_size
    iteration_frames = selfplay.num_games * selfplay.num_plies if selfplay else 0
    games = {part.game: part.selfplay.num_games if part.selfplay else 1 for part in board_experiments(experiment)}
    mean = sum(n * forward_flops.get(board, 0.0) for board, n in games.items()) / sum(games.values())
    passes = 2 if experiment.search.average_mirrors else 1
    full, cheap = (passes * mean * (simulations_per_ply(experiment, share) + 1) for share in (1.0, 0.0))
    found, seconds, flops, before = [], 0.0, 0.0, 0
    for row in rows:
        seconds += sum(x for name, x in row.items() if name.startswith("time/") and name != f"time/{COMPILE}")
        full_share = row.get("selfplay/full_search_rate", 1.0)
        a_frame = full_share * full + (1 - full_share) * cheap
        frames, steps = row["iteration"] * iteration_frames, int(row.get("train/steps", 0))
        on_boards = {board: row.get(f"train/board_steps/{board}", 0) for board in games}  # of several
        trained = sum(n * (3 * forward_flops.get(board, 0.0) * batch_size) for board, n in on_boards.items())
        flops += iteration_frames * a_frame + (trained or (steps - before) * (3 * mean * batch_size))
        found.append(Cost(row["iteration"], frames, steps, flops, seconds))
        before = steps
    return found


def reached(cost: Cost, budget: BudgetConfig) -> str | None:
    """The limit of the budget that the cost has reached, such as "7.5 seconds"; None: none yet."""
    for unit, limit in vars(budget).items():
        if limit and getattr(cost, unit) >= limit:
            return f"{limit:,} {unit}" if isinstance(limit, int) else f"{limit:g} {unit}"
    return None
