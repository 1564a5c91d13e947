"""Turns metrics, health, games and ratings of a run into its report (templates/run.html)."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from alphagateau.reports.drawing.charts import Chart, Labels, Series, calibration_chart, line_chart
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


def run_page(
    title: str,
    facts: Mapping[str, Any],
    metrics: Sequence[Mapping[str, Any]],
    *,
    subtitle: str = "",
    config: Mapping[str, Any] = {},
    meaning: Mapping[str, str] = {},
    health: Sequence[tuple[int, str]] = (),
    level: str = "warn",
    calibration: Sequence[tuple[float, float, float]] = (),
    players: Sequence[RatedPlayer] = (),
    games: Sequence[GameView] = (),
    notes: Sequence[str] = (),
) -> str:
    """The report as HTML: of rows of metrics.jsonl, each with an `iteration`, and of what else is known of the run.

    health: (iteration, what is unhealthy); level: what that does, `warn` or `stop`.
    """
    ranked = rank(players)
    shown = Cell(level, tone="bad" if level == "stop" else "")
    return render(
        "run.html",
        title=title,
        subtitle=subtitle,
        facts=key_values(facts),
        config=key_values(config),
        notes=notes,
        health=table(["Iteration", "Level", "What"], [[iteration, shown, what] for iteration, what in health]),
        num_iterations=len(metrics),
        metric_charts=metric_charts(metrics, health),
        calibration=calibration_chart(calibration, "Value against result") if calibration else None,
        ratings=rating_table(ranked),
        rating_chart=rating_chart(ranked),
        games=viewer_data(games),
        glossary=[(name, said) for name, said in meaning.items() if any(name in row for row in metrics)],
    )


def metric_charts(
    metrics: Sequence[Mapping[str, Any]], health: Sequence[tuple[int, str]] = ()
) -> dict[str, list[Chart]]:
    """Charts of all metrics against iteration by section, with a vertical line at each health event."""
    events: dict[int, list[str]] = {}
    for iteration, what in health:
        events.setdefault(iteration, []).append(what)
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
