"""Reads the experiment of a command line: a file or a name, and its keys as options."""

import dataclasses
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import tyro

from alphagateau import config
from alphagateau.cli.arguments import UsageError, help_of, parse, wrapped
from alphagateau.config import ConfigError, Experiment, show


@dataclasses.dataclass(frozen=True)
class ExperimentArguments:
    """An experiment with its keys as options."""

    experiment: tyro.conf.Positional[str]
    """an experiment file, or the name of one that comes with the package: quickstart, smoke, ..."""
    settings: Annotated[Experiment, tyro.conf.arg(name="")]


Arguments = TypeVar("Arguments", bound=ExperimentArguments)


def parse_experiment(kind: type[Arguments], words: Sequence[str], command: str) -> tuple[Arguments, Path, Experiment]:
    """(arguments, file, experiment with the options given). Raises UsageError, ConfigError."""
    if not words or words[0].startswith("-"):
        if {"-h", "--help"} & set(words):
            print_help(kind, words, command)
        raise UsageError(f"{command} needs an experiment file or name first: alphagateau {command} quickstart")
    path = config.find_file(words[0], "experiment")
    experiment = config.load(path)
    default = kind(words[0], _change_kinds(experiment, words))
    if {"-h", "--help"} & set(words):
        print_help(kind, words, command, default)
    arguments = parse(kind, words, command, default)
    name = f"{path} with the options given" if words[1:] else str(path)
    table: Any = arguments.settings  # as `parse` leaves it, unchecked
    return arguments, path, config.from_dict(table, name)


def print_help(kind: type[Arguments], words: Sequence[str], command: str, default: Arguments | None = None) -> NoReturn:
    """The options of a command on standard output, those of a section only where it is named behind --help.

    Raises SystemExit(0), UsageError.
    """
    place = next(i for i, word in enumerate(words) if word in ("-h", "--help"))
    section = next(iter(words[place + 1 : place + 2]), "")
    text = "".join(f"{line.rstrip()}\n" for line in help_of(kind, command, default).splitlines())
    head, *parts = re.split(r"^(?= [a-z ]+\n -{9})", text, flags=re.MULTILINE)  # each below its title, underlined
    by_name = {part.split()[0]: part for part in parts}
    sections = [name for name in by_name if name not in ("positional", "options")]
    if section in sections:
        print(by_name[section].rstrip())
    elif section == "all":
        print(text, end="")
    elif section and not section.startswith("-"):
        raise UsageError(f"--help {show(section)}: expected one of {', '.join(sections)}, or all")
    else:
        print(head + by_name["positional"] + by_name["options"], end="")
        print(wrapped(f" Options of a section: --help SECTION, one of {', '.join(sections)}; --help all\n"), end="")
    raise SystemExit(0)


def _change_kinds(experiment: Experiment, words: Sequence[str]) -> Experiment:
    """The experiment with the architecture and the search of the options, which decide what other options there are."""
    changes = {}
    for name, register in config.REGISTERS.items():
        option = f"--{name}.{register.tag}"
        parts = [part for word in words for part in (word.split("=", 1) if word.startswith(f"{option}=") else [word])]
        given = [after for before, after in pairwise(parts) if before == option]  # the last counts, as of any option
        changes |= {option[2:]: kind for kind in given[-1:] if kind in register}
    return config.change(experiment, changes, words[0])


def check(experiment: Experiment, name: str | Path) -> None:
    """Raises ConfigError, naming `name`, for an experiment that its game, losses or openings make impossible."""
    from alphagateau.games.variants import get_game
    from alphagateau.matches.openings import make_openings
    from alphagateau.training.checks import check_experiment

    rule = experiment.evaluation
    try:
        check_experiment(experiment)
        if rule.num_games:
            make_openings(get_game(experiment.game), rule.num_games // 2, rule.opening_plies, experiment.seed)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    except ValueError as error:
        raise ConfigError(f"{name}: evaluation.num_games and evaluation.opening_plies: {error}") from None
