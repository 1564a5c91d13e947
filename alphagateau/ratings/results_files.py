"""Reads and writes results tables and ratings as CSV, and counts games into tables."""

import csv
import io
import itertools
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau.ratings.rate import Ratings, ranked
from alphagateau.ratings.results import Alike, Pairs, Results, ResultsError, Row, make_results, without_colors
from alphagateau.runs.files import write_text

RESULTS_HEADER = ["player", "opponent", "wins", "draws", "losses"]
RATINGS_HEADER = ["player", "rating", "standard_error", "games", "score", "lower", "upper"]
RATINGS_HEADER += ["component", "method", "anchor"]
COUNTS = {"1-0": (1, 0, 0), "1/2-1/2": (0, 1, 0), "0-1": (0, 0, 1)}  # wins, draws, losses of white
UNFINISHED = "*"
NAMELESS = ("", "?")
MIN_REPLAYS = 4  # games


class GameResult(NamedTuple):
    """Players and result of a game.

    opening: what of two players' games only that with colors exchanged shares; None: not known.
    moves: equal for games of the same moves; None: not known.
    """

    white: str
    black: str
    result: str  # of COUNTS, or UNFINISHED
    opening: Hashable = None
    moves: Hashable = None


def read_results(lines: Iterable[str], name: object) -> Results:
    """The table of a results.csv, which has one pair a line.

    Raises ResultsError with the file's `name`, the line and what was expected.
    """
    reader = csv.reader(lines, strict=True)
    try:
        if next(reader, None) != RESULTS_HEADER:
            raise ResultsError(f"expected the header {','.join(RESULTS_HEADER)}")
        rows = [_parse_row(fields) for fields in reader if fields]
    except (csv.Error, ResultsError) as error:
        raise ResultsError(f"{name}, line {max(reader.line_num, 1)}: {error}") from None
    return make_results(rows)


def _parse_row(fields: list[str]) -> Row:
    if len(fields) != len(RESULTS_HEADER):
        raise ResultsError(f"{len(fields)} fields, expected {','.join(RESULTS_HEADER)}")
    for name, text in zip(RESULTS_HEADER[2:], fields[2:], strict=True):
        if not re.fullmatch("[0-9]{1,10}", text):
            raise ResultsError(f"{name} is {text!r:.100}, expected a whole number of at least 0")
    return Row(fields[0], fields[1], *map(int, fields[2:])).checked()


def tabulate(games: Sequence[GameResult]) -> tuple[Results, tuple[str, ...]]:
    """The table of games between two different players, and a note on each kind of game that was left out."""
    finished = [game for game in games if game.result != UNFINISHED]
    played = [game for game in finished if game.white != game.black]
    left_out = {
        "unfinished (result *)": len(games) - len(finished),
        "of a player against itself": len(finished) - len(played),
    }
    notes = tuple(f"left out: {n} of {len(games)} games, {why}" for why, n in left_out.items() if n)
    names = dict.fromkeys(name for game in games for name in game[:2] if name not in NAMELESS)
    return count_games(played, names), notes


def count_games(games: Sequence[GameResult], players: Iterable[str]) -> Results:
    """The table of finished games, by color, of the pairs among them, and of players who play one another's games."""
    counts: Counter[tuple[str, str, str]] = Counter()
    single: dict[Hashable, str] = {}  # (white, black, opening) -> result of a game without its twin
    pairs: Counter[tuple[str, str, int]] = Counter()  # two players, and twice the points of the first
    for white, black, result, opening, _ in games:
        counts[white, black, result] += 1
        twin = single.pop((black, white, opening), "") if opening is not None else ""
        if twin:
            (won, drawn, _), (_, also_drawn, also_won) = COUNTS[result], COUNTS[twin]  # colors exchanged
            pairs[white, black, 2 * (won + also_won) + drawn + also_drawn] += 1
        elif opening is not None:
            single[white, black, opening] = result
    rows = [Row(a, b, *(n * count for count in COUNTS[result]), color=1) for (a, b, result), n in counts.items()]
    together = [Pairs(a, b, tuple(n * (k == points) for k in range(5))) for (a, b, points), n in pairs.items()]
    return replace(make_results(rows, players, together), alike=find_replays(games))


def find_replays(games: Sequence[GameResult]) -> tuple[Alike, ...]:
    """The pairs of players of whose games from one opening, with one color against one opponent, half are the same.

    So are those of two players with colors exchanged.
    """
    games = [game for game in games if None not in game[3:]]
    lines = Counter(game[3:] for game in games)
    repeated: dict[Hashable, set[str]] = {}
    for game in (game for game in games if lines[game[3:]] > 1):
        for name, seat in _seats(game):
            repeated.setdefault((seat, game.moves), set()).add(name)
    same = Counter(pair for names in repeated.values() for pair in itertools.combinations(sorted(names), 2))
    same = {pair: count for pair, count in same.items() if count >= MIN_REPLAYS}
    seats: dict[str, Counter[Hashable]] = {name: Counter() for pair in same for name in pair}
    for name, seat in (one for game in games for one in _seats(game) if one[0] in seats):
        seats[name][seat] += 1
    both = {(a, b): (seats[a] & seats[b]).total() for a, b in same}
    text = "{} of their {} games from one opening against one opponent are the same"
    return tuple(Alike(*pair, text.format(n, both[pair])) for pair, n in same.items() if 2 * n >= both[pair])


def _seats(game: GameResult) -> Iterator[tuple[str, Hashable]]:
    """Each player, and what a player alike would share: color, opponent and opening, or the opening with the other."""
    white, black, _, opening, _ = game
    yield from ((white, (True, black, opening)), (black, (False, white, opening)))
    yield white, (frozenset((white, black)), opening)


def write_results(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes results.csv, one row a pair, whole or not at all."""
    _write_csv(path, RESULTS_HEADER, (row[:5] for row in without_colors(results).rows))


def write_ratings(
    ratings: Ratings, path: str | os.PathLike[str], more: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Writes ratings.csv, the strongest of the largest component first, with bounds 2 standard errors away.

    `more`: further columns by name, each the values of some players. The last column has the flags of the notes.
    """
    more, r, rows = more or {}, ratings, []
    for k in ranked(r):
        rating, error = r.rating[k], r.standard_error[k]
        row = [r.players[k], f"{rating:.2f}", f"{error:.2f}", r.games[k], f"{r.score[k]:.4f}"]
        bounds = r.bounds.get(r.players[k], (rating - 2 * error, rating + 2 * error))
        row += [*(f"{bound:.2f}" for bound in bounds), r.component[k], r.method, r.anchor or ""]
        flags = " ".join(r.flags.get(r.players[k], ()))
        rows.append([*row, *(column.get(r.players[k], "") for column in more.values()), flags])
    _write_csv(path, [*RATINGS_HEADER, *more, "flags"], rows)


def _write_csv(path: str | os.PathLike[str], header: list[str], rows: Iterable) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_text(Path(path), text.getvalue())
