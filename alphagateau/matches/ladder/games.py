"""The games of a ladder: a line of `games.jsonl` each, from played games, to results tables and game records."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, NonNegativeInt, TypeAdapter

from alphagateau.config.records import counted
from alphagateau.games.pgn.pgn import GameRecord, player_tags, read_note
from alphagateau.matches.players import Player
from alphagateau.ratings.results import Results
from alphagateau.ratings.results_files import GameResult, count_games
from alphagateau.runs.files import filling, write_text

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


def append_game(path: Path, game: StoredGame) -> None:
    """The game is on disk when this returns."""
    line = json.dumps(game._asdict()) + "\n"
    with filling(path, len(line)), path.open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def write_games(path: Path, games: Sequence[StoredGame]) -> None:
    """Writes games.jsonl anew, whole or not at all."""
    write_text(path, "".join(json.dumps(game._asdict()) + "\n" for game in games))


def read_games(path: Path, repair: bool = True) -> list[StoredGame]:
    """The whole lines of games.jsonl; LadderGamesError for one that is none.

    A last line cut short by a kill is left out, and removed if the file is to be written on (`repair`).
    """
    if not path.exists():
        return []
    *lines, rest = path.read_text(encoding="utf-8", errors="replace").split("\n")
    games = []
    for number, line in enumerate(lines, 1):
        try:
            games.append(STORED.validate_json(line, strict=True))
        except ValueError:
            raise LadderGamesError(f"{path} line {number} is damaged: expected one finished game") from None
    if rest and repair:  # the next game must start on a line of its own
        write_text(path, "".join(line + "\n" for line in lines))
    return games


def of_players(games: Sequence[StoredGame], players: Sequence[Player]) -> tuple[list[StoredGame], list[str]]:
    """The games between these players, and a sentence that names the others who have played."""
    here = {p.key for p in players}
    known = [game for game in games if {game.white, game.black} <= here]
    strangers = sorted({one for game in games for one in (game.white, game.black)} - here)
    if not strangers:
        return known, []
    shown = [" ".join(filter(None, (name, f"({search})" if search else ""))) for name, search, *_ in strangers[:5]]
    more = f" and {len(strangers) - len(shown)} more" if len(strangers) > len(shown) else ""
    num_others = len(games) - len(known)
    verb = "is" if num_others == 1 else "are"
    note = f"{counted(num_others, 'game')} of players that are not on this ladder {verb} kept and not counted"
    return known, [f"{note}: {', '.join(shown)}{more}"]


def tabulate(games: Sequence[StoredGame], players: Sequence[Player]) -> Results:
    """The games between these players, by color and by pairs; the same table whatever the order in which they ended."""
    names = {p.key: p.name for p in players}
    place = {p.key: number for number, p in enumerate(players)}
    games = sorted(
        (g for g in games if {g.white, g.black} <= place.keys()), key=lambda g: (place[g.white], place[g.black])
    )
    played = [GameResult(names[g.white], names[g.black], g.result, (g.protocol, g.opening), g.moves) for g in games]
    return count_games(played, names.values())


def to_records(games: Sequence[StoredGame], players: Sequence[Player], board: str, event: str) -> list[GameRecord]:
    """The games between these players, for PGN."""
    known = {p.key: (p.name, p.identity) for p in players}
    records = []
    for game in games:
        if game.white in known and game.black in known:
            tags = {"Event": event, "Date": game.date or "????.??.??", "Round": str(game.opening + 1)}
            tags |= player_tags("White", *known[game.white]) | player_tags("Black", *known[game.black])
            notes = tuple(map(read_note, game.comments))
            records.append(GameRecord(board, game.start_fen, game.moves, game.result, game.termination, tags, notes))
    return records
