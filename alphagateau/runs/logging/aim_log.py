"""Brings the metrics and sample games of a run to the Aim repository of the working folder.

A program of its own (`aim_process` starts it), for Aim may hang, may end its process from C++, prints from threads,
and on Python 3.12 fails while the interpreter ends: none of that may reach the training. It reads a Request, one line
of JSON, from standard input, then an empty line whenever metrics.jsonl has grown, and ends with its input. Its answers
are lines of JSON: {"aim_run": hash}, {"note": sentence}, at the end {"failed": sentence} or {"closed": true}.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from alphagateau.runs.logging.log import parse_rows
from alphagateau.runs.stop import SIGNALS

OPEN_SECONDS = 300  # to wait for other runs that open the same repository, and for the process of a run's last start
LOCK = ".aim.lock"  # in the run's folder
GAMES = "sample_games"

Send = Callable[[Mapping[str, Any]], None]
Tracked = dict[tuple[str, str], dict[int, Any]]  # (part, name) of a sequence -> its value at each step


class Request(NamedTuple):
    """The run to follow."""

    run: str  # folder
    aim_run: str | None  # hash of the Aim run to go on with, if the repository has it
    hyper_parameters: dict[str, Any]


def main() -> None:
    """Follows the run until standard input ends. The signals that stop a run are for the run alone."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w") as nowhere:  # what Aim and its threads print
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)

    def send(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        request = Request(**json.loads(sys.stdin.readline()))
        # The process of a run that was killed may still bring Aim up to date when the run goes on: this one waits.
        with FileLock(Path(request.run) / LOCK, timeout=OPEN_SECONDS):
            _follow(request, sys.stdin, send)
        send({"closed": True})
    except Exception as error:
        reason = str(error).strip().splitlines() or [""]
        send({"failed": f"{type(error).__name__}: {reason[0]}".removesuffix(": ")})
    finally:
        os._exit(0)  # past Aim's own clean-up at exit, which has been done or cannot be


def _follow(request: Request, pokes: Iterable[str], send: Send) -> None:
    """Brings Aim up to date with the run's files, and again at each poke."""
    from aim.ext.cleanup import AutoClean

    run = Path(request.run)
    aim_run = _open(request, send)
    send({"aim_run": aim_run.hash})
    aim_run["hparams"] = request.hyper_parameters
    aim_run["run"] = request.run
    home = Path(aim_run.repo.path)
    identity, tracked = home.stat().st_ino, _read_tracked(aim_run)
    place = _catch_up(aim_run, run, 0, tracked)
    for _ in pokes:
        if not home.is_dir() or home.stat().st_ino != identity:  # the database would write on, to deleted files
            raise RuntimeError(f"{home} was removed")
        place = _catch_up(aim_run, run, place, tracked)
    aim_run.close()
    AutoClean.cleanup()  # flushes and closes the databases, as Aim does at exit


def _open(request: Request, send: Send) -> Any:
    """An aim.Run; runs that start at the same moment open theirs one after another."""
    from aim import Repo
    from aim.sdk.configs import get_aim_repo_name
    from aim.sdk.errors import MissingRunError

    root = Repo.default_repo_path()
    home = Path(root) / get_aim_repo_name()
    if not (home / "VERSION").exists():
        _make_repository(home)
    with FileLock(home / ".alphagateau.lock", timeout=OPEN_SECONDS):
        if not (home / "VERSION").exists():  # deleted, and its last run still wrote into it as it ended
            Repo(root, init=True)
        try:
            return _open_run(request, root, request.aim_run)
        except MissingRunError:
            send({"note": f"{home} does not hold the run's Aim run {request.aim_run}: a new one begins"})
            return _open_run(request, root, None)


def _make_repository(home: Path) -> None:
    """Makes an empty Aim repository under another name and renames it when whole, unless another folder is there."""
    from aim import Repo

    with tempfile.TemporaryDirectory(prefix=f"{home.name}-", dir=home.parent) as folder:
        Repo(folder, init=True)
        try:
            (Path(folder) / home.name).rename(home)
        except OSError:
            if not home.is_dir():
                raise


def _open_run(request: Request, root: str, run_hash: str | None) -> Any:
    """An aim.Run in `root`: with a path Aim checks whether this version can write there."""
    from aim import Run
    from aim.sdk.errors import RunLockingError

    options: dict[str, Any] = {
        "repo": root,
        "experiment": Path(request.run).name,
        "system_tracking_interval": None,
        "log_system_params": False,
        "capture_terminal_logs": False,
    }
    try:
        return Run(run_hash, **options)
    except (Timeout, RunLockingError):  # left by a process killed on another host: the run's own lock is ours
        return Run(run_hash, force_resume=True, **options)


def _read_tracked(aim_run: Any) -> Tracked:
    """The values that the Aim run has already."""
    from aim.storage.context import Context

    tracked: Tracked = {}
    for metric in aim_run.metrics():
        steps, (values,) = metric.data.view(("val",)).items_list()
        tracked[metric.context.to_dict().get("part", ""), metric.name] = dict(zip(steps, values, strict=True))
    games = aim_run.get_text_sequence(GAMES, Context({}))
    if games is not None:
        steps, (texts,) = games.data.view(("val",)).items_list()
        tracked["", GAMES] = {step: text.data for step, text in zip(steps, texts, strict=True)}
    return tracked


def _catch_up(aim_run: Any, run: Path, place: int, tracked: Tracked) -> int:
    """Tracks the rows of metrics.jsonl from byte `place` on, and their games, unless Aim has them; returns their end.

    Aim keeps one value a name and step: a step tracked again takes the place of the one before it.
    """
    from aim import Text

    data = (run / "metrics.jsonl").read_bytes()[place:] if (run / "metrics.jsonl").exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    for row in parse_rows(whole.decode(errors="replace")):
        step = row.pop("iteration")
        for name, value in row.items():
            part, _, key = name.partition("/")
            if not isinstance(value, list) and tracked.get((part, key), {}).get(step) != value:
                aim_run.track(value, name=key, step=step, context={"part": part})
        games = run / "games" / f"{step:06}.pgn"
        if games.exists() and (text := games.read_text(encoding="utf-8")) != tracked.get(("", GAMES), {}).get(step):
            aim_run.track(Text(text), name=GAMES, step=step)
    return place + len(whole)


if __name__ == "__main__":
    main()
