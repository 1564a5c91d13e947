"""What self-play tells for nothing of a ply, the opponent's reply and the plies left: targets and terms of a loss."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.games.symmetry import edges_from_other_side
from alphagateau.networks.heads import PLIES_SCALE
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame, Trajectory
from alphagateau.training.loss_terms import LossTerms, join_terms

REPLY_WEIGHT = 0.15  # of the opponent's reply (Wu 2020, KataGo)
HUBER_DELTA = 0.5  # of plies left in units of PLIES_SCALE, as in Leela Chess Zero


def reply_edge(trajectory: Trajectory) -> Array:
    """int16 [T, B]: the edge that the opponent then played, as the opponent saw it; -1: the game ended, or no ply."""
    after = jnp.concatenate([trajectory.edge[1:], jnp.full_like(trajectory.edge[:1], -1)])
    return jnp.where(trajectory.discount < 0, after, -1).astype(jnp.int16)


def moves_left(trajectory: Trajectory) -> Array:
    """int16 [T, B]: plies from this one to the end of its game, 1 for the last; -1: its end is not known."""

    def back(left: Array, discount: Array) -> tuple[Array, Array]:
        left = jnp.where(discount == 0, 1, jnp.where(left < 0, -1, left + 1))
        return left, left.astype(jnp.int16)

    unknown = jnp.full(trajectory.discount.shape[1:], -1, jnp.int32)
    return jax.lax.scan(back, unknown, trajectory.discount, reverse=True)[1]


TARGETS: dict[str, Callable[[Trajectory], Array]] = {"reply_edge": reply_edge, "moves_left": moves_left}


def auxiliary_targets(network_config) -> tuple[str, ...]:
    """Names of the targets that a network with these heads learns."""
    wanted = {"reply_edge": network_config.reply_head, "moves_left": network_config.moves_left_head}
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def auxiliary_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """The terms of those heads that the network has, none without; a frame whose target is not known counts 0."""
    terms = {"reply_logits": reply_terms, "moves_left": moves_left_terms}
    return join_terms(*(term(game, evaluation, frames) for name, term in terms.items() if name in evaluation.extra))


def reply_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Cross-entropy of the reply among all edges, nats, times its weight.

    Frames hold the reply as the opponent saw it, so that it is an edge like any other; the network is asked at the
    edge between the same two squares as it sees them, the only one that its layers connect with the pieces there.
    """
    known = frames.extra["reply_edge"] >= 0
    edges = jnp.asarray(edges_from_other_side(game))[jnp.maximum(frames.extra["reply_edge"], 0)]
    logits = evaluation.extra["reply_logits"]
    log_reply = jnp.take_along_axis(jax.nn.log_softmax(logits), edges[:, None], axis=-1)[:, 0]
    right = known & (jnp.argmax(logits, axis=-1) == edges)
    loss = jnp.where(known, -REPLY_WEIGHT * log_reply, 0.0)
    return LossTerms({"reply_loss": loss}, {}, {"reply_accuracy": (right, known)}, {})


def moves_left_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Huber loss of the plies left, in units of PLIES_SCALE, as in Leela Chess Zero."""
    target, known = frames.extra["moves_left"].astype(jnp.float32), frames.extra["moves_left"] >= 0
    error = jnp.where(known, evaluation.extra["moves_left"] - target, 0.0)
    loss = optax.huber_loss(error / PLIES_SCALE, delta=HUBER_DELTA)
    return LossTerms({"moves_left_loss": loss}, {}, {"moves_left_error": (jnp.abs(error), known)}, {})
