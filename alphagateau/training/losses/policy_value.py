"""Losses of policy and value, and the mean of a loss over a batch."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import optax

from alphagateau.config.records import ConfigError, show
from alphagateau.distributed.mesh import mean_over, sum_over
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame
from alphagateau.training.losses.auxiliary import auxiliary_terms
from alphagateau.training.losses.terms import AMONG, CALIBRATION_BINS, LossTerms, join_terms, policy_terms, value_terms


def policy_value_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """AlphaGateau's equation (10): cross-entropy to the search's policy, nats, + squared error of the value.

    Both are means over all frames; one without a known result, or whose policy is masked, counts 0. A batch with few
    results so has a smaller gradient of the value. The network's auxiliary heads add their terms.
    """
    return _with_policy(game, evaluation, frames, jnp.square(evaluation.value - frames.value_target))


def policy_value_l1_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """As `policy_value_loss`, with the absolute error of the value (Lai 2015, section 4.6)."""
    return _with_policy(game, evaluation, frames, jnp.abs(evaluation.value - frames.value_target))


def policy_wdl_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """As `policy_value_loss`, with the cross-entropy of win, draw and loss to the result, nats, for the value."""
    result = win_draw_loss(frames.value_target)
    return _with_policy(game, evaluation, frames, optax.softmax_cross_entropy(evaluation.extra["wdl_logits"], result))


def _with_policy(game: Game, evaluation: Evaluation, frames: Frame, value_losses: Array) -> LossTerms:
    """Terms of the policy, of the value by its losses [B], and of the auxiliary heads."""
    return join_terms(
        policy_terms(game, evaluation, frames),
        value_terms(evaluation, frames, value_losses),
        auxiliary_terms(game, evaluation, frames),
    )


def win_draw_loss(value: Array) -> Array:
    """Probabilities [B, 3] of a win, a draw and a loss whose mean is `value` [B], in [-1, 1].

    Results are one-hot. A value between two results, as of TD(lambda) or a search, is shared by these two alone: the
    distribution with the most draws of that mean.
    """
    win, loss = jnp.maximum(value, 0.0), jnp.maximum(-value, 0.0)
    return jnp.stack([win, 1 - win - loss, loss], axis=-1)


def check_terms(terms: Any, num_frames: int) -> None:
    """Raises ConfigError unless a loss has made LossTerms of so many frames, no two of one name."""
    if not isinstance(terms, LossTerms) or not all(isinstance(of_field, Mapping) for of_field in terms):
        got = "an array" if isinstance(terms, jnp.ndarray) else type(terms).__name__
        raise ConfigError(f"a loss must return LossTerms, whose fields are dicts, got {got}")
    if not terms.minimized:
        raise ConfigError("a loss must have a term in minimized, got none")
    names = [name for of_field in terms for name in of_field]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"the loss's term {show(twice[0])} is given twice")
    for name, term in {**terms.minimized, **terms.logged}.items():
        if jnp.shape(term) != (num_frames,):
            got = list(jnp.shape(term))
            raise ConfigError(f"the loss's term {show(name)} must be [{num_frames}], one a frame, got {got}")
    for name, pair in terms.logged_among.items():
        is_pair = isinstance(pair, tuple) and len(pair) == 2
        if not is_pair or jnp.shape(pair[0]) != jnp.shape(pair[1]) or jnp.result_type(pair[1]) != jnp.bool_:
            raise ConfigError(f"the loss's logged_among {show(name)} must be (values, a mask of bool of their shape)")
    if "calibration" in terms.sums and (got := [*jnp.shape(terms.sums["calibration"])]) != [3, CALIBRATION_BINS]:
        raise ConfigError(f"the loss's sum calibration must be [3, {CALIBRATION_BINS}], got {got}")


def reduce_terms(terms: LossTerms, axis_name: str | None = None) -> tuple[Array, dict[str, Array]]:
    """(loss, metrics by name) of the whole batch, of which each device along `axis_name` has an equal part.

    `among/<name>` is the share of the frames that a mean of `logged_among` is of.
    """
    among = {name: jnp.where(mask, value, 0) for name, (value, mask) in terms.logged_among.items()}
    values = {**terms.minimized, **terms.logged, **among}
    shares = {name: mask.mean() for name, (_, mask) in terms.logged_among.items()}
    means, shares = mean_over(({name: x.mean() for name, x in values.items()}, shares), axis_name)
    for name, share in shares.items():
        means |= {name: means[name] / jnp.maximum(share, 1e-9), AMONG + name: share}
    first, *others = (means[name] for name in terms.minimized)
    return sum(others, start=first), {**means, **sum_over(dict(terms.sums), axis_name)}
