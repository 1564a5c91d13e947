"""The commands. Exit codes: 0 done, 1 failed with a sentence, 2 bad input or usage."""

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from alphagateau import __doc__ as ABOUT
from alphagateau import config
from alphagateau.commands.usage import HELP, TRAIN_USAGE, USAGE
from alphagateau.config import ConfigError


class UsageError(ValueError):
    """A command line that cannot be understood; one sentence."""


def take_option(argv: list[str], name: str) -> str | None:
    """Removes `--name VALUE` or `--name=VALUE` from argv and returns the last value given."""
    value = None
    while (index := next((i for i, a in enumerate(argv) if a == name or a.startswith(f"{name}=")), None)) is not None:
        word = argv.pop(index)
        if "=" in word:
            value = word.partition("=")[2]
        elif index < len(argv) and not argv[index].startswith("--"):
            value = argv.pop(index)
        else:
            raise UsageError(f"{name} needs a value")
    return value


def use_compilation_cache() -> None:
    """JAX keeps compiled programs on disk, so a second start is quick; JAX_COMPILATION_CACHE_DIR moves it."""
    import jax

    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "alphagateau" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # pgx compiles many small ones


def train_command(argv: list[str]) -> int:

    if not argv or argv[0].startswith("-"):
        if {"-h", "--help"} & set(argv):
            print(TRAIN_USAGE)
            config.print_help()
            return 0
        raise UsageError("train needs an experiment file: alphagateau train experiments/quickstart.toml")
    path, *argv = argv
    init_from, stop_after = take_option(argv, "--init-from"), take_option(argv, "--stop-after")
    runs, name = take_option(argv, "--runs") or "checkpoints", take_option(argv, "--run")
    place = [take_option(argv, flag) for flag in ("--coordinator", "--num-processes", "--process-id")]
    if {"-h", "--help"} & set(argv):
        print(TRAIN_USAGE)
    experiment = config.parse_command_line(path, argv)
    from alphagateau.runs.stop import StopRequest, parse_duration

    try:
        stop = StopRequest(parse_duration(stop_after) if stop_after else None)
    except ValueError as error:
        raise UsageError(f"--stop-after: {error}") from None
    run = Path(runs) / (name or Path(path).stem)
    with stop.listening():  # the import of JAX already takes seconds
        from alphagateau.distributed import launch, processes

        try:
            here = launch.parse_launch(*place)
        except ValueError as error:
            raise UsageError(str(error)) from None
        launch.start(here)
        with processes.ending_together():
            run_experiment(experiment, run, stop, Path(init_from) if init_from else None)
    return 0


def run_experiment(experiment, run: Path, stop, init_from: Path | None) -> None:
    """Trains, once all processes of the run are known to be alike."""
    from alphagateau.distributed import processes
    from alphagateau.distributed.mesh import choose_platform
    from alphagateau.runs import run_folder

    processes.check_same(run_folder.identity(experiment, init_from))
    choose_platform(experiment.platform)
    use_compilation_cache()
    from alphagateau.commands.train import conclude
    from alphagateau.training.loop import train

    train(experiment, run, stop, init_from, lambda state, reporter: conclude(experiment, run, state, reporter, stop))


def info_command(argv: list[str]) -> int:
    from alphagateau.commands.info import describe, print_description

    as_json = "--json" in argv
    paths = [a for a in argv if a != "--json"]
    if len(paths) != 1 or paths[0].startswith("-"):
        raise UsageError("info needs one run or checkpoint: alphagateau info checkpoints/quickstart [--json]")
    print_description(describe(Path(paths[0])), as_json)
    return 0


def match_command(argv: list[str]) -> int:
    options = {
        name: take_option(argv, f"--{name}")
        for name in ("games", "simulations", "opening-plies", "seed", "game", "openings", "pgn", "sprt", "rows")
    }
    if len(argv) != 2 or any(a.startswith("-") for a in argv):
        raise UsageError("match needs two players: alphagateau match CKPT random [--games 64] (see --help)")
    use_compilation_cache()
    from alphagateau.commands.match import run_match

    try:
        return run_match(argv[0], argv[1], options)
    except ValueError as error:  # of openings, numbers and boards that cannot be
        raise UsageError(str(error)) from None


def ladder_command(argv: list[str]) -> int:
    from alphagateau.commands.ladder import run_ladder
    from alphagateau.matches.ladder import load_ladder, make_ladder
    from alphagateau.runs.run_folder import locked
    from alphagateau.runs.stop import StopRequest

    out = take_option(argv, "--out")
    options = {
        name: value
        for name in (
            "boards",
            "simulations",
            "matching",
            "games-per-pair",
            "max-games",
            "target-error",
            "seed",
            "anchor",
            "method",
        )
        if (value := take_option(argv, f"--{name}")) is not None
    }
    if not argv or any(a.startswith("-") for a in argv):
        raise UsageError(
            "ladder needs a ladder file or players: alphagateau ladder eval/quickstart.toml [--out FOLDER]"
        )
    is_file = len(argv) == 1 and argv[0].endswith(".toml")
    try:
        if is_file:
            ladder = load_ladder(Path(argv[0]))
            table: dict[str, Any] = {k: v for k, v in vars(ladder).items() if v != ()}
        else:
            table = {"players": argv}
        for name, text in options.items():
            value = text.split(",") if name == "boards" else _number_or_text(text)
            table[name.replace("-", "_")] = value
        ladder = make_ladder(table, argv[0] if is_file else "ladder")
        folder = Path(out or Path("eval") / (Path(argv[0]).stem if is_file else "ladder"))
        use_compilation_cache()
        stop = StopRequest()
        with locked(folder), stop.listening():
            run_ladder(ladder, folder, lambda text: print(text, file=sys.stderr), lambda: stop.reason is not None)
    except ValueError as error:  # LadderError, or openings that cannot be
        raise UsageError(str(error)) from None
    if stop.reason:
        print(f"stopped ({stop.reason}); the same command goes on", file=sys.stderr)
    print(f"{folder / 'index.html'}")
    return 0


def _number_or_text(text: str) -> int | float | str:
    """What a TOML file would hold; `make_ladder` refuses what a key cannot be."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def rate_command(argv: list[str]) -> int:
    from alphagateau.ratings.rate import rate
    from alphagateau.ratings.results import ResultsError
    from alphagateau.ratings.results_files import read_any_results
    from alphagateau.reports.ratings import RatingsReport, print_ratings, write_ratings_report

    method, out = take_option(argv, "--method") or "bradley-terry", take_option(argv, "--out")
    anchor = take_option(argv, "--anchor")
    if len(argv) != 1 or argv[0].startswith("-"):
        raise UsageError("rate needs one file: alphagateau rate RESULTS.csv|GAMES.pgn [--method wls] [--out FOLDER]")
    try:
        results, notes = read_any_results(argv[0])
        ratings = rate(results, method, anchor)
    except (ResultsError, OSError) as error:
        raise UsageError(str(error)) from None
    print_ratings(ratings, argv[0])
    for note in notes:
        print(f"note: {note}")
    if out:
        write_ratings_report(Path(out), RatingsReport(Path(argv[0]).stem, results, ratings, notes=notes))
    return 0


def report_command(argv: list[str]) -> int:
    from alphagateau.reports.run import write_report

    out = take_option(argv, "--out")
    if len(argv) != 1 or argv[0].startswith("-"):
        raise UsageError("report needs a run: alphagateau report checkpoints/quickstart [--out FILE.html]")
    print(write_report(Path(argv[0]), Path(out) if out else None))
    return 0


def doctor_command(argv: list[str]) -> int:

    if not argv or argv[0].startswith("-"):
        raise UsageError("doctor needs an experiment file: alphagateau doctor experiments/quickstart.toml")
    experiment = config.parse_command_line(argv[0], argv[1:])
    from alphagateau.distributed.mesh import choose_platform

    choose_platform(experiment.platform)
    use_compilation_cache()
    from alphagateau.training.doctor import diagnose, print_diagnosis

    diagnosis = diagnose(experiment)
    print_diagnosis(diagnosis, argv[0])
    return 1 if diagnosis.advice else 0


def bench_command(argv: list[str]) -> int:
    path, is_quick = take_option(argv, "--json"), "--quick" in argv
    if set(argv) - {"--quick"}:
        raise UsageError("bench takes --quick and --json FILE")
    use_compilation_cache()
    from alphagateau.commands.bench import measure, print_rows, write_rows

    rows = measure(is_quick, lambda name: print(f"measured: {name}", file=sys.stderr))
    print_rows(rows)
    if path:
        write_rows(rows, Path(path))
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train_command,
    "info": info_command,
    "match": match_command,
    "ladder": ladder_command,
    "rate": rate_command,
    "report": report_command,
    "doctor": doctor_command,
    "bench": bench_command,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; an error the user can act on is one sentence on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(f"{ABOUT}\n\n{USAGE}")
        return 0 if words else 2
    command = COMMANDS.get(words[0])
    try:
        if command is None:
            near = difflib.get_close_matches(words[0], COMMANDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
            raise UsageError(f"unknown command {words[0]!r}: {hint}")
        if words[0] in HELP and {"-h", "--help"} & set(words):
            print(HELP[words[0]])
            return 0
        return command(words[1:])
    except (ConfigError, UsageError) as error:
        return _fail(error, 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), 1)
    except RuntimeError as error:
        if type(error).__module__.startswith("alphagateau"):
            return _fail(error, 1)
        raise


def _fail(error: object, code: int) -> int:
    print(f"alphagateau: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
