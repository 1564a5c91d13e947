"""Publishes a checkpoint: the weights that play, the experiment, a model card; docs/runs.md lists its files."""

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path

from alphagateau.config import REGISTERS, Experiment
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import PUBLISHED, SCHEMA, WEIGHTS, Checkpoint, CheckpointError
from alphagateau.runs.files import megabytes, reason, write_text
from alphagateau.runs.newest import warn_left_out
from alphagateau.runs.spent import Spent, find_published

EXPERIMENT, CARD = "experiment.toml", "README.md"
OF_THE_MACHINE = ("commit_success.txt",)  # of the weights: it has the path of the run, and no reader needs it
MAX_BYTES = 8_000_000  # of the weights: it lies in a repository that everybody clones
OF_THE_RUN = ("progress", "seconds", "files", "parts", "schema")  # in a manifest, which mean nothing without the run


def publish(found: Checkpoint, target: Path, texts: Mapping[str, str], run: str, spent: Spent | None) -> Checkpoint:
    """Copies the weights to `target`, beside `texts` by file name; one published there before is replaced.

    Raises CheckpointError if they are damaged or too large, the folder holds anything else, or it cannot be written.
    """
    checkpoint.verify(found, WEIGHTS)
    size = sum(size for name, (size, _) in found.manifest["files"].items() if name.startswith(f"{WEIGHTS}/"))
    if size > MAX_BYTES:
        raise CheckpointError(f"{found.path} has {megabytes(size)} of weights, expected at most {megabytes(MAX_BYTES)}")
    ours = {"manifest.json", CARD, EXPERIMENT, WEIGHTS}
    if target.exists() and (find_published(target) is None or {path.name for path in target.iterdir()} - ours):
        raise CheckpointError(f"{target} is no published checkpoint, or holds other files: give it another name")
    cost = {k: v for k, v in spent._asdict().items() if v == v} if spent else {}  # joules may be NaN
    manifest = {
        "schema": SCHEMA,
        **{key: value for key, value in found.manifest.items() if key not in OF_THE_RUN},
        "progress": {},
        "order": [found.manifest["iteration"], 0, 0],
        PUBLISHED: {"run": run, "spent": cost},
        "parts": [WEIGHTS, EXPERIMENT],
    }
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(found.path / WEIGHTS, temporary / WEIGHTS, ignore=shutil.ignore_patterns(*OF_THE_MACHINE))
        for name, text in texts.items():
            write_text(temporary / name, text)
        manifest = checkpoint.seal(temporary, target, manifest)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise CheckpointError(f"could not write {target}: {reason(error)}") from None
    return Checkpoint(target, manifest)


def without_programs(experiment: Experiment, run: Path) -> Experiment:
    """The experiment without programs and paths of its network and search, which are reported."""
    sections, left_out = {}, []
    for name, register in REGISTERS.items():
        keys, taken = register.read_untrusted(vars(getattr(experiment, name)), drop_unknown=False)
        sections[name] = register.read(keys)
        left_out += taken
    if left_out:
        warn_left_out(run, tuple(left_out))
    return dataclasses.replace(experiment, **sections)
