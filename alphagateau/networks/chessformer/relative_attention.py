"""Self-attention between squares, biased by their offset.

With q, k, v the rows of a head, d its width and o the offset (files, ranks) from key j to query i,

    e_ij = (q_i + A^Q_o) . (k_j + A^K_o) / sqrt(d) + D_o        w_ij = softmax over j
    z_i = sum over j of w_ij (v_j + A^V_o)

"bias" has D alone, "shaw" A^Q, A^K and A^V (equations (6) and (7) of Chessformer), "shaw_kv" the last two, as Shaw et
al. (2018), and "absolute" adds a vector c_i to each token before q, k and v (equation (4)). Tables have a row for every
offset of the largest board, so those learnt on a small board serve on a larger one.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.state import Array
from alphagateau.networks.layers import ZEROS, Weight, einsum

FARTHEST = 7  # files or ranks between two squares of the largest board
SIDE = 2 * FARTHEST + 1
TABLES = {"absolute": (), "bias": ("D",), "shaw_kv": ("A_K", "A_V"), "shaw": ("A_Q", "A_K", "A_V")}

Places = dict[str, Array]  # by table: [H, N, N, d], of query, key; D and "A_QK" [H, N, N]


def place_weights(position: str, num_squares: int, num_heads: int, head_size: int) -> dict[str, Weight]:
    """A layer's tables [H, 15, 15, d] by offset, or a vector a square; all are 0 at first."""
    if position == "absolute":
        return {"c": Weight((num_squares, num_heads * head_size), ZEROS)}
    shape = num_heads, SIDE, SIDE
    return {name: Weight(shape if name == "D" else (*shape, head_size), ZEROS) for name in TABLES[position]}


def make_places(position: str, w: dict[str, Array], size: int) -> Places:
    """The tables of a layer spread over the pairs of squares of a board, once for a batch."""
    tables = {name: w[name] for name in TABLES[position]}
    if position == "shaw":
        tables["A_QK"] = (tables["A_Q"] * tables["A_K"]).sum(axis=-1)
    return {name: spread(table, size) for name, table in tables.items()}


def spread(table: Array, size: int) -> Array:
    """[H, 15, 15, ...] by offset to [H, N, N, ...] by query and key.

    By slices, pads and sums, whose gradients are again such; a gather's gradient is a scatter.
    """
    near = slice(FARTHEST + 1 - size, FARTHEST + size)
    by_rank = jax.vmap(jax.vmap(pairs_of_offsets))(table[:, near, near])  # [H, file offset, i, j, ...]
    by_pair = jax.vmap(pairs_of_offsets)(by_rank)  # [H, files i, j, ranks i, j, ...]
    by_pair = by_pair.swapaxes(2, 3)
    return by_pair.reshape(len(table), size * size, size * size, *table.shape[3:])


def pairs_of_offsets(x: Array) -> Array:
    """Rows x [2 S - 1, ...] by offset from 1 - S to S - 1, as [S, S, ...]: at (i, j) the offset i - j."""
    size = (len(x) + 1) // 2
    rows = jnp.broadcast_to(x, (size, *x.shape)).reshape(-1, *x.shape[1:])
    rows = jnp.concatenate([rows, jnp.zeros((size, *x.shape[1:]), x.dtype)])
    # Rows are one longer than x, so each begins one later: row i, column c is x[i + c].
    return rows.reshape(size, 2 * size, *x.shape[1:])[:, :size][:, ::-1]


def attention_weights(q: Array, k: Array, places: Places, dtype: str) -> Array:
    """The weights w [B, H, N, N], by query and key, of q and k [B, H, N, d]."""
    logits = einsum("bhid,bhjd->bhij", q, k, dtype)
    if "A_K" in places:
        logits += einsum("bhid,hijd->bhij", q, places["A_K"], dtype)
    if "A_Q" in places:
        logits += einsum("bhjd,hijd->bhij", k, places["A_Q"], dtype) + places["A_QK"]
    return jax.nn.softmax(logits / np.sqrt(q.shape[-1]) + places.get("D", 0.0))


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def attend(q: Array, k: Array, v: Array, places: Places, dtype: str) -> Array:
    """The output z [B, H, N, d] of attention with q, k and v [B, H, N, d]."""
    return _attend_forward(q, k, v, places, dtype)[0]


def _attend_forward(q: Array, k: Array, v: Array, places: Places, dtype: str) -> tuple[Array, tuple]:
    w = attention_weights(q, k, places, dtype)
    z = einsum("bhij,bhjd->bhid", w, v, dtype)
    if "A_V" in places:
        z += einsum("bhij,hijd->bhid", w, places["A_V"], dtype)
    return z, (q, k, v, places, w, z)


def _attend_backward(dtype: str, saved: tuple, dz: Array) -> tuple[Array, Array, Array, Places]:
    """By hand, to store no [N, N] array but the weights: the sum over j of w dw is dz . z."""
    q, k, v, places, w, z = saved
    dw, dv = einsum("bhid,bhjd->bhij", dz, v, dtype), einsum("bhij,bhid->bhjd", w, dz, dtype)
    if "A_V" in places:
        dw += einsum("bhid,hijd->bhij", dz, places["A_V"], dtype)
    d_logits = w * (dw - (dz * z).sum(axis=-1, keepdims=True))
    de = d_logits / np.sqrt(q.shape[-1])
    dq, dk = einsum("bhij,bhjd->bhid", de, k, dtype), einsum("bhij,bhid->bhjd", de, q, dtype)
    d_places: Places = {"D": d_logits.sum(axis=0)} if "D" in places else {}
    if "A_K" in places:
        dq += einsum("bhij,hijd->bhid", de, places["A_K"], dtype)
        d_places["A_K"] = einsum("bhij,bhid->hijd", de, q, dtype)
        d_places["A_V"] = einsum("bhij,bhid->hijd", w, dz, dtype)
    if "A_Q" in places:
        dk += einsum("bhij,hijd->bhjd", de, places["A_Q"], dtype)
        d_places |= {"A_Q": einsum("bhij,bhjd->hijd", de, k, dtype), "A_QK": de.sum(axis=0)}
    return dq, dk, dv, d_places


attend.defvjp(_attend_forward, _attend_backward)
