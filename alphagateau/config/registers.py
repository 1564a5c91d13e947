"""Registers: the networks and the searches that an experiment can name, each declared in the room that makes it.

A declaration is a frozen record of a name, a record of keys, and the function that makes the part. This module names
none of them: `alphagateau/builtin.py` lists those of the package, and is imported when a register is first read.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from alphagateau.config.records import ConfigError, fields_of, make, show, suggestion, without_programs


class NetworkConfig:
    """The record of an architecture; one without a key of these names keeps the value here."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    architecture: str
    plays_every_board: bool = False  # whether no weight belongs to a square
    history: bool = False
    policy_head: bool = True
    value_head: str = "scalar"  # "none": there is no value
    num_bins: int = 1
    action_values: bool = False
    num_heads: int = 0  # of attention
    values_one_move: bool = False  # whether a move's value costs a pass of the network
    statistics_boards: tuple[str, ...] = ()  # boards with batch statistics of their own
    statistics_batch: int = 1  # positions whose statistics are used together


class SearchConfig:
    """The record of a search; one without a key of these names keeps the value here."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    algorithm: str
    num_simulations: int = 0
    max_num_considered_actions: int = 16  # of a match whose players search
    gumbel_scale: float = 0.0
    temperature: float = 0.0
    average_mirrors: bool = False
    finisher: str = ""  # a UCI engine that chooses among winning moves
    split: str = "prior"
    has_line: bool = False  # whether its value is that of the last position of a line, as TD-Leaf needs it

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


class Entry(Protocol):
    """What a register holds."""

    @property
    def name(self) -> str: ...


E = TypeVar("E", bound=Entry)
C = TypeVar("C", Architecture, SearchMethod)


class Register(Mapping[str, E], Generic[E]):
    """Declarations of one kind by name; `tag` is the key of an experiment that names one."""

    def __init__(self, kind: type[E], tag: str):
        self.tag = tag
        self._entries: dict[str, E] = {}

    def add(self, entry: E) -> None:
        """Registers a declaration. Raises ValueError for a name that another has."""
        if self._entries.get(entry.name, entry) != entry:
            raise ValueError(f"{self.tag} {entry.name!r} is registered already")
        self._entries[entry.name] = entry

    def entry(self, name: Any, prefix: str = "") -> E:
        """The declaration of this name. Raises ConfigError; `prefix` opens the name of the tag."""
        if isinstance(name, str) and name in self:
            return self[name]
        choices = ", ".join(map(show, self))
        raise ConfigError(f"{prefix}{self.tag} must be one of {choices}, got {show(name)}{suggestion(name, self)}")

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

    def __init__(self, kind: type[C], tag: str, section: str, default: str):
        super().__init__(kind, tag)
        self.section, self.default = section, default

    @property
    def configs(self) -> dict[str, type]:
        """The records of keys by name."""
        return {name: entry.config for name, entry in self.items()}

    def read(self, table: Mapping[str, Any], root: Any = None) -> Any:
        """The record of keys of a table, whose tag may be missing. Raises ConfigError.

        Args:
            root: the record that the section is a part of, which error texts name its keys by.
        """
        values = {self.tag: self.default, **table}
        prefix = f"{self.section}." if root else ""
        return make(self.entry(values[self.tag], prefix).config, values, prefix, root)

    def read_untrusted(self, table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """(checked keys, the keys left out as programs and paths) of a stranger's table. Raises ConfigError.

        Keys of an earlier version that its record has no longer are left out too.
        """
        values = {self.tag: self.default, **table}
        kind = self.entry(values[self.tag]).config
        kept, taken = without_programs(kind, {key: value for key, value in values.items() if key in fields_of(kind)})
        kind(**kept)
        return kept, taken


NETWORKS = ConfigRegister(Architecture, "architecture", "network", default="gateau")
SEARCHES = ConfigRegister(SearchMethod, "algorithm", "search", default="gumbel")
REGISTERS = {register.section: register for register in (NETWORKS, SEARCHES)}
