"""Runs the variants of a study, rates them on one ladder and writes one page."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Column

from alphagateau import config
from alphagateau.cli.arguments import DURATION, usage_errors
from alphagateau.cli.outputs import STUDY, OutputError, ladder_files, overwritten
from alphagateau.cli.streams import report
from alphagateau.config.records import counted
from alphagateau.runs.logging.progress import print_results, say
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.budget import count_flops
from alphagateau.studies.plan import Plan, changed_keys, make_plan

if TYPE_CHECKING:  # they bring JAX, which --help and a typo must not wait for
    from alphagateau.studies.training import Study


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Train the variants of an experiment and compare them on one page.

    Each variant runs with each seed, in FOLDER/<study>/<variant>-<seed>, and all are rated on one ladder. Results in
    eval/<study>: index.html, its drawings, study.md, study.json, the ladder's files and the last weights. The same
    command continues after a stop; several at once, on machines that share the folders, divide the runs.
    docs/studies.md lists the keys of a study file.

    Example: alphagateau study smoke_widths --dry-run
    """

    study: tyro.conf.Positional[str]
    """a study file, or the name of one that comes with the package: smoke_widths"""
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("checkpoints")
    """where runs live"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), STUDY] = None
    """where the results go; None: eval/<study>"""
    stop_after: Annotated[float | None, DURATION] = None
    """stop after this time, such as 3h or 45m, and exit 0"""
    dry_run: tyro.conf.FlagCreatePairsOff[bool] = False
    """only print the runs, how far each is and how long the rest may take"""
    plan: tyro.conf.FlagCreatePairsOff[bool] = False
    """only print what it would take, runs, games and core-hours, and the differences that it would find"""


def run(arguments: Arguments) -> int:
    """1 if runs failed; 0 also after a stop before the end."""
    stop = StopRequest(arguments.stop_after)
    path = config.find_file(arguments.study, "study")
    plan = make_plan(config.load_study(path), str(path))
    out = arguments.out or Path("eval") / plan.study.name
    if arguments.plan:
        print_plan(plan)
        return 0
    check_outputs(plan, path, out, arguments.runs / plan.study.name)
    study = open_study(plan, arguments.runs / plan.study.name, str(path))
    if arguments.dry_run:
        print_status(study)
        return 0
    with stop.listening():
        return run_study(study, out, stop)


def check_outputs(plan: Plan, path: Path, out: Path, runs: Path) -> None:
    """Raises OutputError if a file to write in the folders `out` and `runs` is one that the study reads."""
    study, ladder = plan.study, plan.study.ladder
    targets = [out / name for name in STUDY.names]
    targets += [runs / f"{run.name}.toml" for run in plan.runs]
    targets += ladder_files(out / "ladder", ladder.boards) if ladder else []
    sources = [path, study.base, study.variants, (ladder.openings, ladder.players) if ladder else ()]
    if read := overwritten(targets, sources):
        raise OutputError(f"{path}: {read} is what this study reads, and would be written: name another file or folder")


def open_study(plan: Plan, folder: Path, path: str) -> "Study":
    """The study in its folder of runs. Raises ConfigError if runs there are of another one."""
    from alphagateau.studies.status import check_unchanged
    from alphagateau.studies.training import Study

    if (folder / "config.toml").exists():
        raise config.ConfigError(f"{path}: {folder} is a run, not a study's folder: give the study another name")
    study = Study(plan, folder, flops_of(plan, any(v.budget.flops for v in plan.variants)), report)
    for planned in plan.runs:
        check_unchanged(planned, folder / planned.name, path)
    return study


def flops_of(plan: Plan, has_flops: bool) -> dict[str, dict[str, float]]:
    """FLOPs of a forward pass on each board, by variant; counted, which takes a while, only if they are wanted."""
    experiments = [v.experiment for v in plan.variants]
    flops = count_flops(experiments) if has_flops else [{}] * len(experiments)
    return {v.name: n for v, n in zip(plan.variants, flops, strict=True)}


def run_study(study: "Study", out: Path, stop: StopRequest) -> int:
    """Trains the runs and plays the games that are left, and writes and prints the results."""
    from alphagateau.runs.run_folder import locked
    from alphagateau.studies.status import is_busy
    from alphagateau.studies.training import train_runs

    failures = train_runs(study, stop)
    for name, why in failures.items():
        report(f"{name} is left out: {why}")
    if stop.reason is None and is_busy(out):
        report(f"another process plays the ladder in {out}")
        return 0
    if stop.reason is None:
        with locked(out), locked(out / "ladder"):  # whose lock `ladder --out` takes
            write_results(study, out, failures, stop)
    if stop.reason is not None:
        report(f"stopped ({stop.reason}); the same command goes on")
        return 0
    print(out / "index.html")
    return 1 if failures else 0


def write_results(study: "Study", out: Path, failures: dict[str, str], stop: StopRequest) -> None:
    """Plays the ladder and writes the page; a stop on the way leaves no page."""
    from alphagateau.cli.study_ladders import keep, rate_runs
    from alphagateau.reports.study_page import markdown, write_study
    from alphagateau.studies.results import gather
    from alphagateau.studies.training import statuses

    study = study._replace(flops=flops_of(study.plan, has_flops=True))
    known = statuses(study)
    ratings = rate_runs(study, known, out / "ladder", stop)
    if stop.reason is None:
        result = gather(study.plan, study.folder, known, failures, ratings)
        write_study(out, result)
        keep(study, known, out)
        print(markdown(result))


def print_plan(plan: Plan) -> None:
    """Prints what a study takes, and which differences it finds with which chance. Raises RunError of its pilot."""
    from alphagateau.games.variants import get_game
    from alphagateau.matches.ladder.pool_files import find_pool, read_pool
    from alphagateau.matches.ladder.simulation import LadderForecast, forecast_ladder
    from alphagateau.studies.forecast import forecast, read_pilot
    from alphagateau.studies.status import last_iterations

    study, of_ladder, pool = plan.study, LadderForecast(0, 1, 0), None
    if study.ladder:
        if study.ladder.pool:
            with usage_errors(f"{study.name}, [ladder]"):
                board = get_game((study.ladder.boards or (plan.reference.experiment.game,))[0]).name
                pool = read_pool(find_pool(study.ladder.pool), board)[1]
        known = [v.experiment for v in plan.variants if v.budget.iterations or v.budget.frames]
        end = max((x.num_iterations for x in known), default=0)  # unknown where time or FLOPs end the runs
        kept = {*range(0, end + 1, min((x.checkpoint_every for x in known), default=1)), end}
        every = {i for i in kept if study.ladder.every <= end and i % study.ladder.every == 0}
        num_rated = len(every.union(last_iterations(kept, study.last)))
        of_ladder = forecast_ladder(study.ladder, len(plan.runs), num_rated, study.last, pool)
    direct = study.direct_games * (len(plan.variants) - 1) * len(study.seeds)
    num_games = (of_ladder.num_games + direct) * max(len(study.ladder.boards) if study.ladder else 0, 1)
    is_linked = math.isfinite(of_ladder.game_sd)
    pilot = read_pilot(study.pilot, of_ladder.games_a_run, of_ladder.game_sd if is_linked else 0.0)
    hours, detectable = forecast(plan, pilot, num_games)
    say(f"study {study.name}: {len(plan.runs)} runs, {num_games:,} games, {hours:.1f} core-hours")
    if not is_linked:
        say(f"it tells no difference: {counted(of_ladder.num_games, 'game')} are too few to link all players")
        return
    if not (study.ladder and detectable):
        say("it tells no difference: that takes a ladder, and two seeds or more of two variants or more")
        return
    say(
        f"a rating scatters by {pilot.seed_sd:.0f} Elo over seeds and by {pilot.game_sd:.0f} Elo over "
        f"{of_ladder.games_a_run:.0f} games"
    )
    powers = [f"{elo:.0f} Elo with a power of {100 * power:.0f} %" for power, elo in detectable.items()]
    say(f"it finds a true difference of {', of '.join(powers)}")


def print_status(study: "Study") -> None:
    """Prints what differs between variants, how far each run is, and how long the rest may take."""
    from alphagateau.studies.training import describe_progress

    rows, total = describe_progress(study)
    columns = ("run", "iterations", "frames", "steps", "seconds", Column("state"), "left")
    print_results(f"study {study.plan.study.name}", columns, rows)
    reference = study.plan.reference.name
    for key, values in changed_keys(study.plan).items():
        usual = values.get(reference, "none")
        others = [f"{name} {value}" for name, value in values.items() if value != usual]
        others += [f"{v.name} none" for v in study.plan.variants if v.name not in values and usual != "none"]
        if others:  # none where some have no such key, and its value is called none
            say(f"{key}: {reference} {usual}; {', '.join(others)}")
    say(f"training time left, one run after the other: {total}; the ladder comes after it")
