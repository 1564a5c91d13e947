"""Targets and loss terms of auxiliary heads: the opponent's reply, plies left, later search values, the soft policy."""

import jax
import jax.numpy as jnp
import optax

from alphagateau.config.losses import HEADS
from alphagateau.config.records import ConfigError
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.games.symmetry import edges_from_other_side
from alphagateau.networks.heads import PLIES_SCALE
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame, Trajectory
from alphagateau.training.losses.terms import LossTerms, bin_of, join_terms, policy_terms

REPLY_WEIGHT = 0.15  # of the opponent's reply (Wu 2020, KataGo)
HUBER_DELTA = 0.5  # of plies left in units of PLIES_SCALE, as in Leela Chess Zero
SHORT_TERM_DECAY = 5 / 6  # a mean of 6 plies, as the next two in the code of Chessformer
SOFT_POWER, SOFT_WEIGHT = 1 / 4, 8.0
BINS_WEIGHT = 0.1


def reply_edge(trajectory: Trajectory) -> Array:
    """int16 [T, B]: the opponent's answer, an edge as the opponent sees it; -1: the game ended, or it is not known."""
    after = jnp.concatenate([trajectory.edge[1:], jnp.full_like(trajectory.edge[:1], -1)])
    return jnp.where(trajectory.discount < 0, after, -1).astype(jnp.int16)


def moves_left(trajectory: Trajectory) -> Array:
    """int16 [T, B]: plies to the end of the game, 1 for the last; -1: not known."""

    def back(left: Array, discount: Array) -> tuple[Array, Array]:
        left = jnp.where(discount == 0, 1, jnp.where(left < 0, -1, left + 1))
        return left, left.astype(jnp.int16)

    unknown = jnp.full(trajectory.discount.shape[1:], -1, jnp.int32)
    return jax.lax.scan(back, unknown, trajectory.discount, reverse=True)[1]


def search_value(trajectory: Trajectory) -> Array:
    """float16 [T, B]: the search's value, for the player to move."""
    return trajectory.search_value.astype(jnp.float16)


def short_term(trajectory: Trajectory) -> Array:
    """float16 [T, B]: an exponential mean of search values q from this ply on, for the player to move.

    st_t = q_t / 6 + 5/6 (r_t + discount_t st_{t+1}); q at the last ply of a row whose game goes on.
    """
    rest = 1 - SHORT_TERM_DECAY

    def back(after: Array, ply: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        q, reward, discount = ply
        mean = rest * q + SHORT_TERM_DECAY * (reward + discount * after)
        return mean, mean.astype(jnp.float16)

    q, reward, discount = trajectory.search_value, trajectory.reward, trajectory.discount
    last = jnp.where(discount[-1] == 0, 0.0, discount[-1] * (q[-1] - reward[-1]))  # so that the last mean is q itself
    return jax.lax.scan(back, last, (q, reward, discount), reverse=True)[1]


def auxiliary_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """The terms of the network's auxiliary heads, whose targets the frames must have; an unknown one counts 0."""
    heads = [head for head in HEADS.values() if head.output in evaluation.extra]
    for head in heads:
        if head.target and head.name not in frames.extra:
            raise ConfigError(f"frames have no target of head {head.name!r}: make_selfplay(heads=...) makes it")
    return join_terms(*(head.terms(game, evaluation, frames) for head in heads))


def reply_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Cross-entropy of the reply among all edges, nats, times its weight.

    A frame's reply is an edge as the opponent sees it. Its logit is read at the edge between the same two squares as
    the player to move sees them, the only one that the layers connect with the pieces there.
    """
    known = frames.extra["reply_edge"] >= 0
    edges = jnp.asarray(edges_from_other_side(game))[jnp.maximum(frames.extra["reply_edge"], 0)]
    logits = evaluation.extra["reply_logits"]
    log_reply = jnp.take_along_axis(jax.nn.log_softmax(logits), edges[:, None], axis=-1)[:, 0]
    right = known & (jnp.argmax(logits, axis=-1) == edges)
    loss = jnp.where(known, -REPLY_WEIGHT * log_reply, 0.0)
    return LossTerms({"reply_loss": loss}, logged_among={"reply_accuracy": (right, known)})


def moves_left_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Huber loss of the plies left, in units of PLIES_SCALE, as in Leela Chess Zero."""
    target, known = frames.extra["moves_left"].astype(jnp.float32), frames.extra["moves_left"] >= 0
    error = jnp.where(known, evaluation.extra["moves_left"] - target, 0.0)
    loss = optax.huber_loss(error / PLIES_SCALE, delta=HUBER_DELTA)
    return LossTerms({"moves_left_loss": loss}, logged_among={"moves_left_error": (jnp.abs(error), known)})


def soft_policy_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Cross-entropy of the soft policy over the legal moves to the softened target, nats, times its weight."""
    frames = frames._replace(policy_target=soften(frames.policy_target.astype(jnp.float32)))
    terms = policy_terms(game, evaluation._replace(prior_logits=evaluation.extra["soft_logits"]), frames)
    return LossTerms({"soft_policy_loss": SOFT_WEIGHT * terms.minimized["policy_loss"]})


def soften(policy: Array) -> Array:
    """Probabilities [..., S] to the power 1/4, normalized; all 0 where they were."""
    soft = policy**SOFT_POWER
    return soft / jnp.maximum(soft.sum(axis=-1, keepdims=True), 1e-9)


def value_and_error_terms(name: str, game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Squared errors of a value and of its predicted squared error, and the cross-entropy of its bins if it has any.

    The error's prediction has no gradient through the value. Every ply of self-play has the target.
    """
    target = frames.extra[name].astype(jnp.float32)
    squared = jnp.square(evaluation.extra[name] - target)
    of_error = jnp.square(evaluation.extra[f"{name}_error"] - jax.lax.stop_gradient(squared))
    minimized = {f"{name}_loss": squared, f"{name}_error_loss": of_error}
    if f"{name}_bins" in evaluation.extra:
        logits = evaluation.extra[f"{name}_bins"]
        bins = jax.nn.one_hot(bin_of(target, logits.shape[-1]), logits.shape[-1])
        minimized[f"{name}_bins_loss"] = BINS_WEIGHT * optax.softmax_cross_entropy(logits, bins)
    return LossTerms(minimized)
