"""The keys of a checkpoint's manifest.json as one record, which checks what a stranger may have written."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

import pydantic.dataclasses
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from alphagateau.config import NETWORKS, SEARCHES, ConfigError, fields_of, printable, show
from alphagateau.config.records import UnknownKeyError
from alphagateau.config.registers import NotInstalledError
from alphagateau.games.entries import GAMES

MAX_BYTES = 10_000_000  # of the file


def _is_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError
    return text


def _is_game(name: str) -> str:
    if name not in GAMES:
        raise ValueError
    return name


def _is_inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or str(path) != name or "\\" in name or name == ".":
        raise ValueError
    return _is_line(name)


Count = Annotated[int, Field(strict=True, ge=0, le=10**15)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Line = Annotated[str, Field(strict=True, max_length=1000), AfterValidator(_is_line)]
Inside = Annotated[str, Field(strict=True, max_length=1000), AfterValidator(_is_inside)]
Board = Annotated[str, Field(strict=True), AfterValidator(_is_game)]
Digest = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$")]
Table = dict[Line, Any]


@pydantic.dataclasses.dataclass(kw_only=True)
class Cost:
    """The cost of published weights."""

    frames: Amount = 0.0
    device_seconds: Amount = 0.0
    simulations: Amount = 0.0
    flops: Amount = 0.0
    joules: Amount = 0.0
    devices: list[Line] = Field(default_factory=list)


@pydantic.dataclasses.dataclass(kw_only=True)
class Published:
    """The run that trained a published checkpoint."""

    run: Line
    spent: Cost = Field(default_factory=Cost)


@pydantic.dataclasses.dataclass(kw_only=True)
class Progress:
    """Progress of the run; empty where published."""

    iteration: Count = 0
    phase: Count = 0
    segment: Count = 0
    segment_size: Count = 0
    phase_name: Line = ""


@pydantic.dataclasses.dataclass(kw_only=True)
class Manifest:
    """Each key, with what an error expects of it."""

    schema: Count
    iteration: Count = Field(description="a whole number, 0 or more")
    parameters: Count = Field(description="a whole number, 0 or more")
    optimizer_steps: Count = Field(description="a whole number, 0 or more")
    order: Annotated[list[Count], Field(min_length=3, max_length=3)] = Field(description="three whole numbers")
    game: Board = Field(description="one of")
    boards: list[Board] = Field(default_factory=list, description="some of")
    weights_hash: Annotated[Line, Field(max_length=100)] = Field(description="one line of text")
    network: Table = Field(description="a table of keys")
    search: Table = Field(description="a table of keys")
    progress: Progress = Field(description="a table of counters")
    seconds: dict[Line, Amount] = Field(default_factory=dict, description="seconds by phase")
    symptoms: list[Line] = Field(description="an array of texts")
    published: Published | None = Field(None, description="a run, and what it spent")
    parts: list[Inside] = Field(description="names of files and folders within")
    files: dict[Inside, tuple[Count, Digest]] = Field(description="by name within, its size and SHA-256")


_ADAPTER = TypeAdapter(Manifest)


def check_manifest(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the declared keys, the keys of its network and search that named programs and paths, which are left out).

    Raises ConfigError: one sentence on the first value that cannot be; NotInstalledError: or on a name unknown here.
    """
    try:
        _ADAPTER.validate_python(dict(manifest))
    except ValidationError as error:
        raise _explain(error) from None
    known = {name: manifest[name] for name in fields_of(Manifest) if name in manifest}
    try:
        kept, taken = NETWORKS.read_untrusted(known["network"], drop_unknown=False)
        network = NETWORKS.read(kept)
        known["network"] = {key: value for key, value in known["network"].items() if key in kept}
        known["search"], also_taken = SEARCHES.read_untrusted(known["search"], drop_unknown=True)
    except NotInstalledError:
        raise
    except UnknownKeyError as error:
        raise NotInstalledError(f"another version of its network or search ({error})") from None
    except ConfigError as error:
        raise ConfigError(f"its network or search cannot be: {error}") from None
    algorithm = known["search"].get("algorithm", SEARCHES.default)
    if SEARCHES[algorithm].config.needs_action_values and not network.action_values:
        raise ConfigError(f"search.algorithm is {show(algorithm)}, and its network values no moves")
    boards = network.statistics_boards
    if not {*boards} <= GAMES.keys():
        raise ConfigError(f"network.board_statistics names {show(', '.join(boards))}, expected {', '.join(GAMES)}")
    return known, taken + also_taken


def _explain(error: ValidationError) -> ConfigError:
    problem = error.errors(include_url=False, include_context=False)[0]
    name, *inner = map(str, problem["loc"])
    expected = fields_of(Manifest)[name].description
    if name in ("game", "boards"):
        expected = f"{expected} {', '.join(GAMES)}, the boards of this version and its plug-ins"
    if problem["type"] == "missing" and not inner:
        return ConfigError(f"{name} is missing, expected {expected}")
    where = printable(".".join([name, *inner]))[:80]
    kind = NotInstalledError if name in ("game", "boards") and isinstance(problem["input"], str) else ConfigError
    return kind(f"{where} is {show(problem['input'])}, expected {name} to be {expected}")
