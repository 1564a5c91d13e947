"""Keeps what a study's ladder needs to go on where its runs are not: last weights, games, a ladder file."""

import dataclasses
import gzip
import json
from collections.abc import Mapping
from pathlib import Path

from alphagateau import config
from alphagateau.cli.ladders import specs_of
from alphagateau.cli.streams import report
from alphagateau.config import MAX_INT
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.runs.files import replacing, write_text
from alphagateau.runs.publishing import EXPERIMENT, publish, without_programs
from alphagateau.studies.status import Status
from alphagateau.studies.training import Study


def keep(study: Study, known: Mapping[str, Status], out: Path) -> None:
    """Writes into a study's results each run's last weights, its ladder's games packed, and a file of that ladder.

    Where a rating is the mean of several checkpoints, the earlier ones have their iteration behind the run's name.
    Weights that are too large to keep are reported.
    """
    ladder = study.plan.study.ladder
    if ladder is None:
        return
    query, kept = f"?{study.plan.study.player}" if study.plan.study.player else "", {}
    for run in study.plan.runs:
        specs = specs_of(study, run, known, MAX_INT)
        for spec in specs:
            name = run.name if spec is specs[-1] else f"{run.name}.{spec.found.path.name}"
            folder = out / "weights" / name
            text = config.dumps(without_programs(run.experiment, study.folder / run.name))
            try:
                publish(spec.found, folder, {EXPERIMENT: text}, run.name, None)
                kept[f"{run.name}/{spec.found.path.name}"] = folder
            except CheckpointError as error:
                report(f"the weights of {name} are not kept: {error}")
    for path in (out / "ladder").rglob("games.pgn"):
        with replacing(path.with_suffix(".pgn.gz")) as packed:
            packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    keys = dataclasses.asdict(ladder)
    keys["players"] = [*(f"{folder}{query}" for folder in kept.values()), *ladder.players]
    keys["boards"] = ladder.boards or [study.plan.reference.experiment.game]
    keys["anchor"] = kept[ladder.anchor].name if ladder.anchor in kept else ladder.anchor
    lines = [f"# The ladder of study {study.plan.study.name}, to add games to: docs/studies.md has the commands."]
    lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in keys.items()]
    write_text(out / "ladder.toml", "\n".join(lines) + "\n")
