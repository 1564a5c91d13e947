"""A whole study in processes: killed and continued it ends with the files of one that nothing interrupted."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from stopping import make_trainers_once

from alphagateau.commands import study as study_command
from alphagateau.commands.main import main
from alphagateau.runs.stop import StopRequest
from alphagateau.studies import training
from alphagateau.studies.status import is_busy

STUDY = Path(__file__).parents[2] / "experiments" / "studies" / "smoke_widths.toml"
SECONDS = 900
OF_THE_MACHINE = ("device_seconds", "joules", "devices")  # columns of ratings.csv


def start(folder: Path, text: str) -> subprocess.Popen:
    """`alphagateau study` at work in a folder, on a study file of this text."""
    folder.mkdir(exist_ok=True)
    (folder / STUDY.name).write_text(text)
    command = [sys.executable, "-m", "alphagateau.commands.main", "study", STUDY.name]
    with (folder / "log").open("a") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


def finish(folder: Path, text: str) -> Path:
    """The folder of the results."""
    assert start(folder, text).wait(SECONDS) == 0, (folder / "log").read_text()
    return folder / "eval" / "smoke_widths"


class RunHere:
    """Takes the place of subprocess.Popen: `alphagateau train` in this process, where compiled programs are kept."""

    def __init__(self, command: list[str], **_: object) -> None:
        self.code = main(command[command.index("train") :])

    def wait(self, timeout: float) -> int:
        return self.code


def finish_here(folder: Path, text: str) -> Path:
    """The folder of the results of a study that nothing interrupts, in this process."""
    folder.mkdir()
    (folder / STUDY.name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(training, "subprocess", SimpleNamespace(Popen=RunHere))
        make_trainers_once(patch)
        assert main(["study", STUDY.name]) == 0
    return folder / "eval" / "smoke_widths"


def test_a_dry_run_says_what_differs_from_the_reference(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", str(STUDY.with_name("learning.toml")), "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "search.num_simulations: base 16; playout_cap 32, more_simulations 32" in said
    assert not list(tmp_path.iterdir())


def test_a_study_writes_over_no_file_that_it_reads(tmp_path, monkeypatch, capsys):
    """Openings named in [ladder] were replaced by the ladder's results."""
    monkeypatch.chdir(tmp_path)
    ladder = tmp_path / "eval" / "smoke_widths" / "ladder"
    ladder.mkdir(parents=True)
    (ladder / "results.csv").write_text("b2b3\n")
    openings = 'openings = "eval/smoke_widths/ladder/results.csv"'
    (tmp_path / STUDY.name).write_text(STUDY.read_text().replace("[ladder]", f"[ladder]\n{openings}"))
    assert main(["study", STUDY.name, "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"alphagateau: {STUDY.name}: ") and "is what this study reads" in said
    assert (ladder / "results.csv").read_text() == "b2b3\n"


def test_a_study_holds_the_lock_of_the_ladder_that_it_plays(tmp_path, monkeypatch, capsys):
    """`alphagateau ladder --out` of that folder was played into the same games."""
    held: list[bool] = []
    monkeypatch.setattr(training, "train_runs", lambda study, stop: {})
    monkeypatch.setattr(study_command, "write_results", lambda study, out, *_: held.append(is_busy(out / "ladder")))
    assert study_command.run_study(SimpleNamespace(), tmp_path, StopRequest()) == 0  # type: ignore[arg-type]
    assert held == [True] and not is_busy(tmp_path / "ladder")


@pytest.mark.whole
def test_a_study_that_is_killed_and_continued_ends_with_the_same_files(tmp_path, monkeypatch):
    """One in pieces of an iteration, the other in whole runs: the first of two is told to stop, the second killed.

    The first in this process, so that each width is traced once, the other in processes of their own, which read what
    it compiled.
    """
    text = STUDY.read_text().replace("seeds = [0, 1]", "seeds = [1]")
    whole = finish_here(tmp_path / "whole", text)
    text = text.replace("piece = 1", "piece = 0")
    for number, run in ((signal.SIGTERM, "narrow-1"), (signal.SIGKILL, "wide-1")):
        process = start(tmp_path / "cut", text)
        wait_for(tmp_path / "cut" / "checkpoints" / "smoke_widths" / run / "checkpoints" / "1", process)
        process.send_signal(number)
        assert process.wait(SECONDS) == (0 if number == signal.SIGTERM else -number)
    cut = finish(tmp_path / "cut", text)
    assert (cut / "ladder" / "results.csv").read_bytes() == (whole / "ladder" / "results.csv").read_bytes()
    assert ratings(cut / "ladder" / "ratings.csv") == ratings(whole / "ladder" / "ratings.csv")
    found, expected = (json.loads((folder / "study.json").read_text()) for folder in (cut, whole))
    assert found.pop("machine")["runs"].keys() == expected.pop("machine")["runs"].keys()
    assert found == expected
    check_result(found)
    assert "wide" in (cut / "study.md").read_text() and "Elo on gardner_chess" in (cut / "index.html").read_text()
    check_that_games_can_be_added(tmp_path / "cut", monkeypatch)


def check_that_games_can_be_added(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By anybody who has what git keeps, on the ladder of the last weights and the random mover: 3 pairs of 4 games."""
    monkeypatch.chdir(folder)
    shutil.rmtree("checkpoints")
    for name in ("games.jsonl", "games.pgn", "index.html"):
        Path("eval/smoke_widths/ladder", name).unlink()
    command = ["ladder", "eval/smoke_widths/ladder.toml", "--out", "eval/more"]
    assert main([*command, "--merge", "eval/smoke_widths/ladder"]) == 0
    assert counts(Path("eval/more/ratings.csv")) == {"narrow-1": 4, "wide-1": 4, "random": 4}
    assert main([*command, "--games-per-pair", "4"]) == 0
    assert counts(Path("eval/more/ratings.csv")) == {"narrow-1": 8, "wide-1": 8, "random": 8}
    assert main(["info", "eval/smoke_widths/weights/wide-1"]) == 0


def counts(path: Path) -> dict[str, int]:
    """Games by player."""
    return {row["player"]: int(row["games"]) for row in ratings(path)}


def ratings(path: Path) -> list[dict[str, str]]:
    """The rows of ratings.csv, without what the machine makes of them."""
    with path.open(newline="") as file:
        rows = [{k: v for k, v in row.items() if k not in OF_THE_MACHINE} for row in csv.DictReader(file)]
    assert rows and "rating" in rows[0] and "flops" in rows[0]
    return rows


def wait_for(path: Path, process: subprocess.Popen) -> None:
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)


def check_result(found: dict) -> None:
    """Both widths were trained for as many frames, and rated with the random mover at 0."""
    runs = found["runs"]
    assert {name: run["frames"] for name, run in runs.items()} == {"narrow-1": 128, "wide-1": 128}
    assert runs["wide-1"]["flops"] > runs["narrow-1"]["flops"] > 0
    elo = found["measures"]["Elo on gardner_chess"]["variants"]
    difference = elo["wide"]["values"]["1"] - elo["narrow"]["values"]["1"]
    assert elo["wide"]["difference"]["mean"] == pytest.approx(difference)
    assert [point["iterations"] for point in found["curves"]["gardner_chess"]["wide"]] == [0, 2]
