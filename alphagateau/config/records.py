"""Records of declared keys: frozen dataclasses that are valid if they exist.

pydantic checks them (Aim installs it anyway). Its errors are worded here, once for all files: `X must be ..., got Y`,
`unknown key ...; did you mean ...?`, `missing key ...`.
"""

import dataclasses
import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin

import pydantic.dataclasses
from pydantic import ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ArgsKwargs

MAX_INT = 2**31 - 1
UNKNOWN = "unexpected_keyword_argument"
REGISTER = "register"  # in the declaration of a section whose record is named by a tag
NAMES = "names"  # in the declaration of a key that names an entry of a register
PROGRAM_OR_PATH = "program_or_path"  # in the declaration of such a key: its values that name none
T = TypeVar("T")


class ConfigError(ValueError):
    """An error in a file that a user wrote, in one line."""


class UnknownKeyError(ConfigError):
    """A key that its record has not; a typo of a key makes other errors, so this one is shown first."""


def key(text: str, *, default: Any = ...) -> Any:
    """A switch or a text: its help and its default (none: the file must give it)."""
    return Field(default, strict=True, description=text)


def program_or_path(text: str, *, default: Any = ..., words: Collection[str] = ()) -> Any:
    """A text that names a program or path, but for its default and `words`; the user's: see `without_programs`."""
    return Field(default, strict=True, description=text, json_schema_extra={PROGRAM_OR_PATH: [default, *words]})


def choice(text: str, *, default: str) -> Any:
    """One of some words: its help and its default."""
    return Field(default, description=text)


def entry(text: str, register: Any, *, default: Any = ...) -> Any:
    """The name of an entry of a register: its help and its default. Who reads the entry refuses other names."""
    return Field(default, description=text, json_schema_extra={NAMES: register})


def num(text: str, *, default: Any = ..., low: float | None = 0, high: float | None = None) -> Any:
    """A number: its help with the unit, its default (none: the file must give it), its range."""
    if low is not None:
        text += f"; {low:g} or more" if high is None else f"; {low:g} to {high:g}"
    if isinstance(default, float):
        return Field(default, ge=low, le=high, strict=True, allow_inf_nan=False, description=text)
    return Field(default, ge=low, le=MAX_INT if high is None else high, strict=True, description=text)


def names(text: str, *, default: Any = ...) -> Any:
    """An array of texts: its help and its default (none: the file must give it)."""
    return Field(default, description=text)


def section(*, default: Any = ..., register: Any = None) -> Any:
    """A table of keys; one of a `Register` is the record that its tag names, by default the register's own."""
    if register is None:
        return Field(default)
    return Field(default_factory=lambda: register.read({}), json_schema_extra={REGISTER: register})


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(key, program_or_path, choice, entry, num, names, section),
)
def record(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass whose instances are valid: ConfigError, one line, where they cannot be."""
    options = ConfigDict(extra="forbid", arbitrary_types_allowed=True)  # a register's records
    made: Any = pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=options)(cls)

    def init(self: Any, /, **values: Any) -> None:  # a file may have a key "self"
        make(made, values, instance=self)

    made.__init__ = init
    return made


def make(kind: Any, values: Mapping[str, Any], prefix: str = "", root: Any = None, instance: Any = None) -> Any:
    """The record of some values. Raises ConfigError.

    Args:
        prefix: of the keys' names in errors, such as "network."; the record is then a section of the record `root`.
        instance: a record without values, which is given them.
    """
    try:
        return kind.__pydantic_validator__.validate_python(ArgsKwargs((), _plain(values)), self_instance=instance)
    except ValidationError as error:
        raise explain(kind, error, prefix, root or kind) from None


def _plain(value: Any, depth: int = 3) -> Any:
    """The value, with NumPy's and JAX's scalars as Python's, also those in tables, as deep as any record has them."""
    if isinstance(value, Mapping):
        return {name: _plain(inner, depth - 1) for name, inner in value.items()} if depth else value
    return value.item() if getattr(value, "ndim", None) == 0 else value


def fields_of(kind: Any) -> dict[str, FieldInfo]:
    """The declared keys of a record, by name, in the order of a file."""
    return kind.__pydantic_fields__


def without_programs(kind: Any, table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the table without values that name a program or a path, the keys that had them), of a record's keys."""
    extras = {name: field.json_schema_extra for name, field in fields_of(kind).items()}
    harmless = {name: x[PROGRAM_OR_PATH] for name, x in extras.items() if isinstance(x, dict) and PROGRAM_OR_PATH in x}
    taken = [name for name, value in table.items() if name in harmless and value not in harmless[name]]
    return {name: value for name, value in table.items() if name not in taken}, taken


def sections_of(field: FieldInfo) -> list[Any]:
    """The records that a section may be; none of a plain key."""
    extra: Any = field.json_schema_extra or {}
    if REGISTER in extra:
        return list(extra[REGISTER].configs.values())
    return [kind for kind in (get_args(field.annotation) or (field.annotation,)) if dataclasses.is_dataclass(kind)]


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """The words that a key may be; none of a key that is no choice."""
    extra: Any = field.json_schema_extra or {}
    return tuple(extra.get(NAMES, get_args(field.annotation) if get_origin(field.annotation) is Literal else ()))


def keys_of(kind: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of all keys that a record and the records within may have."""
    for name, field in fields_of(kind).items():
        kinds = sections_of(field)
        if not kinds:
            yield prefix + name
        for inner in kinds:
            yield from keys_of(inner, f"{prefix}{name}.")


def explain(kind: Any, error: ValidationError, prefix: str = "", root: Any = None) -> ConfigError:
    """The first of pydantic's errors as ours, an unknown key before all others; arguments as in `make`."""
    problems = error.errors(include_url=False)
    ours: list[Any] = [problem.get("ctx", {}).get("error") for problem in problems]  # raised by a validator of ours
    places = [n for n, p in enumerate(problems) if p["type"] == UNKNOWN or isinstance(ours[n], UnknownKeyError)]
    place = next(iter(places), 0)
    problem, value = problems[place], problems[place]["input"]
    if isinstance(ours[place], ConfigError):
        return ours[place]
    if problem["type"] == "value_error":
        return ConfigError(str(ours[place]))
    name, field, owner = _find(kind, problem["loc"])
    name = prefix + name
    if problem["type"] == UNKNOWN:
        return UnknownKeyError(_unknown(name, owner, root or kind))
    if field is None:
        return ConfigError(f"an experiment must be a table of keys, got {show(value)}")
    if problem["type"] in ("missing", "missing_keyword_only_argument"):
        return ConfigError(f"missing key {name}" + (f" ({field.description})" if field.description else ""))
    if sections_of(field):
        return ConfigError(f"[{name}] must be a table of keys, got {show(value)}")
    return ConfigError(f"{name} must be {expected(field)}, got {show(value)}{suggestion(value, choices_of(field))}")


def _find(kind: Any, loc: Sequence[Any]) -> tuple[str, FieldInfo | None, Any]:
    """(dotted name, its declaration if it has one, the record it stands in) of the place of an error."""
    names, field = [], None
    for part in loc:
        names.append(str(part))
        field = fields_of(kind).get(names[-1])
        kinds = sections_of(field) if field else []
        if not kinds or len(names) == len(loc):
            break
        kind = kinds[0]
    return ".".join(names), field, kind


def suggestion(name: Any, candidates: Collection[str]) -> str:
    """Such as "; did you mean gateau?", if one of the candidates is like the name."""
    near = nearest(name, candidates) if isinstance(name, str) else None
    return f"; did you mean {near}?" if near else ""


def _unknown(name: str, owner: Any, kind: Any) -> str:
    candidates = list(keys_of(kind))
    if owner is kind:
        candidates += [other for other in fields_of(kind) if other not in candidates]
    valid, near = f"valid keys: {', '.join(fields_of(owner))}", nearest(name, candidates)
    if near == name:
        return f"unknown key {show(name)}, which another {name.partition('.')[0]} has; {valid}"
    return f"unknown key {show(name)}; {f'did you mean {near}?' if near else valid}"


def expected(field: FieldInfo) -> str:
    """The values that a key allows, in words."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(show(choice) for choice in get_args(kind))
    if kind is bool:
        return "true or false"
    if kind is str:
        return "a text"
    if get_origin(kind) is tuple:
        return f"an array of {'texts' if str in get_args(kind) else 'numbers'}"
    low, high = (next((getattr(m, end) for m in field.metadata if hasattr(m, end)), None) for end in ("ge", "le"))
    noun = "an integer" if kind is int else "a finite number"
    if low is None:
        return noun
    return f"{noun}, {low:g} or more" if high is None else f"{noun} from {low:g} to {high}"


def nearest(name: str, candidates: Collection[str]) -> str | None:
    """The candidate most like `name`: the same key in another section, or close in spelling."""
    last = name.strip("-").rpartition(".")[2]
    moved = [other for other in candidates if other.strip("-").rpartition(".")[2] == last]
    close = difflib.get_close_matches(name[:80], list(candidates), 1, 0.5)
    return next(iter(moved + close), None)


def show(value: Any) -> str:
    """A value as TOML writes it, on one line and cut short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{printable(value)[:80]}"'
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    if isinstance(value, int | float):
        return repr(value)
    return {dict: "a table", list: "an array", type(None): "nothing"}.get(type(value), f"a {type(value).__name__}")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Such as "1 game" and "1,024 games"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def printable(text: Any) -> str:
    """On one line, whatever is in it: other letters stay, control and format characters become escapes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def check_folder_name(name: str, what: str) -> str:
    """The name, if a folder may be called so; `what` opens the ConfigError else."""
    if not name or name.startswith((".", "-")) or name != name.strip() or not name.isprintable() or {*name} & {*"/\\?"}:
        raise ConfigError(
            f"{what} is {show(name)}, expected a folder's name: no /, \\ or ?, no line end, no . at its start"
        )
    return name
