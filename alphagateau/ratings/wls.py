"""The AlphaGateau paper's weighted least squares on pair scores."""

import numpy as np
import scipy.sparse

from alphagateau.ratings.model import ELO_PER_NAT, Games, connected, free_players, inverse, pair_design

MAX_STATSMODELS_PLAYERS = 150  # above, dense statsmodels takes minutes, normal equations a second


def fit_wls(games: Games) -> tuple[np.ndarray, np.ndarray]:
    """The paper's weighted least squares (AlphaGateau 2024, equations 11 and 15).

    One equation a pair, r_i - r_j = 400 / ln(10) * ln(p / (1 - p)), of variance
    (400 / ln(10))^2 / (n p (1 - p)), with p = (w + (d + 1) / 2) / (n + 1) from the pair's n games
    and one draw added. Gives ratings [K] and covariance [K, K], Elo, up to a shift of each component.
    """
    share = (games.points + 0.5) / (games.total + 1)
    target = ELO_PER_NAT * np.log(share / (1 - share))
    weights = games.total * share * (1 - share) / ELO_PER_NAT**2
    small = games.num_players <= MAX_STATSMODELS_PLAYERS
    solve = _solve_statsmodels if small else _solve_normal_equations
    rating, covariance = np.zeros(games.num_players), np.zeros((games.num_players,) * 2)
    free = free_players(connected(games))
    if len(free):
        found = solve(pair_design(games)[:, free], target, weights)
        rating[free], covariance[np.ix_(free, free)] = found
    return rating, covariance


def _solve_statsmodels(design, target, weights) -> tuple[np.ndarray, np.ndarray]:
    """Solution [m] and covariance [m, m] of weighted equations of known variance."""
    from statsmodels.regression.linear_model import WLS  # its import takes a second

    fitted = WLS(target, design.toarray(), weights=weights).fit(cov_type="fixed scale")
    return np.asarray(fitted.params), np.asarray(fitted.cov_params())


def _solve_normal_equations(design, target, weights) -> tuple[np.ndarray, np.ndarray]:
    """The same, for thousands of players."""
    weighted = scipy.sparse.diags_array(weights) @ design
    covariance = inverse((design.T @ weighted).toarray())
    return covariance @ (weighted.T @ target), covariance
