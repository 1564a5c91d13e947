"""Makes Frames from rows of labelled boards or moves, on the device."""

from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.data.packed import LARGEST, NO_VALUE, Moves
from alphagateau.games.state import HISTORY, Array, Position
from alphagateau.training.frames import ACTION_KNOWN, ACTION_SLOT, ACTION_VALUE, STATE_KNOWN, STATE_VALUE, Frame


def to_frames(rows: Any, temperature: float) -> Frame:
    """Frames [B] of `packed.Boards` or `packed.Moves` [B], whose positions have no past.

    The policy target is the first move of the highest value or, with a `temperature` above 0, softmax(q / temperature)
    over the labelled moves, where one has a value. The value target is 2 q - 1 of the state.
    """
    if isinstance(rows, Moves):
        frames, slot = to_frames(rows.boards, temperature), rows.slot.astype(jnp.int32)
        labels = {name: jnp.take_along_axis(frames.extra[name], slot, axis=1) for name in (ACTION_VALUE, ACTION_KNOWN)}
        return frames._replace(extra={**frames.extra, **labels, ACTION_SLOT: slot})
    state_value, state_known = _probability(rows.state_value)
    action_value, action_known = _probability(rows.action_value)
    policy = jax.nn.one_hot(rows.best, rows.action_value.shape[-1])
    if temperature:
        logits = jnp.where(action_known, action_value / temperature, -jnp.inf)
        soft = jnp.where(action_known, jax.nn.softmax(logits, axis=-1), 0.0)
        policy = jnp.where(action_known.any(axis=-1, keepdims=True), soft, policy)  # a move to clone has no value
    labels = {STATE_VALUE: state_value, STATE_KNOWN: state_known}
    labels |= {ACTION_VALUE: action_value, ACTION_KNOWN: action_known}
    boards = jnp.zeros((*rows.board.shape[:-1], HISTORY, rows.board.shape[-1]), jnp.int8)
    return Frame(
        position=Position(
            boards=boards.at[..., 0, :].set(rows.board),
            repeated=jnp.zeros_like(rows.castling),
            color=rows.color,
            castling=rows.castling,
            en_passant=rows.en_passant,
            halfmove_count=rows.halfmove_count,
            ply=rows.ply,
            legal=rows.legal,
        ),
        policy_target=policy.astype(jnp.float16),
        value_target=jnp.where(state_known, 2 * state_value - 1, 0.0),
        value_mask=state_known,
        policy_mask=rows.best >= 0,
        extra=labels,
    )


def _probability(codes: Array) -> tuple[Array, Array]:
    """(q of codes of `data/packed.py`, 0 without a label; whether there is one)."""
    known = codes != NO_VALUE
    return jnp.where(known, codes.astype(jnp.float32) / LARGEST, 0.0), known
