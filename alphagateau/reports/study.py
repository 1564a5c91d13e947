"""Writes the results of a study: a page, its curves, a table in Markdown, and JSON."""

from pathlib import Path

from alphagateau.reports.drawing.charts import standalone
from alphagateau.reports.study_page import curve_charts, markdown, study_page
from alphagateau.runs.files import write_json, write_text
from alphagateau.studies.result_files import as_json, read_result
from alphagateau.studies.results import StudyResult


def write_study(folder: Path, result: StudyResult) -> None:
    """Writes study.md, study.json and what is drawn, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "study.json", as_json(result))
    write_text(folder / "study.md", markdown(result))
    _draw(folder / "index.html", result)


def rewrite_study(folder: Path, out: Path | None = None) -> Path:
    """Makes the page and the curves of a study anew from its study.json, which is all that is read.

    Returns the path of the page. Raises RunError.
    """
    out = out or folder / "index.html"
    _draw(out, read_result(folder / "study.json"))
    return out


def _draw(page: Path, result: StudyResult) -> None:
    """The page, and beside it curves.svg, if iterations other than the last were rated."""
    write_text(page, study_page(result))
    if charts := curve_charts(result):
        write_text(page.with_name("curves.svg"), standalone(result.name, charts))
