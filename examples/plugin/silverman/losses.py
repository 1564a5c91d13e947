"""Policy and value with a Huber loss, and a head that learns the pieces' balance two plies later."""

import jax.numpy as jnp
import optax

from alphagateau.training.losses.auxiliary import auxiliary_terms
from alphagateau.training.losses.terms import LossTerms, join_terms, policy_terms, value_terms

UNKNOWN = -128  # the game ends, or the trajectory, before the two plies are played


def material_later(trajectory):
    """int8 [T, B]: own pieces minus the opponent's two plies later, for the player to move."""
    balance = jnp.sign(trajectory.position.boards[:, :, 0]).sum(axis=-1)
    goes_on = trajectory.discount != 0  # [T, B]
    is_known = goes_on[:-2] & goes_on[1:-1]
    unknown = jnp.full_like(balance[:2], UNKNOWN)
    return jnp.concatenate([jnp.where(is_known, balance[2:], UNKNOWN), unknown]).astype(jnp.int8)


def material_terms(game, evaluation, frames) -> LossTerms:
    """Squared error; a frame whose target is unknown counts 0."""
    target = frames.extra["material"].astype(jnp.float32)
    error = jnp.where(target == UNKNOWN, 0.0, evaluation.extra["material"] - target)
    return LossTerms({"material_loss": 0.01 * jnp.square(error)}, {}, {}, {})


def policy_value_huber(game, evaluation, frames) -> LossTerms:
    """Cross-entropy to the search's policy, Huber loss of the value, and the terms of the network's heads."""
    value_losses = optax.huber_loss(evaluation.value, frames.value_target, delta=0.5)  # 0 where it is not known
    return join_terms(
        policy_terms(game, evaluation, frames),
        value_terms(evaluation, frames, value_losses),
        auxiliary_terms(game, evaluation, frames),
    )
