"""Measures the noise of policy targets and the effect of mirrors on a sample of an iteration's positions."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from alphagateau.config import Experiment
from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED, per_device
from alphagateau.games.actions import edge_at
from alphagateau.games.rules import Game
from alphagateau.games.state import KEYS, Array, Position, State
from alphagateau.games.symmetry import has_mirror, mirror_edges, mirror_positions, select
from alphagateau.networks.network import Variables
from alphagateau.search.search import Search
from alphagateau.training.keys import PROBE, key_of

# (variables, Positions [T, B], iteration) -> sums over the sample, by name
Probe = Callable[[Variables, Position, int | Array], dict[str, Array]]


def make_probe(experiment: Experiment, game: Game, search: Search, mesh: Mesh) -> Probe:
    """The probe of `sample_roots` positions, at least one of each share."""
    share_ids = jnp.arange(experiment.num_shares)
    num_roots = -(-experiment.sample_roots // experiment.num_shares)

    @per_device(mesh, (REPLICATED, REPLICATED, BY_FIRST, BY_SECOND), BY_FIRST)
    def local(variables, key, share_ids, positions):
        num_games = positions.ply.shape[1] // len(share_ids)

        def draw(share: Array, place: Array) -> tuple[Position, Array]:
            drawn, seed = jax.random.split(jax.random.fold_in(key, share))
            cells = jax.random.choice(drawn, len(positions.ply) * num_games, (num_roots,))
            ply, game = jnp.divmod(cells, num_games)
            roots = jax.tree.map(lambda x: x[ply, place * num_games + game], positions)
            return roots, jax.random.split(seed, (num_roots, 3))

        roots, keys = jax.vmap(draw)(share_ids, jnp.arange(len(share_ids)))
        roots, keys = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (roots, keys))
        return measure_roots(game, search, variables, roots, keys)

    @jax.jit
    def probe(variables: Variables, positions: Position, seed: Array, iteration: Array) -> dict[str, Array]:
        of_roots = local(variables, key_of(seed, iteration, PROBE), share_ids, positions)
        return {name: x.sum() for name, x in of_roots.items()}

    return lambda variables, positions, iteration: probe(variables, positions, experiment.seed, iteration)


def measure_roots(game: Game, search: Search, variables: Variables, roots: Position, keys: Array) -> dict[str, Array]:
    """Measures of B roots, float32 [B], by one search of the roots, the roots again, their images; `keys` [B, 3]."""
    images = select(has_mirror(roots), mirror_positions(game, roots), roots)
    rows = jax.tree.map(lambda x, y: jnp.concatenate([x, x, y]), roots, images)
    states = jax.vmap(lambda position: root_of(game, position))(rows)
    found = search(variables, keys.swapaxes(0, 1).reshape(-1), states)
    best, _, of_image = jnp.split(edge_at(states, found.prior_logits.argmax(axis=-1)), 3)
    value, _, value_there = jnp.split(found.value, 3)
    one, other, _ = jnp.split(found.action_weights, 3)
    return {
        "roots": jnp.ones(len(value)),
        "target_noise": divergence(one, other),
        "mirrored": has_mirror(roots).astype(jnp.float32),
        "mirror_disagreements": has_mirror(roots) & (best != jnp.asarray(mirror_edges(game))[of_image]),
        "mirror_value_gap": jnp.abs(value - value_there),
    }


def root_of(game: Game, position: Position) -> State:
    """The State of a Position, with its past boards and without their keys, so without repetitions."""
    castling = jnp.unpackbits(position.castling[None], count=4, bitorder="little").astype(bool)
    known = (position.boards[0], position.color, castling, position.en_passant, position.halfmove_count, position.ply)
    return game.enter(*known, boards=position.boards[1:], keys=jnp.zeros((KEYS - 1, 2), jnp.uint32))


def divergence(p: Array, q: Array) -> Array:
    """KL(p || q), nats, float32 [B], of policies [B, S] that are 0 on empty slots only."""
    tiny = jnp.finfo(jnp.float32).tiny
    return jnp.sum(p * (jnp.log(jnp.maximum(p, tiny)) - jnp.log(jnp.maximum(q, tiny))), axis=-1)


def probe_metrics(sums: Mapping[str, float]) -> dict[str, float]:
    """Means of a Probe's sums, without those of mirrors if no position of the sample has an image."""
    if not sums:
        return {}
    values = {"search/target_noise": sums["target_noise"] / sums["roots"]}
    if sums["mirrored"]:
        values["network/mirror_disagreement"] = sums["mirror_disagreements"] / sums["mirrored"]
        values["network/mirror_value_gap"] = sums["mirror_value_gap"] / sums["mirrored"]
    return values
