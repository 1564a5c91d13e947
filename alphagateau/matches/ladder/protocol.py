"""The protocol of a ladder: only games of one protocol are pooled.

A protocol is what decides a game besides its players: openings, ply limit, rules. What a player does by itself, its
search with simulations, considered moves and noise, is in the player's identity.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from alphagateau.config.records import counted
from alphagateau.games.rules import RULES_VERSION, Game
from alphagateau.games.small_boards import board_class
from alphagateau.matches.ladder.games import LadderGamesError, StoredGame, key_of, read_games, read_records, write_games
from alphagateau.matches.ladder.meetings import NumberedOpenings, take_openings

UNKNOWN = "unknown openings"  # of games stored before protocols were, if they began otherwise


def write_protocol(game: Game, openings: NumberedOpenings) -> str:
    """The protocol as games.jsonl and ratings.csv name it."""
    return f"openings: {openings.name}; at most {game.max_plies} plies; rules {RULES_VERSION}"


def with_protocols(games: Sequence[StoredGame], protocol: str, openings: NumberedOpenings) -> list[StoredGame]:
    """The games, each with a protocol: one stored without is of `protocol` if it began with its opening."""
    return [
        game if game.protocol else game._replace(protocol=protocol if _began_with(game, openings) else UNKNOWN)
        for game in games
    ]


def _began_with(game: StoredGame, openings: NumberedOpenings) -> bool:
    ((_, start_fen, line),) = take_openings(openings, [game.opening])
    return game.start_fen == start_fen and game.moves[: len(line)] == line


def of_protocol(games: Sequence[StoredGame], protocol: str) -> tuple[list[StoredGame], list[str]]:
    """The games of one protocol, each once, and a sentence on each kind of the others."""
    found = {key_of(game): game for game in reversed(games) if game.protocol == protocol}  # the first of each
    notes = [
        f"{counted(count, 'game')} of another protocol ({other}) {'is' if count == 1 else 'are'} kept and not counted"
        for other, count in Counter(game.protocol for game in games if game.protocol != protocol).items()
    ]
    num_twice = sum(game.protocol == protocol for game in games) - len(found)
    if num_twice:
        notes.append(f"{counted(num_twice, 'game')} {'is' if num_twice == 1 else 'are'} there twice and counted once")
    return list(reversed(found.values())), notes


def merge_games(
    path: Path, sources: Sequence[Path], board: str, protocol: str, openings: NumberedOpenings
) -> list[str]:
    """Adds the games of other ladders on this board to `path`, those of the protocol, none twice; a sentence on each.

    A source is a games.jsonl, a PGN file that a ladder wrote, or the folder of a ladder. Raises LadderGamesError, with
    `path` as it was.
    """
    games = read_games(path)
    known = {key_of(game) for game in with_protocols(games, protocol, openings)}
    notes, num_before = [], len(games)
    for source in sources:
        there = [g for g in _games_at(source, board) if g.white[-1] == board == g.black[-1]]
        there = with_protocols(there, protocol, openings)
        same = [g for g in there if g.protocol == protocol]
        new = {key_of(game): game for game in same if key_of(game) not in known}
        for number, game in enumerate(there, 1):
            if new.get(key_of(game)) is game:
                _check_moves(game, board, f"{source}, game {number} of {len(there)} on {board}")
        games += new.values()
        known |= new.keys()
        left_out = f"{len(same) - len(new)} were here, {len(there) - len(same)} are of another protocol"
        notes.append(
            f"{source}: {counted(len(new), 'game')} on {board} {'was' if len(new) == 1 else 'were'} added, {left_out}"
        )
    if len(games) > num_before:
        write_games(path, games)
    return notes


def _check_moves(game: StoredGame, board_name: str, where: str) -> None:
    """Raises LadderGamesError for a game that cannot be replayed."""
    try:
        board = board_class(board_name)(game.start_fen)
        for uci in game.moves:
            if not board.push_uci(uci):
                raise ValueError(f"{uci!r} is no move")
    except ValueError as error:
        raise LadderGamesError(f"{where}: {error}") from None


def _games_at(source: Path, board: str) -> list[StoredGame]:
    """Of a games.jsonl or a PGN file, or of a ladder's folder, which may have them for each board."""
    names = ("games.jsonl", "games.pgn.gz", "games.pgn")
    paths = [folder / name for name in names for folder in (source / board, source)] if source.is_dir() else [source]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise LadderGamesError(f"{source} has no games to merge: expected a games.jsonl, or the folder of a ladder")
    return read_records(path) if ".pgn" in path.name.lower() else read_games(path, repair=False)
