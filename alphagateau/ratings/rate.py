"""Turns a results table into ratings with standard errors, and says what they rest on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alphagateau.ratings.bradley_terry import Fit, estimate_dispersion, fit_bradley_terry
from alphagateau.ratings.curves import Curves, Steps, curves_by_name, make_steps
from alphagateau.ratings.history import fit_history
from alphagateau.ratings.model import ELO_PER_NAT, Games, connected, game_arrays, tie
from alphagateau.ratings.results import Results, ResultsError
from alphagateau.ratings.wls import fit_wls

METHODS = ("bradley-terry", "history", "wls")


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of K players, one scale within each component of players linked by games.

    rating, standard_error [K]: Elo, NaN without games (`history`: of a whole curve). covariance [K, K]:
    Elo squared, relative to the component's mean or to the anchor. games [K]. score [K]: points a
    game. component [K]: 0 is the largest. dispersion: factor the variances include. draw_parameter:
    Davidson's nu (0: no draws, or wls). white_advantage and its error: Elo, 0 if not estimated. rates:
    of `history`, by curve, by how much strength usually changes in an iteration, Elo. notes: what a
    reader of the numbers must know, one sentence each.
    """

    method: str
    players: tuple[str, ...]
    rating: np.ndarray
    standard_error: np.ndarray
    covariance: np.ndarray
    games: np.ndarray
    score: np.ndarray
    component: np.ndarray
    anchor: str | None = None
    dispersion: float = 1.0
    draw_parameter: float = 0.0
    white_advantage: float = 0.0
    white_advantage_error: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def rate(
    results: Results,
    method: str = "bradley-terry",
    anchor: str | None = None,
    *,
    anchor_rating: float = 0.0,
    mean: float = 1000.0,
    prior_draws: float | None = None,
    dispersion: float | None = None,
    white_advantage: bool = True,
    curves: Curves | None = None,
) -> Ratings:
    """Ratings from a table, by one of METHODS.

    Each component has mean rating `mean`; with an `anchor`, its component is shifted to give it
    `anchor_rating` instead, and standard errors there are relative to it. The rest is for
    `bradley-terry` and `history`. prior_draws: virtual draws of each player with a common opponent of its
    component; None: 1 in components whose ratings would be infinite, 0 elsewhere. dispersion:
    factor on the variances; None estimates it and never goes below 1 (quasi-likelihood, Wedderburn
    1974; McCullagh and Nelder 1989, 4.5). white_advantage: estimate it if rows carry colors. curves:
    for `history`, who is which iteration of which run; None: as names such as run/12 say.
    Raises ResultsError for an unknown method or anchor, or a prior too weak for finite ratings.
    """
    if method not in METHODS:
        raise ResultsError(f"rating method {method!r} is not one of {', '.join(METHODS)}")
    if anchor is not None and anchor not in results.players:
        raise ResultsError(f"anchor {anchor!r} is not one of the {len(results.players)} players")
    games, steps = game_arrays(results, method != "wls" and white_advantage), None
    if method == "history":
        steps = make_steps(results.players, curves_by_name(results.players) if curves is None else curves)
        games = games._replace(links=np.stack([steps.before, steps.after], axis=1))
    component = connected(games)
    if method == "wls":
        rating, covariance, more = _rate_wls(games)
    elif steps is not None:
        rating, covariance, more = _rate_history(results, games, steps, prior_draws, dispersion)
    else:
        rating, covariance, more = _rate_bradley_terry(results.players, games, component, prior_draws, dispersion)
    place = results.players.index(anchor) if anchor is not None else None
    rating, covariance = tie(rating, covariance, component, place)
    total, score = _scores(games)
    is_anchored = component == (component[place] if place is not None else -1)
    is_rated = np.isin(component, component[total > 0]) if steps is not None else total > 0
    notes = _pool_notes(results.players, component, is_rated, is_anchored, anchor)
    error = _root(covariance.diagonal())
    return Ratings(
        method=method,
        players=results.players,
        rating=np.where(is_rated, rating + np.where(is_anchored, anchor_rating, mean), math.nan),
        standard_error=np.where(is_rated, error, math.nan),
        covariance=covariance,
        games=total.astype(int),
        score=score,
        component=component,
        anchor=anchor,
        **{**more, "notes": notes + more["notes"]},
    )


def _rate_wls(games: Games) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """As `_rate_bradley_terry`, by `fit_wls`."""
    shutouts = int(np.sum((games.points == 0) | (games.points == games.total)))
    note = f"{shutouts} pair(s) in which one side scored nothing are rated by the added draw"
    return *fit_wls(games), {"notes": (note,) if shutouts else ()}


def _rate_bradley_terry(
    players: Sequence[str],
    games: Games,
    component: np.ndarray,
    prior_draws: float | None,
    dispersion: float | None,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Ratings [K], covariance [K, K] up to a shift of each component; what goes with them."""
    prior, notes = _prior(players, games, component, prior_draws)
    fit = fit_bradley_terry(games, prior)
    dispersion, said = _dispersion(games, fit, dispersion)
    covariance = fit.covariance * ELO_PER_NAT**2 * dispersion
    more = _more(fit, covariance, dispersion, notes + said)
    return fit.theta * ELO_PER_NAT, covariance[:-1, :-1], more


def _rate_history(
    results: Results, games: Games, steps: Steps, prior_draws: float | None, dispersion: float | None
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """As `_rate_bradley_terry`, with the steps of curves, which are links of `games`."""
    alone = games._replace(links=games.links[:0])
    plain = fit_bradley_terry(alone, _prior(results.players, alone, connected(alone), None)[0])
    dispersion, said = _dispersion(alone, plain, dispersion)
    prior, notes = _prior(results.players, games, connected(games), prior_draws)
    found = fit_history(games, prior, steps, plain, dispersion)
    rates = {name: float(x) * ELO_PER_NAT for name, x in zip(steps.names, np.sqrt(found.walk.rates), strict=True)}
    covariance = found.fit.covariance * ELO_PER_NAT**2  # with the dispersion in it
    more = _more(found.fit, covariance, dispersion, notes + said + _rate_notes(rates))
    return found.fit.theta * ELO_PER_NAT, covariance[:-1, :-1], {**more, "rates": rates}


def _more(fit: Fit, covariance: np.ndarray, dispersion: float, notes: tuple[str, ...]) -> dict[str, Any]:
    """What of `Ratings` goes with a fit."""
    return {
        "dispersion": dispersion,
        "draw_parameter": fit.draw_parameter,
        "white_advantage": fit.white * ELO_PER_NAT,
        "white_advantage_error": float(_root(covariance[-1, -1])),
        "notes": notes,
    }


def _root(variance: np.ndarray) -> np.ndarray:
    """The standard error; of a variance that rounding took below 0, as among hundreds of millions of games, 0."""
    return np.sqrt(np.maximum(variance, 0))


def _dispersion(games: Games, fit: Fit, given: float | None) -> tuple[float, tuple[str, ...]]:
    """The factor on the variances, and what to say of it."""
    if given is not None or not len(games.first):
        return 1.0 if given is None else given, ()
    estimate = estimate_dispersion(games, fit)
    return max(1.0, estimate or 0.0), _dispersion_notes(estimate)


def _rate_notes(rates: Mapping[str, float]) -> tuple[str, ...]:
    if not rates:
        return ("no two players are iterations of one run: history is bradley-terry here",)
    shown = [f"{name} {rate:.1f}" for name, rate in list(rates.items())[:5]]
    more = f" and {len(rates) - len(shown)} more" if len(rates) > len(shown) else ""
    return (f"what a run's strength usually changes by in an iteration, Elo, as fitted: {', '.join(shown)}{more}",)


def _prior(
    players: Sequence[str], games: Games, component: np.ndarray, prior_draws: float | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Virtual draws [K] and what to say of them.

    Ratings are infinite unless every two players of a component scored against each other, directly
    or through others (Zermelo 1929; Ford 1957, Amer. Math. Monthly 64(8) II, 28-33).
    """
    strong = connected(games, "strong")
    parts = [len(np.unique(strong[component == c])) for c in np.unique(component)]
    is_infinite = np.array(parts, dtype=int)[component] > 1
    if prior_draws is None:
        prior = is_infinite.astype(np.float64)
    elif prior_draws > 0 or (prior_draws == 0 and not is_infinite.any()):
        prior = np.full(len(players), float(prior_draws))
    else:
        raise ResultsError(f"prior_draws is {prior_draws}, expected more than 0 for finite ratings")
    if not prior.any():
        return prior, ()
    score = _scores(games)[1]
    notes = [
        f"{_some(players, is_infinite & (score == extreme))} {did} every game: the results bound "
        "the rating on one side only"
        for extreme, did in ((0, "lost"), (1, "won"))
        if (is_infinite & (score == extreme)).any()
    ]
    if is_infinite.any() and not notes:
        notes = ["a group of players never scored against another: no bound to their distance"]
    means = f"{prior.max():g} virtual draw(s) of each player with a common opponent"
    return prior, (*notes, f"{means} keep ratings finite: {_some(players, prior > 0)}")


def _dispersion_notes(estimate: float | None) -> tuple[str, ...]:
    if estimate is None:
        return ("too few pairs to tell whether results scatter more than the model says",)
    if estimate <= 1:
        return ()
    widened = f"standard errors are widened {math.sqrt(estimate):.2f} times"
    return (f"results scatter {estimate:.2f} times as much as the model says: {widened}",)


def _pool_notes(
    players: Sequence[str],
    component: np.ndarray,
    has_games: np.ndarray,
    is_anchored: np.ndarray,
    anchor: str | None,
) -> tuple[str, ...]:
    notes = []
    if not has_games.any():
        notes.append("the table has no games")
    elif not has_games.all():
        notes.append(f"not rated, without games: {_some(players, ~has_games)}")
    groups = np.unique(component[has_games])
    if len(groups) > 1:
        members = "; ".join(_some(players, component == c, 3) for c in groups[:3])
        more = "; ..." if len(groups) > 3 else ""
        said = "groups that never met, each on a scale of its own"
        notes.append(f"the pool is in {len(groups)} {said}: {members}{more}")
    if anchor is not None and (has_games & ~is_anchored).any():
        notes.append(f"anchor {anchor} ties only the players linked to it by games")
    return tuple(notes)


def _scores(games: Games) -> tuple[np.ndarray, np.ndarray]:
    """Games [K] and points a game [K], NaN without games."""
    both = np.concatenate([games.first, games.second])
    points = np.concatenate([games.points, games.total - games.points])
    total = np.bincount(both, np.tile(games.total, 2), games.num_players)
    points = np.bincount(both, points, games.num_players)
    return total, np.where(total > 0, points / np.maximum(total, 1), math.nan)


def _some(players: Sequence[str], chosen: np.ndarray, most: int = 5) -> str:
    names = [players[int(i)] for i in np.flatnonzero(chosen)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
