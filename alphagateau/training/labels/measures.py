"""Measures how well a network's distributions of values fit labels; `suites/labelled_moves.py` has other measures."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.data.packed import Boards
from alphagateau.games.state import Array
from alphagateau.networks.heads import mean_of_bins
from alphagateau.networks.network import Network, Variables
from alphagateau.training.frames import ACTION_KNOWN, ACTION_VALUE, STATE_KNOWN, STATE_VALUE
from alphagateau.training.labels.labelled_frames import to_frames
from alphagateau.training.losses.label_losses import VALUE_LOSSES

ROWS = 128  # boards of a device call
OUTPUTS = {  # a network's output, and the labels that it is compared with
    "action_value": ("action_value_logits", ACTION_VALUE, ACTION_KNOWN),
    "state_value": ("value_logits", STATE_VALUE, STATE_KNOWN),
}


def measure_bins(network: Network, variables: Variables, rows: Boards) -> dict[str, np.ndarray]:
    """Measures of each board by name, of the outputs that the network has; NaN without a label.

    `*_log_loss`: -log2 of the probability of the label's bin, bits; `*_kl`: nats, from the HL-Gauss target;
    `action_value_error`: |q - label|. Those of action values are means over a board's moves.
    """
    count, found = len(rows.count), []
    look = _make_look(network)
    for start in range(0, count, ROWS):
        numbers = np.minimum(np.arange(start, start + ROWS), count - 1)
        found.append(jax.device_get(look(variables, jax.tree.map(lambda x, numbers=numbers: x[numbers], rows))))
    return {name: np.concatenate([part[name] for part in found])[:count] for name in (found[0] if found else ())}


def _make_look(network: Network) -> Callable[[Variables, Boards], dict[str, Array]]:
    def look(variables: Variables, rows: Boards) -> dict[str, Array]:
        frames, measures = to_frames(rows, 0.0), {}
        evaluation, _ = network.apply(variables, frames.position, False)
        for name, (output, value, known) in OUTPUTS.items():
            if output in evaluation.extra:
                found = _measure(evaluation.extra[output], frames.extra[value], frames.extra[known])
                measures |= {f"{name}_{measure}": x for measure, x in found.items()}
        measures.pop("state_value_error", None)  # a measure of every player
        return measures

    return jax.jit(look)


def _measure(logits: Array, q: Array, known: Array) -> dict[str, Array]:
    """Means [B] over the known labels q [B, ...] of what logits [B, ..., K] are off."""
    found = {"error": jnp.abs(mean_of_bins(logits) - q)}
    if logits.shape[-1] > 1:
        found["log_loss"] = VALUE_LOSSES["log"](q, logits)[0] / jnp.log(2.0)
        loss, least = VALUE_LOSSES["hl_gauss"](q, logits)
        found["kl"] = loss - least
    rest = tuple(range(1, q.ndim))
    count = known.sum(axis=rest)
    means = {name: jnp.where(known, x, 0.0).sum(axis=rest) / jnp.maximum(count, 1) for name, x in found.items()}
    return {name: jnp.where(count > 0, x, jnp.nan) for name, x in means.items()}
