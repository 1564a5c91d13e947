"""The games of a ladder: a line of `games.jsonl` each, from played games, to results tables and game records."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, NonNegativeInt, TypeAdapter

from alphagateau.config.records import counted
from alphagateau.games.pgn.pgn import GameRecord, player_tags, read_note, replay, write_note
from alphagateau.games.pgn.text import read_games as read_pgn_games
from alphagateau.games.pgn.text_files import TextFileError, read_lines
from alphagateau.matches.players import Player
from alphagateau.ratings.results import Results, listed
from alphagateau.ratings.results_files import COUNTS, GameResult, count_games
from alphagateau.runs.files import append_text, write_text

PlayerKey = Annotated[tuple[str, ...], Field(min_length=1)]


class LadderGamesError(ValueError):
    """The games of a ladder cannot be read or played; one sentence."""


class StoredGame(NamedTuple):
    """A game with a result, as a line of games.jsonl."""

    white: PlayerKey
    black: PlayerKey
    opening: NonNegativeInt
    result: Annotated[str, Field(pattern="^(1-0|1/2-1/2|0-1)$")]
    termination: str
    start_fen: str
    moves: tuple[str, ...]
    comments: tuple[str, ...] = ()  # of the moves, as in PGN
    protocol: str = ""  # what decides a game besides its players; "": stored before protocols were
    date: str = ""  # of its end, as in PGN; "": stored before dates were


STORED = TypeAdapter(StoredGame)
GameKey = tuple[tuple[str, ...], tuple[str, ...], int, str]


def key_of(game: StoredGame) -> GameKey:
    """The same for games that are one: players with their colors, opening, protocol."""
    return game.white, game.black, game.opening, game.protocol


def store(record: GameRecord, players: tuple[PlayerKey, PlayerKey], opening: int, protocol: str = "") -> StoredGame:
    """The line of a finished game of white and black."""
    date, comments = record.headers.get("Date", "?"), tuple(map(write_note, record.notes))
    told = record.result, record.termination, record.start_fen, record.moves
    return StoredGame(*players, opening, *told, comments, protocol, "" if "?" in date else date)


def append_game(path: Path, game: StoredGame) -> None:
    """The game is on disk when this returns."""
    append_text(path, json.dumps(game._asdict()) + "\n")


def write_games(path: Path, games: Sequence[StoredGame]) -> None:
    """Writes games.jsonl anew, whole or not at all."""
    write_text(path, "".join(json.dumps(game._asdict()) + "\n" for game in games))


def read_games(path: Path, repair: bool = True) -> list[StoredGame]:
    """The whole lines of games.jsonl; LadderGamesError for one that is none.

    A last line without its end counts if it is whole; of a file to be written on (`repair`), it is ended or removed.
    """
    if not path.exists():
        return []
    lines, games = path.read_text(encoding="utf-8", errors="replace").split("\n"), []
    for number, line in enumerate(lines, 1):
        try:
            games.append(STORED.validate_json(line, strict=True))
        except ValueError:
            if number == len(lines):
                break
            raise LadderGamesError(f"{path} line {number} is damaged: expected one finished game") from None
    if lines[-1] and repair:  # the next game must start on a line of its own
        write_text(path, "".join(line + "\n" for line in lines[: len(games)]))
    return games


def of_players(games: Sequence[StoredGame], players: Sequence[Player]) -> tuple[list[StoredGame], list[str]]:
    """The games between these players, and a sentence that names the others who have played."""
    here = {p.key for p in players}
    known = [game for game in games if {game.white, game.black} <= here]
    strangers = sorted({one for game in games for one in (game.white, game.black)} - here)
    if not strangers:
        return known, []
    names = [f"{name} ({search})" if search else name for name, search, *_ in strangers]
    num_others = len(games) - len(known)
    verb = "is" if num_others == 1 else "are"
    note = f"{counted(num_others, 'game')} of players that are not on this ladder {verb} kept and not counted"
    return known, [f"{note}: {listed(names)}"]


def tabulate(games: Sequence[StoredGame], players: Sequence[Player], others: Sequence[str] = ()) -> Results:
    """The games between these players, by color and by pairs; the same table whatever the order in which they ended.

    others: the first players of the table, whether they have games or not.
    """
    place = {p.name: number for number, p in enumerate(players)}
    found = sorted(to_results(games, players), key=lambda game: (place[game.white], place[game.black]))
    return count_games(found, [*others, *place])


def to_results(games: Sequence[StoredGame], players: Sequence[Player]) -> list[GameResult]:
    """The games between these players, by their names."""
    names = {p.key: p.name for p in players}
    return [GameResult(names[g.white], names[g.black], g.result, (g.protocol, g.opening), g.moves) for g in games]


def to_records(games: Sequence[StoredGame], players: Sequence[Player], board: str, event: str) -> list[GameRecord]:
    """The games between these players, for PGN."""
    known = {p.key: (p.name, p.identity) for p in players}
    records = []
    for game in games:
        tags = {"Event": event, "Date": game.date or "????.??.??", "Round": str(game.opening + 1)}
        tags |= player_tags("White", *known[game.white]) | player_tags("Black", *known[game.black])
        notes = tuple(map(read_note, game.comments))
        records.append(GameRecord(board, game.start_fen, game.moves, game.result, game.termination, tags, notes))
    return records


def read_records(path: Path) -> list[StoredGame]:
    """The games of a PGN file, plain or packed, that `to_records` made, of unknown protocol. LadderGamesError."""
    games = []
    try:
        for written in read_pgn_games(read_lines(path)):
            replayed = replay(written)
            if replayed.record is None:
                raise LadderGamesError(f"{path}, game {written.number}: {replayed.fault}")
            games.append(_from_record(replayed.record, f"{path}, game {written.number}"))
    except TextFileError as error:
        raise LadderGamesError(str(error)) from None
    return games


def _from_record(record: GameRecord, where: str) -> StoredGame:
    tags = record.headers
    if not (re.fullmatch("[1-9][0-9]{0,8}", tags.get("Round", "")) and record.result in COUNTS):
        raise LadderGamesError(f"{where}: expected a finished game of a ladder, its Round the number of its opening")
    players = _key_of_tags(tags, "White", record.game), _key_of_tags(tags, "Black", record.game)
    return store(record, players, int(tags["Round"]) - 1)


def _key_of_tags(tags: Mapping[str, str], color: str, board: str) -> tuple[str, ...]:
    """The key of a player (`Player.key`)."""
    name, search = tags.get(color, "?"), tags.get(f"{color}Search", "")
    if weights := tags.get(f"{color}Weights"):
        return weights, search, board
    return name, "" if name == search == "random" else "uci", board
