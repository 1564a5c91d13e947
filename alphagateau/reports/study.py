"""Writes what a study has found: one page, a table in Markdown, and all of it as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

from alphagateau.reports.study_page import markdown, study_page
from alphagateau.runs.files import write_text
from alphagateau.studies.results import StudyResult, as_json


def write_study(folder: Path, result: StudyResult, notes: Sequence[str] = ()) -> None:
    """Writes index.html, study.md and study.json, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "study.json", json.dumps(as_json(result), indent=1) + "\n")
    write_text(folder / "study.md", markdown(result))
    write_text(folder / "index.html", study_page(result, notes))
