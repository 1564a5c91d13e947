"""Chooses the next meetings of a ladder from its players and results."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from alphagateau.config import LadderConfig
from alphagateau.config.records import counted
from alphagateau.matches.ladder.games import LadderGamesError
from alphagateau.matches.ladder.meetings import NumberedOpenings, count_openings, is_random, part_of
from alphagateau.matches.players import Player
from alphagateau.ratings.pairing import ANYBODY, Pairing, PairingRules, informative_pairings, paper_pairings
from alphagateau.ratings.pool import UNFITTED, Pool, bracket_pairings
from alphagateau.ratings.rate import UCI_ELO, levels_of, rate
from alphagateau.ratings.results import Results, games_between, restrict


class Standing(NamedTuple):
    """The basis of the next meetings; of its rules, closed pairs have played all openings, planned ones are playing."""

    names: Sequence[str]
    results: Results
    rules: PairingRules = ANYBODY
    pool: Pool | None = None


def games_a_meeting(ladder: LadderConfig) -> int:
    """Games of one meeting: as configured, or 60 for `paper` (Algorithm 2), 20 otherwise."""
    return ladder.games_per_pair or (60 if ladder.matching == "paper" else 20)


def check_openings(ladder: LadderConfig, openings: NumberedOpenings, players: Sequence[Player]) -> list[str]:
    """Checks before the first game that there are openings for whole meetings; a sentence if some will be shorter.

    Raises LadderGamesError where meetings may not be shorter.
    """
    which, parts = part_of(ladder)
    num_needed = which + parts * (games_a_meeting(ladder) // 2 - 1) + 1
    num_openings = count_openings(openings, num_needed)
    if not num_openings:
        raise LadderGamesError(f"there is no opening ({openings.name}): ask for fewer opening_plies")
    if num_openings == num_needed or all(map(is_random, itertools.combinations(players, 2))):
        return []
    found = f"{counted(num_openings, 'opening')} here ({openings.name}), {num_needed} are needed for a meeting"
    if ladder.matching != "informative":
        hint = "ask for fewer games_per_pair, more opening_plies, or noise (gumbel_scale) that makes games differ"
        raise LadderGamesError(f"{found} of {games_a_meeting(ladder)} games: {hint}")
    return [f"{found}: pairs without noise play no opening again"]


def next_pairings(ladder: LadderConfig, standing: Standing) -> list[Pairing]:
    """The meetings to play next, none at the end."""
    left = games_left(ladder, standing)
    if len(standing.names) < 2 or left < 2 or _is_precise(ladder, standing):
        return []
    num_games = games_a_meeting(ladder)
    names, results, rules, pool = standing
    if ladder.matching == "informative" and pool:
        found = bracket_pairings(names, results, pool, num_games, ladder.target_error, rules.closed)
    elif ladder.matching == "informative":
        origin = _anchor(ladder, standing) if ladder.target_error else None  # what that error is relative to
        games: Counter[tuple[str, str]] = Counter()
        for p in informative_pairings(names, results, max(len(names) // 2, 1), num_games, origin, rules):
            games[p[:2]] += p.games
        found = [Pairing(*pair, num_games) for pair, num_games in games.items()]
    elif ladder.matching == "paper":
        found = paper_pairings(names, results, num_games)
    else:
        found = _missing_games(standing, num_games, ladder.neighbours)
    return _first_games(found, left)


def games_left(ladder: LadderConfig, standing: Standing) -> float:
    """Of the most that there may be, without those planned; infinity where a ladder has an end of its own."""
    limit = ladder.max_games or math.inf
    if ladder.matching == "informative" and not (ladder.max_games or ladder.target_error or standing.pool):
        limit = 20 * len(standing.names)
    return limit - sum(sum(row[2:5]) for row in standing.results.rows) - sum(p.games for p in standing.rules.planned)


def _first_games(pairings: Sequence[Pairing], left: float) -> list[Pairing]:
    """The first pairings, of `left` games at most in all; an opening is played both ways."""
    kept = []
    for p in pairings:
        games = p.games if p.games <= left else int(left) // 2 * 2
        left -= games
        kept += [p._replace(games=games)] if games else []
    return kept


def _is_precise(ladder: LadderConfig, standing: Standing) -> bool:
    """Whether the errors of those who still play are as small as wanted, by the games among them."""
    if not ladder.target_error or standing.pool:
        return False
    results = restrict(standing.results, standing.names)
    has_levels = ladder.anchor == UCI_ELO and levels_of(standing.names)
    anchor = UCI_ELO if has_levels else _anchor(ladder, standing)
    ratings = rate(results, ladder.method, anchor, curves=standing.rules.curves)
    return not ratings.component.any() and bool(ratings.standard_error.max() <= ladder.target_error)


def _anchor(ladder: LadderConfig, standing: Standing) -> str | None:
    """None also if it has left the ladder."""
    return ladder.anchor if ladder.anchor in standing.names else None


def _missing_games(standing: Standing, num_games: int, neighbours: int) -> list[Pairing]:
    """Those of all pairs, or of those at most `neighbours` places apart; none is of two members of the pool."""
    names, idle = standing.names, {*standing.pool.players, *UNFITTED} if standing.pool else set()
    played = games_between(standing.results)
    pairs = [
        (a, b)
        for (i, a), (j, b) in itertools.combinations(enumerate(names), 2)
        if {a, b} not in standing.rules.closed and not {a, b} <= idle and j - i <= (neighbours or len(names))
    ]
    left = [Pairing(a, b, num_games - played[frozenset((a, b))]) for a, b in pairs]
    return [p for p in left if p.games > 0]
