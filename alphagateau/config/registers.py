"""Registers: the boards, networks, searches and losses that an experiment can name, each declared where it is made.

A declaration is a frozen record of a name, and of keys and the function that makes the part where it has any. This
module names none of them: `alphagateau/builtin.py` lists those of the package and loads those of plug-ins, and is
imported when a register is first read. A plug-in is an entry point of the group `alphagateau.plugins` that names a
tuple of such records; docs/extending.md has the recipes.
"""

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import Field, dataclass, fields
from functools import partial
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, ClassVar, Generic, TypeVar, get_origin

from alphagateau.config.records import ConfigError, fields_of, make, printable, show, suggestion, without_programs

PLUGINS = "alphagateau.plugins"  # the group of entry points
RETIRED = [("far_offsets", "zero")]  # keys of earlier versions with the value that changes nothing: passed over
WITHOUT_NOISE = {"gumbel_scale": 0.0, "temperature": 0.0}  # in matches, unless a player's options have others


class NetworkConfig:
    """The record of an architecture; one without a key of these names keeps the value here."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    architecture: Any
    plays_every_board: Any = False  # whether no weight belongs to a square
    history: bool = False
    policy_head: bool = True
    value_head: Any = "scalar"  # "none": there is no value
    num_bins: int = 1
    action_values: bool = False
    num_heads: int = 0  # of attention
    values_one_move: bool = False  # whether a move's value costs a pass of the network
    statistics_boards: Any = ()  # boards with batch statistics of their own
    statistics_batch: Any = 1  # positions whose statistics are used together


class SearchConfig:
    """The record of a search; one without a key of these names keeps the value here."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    algorithm: Any
    num_simulations: int = 0
    gumbel_scale: float = 0.0
    temperature: float = 0.0
    average_mirrors: bool = False
    finisher: str = ""  # a UCI engine that chooses among winning moves
    split: str = "prior"
    has_line: bool = False  # whether its value is that of the last position of a line, as TD-Leaf needs it
    needs_action_values: bool = False  # of its network
    grows_in_play: bool = False  # whether `uci`, `play` and `board` search by the growing tree in place of it

    @property
    def num_evaluations(self) -> int:
        """Positions evaluated below the root, at most."""
        return self.num_simulations


@dataclass(frozen=True)
class Architecture:
    """A kind of network: `make(game, config)` returns a `networks.network.Network`."""

    name: str
    config: type[NetworkConfig]
    make: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class SearchMethod:
    """A kind of search: `make(game, network, config, tie_break)` returns a `search.search.Search`."""

    name: str
    config: type[SearchConfig]
    make: Callable[[Any, Any, Any, Any], Any]


def deferred(place: str, *first: Any) -> Callable[..., Any]:
    """The function at `place` ("module:name") with its first arguments; imported by its first call, as JAX is slow."""
    return partial(_call, place, *first)


def _call(place: str, *arguments: Any) -> Any:
    try:
        function = resolve_name(place)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{show(place)}, which a record defers to, is not there: {error}") from error
    return function(*arguments)


class NotInstalledError(ConfigError):
    """A name that no register has: of another version, of a plug-in that is not installed, or misspelt."""


E = TypeVar("E", bound=Any)  # a declaration, which has a `name`
C = TypeVar("C", Architecture, SearchMethod)


class Register(Mapping[str, E], Generic[E]):
    """Declarations of one kind by name, as the key `tag` of an experiment has it; no two share a name or spelling."""

    by_kind: ClassVar[dict[type, "Register[Any]"]] = {}

    def __init__(self, kind: type[E] | None, tag: str):
        self.tag = tag
        self._entries: dict[str, E] = {}
        self._origins: dict[str, str] = {}  # the distribution that each is of
        if kind:
            Register.by_kind[kind] = self

    def add(self, entry: E, origin: str = "alphagateau") -> None:
        """Registers a declaration of a distribution. Raises ConfigError for a name that another has, or a wrong key."""
        tuples = {x.name: getattr(entry, x.name) for x in fields(entry) if get_origin(x.type) is tuple}
        for field, value in {**tuples, **getattr(entry, "needs", {})}.items():
            if isinstance(value, str):  # it would be read letter by letter
                raise ConfigError(f"{field} of {show(entry.name)}, of {origin}, must be a tuple, got {show(value)}")
        spellings = getattr(entry, "spellings", {entry.name})
        for name, known in self._entries.items():
            is_again = name == entry.name and origin == self._origins.get(name) == "register()"  # a cell, run again
            is_again = is_again and self is not GAMES  # what is compiled of a board is kept by its name
            if known != entry and (both := spellings & getattr(known, "spellings", {name})) and not is_again:
                what, by = name if name == entry.name else min(both), f"{self._origins[name]} and by {origin}"
                raise ConfigError(f"{self.tag} {show(what)} is registered twice, by {by}: rename one")
        self._entries[entry.name], self._origins[entry.name] = entry, origin

    def entry(self, name: Any, prefix: str = "") -> E:
        """The declaration of this name. Raises ConfigError; `prefix` opens the name of the tag."""
        if isinstance(name, str) and name in self:
            return self[name]
        choices = ", ".join(map(show, self))
        hint = suggestion(name, self) or " (a plug-in that adds another must be installed)"
        kind = NotInstalledError if isinstance(name, str) else ConfigError
        raise kind(f"{prefix}{self.tag} must be one of {choices}, got {show(name)}{hint}")

    def __getitem__(self, name: str) -> E:
        importlib.import_module("alphagateau.builtin")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        importlib.import_module("alphagateau.builtin")
        return iter(self._entries)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ConfigRegister(Register[C]):
    """Declarations with records of keys, which are a section of an experiment."""

    def __init__(self, kind: type[C], base: type, tag: str, section: str, default: str):
        super().__init__(kind, tag)
        self.base, self.section, self.default = base, section, default

    def add(self, entry: C, origin: str = "alphagateau") -> None:
        """As `Register.add`. Raises ConfigError too for keys whose tag has not the entry's name as its default."""
        keys = getattr(entry.config, "__pydantic_fields__", {})
        if (tag := keys.get(self.tag)) is None or tag.default != entry.name or not issubclass(entry.config, self.base):
            expected = f"a @record of {self.base.__name__} whose key {self.tag} has the default {show(entry.name)}"
            raise ConfigError(f"the config of {show(entry.name)}, of {origin}, must be {expected}")
        defaults = {name: x.get_default(call_default_factory=True) for name, x in keys.items() if not x.is_required()}
        quiet = {name: x for name, x in WITHOUT_NOISE.items() if name in keys and self.base is SearchConfig}
        try:
            if len(defaults) == len(keys):  # a file gives the others
                entry.config(**defaults | quiet)
        except ConfigError as error:
            raise ConfigError(f"{show(entry.name)}, of {origin}, fails with defaults and no noise: {error}") from None
        super().add(entry, origin)

    def make(self, config: Any, *parts: Any) -> Any:
        """What the declaration of a record of keys makes of `parts`; a plug-in's ValueError is a ConfigError."""
        name = getattr(config, self.tag)
        try:
            return self.entry(name).make(*parts)
        except ValueError as error:
            if isinstance(error, ConfigError) or not self.is_of_plugin(name):
                raise
            raise ConfigError(f"{self.tag} {show(name)}: {error}") from error

    def is_of_plugin(self, name: str) -> bool:
        """Whether a plug-in, or a user's own `register`, declared this name."""
        return name in self and self._origins.get(name) != "alphagateau"

    @property
    def configs(self) -> dict[str, type]:
        """The records of keys by name."""
        return {name: entry.config for name, entry in self.items()}

    def read(self, table: Mapping[str, Any], root: Any = None) -> Any:
        """The record of a table of keys, whose tag may be missing; ConfigErrors name its keys as those of `root`."""
        values = self._values(table)
        prefix = f"{self.section}." if root else ""
        return make(self.entry(values[self.tag], prefix).config, values, prefix, root)

    def _values(self, table: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(table, Mapping):
            raise ConfigError(f"{self.section} must be a table of keys, got {show(table)}")
        return {self.tag: self.default, **{key: value for key, value in table.items() if (key, value) not in RETIRED}}

    def read_untrusted(self, table: Mapping[str, Any], drop_unknown: bool) -> tuple[dict[str, Any], list[str]]:
        """(checked keys, the keys left out as programs and paths) of a stranger's table. Raises ConfigError.

        `drop_unknown`: keys that its record lacks, as those of an earlier version, are left out too.
        """
        values = self._values(table)
        kind = self.entry(values[self.tag]).config
        if drop_unknown:
            values = {key: value for key, value in values.items() if key in fields_of(kind)}
        kept, taken = without_programs(kind, values)
        kind(**kept)
        return kept, [f"{self.section}.{key}" for key in taken]


GAMES: Register[Any] = Register(None, "game")  # of the records that games/entries.py declares
NETWORKS = ConfigRegister(Architecture, NetworkConfig, "architecture", "network", default="gateau")
SEARCHES = ConfigRegister(SearchMethod, SearchConfig, "algorithm", "search", default="gumbel")
REGISTERS = {register.section: register for register in (NETWORKS, SEARCHES)}


def register(record: Any) -> None:
    """Registers a `GameEntry`, `Architecture`, `SearchMethod`, `Loss` or `Head` in this process. Raises ConfigError."""
    importlib.import_module("alphagateau.builtin")
    _register_of(record).add(record, "register()")


def _register_of(record: Any) -> Register[Any]:
    if type(record) not in Register.by_kind:
        kinds = ", ".join(kind.__name__ for kind in Register.by_kind)
        raise ConfigError(f"{show(record)} is no declaration: expected one of {kinds}")
    return Register.by_kind[type(record)]


def plugins() -> list[str]:
    """The distributions beside the package that registered something."""
    importlib.import_module("alphagateau.builtin")
    origins = {origin for kind in Register.by_kind.values() for origin in kind._origins.values()}
    return sorted(origins - {"alphagateau", "register()"})


def load_plugins() -> None:
    """Registers the records of plug-ins; one that fails, or has a name that is taken, is left out with a warning."""
    for point in sorted(entry_points(group=PLUGINS), key=lambda point: (point.name, point.value)):
        origin = point.dist.name if point.dist else point.value
        before = [(kind, dict(kind._entries), dict(kind._origins)) for kind in Register.by_kind.values()]
        try:
            with redirect_stdout(sys.stderr):  # the standard output is a command's own
                records = [(_register_of(record), record) for record in point.load()]
            for kind, record in records:
                kind.add(record, origin)
        except (Exception, SystemExit) as error:  # a script that is imported may end itself
            at = error if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)[-1]
            where = "" if isinstance(error, ConfigError) else f" ({at.filename}, line {at.lineno})"
            why = printable(f"{type(error).__name__}: {error}{where}")
            print(f"alphagateau: the plug-in {origin} is left out, as {point.value} fails with {why}", file=sys.stderr)
            for kind, entries, origins in before:
                kind._entries, kind._origins = entries, origins
