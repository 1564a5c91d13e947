"""Losses on labels: values of moves and of states, as probabilities q of winning, and the best move.

As published by Ruoss et al. (2024), but for their sum. `training/frames.py` names the labels in `Frame.extra`.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import optax
from jax.scipy.special import entr

from alphagateau.games.actions import legal_edge_mask, slots_to_edges
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.heads import mean_of_bins
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import ACTION_KNOWN, ACTION_SLOT, ACTION_VALUE, STATE_KNOWN, STATE_VALUE, Frame
from alphagateau.training.losses.terms import LossTerms, hl_gauss, join_terms, one_hot, policy_terms

ValueLoss = Callable[[Array, Array], tuple[Array, Array]]  # (q [...], logits [..., K]) -> (loss [...], its least [...])


def on_bins(make_target: Callable[[Array, int], Array], q: Array, logits: Array) -> tuple[Array, Array]:
    """Cross-entropy to the distribution over bins that encodes q, nats, and that distribution's entropy."""
    target = make_target(q, logits.shape[-1])
    return optax.softmax_cross_entropy(logits, target), entr(target).sum(axis=-1)


def squared(q: Array, logits: Array) -> tuple[Array, Array]:
    """Squared error of a single number."""
    return jnp.square(logits[..., 0] - q), jnp.zeros_like(q)


VALUE_LOSSES: dict[str, ValueLoss] = {
    "hl_gauss": partial(on_bins, hl_gauss),
    "log": partial(on_bins, one_hot),
    "l2": squared,
}


def action_value_loss(kind: str, game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Mean over a board's labelled edges; a board without any counts 0.

    Boards weigh the same however many moves they have, so the gradient of a batch is the mean of its parts'. For frames
    of one move each, as published, the loss is a mean over moves.
    """
    q, known = frames.extra[ACTION_VALUE], frames.extra[ACTION_KNOWN]
    logits, slots = evaluation.extra["action_value_logits"], frames.extra.get(ACTION_SLOT)
    if slots is not None and logits.shape[1] != slots.shape[1]:  # of a network that values all moves
        logits = jnp.take_along_axis(logits, slots[..., None], axis=1)
    losses, least = VALUE_LOSSES[kind](q, logits)
    found = mean_of_bins(logits)
    count = jnp.maximum(known.sum(axis=-1), 1)
    return LossTerms(
        minimized={"action_value_loss": jnp.where(known, losses, 0.0).sum(axis=-1) / count},
        logged_among={
            "action_value_excess": (losses - least, known),
            "action_value_error": (jnp.abs(found - q), known),
            **({"action_accuracy": best_is_chosen(q, found, known)} if slots is None else {}),
        },
    )


def best_is_chosen(q: Array, found: Array, known: Array) -> tuple[Array, Array]:
    """Bool [B] twice: whether the move of the highest value has the highest q, and whether any move is labelled."""
    chosen = jnp.argmax(jnp.where(known, found, -jnp.inf), axis=-1)[:, None]
    best = jnp.max(jnp.where(known, q, -jnp.inf), axis=-1)
    return jnp.take_along_axis(q, chosen, axis=-1)[:, 0] >= best, known.any(axis=-1)


def state_value_loss(kind: str, game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Mean over all boards; one without a label counts 0."""
    q, known = frames.extra[STATE_VALUE], frames.extra[STATE_KNOWN]
    logits = evaluation.extra["value_logits"]
    losses, least = VALUE_LOSSES[kind](q, logits)
    return LossTerms(
        minimized={"state_value_loss": jnp.where(known, losses, 0.0)},
        logged_among={
            "state_value_excess": (losses - least, known),
            "state_value_error": (jnp.abs(mean_of_bins(logits) - q), known),
        },
    )


def behavioral_cloning_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Cross-entropy of the policy over the legal moves to the labelled one, nats."""
    legal = legal_edge_mask(game, frames.position)
    target = slots_to_edges(legal, frames.policy_target)
    chosen = jnp.argmax(jnp.where(legal, evaluation.prior_logits, -jnp.inf), axis=-1)[:, None]
    known = frames.policy_target.any(axis=-1)
    right = jnp.take_along_axis(target, chosen, axis=-1)[:, 0] >= target.max(axis=-1)
    terms = policy_terms(game, evaluation, frames)
    return terms._replace(logged_among={"policy_accuracy": (right, known)})


def all_labels_loss(kind: str, game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """The sum of the three losses, for a network that plays by action values, or by prior and value under a search."""
    return join_terms(
        action_value_loss(kind, game, evaluation, frames),
        state_value_loss(kind, game, evaluation, frames),
        behavioral_cloning_loss(game, evaluation, frames),
    )
