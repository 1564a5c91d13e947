"""Fits ratings by the AlphaGateau paper's weighted least squares on the scores of pairs."""

import numpy as np
import scipy.sparse

from alphagateau.ratings.model import ELO_PER_NAT, Games, difference_design, embed, free_players, inverse

MAX_STATSMODELS_PLAYERS = 150  # above, dense statsmodels takes minutes, normal equations a second


def fit_wls(games: Games) -> tuple[np.ndarray, np.ndarray]:
    """Ratings [K] and covariance [K, K], Elo, up to a shift of each component (AlphaGateau 2024, equations 11 and 15).

    Each pair gives one equation, r_i - r_j = 400 / ln(10) * ln(p / (1 - p)), of variance
    (400 / ln(10))^2 / (n p (1 - p)), with p = (w + (d + 1) / 2) / (n + 1) of its n games and one draw added.
    """
    share = (games.points + 0.5) / (games.total + 1)
    target = ELO_PER_NAT * np.log(share / (1 - share))
    weights = games.total * share * (1 - share) / ELO_PER_NAT**2
    solve = _solve_statsmodels if games.num_players <= MAX_STATSMODELS_PLAYERS else _solve_normal_equations
    rating, free = np.zeros(games.num_players), free_players(games)
    if not len(free):
        return rating, np.zeros((len(rating),) * 2)
    design = difference_design(games.first, games.second, games.num_players)
    rating[free], covariance = solve(design[:, free], target, weights)
    return rating, embed(free, covariance, len(rating))


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
