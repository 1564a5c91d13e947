"""Reads a table of results out of a file of anybody's: a results.csv, or the tags and results of PGN games."""

import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from alphagateau.games.pgn.text import WrittenGame, read_games, result_of
from alphagateau.games.pgn.text_files import BOUNDS, Bounds, TextFileError, read_lines
from alphagateau.ratings.results import Alike, Results, ResultsError
from alphagateau.ratings.results_files import NAMELESS, UNFINISHED, GameResult, read_results, tabulate

PACKED = (".gz", ".bz2", ".xz", ".zst")


def read_any_results(path: str | os.PathLike[str], bounds: Bounds = BOUNDS) -> tuple[Results, tuple[str, ...]]:
    """A table from a .csv or .pgn file, plain or packed, and notes on what was left out.

    Players whose tags have the same weights and search are alike. Raises ResultsError.
    """
    name = Path(path).name.lower()
    kind = Path(next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)).suffix
    if kind not in (".pgn", ".csv"):
        raise ResultsError(f"{path} has suffix {kind!r}, expected .csv or .pgn")
    try:
        if kind == ".csv":
            return read_results(read_lines(path, bounds), path), ()
        return _read_games(path, bounds)
    except TextFileError as error:
        raise ResultsError(str(error)) from None


def _read_games(path: str | os.PathLike[str], bounds: Bounds) -> tuple[Results, tuple[str, ...]]:
    """By the White and Black tags of every game, and its Result tag or what ends its moves, which are not replayed."""
    games: list[GameResult] = []
    made_of: dict[tuple[str, str], dict[str, None]] = {}  # weights and search -> names
    for written in read_games(read_lines(path, bounds), bounds):
        try:
            games.append(_result(written))
        except ValueError as error:
            raise ResultsError(f"{path}, game {written.number} (line {written.line}): {error}") from None
        for side, name in zip(("White", "Black"), games[-1][:2], strict=True):
            if weights := written.tags.get(f"{side}Weights"):
                made_of.setdefault((weights, written.tags.get(f"{side}Search", "")), {})[name] = None
    results, notes = tabulate(games)
    pairs = [pair for names in made_of.values() for pair in combinations(names, 2)]
    equal = [Alike(*pair, "the same weights and search") for pair in pairs]
    return replace(results, alike=(*equal, *results.alike)), notes


def _result(written: WrittenGame) -> GameResult:
    """Who played and how it ended. Raises ValueError."""
    if written.fault:
        raise ValueError(written.fault)
    result = result_of(written)
    lacking = [tag for tag in ("White", "Black") if tag not in written.tags]
    if lacking and (result != UNFINISHED or not written.tags):
        raise ValueError(f"no {lacking[0]} tag, expected one")
    white, black = _name(written, "White"), _name(written, "Black")
    if result != UNFINISHED and {white, black} & {*NAMELESS}:
        raise ValueError("a player is '?' or has no name, expected names in the White and Black tags")
    moves = hash(tuple(move.text for move in written.moves)) if written.moves else None  # not known
    return GameResult(white, black, result, _opening(written), moves)


def _opening(written: WrittenGame) -> tuple[str, ...] | None:
    """Event, round (1 of 1.2) and first position, which the two games of an opening share; None without a round."""
    number = written.tags.get("Round", "").split(".")[0].strip(" ?-")
    return (number, *(written.tags.get(tag, "") for tag in ("Event", "FEN"))) if number else None


def _name(written: WrittenGame, tag: str) -> str:
    """A player's, without what cannot be printed."""
    text = "".join(filter(str.isprintable, " ".join(written.tags.get(tag, "?").split())))
    return " ".join(text.split())  # a mark that was left out may have stood beside a space
