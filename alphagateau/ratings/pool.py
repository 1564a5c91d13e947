"""Rates newcomers by a reference pool, whose ratings and covariance are their prior: one scale for all ladders."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from alphagateau.ratings.assumptions import Note, alike_notes, draw_notes, misfit_notes
from alphagateau.ratings.bradley_terry import (
    Equations,
    Fit,
    estimate_dispersion,
    fit_at,
    make_equations,
    maximise,
    sandwich,
)
from alphagateau.ratings.history import weigh
from alphagateau.ratings.model import (
    ELO_PER_NAT,
    Games,
    centered,
    component_labels,
    difference_design,
    embed,
    expected_score,
    game_arrays,
    inverse,
)
from alphagateau.ratings.pairing import Pairing
from alphagateau.ratings.rate import Ratings, anchors_of, fields_of_fit, make_ratings, scatter_note
from alphagateau.ratings.results import Results, ResultsError, games_between, without_colors

UNFITTED = ("random",)  # players that engines stalemate: no point on the scale
TAIL = 0.025  # chance of the points seen, at a one-sided bound
BRACKET = 4  # members that a newcomer meets in full, half of them above it


class Pool(NamedTuple):
    """Ratings of M members by their own games, on a scale tied to `anchor` as `rate` does it."""

    players: tuple[str, ...]
    rating: np.ndarray  # [M] Elo
    covariance: np.ndarray  # [M, M] Elo squared
    anchor: str
    anchor_rating: float = 0.0
    dispersion: float = 1.0  # of its games, for newcomers whose own are too few to tell theirs


def rate_by_pool(results: Results, pool: Pool) -> Ratings:
    """Ratings on the pool's scale.

    The objective is the log-likelihood of these games, as in `fit_history` weighed by what they inform, less half of
    (x - m)' Q (x - m), m the members' ratings and Q the inverse covariance of their differences. It moves the members
    too, as far as their own errors allow. Games of UNFITTED players count for nobody's rating.

    A newcomer who won every point against the rated, or lost every one, has a bound in place of a rating (NaN): that at
    which such a score has a chance of 2.5 %, draws being left out, which makes it a little too careful.

    `results` has all games but those between members. Raises ResultsError if a member is not among its players.
    """
    players = results.players
    if missing := [name for name in pool.players if name not in players]:
        raise ResultsError(f"{missing[0]} of the pool is not one of the {len(players)} players")
    members = np.array([players.index(name) for name in pool.players])
    every = game_arrays(results, use_colors=True)._replace(links=np.stack([members[:-1], members[1:]], axis=1))
    games = _between(every, ~np.isin(players, UNFITTED))
    groups = component_labels(games, "strong")
    is_rated = groups == groups[members[0]]
    fitted = _between(games, is_rated)
    fit, dispersion = _fit(fitted, pool, members, int(is_rated.sum()) - len(members))
    component = np.where(is_rated, 0, np.cumsum(~is_rated))
    places, levels = anchors_of(pool.players, pool.anchor, pool.anchor_rating)
    fields = fields_of_fit(fit, dispersion)
    rating, covariance = centered(fields["rating"], fields["covariance"], component, members[places])
    rating = np.where(is_rated, rating + levels.mean(), math.nan)
    bounds = _bounds(games, rating, players)
    notes = [Note(f"on the scale of a reference pool of {len(members)} players")]
    notes += [*_notes(results, is_rated, bounds), *alike_notes(results.alike)]
    notes += [*misfit_notes(players, fitted, fit), *draw_notes(players, fitted, fit.draw_parameter)]
    notes += [scatter_note(dispersion)] if dispersion > 1 else []
    fields |= {"method": "bradley-terry", "rating": rating, "covariance": covariance, "component": component}
    fields |= {"anchor": pool.anchor, "bounds": bounds, "notes": notes}
    return make_ratings(players, every, is_rated, fields)


def _between(games: Games, is_kept: np.ndarray) -> Games:
    """The games of players [K] who are kept, among one another."""
    rows = is_kept[games.first] & is_kept[games.second]
    both = rows[games.twins].all(axis=1)
    kept = {name: getattr(games, name)[rows] for name in ("first", "second", "color", "counts")}
    return games._replace(**kept, twins=(np.cumsum(rows) - 1)[games.twins[both]], pentanomials=games.pentanomials[both])


def _fit(games: Games, pool: Pool, members: np.ndarray, num_newcomers: int) -> tuple[Fit, float]:
    """The fit, whose covariance has the dispersion in it, and the dispersion."""
    equations, start = _with_prior(make_equations(games, np.zeros(games.num_players)), pool, members)
    x, _ = maximise(equations, start)
    plain = fit_at(x, equations, games)
    dispersion = max(estimate_dispersion(games, plain, num_newcomers) or pool.dispersion, 1.0)
    weighed, weight = weigh(games, equations, x, plain, dispersion)
    x, information = maximise(weighed, x)
    covariance = sandwich(weighed, x, information, games, plain, weight**2 * dispersion)
    return plain._replace(theta=x[:-1], white=float(x[-1]), covariance=covariance), dispersion


def _with_prior(equations: Equations, pool: Pool, members: np.ndarray) -> tuple[Equations, np.ndarray]:
    """The equations with the members' prior, and where to begin; a shift of all ratings costs nothing."""
    num = len(members)
    contrast = difference_design(np.arange(1, num), np.zeros(num - 1, int), num).toarray()
    known = inverse(contrast @ pool.covariance @ contrast.T / ELO_PER_NAT**2)
    start = np.zeros(len(equations.prior))
    start[members] = (pool.rating - pool.rating.mean()) / ELO_PER_NAT
    precision = embed(members, contrast.T @ known @ contrast, len(start))
    return equations._replace(precision=scipy.sparse.csr_array(precision), center=start), start


def _bounds(games: Games, rating: np.ndarray, players: Sequence[str]) -> dict[str, tuple[float, float]]:
    """(lower, upper) of those without a rating, from their games against those who have one."""
    player, opponent = np.concatenate([games.first, games.second]), np.concatenate([games.second, games.first])
    total, points = np.tile(games.total, 2), np.concatenate([games.points, games.total - games.points])
    bounds, is_rated = {}, ~np.isnan(rating)
    for k in map(int, np.flatnonzero(~is_rated)):
        rows = (player == k) & is_rated[opponent]
        if not rows.any():
            continue
        against, sign = rating[opponent[rows]], 1 if points[rows].any() else -1  # all points won, or none

        def surplus(x: float, against=against, total=total[rows], sign=sign) -> float:
            return float(total @ np.log(np.maximum(expected_score(sign * (x - against)), 1e-300)) - math.log(TAIL))

        bound: Any = scipy.optimize.brentq(surplus, against.min() - 4000, against.max() + 4000)
        bounds[players[k]] = (float(bound), math.inf) if sign > 0 else (-math.inf, float(bound))
    return bounds


def _notes(results: Results, is_rated: np.ndarray, bounds: Mapping[str, tuple[float, float]]) -> list[Note]:
    players, notes = results.players, []
    for name, (lower, upper) in bounds.items():
        won = lower > -math.inf
        did, where = ("won", f"above {lower:.0f}") if won else ("lost", f"below {upper:.0f}")
        text = f"{name} {did} every point against the rated: no rating, but {where} Elo (97.5 %)"
        notes.append(Note(text, "bound", (name,)))
    unplaced = [p for p, rated in zip(players, is_rated, strict=True) if not (rated or p in bounds or p in UNFITTED)]
    if unplaced:
        text = f"not rated, without games against the pool: {', '.join(unplaced)}"
        notes.append(Note(text, "no-games", tuple(unplaced)))
    for name in (name for name in UNFITTED if name in players):
        shown = []
        for player, opponent, wins, draws, losses, _ in without_colors(results).rows:
            if name in (player, opponent):
                other, won = (opponent, losses) if name == player else (player, wins)
                num_games = wins + draws + losses
                shown.append(f"{other} {(won + draws / 2) / num_games:.3f} of {num_games} games")
        notes.append(Note(f"against {name}, whose games count for no rating: {', '.join(shown) or 'no games'}"))
    return notes


def bracket_pairings(
    players: Sequence[str],
    results: Results,
    pool: Pool,
    num_games: int,
    target_error: float = 0.0,
    closed: Collection[frozenset[str]] = (),
) -> tuple[Pairing, ...]:
    """The games that newcomers still lack, none at the end; nobody else plays.

    A newcomer first meets each member in the two games of one opening, then in `num_games` each the BRACKET members
    nearest to its rating, half of them above it where there are so many. With a `target_error`, Elo, it meets these
    again until its standard error is not larger. It meets a player of UNFITTED in `num_games` games too.

    Args:
        players: those who can play, of the results' players.
        closed: pairs that may not meet.
    """
    ratings = rate_by_pool(results, pool)
    level = dict(zip(ratings.players, ratings.rating.tolist(), strict=True))
    error = dict(zip(ratings.players, ratings.standard_error.tolist(), strict=True))
    level |= {name: lower if lower > -math.inf else upper for name, (lower, upper) in ratings.bounds.items()}
    played = games_between(results)
    members, apart = [p for p in players if p in pool.players], [p for p in players if p in UNFITTED]
    found = []
    for name in (p for p in players if p not in pool.players and p not in UNFITTED):

        def lacking(opponents: Sequence[str], wanted: int, name: str = name) -> list[Pairing]:
            left = [Pairing(name, other, wanted - played[frozenset((name, other))]) for other in opponents]
            return [p for p in left if p.games > 0 and frozenset(p[:2]) not in closed]

        nearest = bracket(level[name], {member: level[member] for member in members})
        new = lacking(members, 2) or lacking(nearest, num_games)
        if not new and error[name] > target_error > 0:
            least = min((played[frozenset((name, other))] for other in nearest), default=0)
            new = lacking(nearest, least + num_games)
        found += new + lacking(apart, num_games)
    return tuple(found)


def bracket(rating: float, members: Mapping[str, float]) -> list[str]:
    """The members nearest to a rating, half of them above it where there are so many, the highest first."""
    ranked = sorted(members, key=lambda name: -members[name])
    above = sum(members[name] > rating for name in ranked)
    start = min(max(above - BRACKET // 2, 0), max(len(ranked) - BRACKET, 0))
    return ranked[start : start + BRACKET]
