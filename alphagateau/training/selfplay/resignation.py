"""Resigns by search values, as the `resign_*` keys have it, and counts false resignations in games played out."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.config import SelfPlayConfig
from alphagateau.games.state import Array
from alphagateau.training.frames import Trajectory
from alphagateau.training.keys import RESIGN, fold_in_rows

NOTHING, RESIGNED, LOST, NOT_LOST = range(4)  # a ply's `outcome`


class Resigning(NamedTuple):
    """The state of resignation of B games in progress."""

    low_plies: Array  # int16 [B, 2], of white and black: own plies in a row of low value
    is_played_out: Array  # bool [B], nobody may resign
    first: Array  # int8 [B], color of who resigned first, or would have in a game played out; -1: nobody so far


def begin_resigning(config: SelfPlayConfig, key: Array, rows: Array, ply: int | Array) -> Resigning:
    """The Resigning of games `rows` [B] that begin at this ply; `key` is PLAY's."""
    keys = fold_in_rows(jax.random.fold_in(jax.random.fold_in(key, RESIGN), ply), rows)
    return Resigning(
        low_plies=jnp.zeros((len(rows), 2), jnp.int16),
        is_played_out=jax.vmap(jax.random.bernoulli, (0, None))(keys, config.resign_played_out),
        first=jnp.full(len(rows), -1, jnp.int8),
    )


def update_resigning(
    config: SelfPlayConfig, resigning: Resigning, color: Array, search_value: Array
) -> tuple[Array, Resigning]:
    """(whether the player to move resigns, bool [B]; the next Resigning), for players `color` [B]."""
    is_low = (search_value < -config.resign_value)[:, None]
    mine = jnp.arange(2) == color[:, None]
    low_plies = jnp.where(mine, jnp.where(is_low, resigning.low_plies + 1, 0), resigning.low_plies)
    gives_up = (mine & (low_plies >= config.resign_plies)).any(axis=-1)
    first = jnp.where(gives_up & (resigning.first < 0), color, resigning.first)
    return gives_up & ~resigning.is_played_out, Resigning(low_plies, resigning.is_played_out, first)


def resign(config: SelfPlayConfig, resigning: Resigning, record: Trajectory) -> tuple[Trajectory, Resigning]:
    """A ply [B] in which those who resign do so instead of moving, and the next Resigning."""
    color = record.position.color
    is_resigned, resigning = update_resigning(config, resigning, color, record.search_value)
    reward, discount = jnp.where(is_resigned, -1.0, record.reward), jnp.where(is_resigned, 0.0, record.discount)
    resignation = outcome(resigning, is_resigned, color, reward, discount)
    edge = jnp.where(is_resigned, -1, record.edge)
    return record._replace(edge=edge, reward=reward, discount=discount, resignation=resignation), resigning


def outcome(resigning: Resigning, is_resigned: Array, color: Array, reward: Array, discount: Array) -> Array:
    """int8 [B]: RESIGNED; LOST or NOT_LOST, by who would have resigned first, where a game played out ends; NOTHING."""
    is_lost = jnp.where(color == resigning.first, reward, -reward) < 0
    played_out = jnp.where(is_lost, LOST, NOT_LOST)
    found = jnp.where((discount == 0) & (resigning.first >= 0), played_out, NOTHING)
    return jnp.where(is_resigned, RESIGNED, found).astype(jnp.int8)
