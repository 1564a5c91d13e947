"""The metrics of a run in, what it has cost out: iterations, frames, optimizer steps, FLOPs, seconds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from alphagateau.config import BudgetConfig, Experiment
from alphagateau.config.searches import simulations_per_ply


class Prices(NamedTuple):
    """What metrics.jsonl does not say."""

    iteration_frames: int  # played by self-play in an iteration
    frame_flops: float  # of playing one, searched in full
    step_flops: float  # of an optimizer step
    cheap_frame_flops: float = 0.0  # of playing one not searched in full


class Cost(NamedTuple):
    """Of a run so far. Frames are positions played by self-play, whether or not the window kept them.

    flops: operations of the networks' matrix products. seconds: of all phases, checkpoints too, on whatever devices;
    what was done again after a kill, and the time between starts, is not in them.
    """

    iterations: int = 0
    frames: int = 0
    steps: int = 0
    flops: float = 0.0
    seconds: float = 0.0


def make_prices(experiment: Experiment, forward_flops: float = 0.0) -> Prices:
    """By the FLOPs of one forward pass on one position.

    A ply takes one for its root and one for each simulation. A frame of a step takes three: backward is two forward
    passes (Kaplan et al. 2020, arXiv 2001.08361, section 2.1; what is computed again to save memory is not counted).
    """
    selfplay, batch_size = experiment.selfplay, experiment.training.batch_size
    frames = selfplay.num_games * selfplay.num_plies if selfplay else 0
    full, cheap = (forward_flops * (simulations_per_ply(experiment, share) + 1) for share in (1.0, 0.0))
    return Prices(frames, full, 3 * forward_flops * batch_size, cheap)


def costs(rows: Sequence[Mapping[str, Any]], prices: Prices) -> list[Cost]:
    """The cost after each row of metrics.jsonl, whose first is iteration 1."""
    found, seconds, played = [], 0.0, 0.0
    for row in rows:
        seconds += sum(value for name, value in row.items() if name.startswith("time/"))
        full_share = row.get("selfplay/full_search_rate", 1.0)
        a_frame = full_share * prices.frame_flops + (1 - full_share) * prices.cheap_frame_flops
        played += prices.iteration_frames * a_frame
        frames, steps = row["iteration"] * prices.iteration_frames, int(row.get("train/steps", 0))
        found.append(Cost(row["iteration"], frames, steps, played + steps * prices.step_flops, seconds))
    return found


def reached(cost: Cost, budget: BudgetConfig) -> str | None:
    """Which limit of the budget the cost has reached, in words; None: none yet."""
    for unit, limit in vars(budget).items():
        if limit and getattr(cost, unit) >= limit:
            return f"{limit:g} {unit}"
    return None
