"""The options that a UCI engine offers: read from its greeting, and held against what a user wants."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

OURS = ("uci_variant", "uci_chess960", "multipv", "ponder")  # options of what is searched, not how
OPTION = re.compile(r"option name (.*?) type (\w+)(.*)")  # name, type, and what it may be
WHOLE = re.compile("-?[0-9]{1,18}")


class Option(NamedTuple):
    """An option of an engine."""

    name: str
    kind: str  # check, spin, combo, button or string
    least: int | None = None
    most: int | None = None
    values: tuple[str, ...] = ()  # of a combo


def read_option(line: str) -> Option | None:
    """The option that a line of the greeting offers."""
    if (found := OPTION.match(line)) is None:
        return None
    name, kind, rest = found.groups()
    least, most = (re.search(rf" {word} ({WHOLE.pattern})(?= |$)", rest) for word in ("min", "max"))
    values = re.findall(r" var (.*?)(?= var |$)", rest)
    return Option(name, kind, int(least[1]) if least else None, int(most[1]) if most else None, tuple(values))


def fault_of_option(offered: Mapping[str, Option], name: str, value: str, words: Iterable[str]) -> str:
    """What follows "engine 'x'" of an option that a user wants and the engine would pass over; "" if nothing is wrong.

    offered: by name in lower case. words: that have a meaning beside the engine's own options.
    """
    option = offered.get(name.lower())
    if option is None:
        near = difflib.get_close_matches(name, [*words, *(known.name for known in offered.values())], 1)
        return f" has no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    expected = "none: what is searched decides it" if name.lower() in OURS else _expected(option, value)
    return expected and f": option {name!r} is {value!r}, expected {expected}"


def _expected(option: Option, value: str) -> str:
    """What an option must be, "" if the value is."""
    if option.kind == "check":
        return "" if value in ("true", "false") else "true or false"
    if option.kind == "combo":
        is_known = value.lower() in [known.lower() for known in option.values]
        return "" if is_known else f"one of {', '.join(option.values)}"
    if option.kind == "spin":
        least, most = option.least, option.most
        is_within = WHOLE.fullmatch(value) and (least is None or int(value) >= least)
        is_within = is_within and (most is None or int(value) <= most)
        limits = [f"{word} {limit}" for word, limit in (("from", least), ("to", most)) if limit is not None]
        return "" if is_within else " ".join(["a whole number", *limits])
    return "" if value.isprintable() else "a line of printable text"
