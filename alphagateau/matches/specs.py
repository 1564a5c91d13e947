"""Reads players' specs, a path or `uci:COMMAND` with options, and finds their checkpoints."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import SearchConfig
from alphagateau.runs.checkpoint import Checkpoint, CheckpointError
from alphagateau.runs.newest import newest_checkpoint, warn_left_out

NOT_PATHS = ("random",)  # players that are no checkpoints


class PlayerError(RuntimeError):
    """A player cannot go on: it crashed, hangs or broke the rules; one sentence naming it."""


class SpecError(PlayerError, ValueError):
    """There is no player of a spec; one sentence naming it."""


class PlayerSpec(NamedTuple):
    """A player as the user wrote it, read once; its checkpoint is found once."""

    text: str
    path: str  # before the options: of a checkpoint or a run, "random" or "uci:COMMAND"
    options: Mapping[str, str] = {}
    checkpoint: Checkpoint | None = None  # of a run, its newest whole one
    fault: CheckpointError | SpecError | None = None  # why there is no such player
    search: SearchConfig | None = None  # whose moves are played against people and programs; None: a growing tree's

    @property
    def has_network(self) -> bool:
        """Whether it names a checkpoint or a run."""
        return self.path not in NOT_PATHS and not self.path.startswith("uci:")

    @property
    def found(self) -> Checkpoint:
        """The checkpoint. Raises CheckpointError, SpecError."""
        if self.checkpoint is None:
            raise self.fault or SpecError(f"player {self.text!r} has no network: expected a run or a checkpoint")
        return self.checkpoint


def read_spec(text: str) -> PlayerSpec:
    """The spec with its checkpoint; what is wrong with it is kept as its `fault`, for who loads it."""
    try:
        spec = parse_spec(text)
        return spec._replace(checkpoint=newest_checkpoint(Path(spec.path), NOT_PATHS)) if spec.has_network else spec
    except (CheckpointError, SpecError) as error:
        return PlayerSpec(text, text.partition("?")[0], fault=error)


def parse_spec(text: str) -> PlayerSpec:
    """The spec of "PATH?a=1&b=2"; no checkpoint is searched for. Raises SpecError."""
    path, _, query = text.partition("?")
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, value = (word.strip() for word in part.partition("="))
        if not name or not value or name in options:
            raise SpecError(f"player {text!r}: {part!r} was given, expected options such as nodes=50, each once")
        options[name] = value
    return PlayerSpec(text, path, options)


def at_checkpoint(spec: PlayerSpec, checkpoint: Checkpoint) -> PlayerSpec:
    """The spec with one of its run's checkpoints, whose manifest has been read, in the place of the run."""
    if checkpoint.left_out:
        warn_left_out(checkpoint.run or checkpoint.path, checkpoint.left_out)
    path = str(checkpoint.path)
    return spec._replace(text=path + spec.text[len(spec.path) :], path=path, checkpoint=checkpoint)


def run_of(found: Checkpoint) -> str:
    """The name of the run that a checkpoint is of, or its own if it is of none."""
    return (found.run or found.path).resolve().name


def name_of(found: Checkpoint) -> str:
    """The name of a checkpoint as a player, such as quickstart/14."""
    return f"{run_of(found)}/{found.path.absolute().name}" if found.run else run_of(found)


def board_of(specs: Sequence[PlayerSpec], game_name: str | None = None) -> str:
    """The board on which players meet: the one given, else the one that the first checkpoint learnt on."""
    for spec in specs:
        if isinstance(spec.fault, SpecError):
            raise spec.fault
        if game_name is None and spec.has_network:
            game_name = spec.found.manifest["game"]
    if game_name is None:
        hint = "name it, such as gardner_chess, with --game, or of a ladder with --boards"
        raise SpecError(f"no player says which board to play on: {hint}")
    return game_name
