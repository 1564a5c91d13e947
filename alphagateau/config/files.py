"""Reads and writes experiments, ladders and studies as TOML."""

import dataclasses
import difflib
import re
import textwrap
import tomllib
from collections.abc import Mapping
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from alphagateau.config.ladder import LadderConfig
from alphagateau.config.records import ConfigError, fields_of, printable, show, suggestion
from alphagateau.config.registers import REGISTERS
from alphagateau.config.schema import Experiment
from alphagateau.config.study import StudyConfig, dotted

LINE_LENGTH = 120  # of a written file
KEY_OF = {"experiment": "game", "ladder": "players", "study": "budget"}
T = TypeVar("T")
SHIPPED = {"experiment": "*.toml", "study": "studies/*.toml"}  # what comes with the package, in its experiments/


def find_file(name: str, noun: str) -> Path:
    """The file `name`, or the "experiment" or "study" of that name that comes with the package. Raises ConfigError."""
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) != 1 or path.is_file():
        return path
    known = _known(noun)
    if name not in known:
        hint = suggestion(name, known) or f"; expected a file, or one of {', '.join(known)}"
        raise ConfigError(f"{printable(name)}: no such {noun}{hint}")
    return known[name]


def _known(noun: str) -> dict[str, Path]:
    """The files of SHIPPED that come with the package, by name: packed into it, or beside it in a checkout."""
    package = Path(str(resources.files("alphagateau")))
    folders = [folder for folder in (package / "experiments", package.parent / "experiments") if folder.is_dir()]
    return {path.stem: path for folder in folders[:1] for path in sorted(folder.glob(SHIPPED[noun]))}


def load(path: str | PathLike) -> Experiment:
    """Reads an experiment file. Raises ConfigError, one line that opens with the path."""
    return from_dict(_read_toml(Path(path), "experiment"), str(path))


def load_ladder(path: str | PathLike) -> LadderConfig:
    """Reads a ladder file. Raises ConfigError, one line that opens with the path."""
    return make_record(LadderConfig, _read_toml(Path(path), "ladder"), str(path))


def load_study(path: str | PathLike) -> StudyConfig:
    """Reads a study file. Raises ConfigError, one line that opens with the path."""
    return make_record(StudyConfig, {"name": Path(path).stem, **_read_toml(Path(path), "study")}, str(path))


def make_record(kind: type[T], table: Mapping[str, Any], name: str) -> T:
    """The record of a table. Raises ConfigError; `name` opens it."""
    try:
        return kind(**table)
    except ConfigError as error:
        raise ConfigError(f"{printable(name)}: {error}") from None


def _read_toml(path: Path, noun: str) -> dict[str, Any]:
    """The table of a file. Raises ConfigError, of its text with the line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        beside = {p.stem: p for p in path.parent.glob("*.toml") if _is_of(p, noun)}
        names = [printable(beside[name]) for name in difflib.get_close_matches(path.stem, beside, 1)]
        names += [name for name in (_known(noun) if noun in SHIPPED else ()) if name == path.stem]
        hint = f"; did you mean {names[0]}?" if names else ""
        raise ConfigError(f"{printable(path)}: no such {noun} file{hint}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{printable(path)}: line {line} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{printable(path)}: cannot read the {noun} file: {why}") from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        why, line = found.groups() if found else ("the value is too long or too deep", None)
        where = f" line {line or text.count(chr(10), 0, -1) + 1}" if found else ""
        raise ConfigError(f"{printable(path)}{where}: not TOML: {why}") from None


def _is_of(path: Path, noun: str) -> bool:
    """Whether a file is of the kind `noun`, by a key that all files of the kind have."""
    try:
        return KEY_OF[noun] in tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False


def dumps(experiment: Experiment) -> str:
    """The experiment as a TOML file, each key with its help; which `load` gives back."""
    import tomlkit

    document = tomlkit.document()
    for name, value in vars(experiment).items():
        if dataclasses.is_dataclass(value):
            table = tomlkit.table()
            for key, inner in vars(value).items():
                _add(table, key, inner, str(fields_of(type(value))[key].description))
            document.add(name, table)
        elif value is not None:
            _add(document, name, value, str(fields_of(Experiment)[name].description))
    return document.as_string()


def _add(table: Any, key: str, value: Any, text: str) -> None:
    """Adds a key with its help: beside it, or above it where the line would be long."""
    import tomlkit

    item = tomlkit.item(value)
    if len(f"{key} = {item.as_string()} # {text}") <= LINE_LENGTH:
        table.add(key, item.comment(text))
        return
    for line in textwrap.wrap(text, LINE_LENGTH - 2):
        table.add(tomlkit.comment(line))
    table.add(key, item)


def to_dict(experiment: Experiment) -> dict[str, Any]:
    """The experiment as nested dictionaries, as in its file."""
    return {name: value for name, value in dataclasses.asdict(experiment).items() if value is not None}


def from_dict(table: Mapping[str, Any], name: str = "experiment") -> Experiment:
    """The experiment that nested dictionaries describe. Raises ConfigError; `name` opens it."""
    return make_record(Experiment, table, name)


def change(experiment: Experiment, changes: Mapping[str, Any], name: str = "experiment") -> Experiment:
    """The experiment with other values for some keys, by dotted name or in tables. Raises ConfigError; `name` opens it.

    Of another architecture or search the keys that both have keep their values.
    """
    table, changes = to_dict(experiment), dotted(changes)
    for key, register in REGISTERS.items():
        kind = str(changes.get(f"{key}.{register.tag}", table[key][register.tag]))
        if kind in register:
            known = fields_of(register[kind].config)
            table[key] = {inner: value for inner, value in table[key].items() if inner in known}
    for key, value in changes.items():
        head, _, inner = key.partition(".")
        old = table.get(head, {})
        if inner and not isinstance(old, Mapping):
            raise ConfigError(f"{printable(name)}: unknown key {show(key)}; {head} has no keys of its own")
        if not (isinstance(value, Mapping) and isinstance(old, Mapping)):  # a table without keys changes none
            table[head] = {**old, inner: value} if inner else value
    return from_dict(table, name)


def flatten(experiment: Experiment) -> dict[str, Any]:
    """Dotted key -> value, in the order of a file; what logs call hyper-parameters."""
    return dotted(to_dict(experiment))


def describe_difference(a: Experiment, b: Experiment) -> list[str]:
    """One line `key: value in a -> value in b` for each key in which they differ."""
    old, new = flatten(a), flatten(b)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [f"{name}: {show(old.get(name))} -> {show(new.get(name))}" for name in names]
