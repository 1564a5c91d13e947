"""Turns what a run left on disk into its page."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, NamedTuple

from alphagateau.reports import parts
from alphagateau.reports.board import GameView, game_viewer
from alphagateau.reports.charts import CalibrationBin, Series, calibration_chart, charts, line_chart
from alphagateau.reports.parts import Cell, Html, Section
from alphagateau.reports.ratings_page import Player, rank, rating_chart, rating_table

# Section, chart, is it logarithmic, names of metrics. A metric goes to the first chart that names it; one that
# none names has a chart of its own, in the section of the part before its slash or else in the last.
CHARTS = (
    ("Learning", "Losses", False, ("train/loss", "train/*_loss", "train/policy_kl")),
    ("Learning", "Policy entropy, nats", False, ("*entropy",)),
    ("Learning", "Value", False, ("train/value_*",)),
    ("Learning", "Norms, log axis", True, ("train/*_norm",)),
    ("Self-play", "Shares", False, ("selfplay/*_rate", "selfplay/value_saturation")),
    ("Throughput", "Per second, log axis", True, ("*_per_second",)),
    ("Throughput", "Seconds an iteration, log axis", True, ("time/*",)),
)
SECTIONS = {"train": "Learning", "window": "Learning", "selfplay": "Self-play", "time": "Throughput"}
OTHER = "Other figures"


class Event(NamedTuple):
    """What the health watch said: at which iteration, `warn` or `stop`, in which words."""

    iteration: int
    level: str
    message: str


def report_page(
    title: str,
    *,
    facts: Mapping[str, Any],
    metrics: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any] | None = None,
    meaning: Mapping[str, str] | None = None,
    health: Sequence[Event] = (),
    calibration: Sequence[CalibrationBin] = (),
    players: Sequence[Player] = (),
    games: Sequence[GameView] = (),
    notes: Sequence[str] = (),
    subtitle: str = "",
) -> str:
    """The page of a run.

    facts: commit, versions, devices, cost, anything by name (nested names are joined by dots). metrics: the
    rows of metrics.jsonl, each with an `iteration`. config: the experiment. meaning: of metrics, by name.
    players: of a ladder, if there is one.
    """
    figures = metric_charts(metrics, health)
    sections = dict.fromkeys([*(chart[0] for chart in CHARTS), *figures])
    words = {name: said for name, said in (meaning or {}).items() if any(name in row for row in metrics)}
    glossary = parts.folded("What the figures mean", parts.key_values(words)) if words else Html("")
    value_chart = calibration_chart(calibration, title="Value against result") if calibration else Html("")
    ranked = rank(players)
    return parts.page(
        title,
        [
            Section("Run", parts.join(parts.key_values(facts), _config(config or {}), parts.notes(notes))),
            Section("Health", health_table(health, len(metrics))),
            *(Section(name, charts(figures[name])) for name in sections if name in figures),
            Section("Value calibration", value_chart),
            Section("Ladder", parts.join(rating_table(ranked), rating_chart(ranked))),
            Section("Sample games", game_viewer(games)),
            Section("Glossary", glossary),
        ],
        subtitle=subtitle,
    )


def _config(config: Mapping[str, Any]) -> Html:
    return parts.folded("Experiment", parts.key_values(config)) if config else Html("")


def health_table(health: Sequence[Event], num_iterations: int) -> Html:
    if not health:
        return parts.paragraph(f"No warnings in {num_iterations} iterations.")
    rows = [[e.iteration, Cell(e.level, tone="bad" if e.level == "stop" else ""), e.message] for e in health]
    return parts.table(["Iteration", "Level", "What"], rows)


def metric_charts(metrics: Sequence[Mapping[str, Any]], health: Sequence[Event] = ()) -> dict[str, list[Html]]:
    """Charts of all metrics against iteration by section, with a vertical line at each health event."""
    events: dict[int, list[str]] = {}
    for event in health:
        events.setdefault(event.iteration, []).append(event.message)
    marks = [(iteration, f"iteration {iteration}: {'; '.join(said)}") for iteration, said in events.items()]
    placed: dict[tuple[str, str, bool], list[Series]] = {}
    for name in dict.fromkeys(key for row in metrics for key in row if key != "iteration"):
        points = [(r["iteration"], r[name]) for r in metrics if isinstance(r.get(name), int | float)]
        if points:
            placed.setdefault(_chart_of(name), []).append(Series(name, *zip(*points, strict=True)))
    order = [chart[:3] for chart in CHARTS]
    found: dict[str, list[Html]] = {}
    for key in sorted(placed, key=lambda k: order.index(k) if k in order else len(order)):
        section, title, is_log = key
        figure = line_chart(placed[key], title=title, is_log=is_log, marks=marks)
        found.setdefault(section, []).append(figure)
    return found


def _chart_of(name: str) -> tuple[str, str, bool]:
    """(section, chart, is it logarithmic) of a metric."""
    for section, title, is_log, patterns in CHARTS:
        if any(fnmatch(name, pattern) for pattern in patterns):
            return section, title, is_log
    return SECTIONS.get(name.partition("/")[0], OTHER), name, False
