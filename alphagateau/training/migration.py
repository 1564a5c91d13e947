"""Checkpoints of schema 1 and 2, which counted plies, epochs and steps, as this version's progress and arrays."""

from typing import Any

import jax.numpy as jnp

from alphagateau.config import ConfigError
from alphagateau.distributed.processes import everywhere
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.training.frames import Trajectory
from alphagateau.training.phases import Progress
from alphagateau.training.trainer import Trainer

PLAY, WINDOW, TRAIN = range(3)  # phases of an iteration of self-play


def is_needed(manifest: dict[str, Any]) -> bool:
    """Whether a manifest's progress is of the old form."""
    return "plies" in manifest["progress"]


def part_before(part: dict[str, Any]) -> dict[str, Any]:
    """What the old form held of a part of training: no statistics of the games, no value of the search."""
    part = {name: x for name, x in part.items() if name != "statistics"}
    if "trajectory" in part:
        part["trajectory"] = {k: v for k, v in part["trajectory"]._asdict().items() if k != "search_value"}
    return part


def part_now(part: dict[str, Any], manifest: dict[str, Any], abstract: dict[str, Any]) -> dict[str, Any]:
    """A part of the old form with what it lacks; the network's value stands for the search's, which nothing reads."""
    if "trajectory" in part:
        old, sums = part["trajectory"], manifest["progress"]["selfplay"] or {}
        part["trajectory"] = Trajectory(**old, search_value=jnp.copy(old["root_value"]))
        statistics = {name: jnp.full(x.shape, sums.get(name, 0), x.dtype) for name, x in abstract["statistics"].items()}
        part["statistics"] = statistics
    return part


def read_progress(candidate: Checkpoint, trainer: Trainer, producer_state: Any) -> Progress:
    """Where an old checkpoint stands. Raises ConfigError if it stands inside a segment of today's size."""
    old, phases = candidate.manifest["progress"], trainer.phases
    if old["selfplay"] is None:
        size = phases[PLAY].segment_size
        return Progress(old["iteration"], PLAY, _segments(candidate, old["plies"], size, "selfplay.segment_plies"))
    size = phases[TRAIN].segment_size
    an_epoch = -(-trainer.producer.num_batches(producer_state) // size)
    segment = old["epoch"] * an_epoch + _segments(candidate, old["steps"], size, "training.segment_steps")
    return Progress(old["iteration"], TRAIN, segment)


def _segments(candidate: Checkpoint, done: int, size: int, key: str) -> int:
    if done % size:
        raise everywhere(
            ConfigError(f"{candidate.path} was stopped at {done} inside an iteration, which {key} = {size} must divide")
        )
    return done // size
