"""Outputs of a command: none replaces one of its inputs, a file of another kind or other games."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from alphagateau.games.pgn.text import read_games
from alphagateau.games.pgn.text_files import Bounds, read_lines


class OutputError(ValueError):
    """An output that must not be written; one sentence."""


class Output(NamedTuple):
    """Marks an argument that names a file to write, or a folder in which files are written."""

    kind: str  # of the file
    names: tuple[str, ...] = ()  # of the files in a folder; a folder with some of them but the first is another's
    others: tuple[str, ...] = ()  # files that are never there before; a folder with one is another's


PGN, JSON, HTML, SVG, DRAWING = map(Output, ("PGN", "JSON", "HTML", "SVG", "HTML or SVG"))
OF_LADDERS = ("games.jsonl", "games.pgn", "games.pgn.gz", "pool.json")
RATINGS = Output("folder", ("ratings.csv", "results.csv", "ratings.svg", "index.html"), OF_LADDERS)
LADDER = Output("folder", ("games.jsonl", "games.pgn", *RATINGS.names))
PUZZLES = Output("folder", ("index.html", "puzzles.svg", "solutions.csv"))
BOARDS = Output("folder", ("train.parquet", "test.parquet"), ("games.pgn", "labels"))  # hours, of other boards
LABELS = Output("folder", ("manifest.json",), ("config.toml", "metrics.jsonl", "weights", "train.parquet"))
STUDY = Output("folder", ("study.json", "study.md", "index.html", "curves.svg", "differences.svg", "ladder.toml"))
BEGINNINGS = {"HTML": ("<!doctype html",), "SVG": ("<svg", "<?xml")}  # of a file, in lower case
BEGINNINGS["HTML or SVG"] = BEGINNINGS["HTML"] + BEGINNINGS["SVG"]


def refusal(arguments: Any) -> str | None:
    """A sentence on the first output of an argument record that must not be written; None: all may be written."""
    values, hints = vars(arguments), get_type_hints(type(arguments), include_extras=True)
    beside = {name: getattr(hints[name], "__metadata__", ()) for name in values}
    marks = {name: mark for name, found in beside.items() for mark in found if isinstance(mark, Output)}
    inputs = [value for name, value in values.items() if name not in marks]
    written: list[Path] = []
    for name, mark in marks.items():
        if values[name] is None:
            continue
        path, flag = Path(values[name]), "--" + name.replace("_", "-")
        targets = [path / file for file in mark.names] or [path]
        if read := overwritten(targets, inputs):
            return f"{flag} {path}: {read} is what this command reads: write somewhere else"
        for target in targets:
            if target.resolve() in written:
                return f"{flag} {path}: {target} is written by another option too: write somewhere else"
        written += [target.resolve() for target in targets]
        if other := _other(mark, path, targets):
            return f"{flag} {path} {other}: write somewhere else, or move that away"
    return None


def overwritten(targets: Iterable[Path], values: Iterable[Any]) -> Path | None:
    """The first of the files to write that a command reads: paths, specs of players, or tables of them."""
    inputs = [path for value in values for path in _paths(value)]
    return next((target for target in targets if any(_is_within(target, source) for source in inputs)), None)


def ladder_files(folder: Path, boards: Iterable[str] = ()) -> list[Path]:
    """The files that a ladder on these boards writes."""
    return [place / name for place in (folder, *(folder / board for board in boards)) for name in LADDER.names]


def _paths(value: Any) -> Iterator[Path]:
    """The existing paths that an argument may read: a path, or a player with options behind its path, or several."""
    if isinstance(value, tuple | list | dict):  # of a ladder's settings, its file's keys too
        for item in value.values() if isinstance(value, dict) else value:
            yield from _paths(item)
    elif isinstance(value, str | Path):
        for text in {str(value), str(value).partition("?")[0]}:
            if os.path.exists(text):  # False, and no error, of a text that no path can be
                yield Path(text)


def _is_within(target: Path, source: Path) -> bool:
    """Whether a file or folder is the source, by any name or link, or lies in a checkpoint that is the source."""
    if not target.exists():
        return False
    is_of_checkpoint = (source / "manifest.json").exists() and source.resolve() in target.resolve().parents
    return target.samefile(source) or is_of_checkpoint


def _other(mark: Output, path: Path, targets: list[Path]) -> str | None:
    """The end of a sentence on an output of another kind or where none can be written; None: it may be written."""
    place = path.absolute() if mark.kind == "folder" else path.absolute().parent
    place = next(part for part in (place, *place.parents) if part.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        return f"lies in {place}, where nothing can be written"
    if mark.kind == "folder":
        found = [target.name for target in targets if target.exists()]
        boards = path.glob("*/games.jsonl") if mark == LADDER else ()  # of several, each has a folder
        others = [name for name in mark.others if (path / name).exists()]
        is_other = others or (found and not (targets[0].exists() or any(boards)))
        return f"holds {(others + found)[0]}, which this command does not replace" if is_other else None
    if path.is_dir():
        return f"is a folder, expected a file for {mark.kind}"
    if mark.kind == "PGN" or not path.is_file() or not path.stat().st_size:
        return None  # `check_own_games` follows, once a command can name its games
    if mark.kind == "JSON":
        return None if _is_json(path) else "holds something that is not JSON"
    with path.open("rb") as file:
        head = file.read(64).lstrip().lower()
    is_same = head.startswith(tuple(text.encode() for text in BEGINNINGS[mark.kind]))
    return None if is_same else f"holds something that is not {mark.kind}"


def check_own_games(option: str, path: Path, tag: str, value: str, bounds: Bounds, faulty: bool = False) -> None:
    """Raises OutputError for a PGN file with games of others, whose `tag` has another value.

    Games without the tag count as written; so do, beside others, those with faults if `faulty`.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    from alphagateau.games.pgn.pgn import replay

    tagged = [game for game in read_games(read_lines(path, bounds), bounds) if tag in game.tags]
    others = [game for game in tagged if game.tags[tag] != value]
    if len(others) == len(tagged) or not all(faulty and replay(game).fault for game in others):
        raise OutputError(f"{option} {path} holds other games: write somewhere else, or move that away")


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return True
