"""The ladder: players in, games on disk as they end, ratings out; the same command goes on where it was killed.

Every finished game is a line of `games.jsonl` at once. What is rated is worked out from that file alone, by the
players' identities (weights, search, board), so games under different protocols are never pooled.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import LadderConfig
from alphagateau.games.pgn import GameRecord
from alphagateau.games.variants import get_game
from alphagateau.matches.match import Statistics, play_games
from alphagateau.matches.openings import Openings, make_openings, read_openings, select_states
from alphagateau.matches.player_specs import Entrant, board_of, load_player, split_spec
from alphagateau.matches.players import PlayerError
from alphagateau.matches.scheduler import Match, PlayedGame
from alphagateau.ratings.pairing import Pairing, informative_pairings, paper_pairing, stop_reason
from alphagateau.ratings.rate import Ratings, rate
from alphagateau.ratings.results import Results, Row, make_results
from alphagateau.runs.checkpoint import CheckpointError, find


class LadderError(ValueError):
    """A ladder that cannot be played as asked; one sentence."""


def expand(ladder: LadderConfig) -> list[str]:
    """The players' specs, each run replaced by its checkpoints."""
    specs = []
    for spec in ladder.players:
        path, _ = split_spec(spec)
        query = spec[len(path) :]
        is_run = (Path(path) / "checkpoints").is_dir()
        if not is_run:
            specs.append(spec)
            continue
        whole = [c for c in find(Path(path) / "checkpoints")[0] if c.order[1] == 0]
        last = max((c.order[0] for c in whole), default=0)
        chosen = [c for c in whole if c.order[0] % ladder.every == 0 or c.order[0] == last]
        specs += [f"{c.path}{query}" for c in reversed(chosen)]
        if not chosen:
            specs.append(spec)  # loading it says what is wrong
    return specs


class Stored(NamedTuple):
    """A finished game as a line of games.jsonl."""

    white: tuple[str, ...]  # identity
    black: tuple[str, ...]
    opening: int
    result: str
    termination: str
    start_fen: str
    moves: tuple[str, ...]


def read_games(path: Path) -> list[Stored]:
    """The whole lines of games.jsonl. A last line cut short by a kill is left out; LadderError for any other."""
    if not path.exists():
        return []
    *lines, rest = path.read_text(encoding="utf-8", errors="replace").split("\n")
    games = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            stored = Stored(**row)
            games.append(
                stored._replace(white=tuple(stored.white), black=tuple(stored.black), moves=tuple(stored.moves))
            )
        except (ValueError, TypeError):
            raise LadderError(f"{path} line {number} is damaged: expected one finished game") from None
    if rest:  # cut short by a kill: the next game must start on a line of its own
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return games


class RatedPool(NamedTuple):
    """The players of a board with their games and ratings: all that a report of them needs."""

    folder: Path
    title: str
    results: Results
    ratings: Ratings
    places: dict[str, tuple[str, int]]  # name -> (run, iteration), of those that have one
    records: list[GameRecord]
    notes: list[str]
    protocol: dict[str, str]


def play_ladder(
    ladder: LadderConfig,
    folder: Path,
    say: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[RatedPool]:
    """Plays what is left, board by board; each board's pool as it ends."""
    boards = [get_game(board).name for board in ladder.boards] or [board_of(expand(ladder))]
    for board in boards:
        target = folder / board if len(boards) > 1 else folder
        target.mkdir(parents=True, exist_ok=True)
        yield _play_board(ladder, board, target, say, should_stop)


def _play_board(ladder, board, folder, say, should_stop) -> RatedPool:
    entrants, notes = _load_entrants(ladder, board)
    for note in notes:
        say(note)
    if len(entrants) < 2:
        raise LadderError(f"{len(entrants)} players are left on {board}, expected two or more: {'; '.join(notes)}")
    path = folder / "games.jsonl"
    games, pool = read_games(path), _Pool(ladder, board)
    active = list(entrants)
    with path.open("a", encoding="utf-8") as file:
        while not should_stop():
            results = tabulate(entrants, games)
            pairings = _next_pairings(ladder, active, results)
            if not pairings:
                break
            by_name = {e.name: e for e in active}
            meetings = [_meet(ladder, pool, by_name[p.player], by_name[p.opponent], p.games, games) for p in pairings]
            say(f"{board}: {len(games)} games played; next {_describe(pairings)}")

            def keep(played: PlayedGame, meetings=meetings, by_name=by_name) -> None:
                if played.score is None:
                    return
                stored = _stored(played, meetings, by_name)
                file.write(json.dumps(stored._asdict()) + "\n")
                file.flush()
                os.fsync(file.fileno())
                games.append(stored)

            statistics = play_games(
                get_game(board),
                [meeting.match for meeting in meetings],
                num_rows=ladder.rows,
                on_game=keep,
                should_stop=should_stop,
            )
            say(_pace(statistics))
            for name, why in statistics.failures.items():
                notes.append(f"{name} left the ladder: {why}")
                say(notes[-1])
                active = [e for e in active if e.name != name]
    return _conclude(ladder, board, folder, entrants, games, notes)


def _load_entrants(ladder: LadderConfig, board: str) -> tuple[list[Entrant], list[str]]:
    """The players that can be had, and one sentence on each that cannot."""
    entrants: dict[tuple[str, ...], Entrant] = {}
    notes = []
    for spec in expand(ladder):
        try:
            entrant = load_player(spec, board, ladder.simulations or None)
        except (CheckpointError, PlayerError) as error:
            notes.append(f"left out: {error}")
            continue
        if entrant.identity in entrants:
            notes.append(
                f"{entrant.name} is {entrants[entrant.identity].name}: the same weights and search, one player"
            )
            continue
        if entrant.name in {e.name for e in entrants.values()}:
            name = f"{entrant.name} ({entrant.identity[1]}, {entrant.identity[0][:6]})"
            entrant = entrant._replace(name=name, player=entrant.player._replace(name=name))
        entrants[entrant.identity] = entrant._replace(player=entrant.player._replace(name=entrant.name))
    return list(entrants.values()), notes


def tabulate(entrants: Sequence[Entrant], games: Sequence[Stored]) -> Results:
    """The games between these players, by color."""
    names = {e.identity: e.name for e in entrants}
    points = {"1-0": (1, 0, 0), "1/2-1/2": (0, 1, 0), "0-1": (0, 0, 1)}
    rows = [
        Row(names[g.white], names[g.black], *points[g.result], 1)
        for g in games
        if g.white in names and g.black in names and g.result in points
    ]
    return make_results(rows, [e.name for e in entrants])


def _next_pairings(ladder: LadderConfig, active: Sequence[Entrant], results: Results) -> list[Pairing]:
    """The meetings to play next, () at the end."""
    names, num_games = [e.name for e in active], ladder.games_per_pair
    if len(names) < 2:
        return []
    if ladder.max_games or ladder.target_error or ladder.matching == "informative":
        limit = ladder.max_games
        if ladder.matching == "informative" and not (limit or ladder.target_error):
            limit = 20 * len(names)
        ratings = rate(results, anchor=_anchor(ladder, results))
        if stop_reason(ratings, limit or None, ladder.target_error or None):
            return []
    if ladder.matching == "informative":
        chosen = informative_pairings(names, results, max(len(names) // 2, 1), num_games, _anchor(ladder, results))
        merged: dict[tuple[str, str], int] = {}
        for p in chosen:
            merged[p[:2]] = merged.get(p[:2], 0) + p.games
        return [Pairing(*pair, games) for pair, games in merged.items()]
    if ladder.matching == "paper":
        pairing = paper_pairing(names, results)
        return [pairing] if pairing else []
    played = {frozenset(row[:2]): 0 for row in results.rows}
    for row in results.rows:
        played[frozenset(row[:2])] += sum(row[2:5])
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    left = [Pairing(a, b, num_games - played.get(frozenset((a, b)), 0)) for a, b in pairs]
    return [p for p in left if p.games > 0]


def _anchor(ladder: LadderConfig, results: Results) -> str | None:
    if ladder.anchor and ladder.anchor not in results.players:
        raise LadderError(f"anchor {ladder.anchor!r} is not a player: {', '.join(results.players)}")
    return ladder.anchor or None


class _Pool:
    """Openings of a board, as many as are asked for; the first n are the same whatever is asked later."""

    def __init__(self, ladder: LadderConfig, board: str) -> None:
        self._ladder, self._game = ladder, get_game(board)
        self._openings = read_openings(self._game, ladder.openings) if ladder.openings else None

    def take(self, numbers: Sequence[int]) -> Openings:
        count = max(numbers) + 1
        if self._openings is None or (len(self._openings) < count and not self._ladder.openings):
            size = 1 << max(count - 1, 63).bit_length()
            self._openings = make_openings(self._game, size, self._ladder.opening_plies, self._ladder.seed)
        if len(self._openings) < count:
            raise LadderError(
                f"{self._ladder.openings} holds {len(self._openings)} openings, {count} are needed for this pair"
            )
        chosen = self._openings
        return Openings(
            select_states(chosen.states, numbers),
            tuple(chosen.start_fens[n] for n in numbers),
            tuple(chosen.lines[n] for n in numbers),
        )


class _Meeting(NamedTuple):
    """A match, and which of the pool's openings it plays."""

    match: Match
    openings: tuple[int, ...]


def _meet(
    ladder: LadderConfig, pool: _Pool, a: Entrant, b: Entrant, num_games: int, games: Sequence[Stored]
) -> _Meeting:
    """The pair's next openings of which a game is missing."""
    done = {(g.opening, g.white == a.identity) for g in games if {g.white, g.black} == {a.identity, b.identity}}
    numbers, already, missing = [], [], 0
    for number in itertools.count():
        if missing >= num_games:
            break
        played = [(number, a_is_white) in done for a_is_white in (True, False)]
        if not all(played):
            already += [2 * len(numbers) + k for k, is_played in enumerate(played) if is_played]
            numbers.append(number)
            missing += played.count(False)
    match = Match(a.player, b.player, pool.take(numbers), ladder.seed, already)
    return _Meeting(match, tuple(numbers))


def _stored(played: PlayedGame, meetings: Sequence[_Meeting], by_name: dict[str, Entrant]) -> Stored:
    meeting = meetings[played.match]
    a, b = (by_name[player.name].identity for player in (meeting.match.a, meeting.match.b))
    record = played.record
    return Stored(
        white=a if played.a_is_white else b,
        black=b if played.a_is_white else a,
        opening=meeting.openings[played.opening],
        result=record.result,
        termination=record.termination,
        start_fen=record.start_fen,
        moves=tuple(record.moves),
    )


def _conclude(ladder, board, folder, entrants, games, notes) -> RatedPool:
    """Rates what was played."""
    results = tabulate(entrants, games)
    ratings = rate(results, ladder.method, _anchor(ladder, results), anchor_rating=ladder.anchor_rating)
    names = {e.identity: e.name for e in entrants}
    known = [g for g in games if g.white in names and g.black in names]
    if len(known) < len(games):
        notes = [*notes, f"{len(games) - len(known)} games of players that are not on this ladder are not counted"]
    return RatedPool(
        folder,
        f"{folder.name}: {board}",
        results,
        ratings,
        places={e.name: (e.run, e.iteration) for e in entrants if e.iteration is not None},
        records=[_record(g, board, names, folder.name) for g in known],
        notes=notes,
        protocol={"board": board, **{e.name: f"{e.identity[1] or e.identity[0]}" for e in entrants}},
    )


def _record(game: Stored, board: str, names: dict[tuple[str, ...], str], event: str) -> GameRecord:
    headers = {
        "Event": event,
        "Round": str(game.opening + 1),
        "White": names[game.white],
        "Black": names[game.black],
    }
    return GameRecord(board, game.start_fen, game.moves, game.result, game.termination, headers)


def _describe(pairings: Sequence[Pairing]) -> str:
    total = sum(p.games for p in pairings)
    return f"{total} games of {len(pairings)} pairs"


def _pace(statistics: Statistics) -> str:
    return (
        f"{statistics.moves} moves, {statistics.moves_per_second:.0f} moves/s, "
        f"{statistics.live_fraction:.0%} of the searched rows live"
    )
