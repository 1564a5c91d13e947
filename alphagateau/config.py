"""Turns an experiment file (TOML) and command-line options into a checked `Experiment`, and back.

Each key is declared once, with its help, unit, default and range: reading, checking, writing and
`--help` follow that. An `Experiment` that exists is valid.
"""

import contextlib
import dataclasses
import difflib
import re
import sys
import tomllib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

MAX_INT = 2**31 - 1
MAX_FLOAT = sys.float_info.max
LONGEST_GAME = {"chess": 512, "gardner_chess": 256}  # plies, then a draw


class ConfigError(ValueError):
    """What is wrong with an experiment, in one line for the user."""


def _key(text: str, default: Any = dataclasses.MISSING) -> Any:
    """A choice or a switch: its help and its default (none: the file must give it)."""
    return dataclasses.field(default=default, metadata={"help": text})


def _num(text: str, default: Any = dataclasses.MISSING, low: float = 0, high: float | None = None) -> Any:
    """A number: its help with the unit, its default (none: the file must give it), its range."""
    text += f"; {low:g} or more" if high is None else f"; {low:g} to {high:g}"
    if high is None:
        high = MAX_FLOAT if isinstance(default, float) else MAX_INT
    return dataclasses.field(default=default, metadata={"help": text, "low": low, "high": high})


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The network's architecture and size."""

    architecture: Literal["gateau", "alphazero"] = _key("graph network or residual CNN", "gateau")
    hidden_size: int = _num("features of a node, an edge or a CNN channel", 128, low=1)
    num_blocks: int = _num("residual blocks of two layers each", 5, low=1)
    normalization: Literal["batch", "layer", "rms"] = _key("what precedes each ReLU", "batch")
    message: Literal["edge", "updated_edge"] = _key(
        "edge feature that equation (6) mixes: g_ij as printed, or the g'_ij of (4)", "edge"
    )
    dtype: Literal["float32", "bfloat16"] = _key("number format of the computation", "float32")
    batch_norm_momentum: float = _num("decay of the running statistics per step", 0.9, high=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelfPlayConfig:
    """The games from which an iteration learns."""

    num_games: int = _num("games played side by side", low=1)
    num_plies: int = _num("plies of each game slot in an iteration", low=1)
    num_simulations: int = _num("search simulations a ply", 128, low=1)
    max_num_considered_actions: int = _num("moves considered at the root", 16, low=1)
    gumbel_scale: float = _num("scale of the Gumbel noise at the root", 1.0)
    continue_games: bool = _key("games go on in the next iteration, not anew", False)
    segment_plies: int = _num("plies a device call, after which stop signals are heard", 16, low=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowConfig:
    """The frame window from which training draws its batches."""

    size: int = _num("frames kept", 1_000_000, low=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How the network learns from the frame window (Adam)."""

    batch_size: int = _num("frames a step", 256, low=1)
    num_epochs: int = _num("passes over the window an iteration", 1, low=1)
    learning_rate: float = _num("step size of Adam", 0.001, low=1e-9, high=1)
    segment_steps: int = _num("optimizer steps a device call", 256, low=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The match that ends a run."""

    num_games: int = _num("games against each opponent (0: no match), an even number", 128)
    num_simulations: int = _num("search simulations a ply (0: as in self-play)", 0)
    opening_plies: int = _num("random plies that open each pair of games", 4, high=64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RetentionConfig:
    """Which checkpoints stay on disk."""

    keep_newest: int = _num("whole checkpoints kept, the newest ones", 2, low=1)
    keep_every: int = _num("every k-th iteration keeps its weights forever (0: no such rule)", 0)
    weights: bool = _key("every older checkpoint keeps its weights (no window, no optimizer)", True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HealthConfig:
    """When an iteration counts as unhealthy. A loss or weight that is not finite always stops."""

    action: Literal["warn", "stop"] = _key("what an unhealthy iteration causes", "warn")
    min_policy_entropy: float = _num("mean entropy of the network's policy, nats", 0.01)
    max_value_saturation: float = _num("fraction of frames with |value| > 0.99", 0.95, high=1)
    max_value_calibration_error: float = _num("mean |predicted - observed| value", 0.5, high=2)
    max_draw_rate: float = _num("fraction of finished games", 1.0, high=1)
    max_truncation_rate: float = _num("fraction of finished games ended by length", 1.0, high=1)
    max_duplicate_rate: float = _num("fraction of games seen before", 1.0, high=1)
    max_game_length: float = _num("plies, mean of the finished games", 512.0)
    min_game_length: float = _num("plies, mean of the finished games", 4.0)
    max_gradient_norm: float = _num("global L2 norm", 1e4)
    max_weight_norm: float = _num("global L2 norm", 1e4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that decides a run. Raises ConfigError when made with an impossible value."""

    game: Literal["gardner_chess", "chess"] = _key("5x5 or 8x8 board")
    seed: int = _num("seed of all randomness", 0)
    num_iterations: int = _num("iterations of self-play and training", low=1)
    checkpoint_every: int = _num("iterations between checkpoints", 1, low=1)
    sample_games: int = _num("games saved as PGN an iteration", 4)
    aim: bool = _key("also log to Aim", True)
    platform: Literal["auto", "cpu", "gpu", "tpu"] = _key("device kind to run on", "auto")
    num_shares: int = _num("shares of games, window and batches, for any devices", 8, low=1)
    network: NetworkConfig = NetworkConfig()
    selfplay: SelfPlayConfig
    window: WindowConfig = WindowConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    retention: RetentionConfig = RetentionConfig()
    health: HealthConfig = HealthConfig()

    def __post_init__(self) -> None:
        for name, value in flatten(self).items():
            _checked(name, KEYS[name], value)
        _check_together(self)


def _keys(record: type, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field]]:
    for field in dataclasses.fields(record):
        if isinstance(field.type, type) and dataclasses.is_dataclass(field.type):
            yield from _keys(field.type, f"{field.name}.")
        else:
            yield prefix + field.name, field


KEYS = dict(_keys(Experiment))  # "selfplay.num_games" -> its field, in the order of a file


def load(path: str | PathLike) -> Experiment:
    """Reads an experiment file. Raises ConfigError, one line that opens with the path."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.toml")], 1)
        hint = f"; did you mean {_printable(path.with_name(near[0]))}?" if near else ""
        raise ConfigError(f"{_printable(path)}: no such experiment file{hint}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{_printable(path)}: line {line} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{_printable(path)}: cannot read the experiment file: {why}") from None
    return loads(text, str(path))


def loads(text: str, name: str = "experiment") -> Experiment:
    """Reads the text of an experiment file; `name` opens the error messages (ConfigError)."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        why, line = found.groups() if found else ("the value is too long or too deep", None)
        where = f" line {line or text.count(chr(10), 0, -1) + 1}" if found else ""
        raise ConfigError(f"{_printable(name)}{where}: not TOML: {why}") from None
    return from_dict(table, name)


def dumps(experiment: Experiment) -> str:
    """The experiment as a TOML file, each key with its help; `loads` gives back an equal one."""
    lines, section = [], ""
    for name, value in flatten(experiment).items():
        table, _, key = name.rpartition(".")
        if table != section:
            lines += ["", f"[{table}]"]
            section = table
        lines.append(f"{key} = {_show(value)}  # {KEYS[name].metadata['help']}")
    return "\n".join(lines) + "\n"


def to_dict(experiment: Experiment) -> dict[str, Any]:
    """The experiment as nested dictionaries, as in its file."""
    return dataclasses.asdict(experiment)


def from_dict(table: Mapping[str, Any], name: str = "experiment") -> Experiment:
    """The experiment that nested dictionaries describe. Raises ConfigError; `name` opens it."""
    try:
        return _read(Experiment, table, "")
    except ConfigError as error:
        raise ConfigError(f"{_printable(name)}: {error}") from None


def flatten(experiment: Experiment) -> dict[str, Any]:
    """Dotted key -> value, in the order of a file; what logs call hyper-parameters."""
    values = {}
    for name in KEYS:
        section, _, key = name.rpartition(".")
        values[name] = getattr(getattr(experiment, section) if section else experiment, key)
    return values


def describe_difference(a: Experiment, b: Experiment) -> list[str]:
    """One line `key: value in a -> value in b` for each key in which they differ."""
    new = flatten(b)
    return [f"{name}: {_show(value)} -> {_show(new[name])}" for name, value in flatten(a).items() if value != new[name]]


def parse_command_line(path: str | PathLike, argv: Sequence[str]) -> Experiment:
    """Reads an experiment file, then options such as `--selfplay.num-simulations 32 --no-aim`.

    Raises ConfigError (one line). `--help` prints every key with the file's values as defaults and
    raises SystemExit(0).
    """
    experiment = load(path)
    if "--help" in argv or "-h" in argv:
        print_help(experiment)
        raise SystemExit(0)
    table = to_dict(experiment)
    for name, value in _read_options(argv):
        section, _, key = name.rpartition(".")
        (table[section] if section else table)[key] = value
    return from_dict(table, f"{path} with the options given" if argv else str(path))


def print_help(experiment: Experiment | None = None, prog: str = "alphagateau train EXPERIMENT.toml") -> None:
    """Prints every option with its unit, range and default, which the experiment may give."""
    import tyro

    defaults: dict[str, Any] = {} if experiment is None else {"default": experiment}
    try:
        tyro.cli(
            Experiment,
            prog=prog,
            description="Every key of an experiment file is an option.",
            args=["--help"],
            **defaults,
        )
    except SystemExit:
        return


def _read_options(argv: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Command-line words -> (dotted key, value), in the order given. Raises ConfigError."""
    flags = dict(_flags())
    words = deque(argv)
    while words:
        word = words.popleft()
        flag, equals, text = word.partition("=")
        flag = flag.replace("_", "-")
        if not flag.startswith("--"):
            raise ConfigError(f"unexpected argument {_show(word)}; options look like --seed 3")
        if flag not in flags:
            near = _nearest(flag, flags)
            hint = f"did you mean {near}?" if near else "--help lists them all"
            raise ConfigError(f"unknown option {_show(flag)}; {hint}")
        name, value = flags[flag]
        if value is not None and equals:
            raise ConfigError(f"{flag} takes no value, got {_show(text)}")
        if value is None:
            if not equals and (not words or words[0].startswith("--")):
                raise ConfigError(f"{flag} must be {_expected(KEYS[name])}, got nothing")
            value = text if equals else words.popleft()
            with contextlib.suppress(ValueError):  # left a string, it is refused below
                value = {int: int, float: float}.get(KEYS[name].type, str)(value)
        yield name, _checked(flag, KEYS[name], value)


def _flags() -> Iterator[tuple[str, tuple[str, bool | None]]]:
    """Each option -> its key, and the value that a switch gives it."""
    for name, field in KEYS.items():
        section, dot, key = name.replace("_", "-").rpartition(".")
        yield f"--{section}{dot}{key}", (name, True if field.type is bool else None)
        if field.type is bool:
            yield f"--{section}{dot}no-{key}", (name, False)


def _read(record: type, table: Any, prefix: str) -> Any:
    if not isinstance(table, Mapping):
        section = f"[{prefix[:-1]}]" if prefix else "an experiment"
        raise ConfigError(f"{section} must be a table of keys, got {_show(table)}")
    fields = {field.name: field for field in dataclasses.fields(record)}
    for key in table:
        if key not in fields:
            near = _nearest(f"{prefix}{key}", KEYS if prefix else [*KEYS, *fields])
            hint = f"did you mean {near}?" if near else f"valid keys: {', '.join(fields)}"
            raise ConfigError(f"unknown key {_show(f'{prefix}{key}')}; {hint}")
    values = {}
    for key, field in fields.items():
        if prefix + key not in KEYS:
            values[key] = _read(field.type, table.get(key, {}), f"{key}.")  # pyright: ignore[reportArgumentType]
        elif key in table:
            values[key] = _checked(prefix + key, field, table[key])
        elif field.default is dataclasses.MISSING:
            raise ConfigError(f"missing key {prefix}{key} ({field.metadata['help']})")
    return record(**values)


def _checked(name: str, field: dataclasses.Field, value: Any) -> Any:
    """The value, an integer made a float where one is expected; ConfigError where impossible."""
    kind, choices = field.type, get_args(field.type)
    if choices:
        is_right = isinstance(value, str) and value in choices
    elif kind is bool or isinstance(value, bool):
        is_right = kind is bool and isinstance(value, bool)
    else:
        is_right = isinstance(value, int if kind is int else int | float)
        is_right = is_right and field.metadata["low"] <= value <= field.metadata["high"]
    if not is_right:
        raise ConfigError(f"{name} must be {_expected(field)}, got {_show(value)}")
    return float(value) if kind is float else value


def _check_together(experiment: Experiment) -> None:
    values = flatten(experiment)
    shares, longest = experiment.num_shares, LONGEST_GAME[experiment.game]
    for name, divisor, meaning in (
        ("selfplay.num_games", shares, f"num_shares ({shares})"),
        ("window.size", shares, f"num_shares ({shares})"),
        ("training.batch_size", shares, f"num_shares ({shares})"),
        ("evaluation.num_games", 2, "2, as each opening is played with both colors"),
    ):
        size, below = values[name], values[name] // divisor * divisor
        if size != below:
            sizes = f"{below} or {below + divisor}" if below else f"{divisor}"
            raise ConfigError(f"{name} ({size}) must be divisible by {meaning}: use {sizes}")
    for name, limit, meaning in (
        ("training.batch_size", experiment.window.size, "window.size"),
        ("selfplay.num_plies", longest, f"the longest game of {experiment.game}"),
    ):
        if values[name] > limit:
            raise ConfigError(f"{name} ({values[name]}) must be at most {limit}, {meaning}")


def _expected(field: dataclasses.Field) -> str:
    if choices := get_args(field.type):
        return "one of " + ", ".join(_show(choice) for choice in choices)
    if field.type is bool:
        return "true or false"
    low, high = field.metadata["low"], field.metadata["high"]
    noun = "an integer" if field.type is int else "a finite number"
    return f"{noun}, {low:g} or more" if high == MAX_FLOAT else f"{noun} from {low:g} to {high}"


def _nearest(name: str, candidates: Collection[str]) -> str | None:
    """The candidate most like `name`: the same key in another section, or close in spelling."""
    key = name.strip("-").rpartition(".")[2]
    moved = [other for other in candidates if other.strip("-").rpartition(".")[2] == key]
    close = difflib.get_close_matches(name[:80], list(candidates), 1, 0.5)
    return next(iter(moved + close), None)


def _show(value: Any) -> str:
    """A value as TOML writes it, on one line and cut short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{_printable(value)[:80]}"'
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    if isinstance(value, int | float):
        return repr(value)
    return {dict: "a table", list: "an array"}.get(type(value), f"a {type(value).__name__}")


def _printable(text: Any) -> str:
    """On one line, whatever is in it."""
    return str(text) if str(text).isprintable() else ascii(str(text))[1:-1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GumbelConfig:
    """Gumbel MuZero's search."""

    algorithm: Literal["gumbel"] = "gumbel"
    num_simulations: int = 128
    max_num_considered_actions: int = 16
    gumbel_scale: float = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """No search: the network's first choice."""

    algorithm: Literal["policy"] = "policy"
