"""Writes what a study has found: one page, a table in Markdown, and all of it as JSON."""

import json
from pathlib import Path

from alphagateau.reports.study_page import markdown, study_page
from alphagateau.runs.files import write_text
from alphagateau.studies.result_files import as_json, read_result
from alphagateau.studies.results import StudyResult


def write_study(folder: Path, result: StudyResult) -> None:
    """Writes index.html, study.md and study.json, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "study.json", json.dumps(as_json(result), indent=1) + "\n")
    write_text(folder / "study.md", markdown(result))
    write_text(folder / "index.html", study_page(result))


def rewrite_study(folder: Path, out: Path | None = None) -> Path:
    """Makes the page of a study anew from its study.json, which is all that is read, and returns its path.

    Raises RunError.
    """
    out = out or folder / "index.html"
    write_text(out, study_page(read_result(folder / "study.json")))
    return out
