"""Builds the HTML page of a run from the files in its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from alphagateau import config
from alphagateau.config.losses import declared_meaning
from alphagateau.games.pgn.pgn import GameRecord, read_pgn
from alphagateau.reports.drawing.game_viewer import view_record
from alphagateau.reports.ladder_page import player_of, read_rows
from alphagateau.reports.run_page import run_page
from alphagateau.runs.checkpoint import find
from alphagateau.runs.files import write_text
from alphagateau.runs.health import symptoms
from alphagateau.runs.logging.log import MEANING, read_metrics
from alphagateau.runs.run_record import read_final_match, read_record
from alphagateau.runs.spent import read_spent

MAX_GAMES = 40  # sample games on the page, the newest


def write_report(run: Path, out: Path | None = None) -> Path:
    """Writes `report.html` of the run (or `out`) and returns its path. Raises ConfigError, RunError."""
    if not (run / "config.toml").exists():
        raise config.ConfigError(f"{run} is not a run: it has no config.toml")
    experiment = config.load(run / "config.toml")
    metrics = read_metrics(run / "metrics.jsonl")
    health = [(row["iteration"], sentence) for row in metrics for sentence in symptoms(row, experiment.health)]
    games, notes = _sample_games(run)
    ratings = run / "ladder" / "ratings.csv"  # of this run's checkpoints, if a ladder was written there
    scores = {
        f"{player} against {opponent}": f"{wins} won, {draws} drawn, {losses} lost"
        for player, opponent, wins, draws, losses, _ in read_final_match(run).get("scores", ())
    }
    page = run_page(
        f"Run {run.resolve().name}",
        facts=_facts(run, metrics) | scores,
        metrics=[{k: v for k, v in row.items() if not isinstance(v, list)} for row in metrics],
        config=config.to_dict(experiment),
        meaning=MEANING | declared_meaning(),
        health=health,
        level=experiment.health.action,
        calibration=metrics[-1].get("train/calibration", []) if metrics else [],
        players=[player_of(row) for row in read_rows(ratings)] if ratings.exists() else [],
        games=[view_record(record, number) for number, record in enumerate(games, 1)],
        notes=notes,
        subtitle=f"{experiment.game}, {len(metrics)} of {experiment.num_iterations} iterations",
    )
    out = out or run / "report.html"
    write_text(out, page)
    return out


def _facts(run: Path, metrics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The run's size, machines, cost and versions."""
    starts = read_record(run)["starts"]
    spent = [x.device_seconds for x in read_spent(run, lambda _: {}).values()]  # from the weights begun from on
    devices = starts[-1]["devices"] if starts else []
    newest = next(iter(find(run / "checkpoints")[0]), None)
    facts: dict[str, Any] = {
        "iterations": len(metrics),
        "optimizer steps": newest.manifest["optimizer_steps"] if newest else 0,
        "parameters": newest.manifest["parameters"] if newest else None,
        "weights hash": newest.manifest["weights_hash"] if newest else None,
        "devices": ", ".join(sorted(set(devices))) + f" ({len(devices)})" if devices else None,
        "device-hours": round((spent[-1] - spent[0]) / 3600, 3) if spent else 0.0,
        "starts": len(starts),
    }
    if starts:
        last = starts[-1]
        facts |= {"command": last["command"], "commit": last.get("commit"), "python": last["python"]}
        facts |= {f"version of {name}": version for name, version in last["versions"].items()}
    return facts


def _sample_games(run: Path) -> tuple[list[GameRecord], list[str]]:
    """The newest sample games, and one sentence on each file that cannot be read."""
    games: list[GameRecord] = []
    notes = []
    for path in sorted((run / "games").glob("*.pgn"), reverse=True):
        if len(games) >= MAX_GAMES:
            break
        try:
            games += read_pgn(path.read_text(encoding="utf-8", errors="replace"))
        except ValueError as error:
            notes.append(f"{path.name} is left out: {error}")
    return games[:MAX_GAMES], notes
