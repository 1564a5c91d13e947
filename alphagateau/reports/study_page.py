"""Turns the result of a study into its page (templates/study.html), curves and a table in Markdown, and writes them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alphagateau.config import show
from alphagateau.reports.drawing.charts import Chart, Labels, Series, dot_chart, line_chart, standalone
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import (
    UNKNOWN,
    Table,
    in_form,
    in_markdown,
    markdown_table,
    number,
    number_cell,
    table,
)
from alphagateau.runs.files import write_json, write_text
from alphagateau.runs.run_folder import RunError

if TYPE_CHECKING:  # they bring JAX and scipy, which no page needs
    from alphagateau.ratings.over_seeds import Estimate
    from alphagateau.studies.results import Measure, Measured, RunResult, StudyResult

AXES = {"frames": "frames played", "steps": "optimizer steps", "flops": "FLOPs", "seconds": "seconds"}
METHOD = (
    "± is half of a 95 % interval that stands for itself: the variance of seeds and games, pooled over variants with "
    "seeds as blocks, and Student's t (docs/studies.md has the formulas); ± at once, by which differences are read, "
    "holds for all of them together (Dunnett)"
)
FACTORIAL_METHOD = (
    "an effect is the mean over the runs at a factor's second value less that at its first, by least squares; ± is "
    "half of a 95 % interval by Student's t, ± at once, by which effects are read, holds for all of them together "
    "(Sidak). The design is of resolution IV: interactions of two factors bias no effect, and widen the intervals"
)
EARLIER_METHOD = (
    "± is half of a 95 % interval by Student's t over each variant's own seeds, wider than it need be: this study was "
    "written by an earlier version"
)


def write_study(folder: Path, result: "StudyResult") -> None:
    """Writes study.md, study.json and what is drawn, each whole or not at all."""
    from alphagateau.studies.result_files import as_json

    write_json(folder / "study.json", as_json(result))
    write_text(folder / "study.md", markdown(result))
    _draw(folder, result)


def rewrite_study(folder: Path, out: Path | None = None) -> Path:
    """Makes the page and the curves of a study anew from its study.json; returns the page's path. Raises RunError."""
    from alphagateau.studies.result_files import read_result

    result = read_result(folder / "study.json")
    try:
        if out is None:
            return _draw(folder, result)
        write_text(out, study_page(result))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise RunError(f"{folder / 'study.json'} is damaged: {type(error).__name__} {error}") from None
    return out


def _draw(folder: Path, result: "StudyResult") -> Path:
    """Writes the page, whose path it returns, differences.svg, and curves.svg, if earlier iterations were rated too."""
    write_text(folder / "index.html", study_page(result))
    differences = filter(None, (difference_chart(m, result.reference) for m in result.measures))
    for name, charts in (("curves.svg", curve_charts(result)), ("differences.svg", list(differences))):
        if charts:
            write_text(folder / name, standalone(result.name, charts))
    return folder / "index.html"


def study_page(result: "StudyResult") -> str:
    """The page as HTML."""
    reference = result.reference
    measures = [
        (m.name, measure_table(m, reference), effect_table(m), bounds(m), difference_chart(m, reference))
        for m in result.measures
    ]
    return render(
        "study.html",
        title=f"Study {result.name}",
        subtitle=f"{len(result.variants)} variants of {result.base}, each with {_seeds(len(result.seeds))}",
        changed=changed_table(result),
        cost=cost_table(result),
        measures=measures,
        curves=curve_charts(result),
        notes=sentences(result),
        runs=run_table(result.runs),
    )


def changed_table(result: "StudyResult") -> Table:
    """A row for each key in which variants differ."""
    names = result.variants
    rows = [
        [key, *(_key_text(values[name]) if name in values else None for name in names)]
        for key, values in result.changed.items()
    ]
    return table(["Key", *names], rows)


def cost_table(result: "StudyResult") -> Table:
    """A row a variant, means over its runs that ended."""
    rows = []
    for variant in result.variants:
        runs = [r for r in result.runs if r.variant == variant]
        rows.append([variant, len([r for r in runs if r.ended]), max(r.parameters for r in runs)])
        rows[-1] += _means([r for r in runs if r.ended] or runs)
        rows[-1].append("; ".join(dict.fromkeys(r.devices for r in runs if r.devices)) or None)
    header = ["Variant", "Runs ended", "Parameters", "Iterations", "Frames", "Steps", "FLOPs", "Seconds", "Devices"]
    return table(header, rows)


def _means(runs: Sequence["RunResult"]) -> list[Any]:
    """Mean iterations, frames, steps, FLOPs and seconds."""
    columns = list(zip(*(run.cost for run in runs), strict=True))
    means = [sum(column) / len(column) for column in columns]
    return [number_cell(mean, form) for mean, form in zip(means, (".4g", ",.0f", ",.0f", ".3g", ",.0f"), strict=True)]


def measure_table(measure: "Measure", reference: str) -> Table:
    """A row a variant: its mean, the difference to the reference, its reading, what it rests on, each seed's values."""
    header = ["Variant", "Mean", "±", "Difference", "±", "± at once", "It is", "Seeds", "± by games alone"]
    header += ["Mean by seed", "Difference by seed"]
    return table(header, [_measure_row(row, measure.form, reference) for row in measure.rows])


def effect_table(measure: "Measure") -> Table | None:
    """A row a factor of a factorial design: its effect and its reading."""
    rows = []
    for factor, effect in measure.effects.items():
        widths = (effect.half_width, effect.at_once, 1.96 * effect.measured if effect.measured else math.nan)
        known = [number_cell(width, measure.form) for width in widths]
        rows.append([factor, number_cell(effect.mean, f"+{measure.form}"), *known[:2], says(effect), known[2]])
    return table(["Factor", "Effect", "±", "± at once", "It is", "± by games alone"], rows) if rows else None


def _measure_row(row: "Measured", form: str, reference: str) -> list[Any]:
    from_mean = [number_cell(row.mean.mean, form), number_cell(row.mean.half_width, form)]
    by_seed, count = _by_seed(row.values, form), len(row.values)
    if row.difference is None:
        reading = "reference" if row.variant == reference and count else ""
        return [row.variant, *from_mean, None, None, None, reading, count, None, by_seed, None]
    d, signed = row.difference, f"+{form}"
    measured = number_cell(1.96 * d.measured if d.measured else math.nan, form)
    widths = [number_cell(width, form) for width in (d.half_width, d.at_once)]
    difference = [number_cell(d.mean, signed), *widths, says(d), d.num_seeds, measured]
    return [row.variant, *from_mean, *difference, by_seed, _by_seed(row.differences, signed)]


def _by_seed(values: dict[int, float], form: str) -> str:
    return " ".join(in_form(value, form) for value in values.values())


def says(difference: "Estimate") -> str:
    """The reading of the interval that holds with all other differences at once, in words."""
    if math.isnan(difference.spread):
        return "one seed: the spread over seeds is not known"
    width = difference.half_width if math.isnan(difference.at_once) else difference.at_once  # of an earlier version
    if not abs(difference.mean) > width:
        return "may be no difference"
    return "higher" if difference.mean > 0 else "lower"


def bounds(measure: "Measure") -> str:
    """The sentence on all differences at once and the smallest that would have been seen, "" if they are not known."""
    compared = [*measure.effects.values(), *(r.difference for r in measure.rows if r.difference)]
    found = [d for d in compared if math.isfinite(d.detectable)]
    if not found:
        return ""
    at_once, detectable = (
        " to ".join(dict.fromkeys(in_form(end(values), measure.form) for end in (min, max)))
        for values in ([d.at_once for d in found], [d.detectable for d in found])
    )
    return f"± {at_once} holds for all differences at once; {detectable} would have been seen four times in five."


def difference_chart(measure: "Measure", reference: str) -> Chart | None:
    """Differences to the reference, or effects, one above the other, with their intervals."""
    compared = [*measure.effects.items(), *((r.variant, r.difference) for r in measure.rows if r.difference)]
    rows = [(name, d.mean, d.half_width / 2) for name, d in compared]
    label = "effect" if measure.effects else f"difference to {reference}"
    return dot_chart(rows, Labels(f"{measure.name}, with 95 % intervals", x=label), "small") if rows else None


def curve_charts(result: "StudyResult") -> list[Chart]:
    """Elo against each kind of cost, by board; bands from the lowest to the highest seed."""
    charts = []
    for board in dict.fromkeys(curve.board for curve in result.curves):
        for unit, meaning in AXES.items():
            series = []
            for _, variant, points in (curve for curve in result.curves if curve.board == board):
                x, band = [getattr(p.cost, unit) for p in points], [(p.low, p.high) for p in points]
                y, errors = [p.rating.mean for p in points], [p.rating.standard_error for p in points]
                series.append(Series(variant, x, y, errors, band))
            if any(any(s.x) for s in series):
                charts.append(line_chart(series, Labels(f"Elo on {board} by {meaning}", x=meaning, y="Elo")))
    return charts


def run_table(runs: Sequence["RunResult"]) -> Table:
    """A row a run."""
    rows = []
    for r in runs:
        made = [r.parameters, r.weights_hash or None, r.devices or None]
        rows.append([r.name, *_means([r]), *made, r.failure or r.ended])
    header = ["Run", "Iterations", "Frames", "Steps", "FLOPs", "Seconds", "Parameters", "Weights", "Devices", "Ended"]
    return table(header, rows)


def sentences(result: "StudyResult") -> list[str]:
    """Sentences on the intervals, the commits, the games, and the runs left out."""
    num_seeds = len(result.seeds)
    differences = [r.difference for m in result.measures for r in m.rows if r.difference]
    is_earlier = any(math.isnan(d.at_once) and not math.isnan(d.half_width) for d in differences)
    is_factorial = any(m.effects for m in result.measures)
    said = [FACTORIAL_METHOD if is_factorial else EARLIER_METHOD if is_earlier else METHOD]
    if result.last > 1:
        said.append(f"a run's rating is the mean of its last {result.last} checkpoints")
    if num_seeds < 3 and not is_factorial:
        said.append(f"there {'is' if num_seeds == 1 else 'are'} {_seeds(num_seeds)}: three or more would say much more")
    commits = sorted({commit for run in result.runs for commit in run.commits})
    if len(commits) > 1:
        said.append(f"the runs ran code of {len(commits)} commits, {', '.join(commits)}: what differs may be the code")
    said += [f"{games:,} games were rated on {board}" for board, games in result.num_games.items()]
    said += rating_notes(result)
    said += [f"{r.name} is left out: {r.failure}" for r in result.runs if r.failure]
    return said + [f"{r.name}: {r.ended}" for r in result.runs if r.ended.startswith("its health")]


def rating_notes(result: "StudyResult") -> list[str]:
    """The caveats of the ladder's ratings, each with its board."""
    return [f"ratings on {board}: {note}" for board, notes in result.rating_notes.items() for note in notes]


def markdown(result: "StudyResult") -> str:
    """Tables to paste into a page of docs/: what differs, each measure with cost and difference, caveats of ratings."""
    keys = [["key", *result.variants]]
    for key, values in result.changed.items():
        keys.append([f"`{key}`", *(_key_text(values[v]) if v in values else UNKNOWN for v in result.variants)])
    parts = [f"`alphagateau study` {result.name}: {_seeds(len(result.seeds))}, ± half of a 95 % interval"]
    parts += [markdown_table(keys)] if len(keys) > 1 else []
    for measure in result.measures:
        rows = [["variant", "frames", "steps", "FLOPs", "seconds", measure.name, f"minus {result.reference}"]]
        for row in measure.rows:
            runs = [r for r in result.runs if r.variant == row.variant and r.ended]
            costs = [cell.text for cell in _means(runs)[1:]]
            rows.append([row.variant, *costs, _pair(row.mean, measure.form), UNKNOWN])
            if row.difference:
                rows[-1][-1] = _pair(row.difference, f"+{measure.form}")
        effects = [[factor, _pair(effect, f"+{measure.form}")] for factor, effect in measure.effects.items()]
        parts += [markdown_table(rows if result.reference else [row[:-1] for row in rows])]
        parts += [markdown_table([["factor", f"effect on {measure.name}"], *effects])] if effects else []
        parts += filter(None, [bounds(measure)])
    parts += ["\n".join(f"- {in_markdown(note)}" for note in rating_notes(result))] if rating_notes(result) else []
    return "\n\n".join(parts) + "\n"


def _pair(estimate: "Estimate", form: str) -> str:
    if not math.isfinite(estimate.half_width):
        return in_form(estimate.mean, form)
    return f"{in_form(estimate.mean, form)} ± {estimate.half_width:{form.removeprefix('+')}}"


def _key_text(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else show(value).strip('"')


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"
