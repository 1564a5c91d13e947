"""Pretrains new weights to count material, on positions of random games (Lai 2015)."""

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.config import TrainingConfig
from alphagateau.config.schema import MATERIAL_BATCH as BATCH
from alphagateau.games.actions import edge_at
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, State
from alphagateau.games.symmetry import select
from alphagateau.networks.network import Evaluation, Network, Variables
from alphagateau.training.frames import Frame
from alphagateau.training.keys import MATERIAL, key_of
from alphagateau.training.learner import TrainState, make_learner
from alphagateau.training.losses.terms import LossTerms, value_terms
from alphagateau.training.optimizer import make_optimizer
from alphagateau.training.selfplay.selfplay import start_games

WORTH = np.array([0, 198, 817, 836, 1270, 2521, 0], np.float32)  # by piece code, as in Giraffe's published code
SCALE = 0.001
RESTART_SHARE = 1 / 40  # of the games a ply, so that a batch has positions of all ages


def material_value(positions: Position) -> Array:
    """tanh(SCALE * (own - the opponent's material)) of Positions [B], for the player to move."""
    codes = positions.boards[:, 0].astype(jnp.int32)
    return jnp.tanh(SCALE * (jnp.sign(codes) * jnp.asarray(WORTH)[jnp.abs(codes)]).sum(axis=-1))


def material_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """The squared error of the value; neither policy nor auxiliary heads learn."""
    del game
    return value_terms(evaluation, frames, jnp.square(evaluation.value - frames.value_target))


def learn_material(game: Game, network: Network, variables: Variables, num_positions: int, seed: int) -> Variables:
    """The weights after one epoch over `num_positions` of random games, rounded up to a batch; by AdaDelta."""
    adadelta = make_optimizer(1.0, TrainingConfig(optimizer="adadelta", batch_size=BATCH))
    learner = make_learner(game, network, material_loss, adadelta)
    num_steps, start = -(-num_positions // BATCH), start_games(game, BATCH)

    def one_step(carry: tuple[TrainState, State], key: Array) -> tuple[tuple[TrainState, State], None]:
        train, states = carry
        draw, restart = jax.random.split(key)
        draws = jax.random.uniform(draw, states.legal_edges.shape)
        slot = jnp.argmax(jnp.where(states.legal_edges >= 0, draws, -1.0), axis=-1)
        states = jax.vmap(game.step)(states, edge_at(states, slot))
        is_new = states.terminated | jax.random.bernoulli(restart, RESTART_SHARE, (BATCH,))
        states = select(is_new, start, states)
        positions = jax.vmap(game.position)(states)
        no_policy = jnp.zeros((BATCH, game.max_legal_moves), jnp.float16)
        frames = Frame(positions, no_policy, material_value(positions), jnp.ones(BATCH, bool))
        return (learner.step(train, frames)[0], states), None

    @jax.jit
    def learn(variables: Variables, key: Array) -> Variables:
        keys = jax.random.split(key, num_steps)
        (train, _), _ = jax.lax.scan(one_step, (learner.init(variables), start), keys)
        return train.variables

    return learn(variables, key_of(seed, MATERIAL))
