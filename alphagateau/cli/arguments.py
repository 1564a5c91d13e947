"""Parses a command line into the command's argument record, by tyro; a refusal is one sentence.

A record of `config` inside an argument record adds an option for each of its keys. They come out as a table that
`config` checks, so files and options have one validator and one wording.
"""

import contextlib
import dataclasses
import io
import itertools
import math
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from alphagateau.cli.outputs import refusal
from alphagateau.config.records import choices_of, fields_of, nearest, sections_of, show, suggestion
from alphagateau.games.pgn.text_files import MEGABYTES, Bounds, bounds_of
from alphagateau.runs.stop import parse_duration
from alphagateau.runs.terminal import at_words, printing_freely

T = TypeVar("T")
REGISTRY = ConstructorRegistry()
MARKERS = (tyro.conf.DisallowNone, tyro.conf.PositionalMetavarFromFieldName)


class UsageError(ValueError):
    """A command line that names something wrong; one sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlayerOptions:
    """Options of commands that have players move."""

    simulations: int = 0
    """search simulations a move of players whose spec has none; 0: as in their training"""
    seed: int = 0
    """of what is random: the random mover, random openings"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options of commands that read files of games, positions or results."""

    max_megabytes: Annotated[int, tyro.conf.arg(metavar="MB")] = MEGABYTES
    """read named files up to this size, unpacked; a line or a game may be a 64th of it"""

    @property
    def bounds(self) -> Bounds:
        return bounds_of(self.max_megabytes, ": --max-megabytes allows more")


@contextlib.contextmanager
def usage_errors(option: str = "", *kinds: type[Exception]) -> Iterator[None]:
    """Turns a ValueError, or an error of the `kinds`, into a UsageError; `option` is named before its sentence."""
    try:
        yield
    except (ValueError, *kinds) as error:
        raise UsageError(f"{option}: {error}" if option else str(error)) from None


def number(kind: type[int | float], low: float = 0, high: float = math.inf) -> PrimitiveConstructorSpec:
    """The constructor of an option that takes a number from `low` to `high`."""
    limits = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
    expected = f"must be {'a whole number' if kind is int else 'a number'}, {limits}"

    def read(words: list[str]) -> float:
        with contextlib.suppress(ValueError):
            if (kind is float or words[0].isdecimal()) and low <= (value := kind(words[0])) <= high:
                return value
        raise ValueError(f"{expected}, got {show(words[0])}")

    return PrimitiveConstructorSpec(1, kind.__name__.upper(), read, lambda x: isinstance(x, kind), lambda x: [str(x)])


DURATION = PrimitiveConstructorSpec[float | None](
    1, "TIME", lambda words: parse_duration(words[0]), lambda x: x is None or isinstance(x, float), lambda x: [str(x)]
)


def parse(kind: type[T], words: Sequence[str], command: str, default: T | None = None) -> T:
    """The argument record of a command. Raises UsageError, and SystemExit(0) after --help."""
    box, shown = io.StringIO(), io.StringIO()
    shown.isatty = sys.stdout.isatty  # pyright: ignore[reportAttributeAccessIssue], for colours
    options: dict[str, Any] = {} if default is None else {"default": default}
    prog = f"alphagateau {command}"
    if {"-h", "--help"} & set(words):  # alone, or tyro leaves out what stands before it
        words = ["--help"]
    try:
        with contextlib.redirect_stderr(box), contextlib.redirect_stdout(shown):
            arguments, unknown = tyro.cli(
                kind, prog=prog, args=words, registry=REGISTRY, config=MARKERS, return_unknown_args=True, **options
            )
    except SystemExit as stop:
        if not stop.code:
            with printing_freely():
                print(wrapped(shown.getvalue()), end="")
            raise
        raise UsageError(_one_sentence(box.getvalue(), kind, command)) from None
    if unknown:
        raise UsageError(_unknown(unknown[0], help_of(kind, command, default)))
    for name, value in vars(arguments).items():  # of an option given twice the last alone would count
        if isinstance(value, tuple) and [word.partition("=")[0] for word in words].count(f"--{name}") > 1:
            raise UsageError(f"--{name} is given twice: give all of its values at once")
    if why := refusal(arguments):
        raise UsageError(why)
    return arguments


def wrapped(text: str) -> str:
    """A help without empty defaults, at most as wide as the terminal but for an example; boxes are so already."""
    text = re.sub(r"\(default:((\x1b\[[0-9;]*m)*) \)", lambda found: found[1].ljust(len(found[1]) + 11), text)
    width = shutil.get_terminal_size().columns
    lines = text.splitlines(keepends=True)
    plain = [len(line) > width + 1 and not line.startswith(("│", "Example: ")) and "\x1b" not in line for line in lines]
    return "".join(f"{at_words(x, width)}\n" if is_plain else x for x, is_plain in zip(lines, plain, strict=True))


def help_of(kind: type[T], command: str, default: T | None = None) -> str:
    """The text of --help."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        parse(kind, ["--help"], command, default)
    return shown.getvalue()


def _unknown(word: str, text: str) -> str:
    """The sentence on a word that is no option of the command whose help is `text`."""
    flag = word.partition("=")[0].replace("_", "-")
    if not flag.startswith("--"):
        return f"unexpected argument {show(word)}; options look like --seed 3"
    known = list(dict.fromkeys(re.findall(r"--[a-z][a-z0-9.-]*", text)))
    near = nearest(flag, known)
    return f"unknown option {show(flag)}; " + (f"did you mean {near}?" if near else "--help lists them all")


def _one_sentence(box: str, kind: Any, command: str) -> str:
    """The first paragraph of tyro's error box, below its title; where output is ASCII a rule underlines the title."""
    lines = [line.strip("│| ") for line in box.splitlines()[1:]]
    below = itertools.dropwhile(_is_rule, lines)
    text = " ".join(itertools.takewhile(lambda line: not _is_rule(line), below)).rstrip(".")
    if text.startswith("Missing from"):
        needed = [field.name.upper() for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
        return f"{command} needs {' and '.join(needed)}, as in: {kind.__doc__.partition('Example: ')[2].strip()}"
    text = re.sub(r"^Missing value for argument '(\S+)'.*", r"\1 needs a value", text)
    return re.sub(r"^Error parsing (\S+): ", r"\1 ", text)


def _is_rule(line: str) -> bool:
    return not line.strip("─-╰╯+")


@REGISTRY.primitive_rule
def _whole_number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """An int of an argument record: 0 or more."""
    return number(int) if info.type is int else None


@REGISTRY.primitive_rule
def _choice(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """A Literal of an argument record."""
    if get_origin(info.type) is not Literal:
        return None
    choices = get_args(info.type)

    def read(words: list[str]) -> str:
        if words[0] not in choices:
            raise ValueError(
                f"must be one of {', '.join(map(show, choices))}, got {show(words[0])}{suggestion(words[0], choices)}"
            )
        return words[0]

    return PrimitiveConstructorSpec(1, f"{{{','.join(choices)}}}", read, lambda x: x in choices, lambda x: [x])


@REGISTRY.struct_rule
def _table(info: StructTypeInfo) -> StructConstructorSpec | None:
    """A record of `config`: its keys are options, and the result is a dictionary."""
    if not hasattr(info.type, "__pydantic_fields__"):
        return None
    fields = []
    for name, field in fields_of(info.type).items():
        if get_origin(field.annotation) is tuple and field.is_required():
            continue  # the command's positional arguments
        missing = None if field.is_required() else field.get_default(call_default_factory=True)
        default, kinds = getattr(info.default, name, missing), sections_of(field)
        if kinds and default is None:
            if isinstance(info.default, info.type):
                continue  # the file has no such section
            default = tyro.MISSING_NONPROP
        kind = (type(default) if isinstance(default, tuple(kinds)) else kinds[0]) if kinds else _reader(field)
        default = tyro.MISSING_NONPROP if default is None and field.is_required() else default
        fields.append(StructFieldSpec(name, kind, default, field.description))
    return StructConstructorSpec(dict, tuple(fields))


def _reader(field: Any) -> Any:
    """The type of a key for tyro; a wrong value passes, for `config` to refuse."""
    kind, choices = field.annotation, choices_of(field)
    if kind is bool:
        return bool

    def read(words: list[str]) -> Any:
        if get_origin(kind) is tuple:
            return tuple(words[0].split(",")) if words[0] else ()
        with contextlib.suppress(ValueError):
            return kind(words[0]) if kind in (int, float) else words[0]
        return words[0]

    def write(value: Any) -> list[str]:
        return [",".join(map(str, value)) if isinstance(value, tuple) else str(value)]

    metavar = {int: "INT", float: "FLOAT", str: "STR"}.get(kind, "A,B")
    if choices:  # a single one is a tag: the record is of that kind, and another tag makes it another record
        metavar = f"{{{','.join(choices)}}}" if len(choices) > 1 else "NAME"
    return Annotated[kind, PrimitiveConstructorSpec(1, metavar, read, lambda _: True, write)]
