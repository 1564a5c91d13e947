"""Measures a network on labelled boards: its loss, and how well its distributions of values fit the labels."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagateau.data.packed import Boards
from alphagateau.distributed.mesh import REPLICATED, shardings
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.heads import mean_of_bins
from alphagateau.networks.network import Network, Variables
from alphagateau.training.frames import ACTION_KNOWN, ACTION_VALUE, STATE_KNOWN, STATE_VALUE
from alphagateau.training.labels.labelled_frames import to_frames
from alphagateau.training.losses.label_losses import VALUE_LOSSES
from alphagateau.training.losses.policy_value import reduce_terms
from alphagateau.training.losses.terms import AMONG, LossFn

ROWS = 128  # boards of a forward pass
OUTPUTS = {  # a network's output, and the labels that it is compared with
    "action_value": ("action_value_logits", ACTION_VALUE, ACTION_KNOWN),
    "state_value": ("value_logits", STATE_VALUE, STATE_KNOWN),
}

HeldOut = Callable[[Variables], dict[str, float]]  # weights -> means by name, such as test/action_accuracy


def spread_boards(columns: Boards, number: int) -> Boards:
    """`number` boards at equal distances, in memory; all boards, on disk, if it is 0 or there are no more."""
    if not 0 < number < len(columns.count):
        return columns
    rows = np.arange(number) * len(columns.count) // number
    return jax.tree.map(lambda column: column[rows], columns)


def choose_boards(columns: Boards, number: int) -> Boards:
    """Up to `number` boards, spread evenly over the games; a multiple of ROWS if they are more."""
    number = min(number, len(columns.count))
    return spread_boards(columns, number - number % min(ROWS, number))


def make_held_out(rows: Boards, game: Game, network: Network, loss: LossFn, temperature: float, mesh: Mesh) -> HeldOut:
    """The measure of weights by `loss` on boards with all their labels; `temperature` is the policy target's."""
    size = min(ROWS, len(rows.count))
    rows = jax.device_put(rows, shardings(mesh, REPLICATED))

    @jax.jit
    def measure(variables: Variables, rows: Boards):
        frames = to_frames(rows, temperature)
        parts = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), frames.position)
        evaluation = jax.lax.map(lambda part: network.apply(variables, part, False)[0], parts)
        evaluation = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), evaluation)
        return reduce_terms(loss(game, evaluation, frames))[1]

    def held_out(variables: Variables) -> dict[str, float]:
        found = jax.device_get(measure(variables, rows))
        return {f"test/{name}": float(x) for name, x in found.items() if not (x.ndim or name.startswith(AMONG))}

    return held_out


def measure_bins(network: Network, variables: Variables, rows: Boards) -> dict[str, np.ndarray]:
    """Measures of each board by name, of the outputs that the network has; NaN without a label.

    `*_log_loss`: -log2 of the probability of the label's bin, bits; `*_kl`: nats, from the HL-Gauss target;
    `action_value_error`: |q - label|. Those of action values are means over a board's moves.
    """

    @jax.jit
    def measure(variables: Variables, rows: Boards) -> dict[str, Array]:
        frames, measures = to_frames(rows, 0.0), {}
        evaluation, _ = network.apply(variables, frames.position, False)
        for name, (output, value, known) in OUTPUTS.items():
            if output in evaluation.extra:
                found = _measure(evaluation.extra[output], frames.extra[value], frames.extra[known])
                measures |= {f"{name}_{measure}": x for measure, x in found.items()}
        measures.pop("state_value_error", None)  # a measure of every player
        return measures

    count, found = len(rows.count), []
    for start in range(0, count, ROWS):
        numbers = np.minimum(np.arange(start, start + ROWS), count - 1)
        found.append(jax.device_get(measure(variables, jax.tree.map(lambda x, numbers=numbers: x[numbers], rows))))
    return {name: np.concatenate([part[name] for part in found])[:count] for name in (found[0] if found else ())}


def _measure(logits: Array, q: Array, known: Array) -> dict[str, Array]:
    """Means [B] over the known labels q [B, ...] of the measures of logits [B, ..., K]."""
    found = {"error": jnp.abs(mean_of_bins(logits) - q)}
    if logits.shape[-1] > 1:
        found["log_loss"] = VALUE_LOSSES["log"](q, logits)[0] / jnp.log(2.0)
        loss, least = VALUE_LOSSES["hl_gauss"](q, logits)
        found["kl"] = loss - least
    rest = tuple(range(1, q.ndim))
    count = known.sum(axis=rest)
    means = {name: jnp.where(known, x, 0.0).sum(axis=rest) / jnp.maximum(count, 1) for name, x in found.items()}
    return {name: jnp.where(count > 0, x, jnp.nan) for name, x in means.items()}
