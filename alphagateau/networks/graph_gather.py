"""Gathers and weighted sums of rows along the edges of a static graph, with gathers as their gradients.

A batch of B graphs with S nodes (or edges) each is one array [B * S, K], graph after graph. The indices are static, so
a map and its transpose are both gathers, and nothing is scattered. A sum over slots is unrolled, and jitted by itself
so that JAX traces it once for all layers and passes.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.state import Array


@dataclass(frozen=True, eq=False)
class Table:
    """A gather of one graph's rows and its transpose: place p receives row `source[p]`, if `valid[p]`.

    Row s goes to the places `places[s, 0], places[s, 1], ...`, where `is_place`.
    """

    source: np.ndarray  # int32 [P]
    valid: np.ndarray  # bool [P]
    places: np.ndarray  # int32 [S, max]
    is_place: np.ndarray  # bool [S, max]


def make_table(source: np.ndarray, num_rows: int, valid: np.ndarray | None = None) -> Table:
    """The Table of the gather `source`, flattened, out of `num_rows` rows."""
    source = source.reshape(-1)
    valid = np.ones(len(source), bool) if valid is None else valid.reshape(-1)
    places, is_place = group(np.where(valid, source, num_rows), num_rows)
    return Table(np.where(valid, source, 0), valid, places, is_place)


def group(keys: np.ndarray, num_keys: int) -> tuple[np.ndarray, np.ndarray]:
    """(indices [num_keys, max], mask): the places of each key, rising, padded with index 0."""
    places = [np.flatnonzero(keys == key) for key in range(num_keys)]
    width = max(1, *map(len, places))
    indices = np.zeros((num_keys, width), np.int32)
    for row, where in zip(indices, places, strict=True):
        row[: len(where)] = where
    return indices, np.arange(width) < np.array([len(where) for where in places])[:, None]


def repeat_for(batch: int, x: np.ndarray) -> Array:
    """Rows x [R, ...] of one graph, repeated for each of a batch, [B * R, ...]."""
    return jnp.broadcast_to(jnp.asarray(x), (batch, *x.shape)).reshape(-1, *x.shape[1:])


def take_rows(x: Array, places: Array) -> Array:
    """Rows [P, K] of x [R, K], at `places` [P] in bounds."""
    return x.at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)


def gather(x: Array, index: np.ndarray, batch: int) -> Array:
    """Rows x [B * S, K] to rows [B * R, K]: row r of each graph is its row `index[r]`.

    On a CPU, row numbers of the whole batch fuse best. Elsewhere the batch stays an axis of its own, so that the
    compiler moves nothing between devices that share the batch.
    """
    if jax.default_backend() == "cpu":
        first = jax.lax.broadcasted_iota(jnp.int32, (batch, len(index)), 0) * (len(x) // batch)
        return take_rows(x, (first + index).reshape(-1))
    rows = x.reshape(batch, -1, *x.shape[1:])
    rows = rows.at[:, index].get(mode="promise_in_bounds", wrap_negative_indices=False)  # or a kernel wraps
    return rows.reshape(-1, *x.shape[1:])


@partial(jax.jit, static_argnums=(0, 2))
def _sum_places(table: Table, y: Array, batch: int) -> Array:
    total = jnp.zeros((), y.dtype)
    for index, mask in zip(table.places.T, table.is_place.T, strict=True):
        rows = gather(y, index, batch)
        total += rows if mask.all() else jnp.where(repeat_for(batch, mask)[:, None], rows, 0)
    return total


@partial(jax.custom_vjp, nondiff_argnums=(0, 2))
def take(table: Table, x: Array, batch: int) -> Array:
    """Rows [B * S, K] to their places [B * P, K]; arbitrary where not valid."""
    return gather(x, table.source, batch)


take.defvjp(
    lambda table, x, batch: (take(table, x, batch), None), lambda table, batch, _, dy: (_sum_places(table, dy, batch),)
)


@partial(jax.custom_vjp, nondiff_argnums=(0, 3))
@partial(jax.jit, static_argnums=(0, 3))
def weighted_sum(table: Table, weights: Array, x: Array, batch: int) -> Array:
    """Rows x [B * S, K] to [B * R, K]: the sum over d of weights[r, d] times the row of place (r, d) of R * D.

    Weights [B * R, D] must be 0 where a place is not valid.
    """
    source = table.source.reshape(-1, weights.shape[1])
    return sum(weights[:, d, None] * gather(x, source[:, d], batch) for d in range(weights.shape[1]))  # pyright: ignore[reportReturnType]


@partial(jax.jit, static_argnums=(0, 1))
def _weighted_sum_backward(table: Table, batch: int, saved, dy: Array) -> tuple[Array, Array]:
    weights, x = saved
    rows, width = weights.shape
    flat = weights.reshape(-1, 1)
    if table.places.shape[1] == 1:  # each row has one place: multiply there and move scalars
        place = table.places[:, 0]
        dy_at_row = gather(dy, place // width, batch)
        products = (dy_at_row * x).sum(axis=1, keepdims=True)
        d_x = jnp.where(repeat_for(batch, table.is_place), gather(flat, place, batch) * dy_at_row, 0)
        return gather(products, table.source, batch).reshape(rows, width), d_x.astype(x.dtype)
    products = jnp.einsum("brk,bsk->brs", dy.reshape(batch, -1, dy.shape[1]), x.reshape(batch, -1, x.shape[1]))
    pair = np.arange(len(table.source)) // width * products.shape[2] + table.source
    d_weights = gather(products.reshape(-1, 1), pair, batch).reshape(rows, width)
    d_x = jnp.zeros((), dy.dtype)
    for index, mask in zip(table.places.T, table.is_place.T, strict=True):
        term = gather(flat, index, batch) * gather(dy, index // width, batch)
        d_x += term if mask.all() else jnp.where(repeat_for(batch, mask)[:, None], term, 0)
    return d_weights, d_x.astype(x.dtype)


weighted_sum.defvjp(
    lambda table, weights, x, batch: (weighted_sum(table, weights, x, batch), (weights, x)), _weighted_sum_backward
)


@jax.custom_vjp
def lookup(tables: Array, codes: Array) -> Array:
    """[R, K] of tables [C, T, K] and codes [C, R]: row r is the sum over c of row `codes[c, r]` of `tables[c]`."""
    pairs = zip(tables, codes, strict=True)
    return sum(take_rows(table, code) for table, code in pairs)  # pyright: ignore[reportReturnType]


def _lookup_backward(saved, dy: Array) -> tuple[Array, None]:
    codes, num_rows = saved
    # A matrix product: a scatter into so few rows is slow, and on a GPU the order of its sums varies.
    is_row = (codes.T[..., None] == jnp.arange(num_rows)).astype(dy.dtype)
    product = is_row.reshape(len(dy), -1).T @ dy
    return product.reshape(len(codes), num_rows, -1), None


lookup.defvjp(lambda tables, codes: (lookup(tables, codes), (codes, tables.shape[1])), _lookup_backward)


@jax.custom_vjp
def choose_rows(pairs: Array, row: Array) -> Array:
    """Rows [2 * E, K] to [B * E, K]: for edge e row e or row E + e, by `row` [B, E]."""
    return take_rows(pairs, row.reshape(-1))


def _choose_backward(row: Array, dy: Array) -> tuple[Array, None]:
    dy = dy.reshape(*row.shape, -1)
    is_second = (row >= row.shape[1])[..., None]
    second = jnp.where(is_second, dy, 0).sum(axis=0)
    return jnp.concatenate([jnp.where(is_second, 0, dy).sum(axis=0), second]), None


choose_rows.defvjp(lambda pairs, row: (choose_rows(pairs, row), row), _choose_backward)
