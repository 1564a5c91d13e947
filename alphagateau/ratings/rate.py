"""Rates the players of a results table, with standard errors and notes."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alphagateau.ratings.assumptions import Note, alike_notes, cycle_notes, draw_notes, misfit_notes
from alphagateau.ratings.bradley_terry import Fit, estimate_dispersion, fit_bradley_terry
from alphagateau.ratings.curves import Curves, Steps, curves_by_name, make_steps
from alphagateau.ratings.history import LARGEST_RATE, fit_history
from alphagateau.ratings.model import ELO_PER_NAT, Games, centered, component_labels, game_arrays
from alphagateau.ratings.results import Results, ResultsError, listed
from alphagateau.ratings.wls import fit_wls

METHODS = ("bradley-terry", "history", "wls")
MEAN = 1000.0  # Elo, of a component without an anchor
UCI_ELO = "UCI_Elo"  # in the place of an anchor


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of K players, one scale within each component of players linked by games."""

    method: str
    players: tuple[str, ...]
    rating: np.ndarray  # [K] Elo, NaN without games (`history`: of a whole curve)
    standard_error: np.ndarray  # [K] Elo
    covariance: np.ndarray  # [K, K] Elo squared, relative to the component's mean or to the anchor
    games: np.ndarray  # [K]
    score: np.ndarray  # [K], points a game
    component: np.ndarray  # [K], 0 is the largest
    anchor: str | None = None
    dispersion: float = 1.0  # the factor in the variances
    draw_parameter: float = 0.0  # Davidson's nu; 0: no draws, or wls
    pair_correlation: float = 0.0  # of the points of the two games of an opening; 0 also if it is not known
    white_advantage: float = 0.0  # Elo, 0 if not estimated
    white_advantage_error: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict)  # of `history`: curve -> usual change an iteration, Elo
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # (lower, upper), Elo, of some not rated
    notes: tuple[str, ...] = ()  # caveats, one sentence each
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # player -> those of the notes that concern it


def rate(
    results: Results,
    method: str = "bradley-terry",
    anchor: str | None = None,
    *,
    anchor_rating: float = 0.0,
    dispersion: float | None = None,
    curves: Curves | None = None,
) -> Ratings:
    """Ratings from a table.

    Args:
        method: one of METHODS.
        anchor: a player. Its component is shifted to give it `anchor_rating`, and standard errors there are relative to
            it; other components have mean rating MEAN. UCI_ELO: engines at levels of it, by least squares.
        dispersion: factor on the variances, but of `wls`; None estimates it and never goes below 1 (quasi-likelihood,
            Wedderburn 1974; McCullagh and Nelder 1989, 4.5).
        curves: of `history`, the runs and iterations of players; None takes them from names such as run/12.

    Raises:
        ResultsError: an unknown method or anchor.
    """
    if method not in METHODS:
        raise ResultsError(f"rating method {method!r} is not one of {', '.join(METHODS)}")
    games, steps = game_arrays(results, use_colors=method != "wls"), None
    if method == "history":
        steps = make_steps(results.players, curves_by_name(results.players) if curves is None else curves)
        games = games._replace(links=steps.links)
    fields = _rate_wls(games) if method == "wls" else _rate_likelihood(results.players, games, steps, dispersion)
    component, (total, _) = component_labels(games), scores_of(games)
    place = None
    if anchor is not None:
        place, levels = anchors_of(results.players, anchor, anchor_rating)
        parts = np.where(total[place] > 0, component[place], len(component))
        place, levels = place[parts == parts.min()], levels[parts == parts.min()]  # of one scale, the largest
        anchor_rating = float(levels.mean())
    is_anchored = component == (component[place[0]] if place is not None else -1)
    is_rated = np.isin(component, component[total > 0]) if steps is not None else total > 0
    notes = _pool_notes(results.players, component, is_rated, is_anchored, anchor)
    fields |= {"method": method, "component": component, "anchor": anchor}
    fields["rating"], fields["covariance"] = centered(fields["rating"], fields["covariance"], component, place)
    fields["rating"] = fields["rating"] + np.where(is_anchored, anchor_rating, MEAN)
    fields["notes"] = (*notes, *fields["notes"], *alike_notes(results.alike))
    return make_ratings(results.players, games, is_rated, fields)


def make_ratings(players: tuple[str, ...], games: Games, is_rated: np.ndarray, fields: dict[str, Any]) -> Ratings:
    """The Ratings of all other `fields`, of which `notes` are Notes; NaN for those not rated, bool [K]."""
    total, score = scores_of(games)
    errors, notes = _root(fields["covariance"].diagonal()), fields.pop("notes")
    return Ratings(
        players=players,
        rating=np.where(is_rated, fields.pop("rating"), math.nan),
        standard_error=np.where(is_rated, errors, math.nan),
        games=total.astype(int),
        score=score,
        notes=tuple(note.text for note in notes),
        flags=flags_of(notes, players),
        **fields,
    )


def ranked(ratings: Ratings) -> list[int]:
    """Indices of the players, the strongest of the largest component first, those not rated last of theirs."""
    return np.lexsort((-np.nan_to_num(ratings.rating, nan=-np.inf), ratings.component)).tolist()


def anchors_of(players: Sequence[str], anchor: str, anchor_rating: float) -> tuple[np.ndarray, np.ndarray]:
    """The places and ratings of the players whose mean rating is known; see `rate`. Raises ResultsError."""
    if anchor in players:
        return np.array([players.index(anchor)]), np.array([anchor_rating])
    levels = levels_of(players)
    if anchor != UCI_ELO or not levels:
        hint = f", nor has one of them {UCI_ELO}=LEVEL in its name" if anchor == UCI_ELO else ""
        raise ResultsError(f"anchor {anchor!r} is not one of the {len(players)} players{hint}")
    return np.array([*levels]), np.array([*levels.values()])


def levels_of(players: Sequence[str]) -> dict[int, float]:
    """The levels of UCI_Elo that engines have in their names, by their places among the players."""
    return {k: float(found[1]) for k, name in enumerate(players) if (found := re.search(f"{UCI_ELO}=(\\d+)", name))}


def flags_of(notes: Sequence[Note], players: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The flags of each player, those of notes that name nobody included."""
    found: dict[str, dict[str, None]] = {name: {} for name in players}
    for note in (note for note in notes if note.flag):
        for name in note.players or players:
            found.setdefault(name, {})[note.flag] = None
    return {name: tuple(flags) for name, flags in found.items()}


def _rate_wls(games: Games) -> dict[str, Any]:
    """Fields of `Ratings`, up to a shift of each component."""
    rating, covariance = fit_wls(games)
    shutouts = int(np.sum((games.points == 0) | (games.points == games.total)))
    note = f"{shutouts} pair(s) in which one side scored nothing are rated by the added draw"
    return {"rating": rating, "covariance": covariance, "notes": (Note(note, "added-draw"),) if shutouts else ()}


def _rate_likelihood(
    players: Sequence[str], games: Games, steps: Steps | None, dispersion: float | None
) -> dict[str, Any]:
    """As `_rate_wls`, by `bradley-terry`, or by `history` with the steps of curves."""
    alone = games._replace(links=games.links[:0])
    prior, notes = _prior(players, alone)
    fit = fit_bradley_terry(alone, prior)
    dispersion, scatter_notes = _dispersion(alone, fit, dispersion)
    scatter_notes += cycle_notes(players, alone, fit) + misfit_notes(players, alone, fit)
    scatter_notes += draw_notes(players, alone, fit.draw_parameter)
    factor, rates = dispersion, {}
    if steps is not None and not steps.names:
        scatter_notes += (Note("no two players are iterations of one run: history is bradley-terry here"),)
    elif steps is not None:
        prior, notes = _prior(players, games)
        (fit, walk), factor = fit_history(games, prior, steps, fit, dispersion), 1.0  # the dispersion is within
        fitted = zip(steps.names, walk.rates.tolist(), strict=True)
        rates = {name: math.sqrt(x) * ELO_PER_NAT for name, x in fitted if x < LARGEST_RATE}  # there, games tell none
        changes = listed([f"{name} {rate:.1f}" for name, rate in rates.items()])
        text = f"usual change of a run's strength in an iteration, Elo, as fitted: {changes}"
        scatter_notes += (Note(text),) if rates else ()
    return {**fields_of_fit(fit, dispersion, factor), "rates": rates, "notes": notes + scatter_notes}


def fields_of_fit(fit: Fit, dispersion: float, factor: float = 1.0) -> dict[str, Any]:
    """Fields of `Ratings`, up to a shift of each component; `factor`: on the fit's variances."""
    covariance = fit.covariance * ELO_PER_NAT**2 * factor
    return {
        "rating": fit.theta * ELO_PER_NAT,
        "covariance": covariance[:-1, :-1],
        "dispersion": dispersion,
        "draw_parameter": fit.draw_parameter,
        "pair_correlation": fit.pair_correlation,
        "white_advantage": fit.white * ELO_PER_NAT,
        "white_advantage_error": float(_root(covariance[-1, -1])),
    }


def _root(variance: np.ndarray) -> np.ndarray:
    """The standard error; of a variance that rounding took below 0, as among hundreds of millions of games, 0."""
    return np.sqrt(np.maximum(variance, 0))


def _dispersion(games: Games, fit: Fit, given: float | None) -> tuple[float, tuple[Note, ...]]:
    """The factor on the variances, and notes on it."""
    if given is not None or not len(games.first):
        return 1.0 if given is None else given, ()
    estimate = estimate_dispersion(games, fit)
    if estimate is None:
        text = "too few pairs to estimate whether results scatter more than the model expects"
        return 1.0, (Note(text, "scatter-unknown"),)
    return max(estimate, 1.0), (scatter_note(estimate),) if estimate > 1 else ()


def scatter_note(dispersion: float) -> Note:
    """The note on a dispersion above 1."""
    widened = f"standard errors are widened {math.sqrt(dispersion):.2f} times"
    return Note(f"results scatter {dispersion:.2f} times as much as the model expects: {widened}", "scatter")


def _prior(players: Sequence[str], games: Games) -> tuple[np.ndarray, tuple[Note, ...]]:
    """Virtual draws [K] with a common opponent, 1 in components whose ratings would be infinite; notes on them.

    Ratings are infinite unless every two players of a component scored against each other, directly
    or through others (Zermelo 1929; Ford 1957, Amer. Math. Monthly 64(8) II, 28-33).
    """
    component, strong = component_labels(games), component_labels(games, "strong")
    parts = [len(np.unique(strong[component == c])) for c in np.unique(component)]
    is_infinite = np.array(parts, dtype=int)[component] > 1
    if not is_infinite.any():
        return np.zeros(len(players)), ()
    score = scores_of(games)[1]
    notes = [
        Note(f"{listed(who)} {did} every game: the results bound the rating on one side only", "bound", who)
        for points, did in ((0, "lost"), (1, "won"))
        if (who := _named(players, is_infinite & (score == points)))
    ]
    infinite = _named(players, is_infinite)
    apart = "a group of players never scored against another: no bound to their distance"
    notes = notes or [Note(apart, "bound", infinite)]
    means = "1 virtual draw of each player with a common opponent keep ratings finite"
    virtual = Note(f"{means}: {listed(infinite)}", "virtual-draw", infinite)
    return is_infinite.astype(np.float64), (*notes, virtual)


def _pool_notes(
    players: Sequence[str], component: np.ndarray, has_games: np.ndarray, is_anchored: np.ndarray, anchor: str | None
) -> tuple[Note, ...]:
    notes = []
    if not has_games.any():
        notes.append(Note("the table has no games"))
    elif not has_games.all():
        idle = _named(players, ~has_games)
        notes.append(Note(f"not rated, without games: {listed(idle)}", "no-games", idle))
    groups = np.unique(component[has_games])
    if len(groups) > 1:
        members = "; ".join(listed(_named(players, component == c), 3) for c in groups[:3])
        more = "; ..." if len(groups) > 3 else ""
        scales = "groups that never met, each on a scale of its own"
        notes.append(Note(f"the pool is in {len(groups)} {scales}: {members}{more}", "apart"))
    if anchor is not None and (has_games & ~is_anchored).any():
        text = f"anchor {anchor} ties only the players linked to it by games"
        notes.append(Note(text, "no-anchor", _named(players, has_games & ~is_anchored)))
    return tuple(notes)


def scores_of(games: Games) -> tuple[np.ndarray, np.ndarray]:
    """Games [K] and points a game [K], NaN without games."""
    both = np.concatenate([games.first, games.second])
    points = np.concatenate([games.points, games.total - games.points])
    total = np.bincount(both, np.tile(games.total, 2), games.num_players)
    points = np.bincount(both, points, games.num_players)
    return total, np.where(total > 0, points / np.maximum(total, 1), math.nan)


def _named(players: Sequence[str], chosen: np.ndarray) -> tuple[str, ...]:
    return tuple(players[int(i)] for i in np.flatnonzero(chosen))
