"""Turns metrics, health, games and ratings of a run into its report (templates/run.html)."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, NamedTuple

from alphagateau.reports.drawing.charts import CalibrationBin, Chart, Labels, Series, calibration_chart, line_chart
from alphagateau.reports.drawing.game_viewer import GameView, viewer_data
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Cell, key_values, table
from alphagateau.reports.ladder_page import RatedPlayer, rank, rating_chart, rating_table

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
OTHER = "Other metrics"


class Event(NamedTuple):
    """An unhealthy iteration; level: `warn` or `stop`."""

    iteration: int
    level: str
    message: str


class RunPage(NamedTuple):
    """The data of a run's report.

    facts: commit, versions, devices, cost, anything by name (nested names are joined by dots). metrics: the
    rows of metrics.jsonl, each with an `iteration`. config: the experiment. meaning: of metrics, by name.
    players: of a ladder, if there is one.
    """

    title: str
    facts: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    config: Mapping[str, Any] = {}
    meaning: Mapping[str, str] = {}
    health: Sequence[Event] = ()
    calibration: Sequence[CalibrationBin] = ()
    players: Sequence[RatedPlayer] = ()
    games: Sequence[GameView] = ()
    notes: Sequence[str] = ()
    subtitle: str = ""


def run_page(page: RunPage) -> str:
    """The report as HTML."""
    ranked = rank(page.players)
    return render(
        "run.html",
        title=page.title,
        subtitle=page.subtitle,
        facts=key_values(page.facts),
        config=key_values(page.config),
        notes=page.notes,
        health=table(
            ["Iteration", "Level", "What"],
            [[e.iteration, Cell(e.level, tone="bad" if e.level == "stop" else ""), e.message] for e in page.health],
        ),
        num_iterations=len(page.metrics),
        metric_charts=metric_charts(page.metrics, page.health),
        calibration=calibration_chart(page.calibration, "Value against result") if page.calibration else None,
        ratings=rating_table(ranked),
        rating_chart=rating_chart(ranked),
        games=viewer_data(page.games),
        glossary=[(name, said) for name, said in page.meaning.items() if any(name in row for row in page.metrics)],
    )


def metric_charts(metrics: Sequence[Mapping[str, Any]], health: Sequence[Event] = ()) -> dict[str, list[Chart]]:
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
    found: dict[str, list[Chart]] = {section: [] for section in (*SECTIONS.values(), OTHER)}
    for key in sorted(placed, key=lambda k: order.index(k) if k in order else len(order)):
        section, title, is_log = key
        found[section].append(line_chart(placed[key], Labels(title), is_log=is_log, marks=marks))
    return found


def _chart_of(name: str) -> tuple[str, str, bool]:
    """(section, chart, is it logarithmic) of a metric."""
    for section, title, is_log, patterns in CHARTS:
        if any(fnmatch(name, pattern) for pattern in patterns):
            return section, title, is_log
    return SECTIONS.get(name.partition("/")[0], OTHER), name, False
