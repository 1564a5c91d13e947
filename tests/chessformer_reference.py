"""Chessformer as its paper prints it: one position, loops over squares and heads in numpy, float64."""

import numpy as np

from alphagateau.games.rules import Game
from alphagateau.games.state import Position


def mish(x):
    return x * np.tanh(np.log1p(np.exp(x)))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def rms_norm(g, y):
    return g * y / np.sqrt((y**2).mean(axis=-1, keepdims=True) + 1e-5)


def tokens(game: Game, position: Position) -> np.ndarray:
    """[N, 112], number by number, of one Position."""
    found = np.zeros((game.num_squares, 112))
    castling, repeated = int(position.castling), int(position.repeated)
    for square in range(game.num_squares):
        for i in range(8):
            code = int(position.boards[i, square])
            if code:
                found[square, 13 * i + (code - 1 if code > 0 else 5 - code)] = 1
            found[square, 13 * i + 12] = repeated >> i & 1
        found[square, 104:108] = [castling >> bit & 1 for bit in range(4)]
        found[square, 108] = square == int(position.en_passant)
        found[square, 109:] = int(position.halfmove_count) / 100, int(position.ply) / game.max_plies, 1
    return found


def scale_and_shift(params, size: int, x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    for square in range(size * size):
        file, rank = divmod(square, size)
        distances = enumerate((file, size - 1 - file, rank, size - 1 - rank))
        scale, shift = 1.0, 0.0
        for edge, distance in distances:
            scale, shift = scale + params["scale"][edge, distance], shift + params["shift"][edge, distance]
        out[square] = np.maximum(scale, 0) * x[square] + shift
    return out


def attention(position: str, w, size: int, num_heads: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equations (1) to (7): z [N, d] before W_O, and the weights [H, N, N], of one position's x [N, d]."""
    if position == "absolute":
        x = x + w["c"]
    d, squares = x.shape[1] // num_heads, range(size * size)
    z, weights = np.zeros_like(x), np.zeros((num_heads, size * size, size * size))
    zero = np.zeros(d)
    for head in range(num_heads):
        columns = slice(head * d, (head + 1) * d)
        q, k, v = ((x @ w[name])[:, columns] for name in ("W_Q", "W_K", "W_V"))

        def row(name, i, j, missing, head=head):
            if name not in w:
                return missing
            (file_i, rank_i), (file_j, rank_j) = divmod(i, size), divmod(j, size)
            return w[name][head, 7 + file_i - file_j, 7 + rank_i - rank_j]

        for i in squares:
            e = [
                (q[i] + row("A_Q", i, j, zero)) @ (k[j] + row("A_K", i, j, zero)) / np.sqrt(d) + row("D", i, j, 0.0)
                for j in squares
            ]
            weights[head, i] = softmax(np.array(e))
            z[i, columns] = sum(weights[head, i, j] * (v[j] + row("A_V", i, j, zero)) for j in squares)
    return z, weights


def layer(position: str, w, size: int, num_heads: int, num_blocks: int, x: np.ndarray) -> np.ndarray:
    """An encoder layer, Post-LN with DeepNorm's alpha."""
    alpha = (2 * num_blocks) ** 0.25
    z, _ = attention(position, w, size, num_heads, x)
    x = rms_norm(w["g1"], x + (z @ w["W_O"] + w["b_O"]) / alpha)
    return rms_norm(w["g2"], x + (mish(x @ w["W1"] + w["b1"]) @ w["W2"] + w["b2"]) / alpha)


def dense(params, x):
    return x @ params["kernel"] + params["bias"]


def prior_logits(game: Game, params, x: np.ndarray) -> np.ndarray:
    """[E], edge by edge, of the tokens x [N, d] that leave the encoder."""
    p = mish(dense(params["policy"], x))
    q, k, u = dense(params["prior"]["query"], p), dense(params["prior"]["key"], p), params["prior"]["promotion"]
    found = []
    for sender, receiver, promotion in zip(game.senders, game.receivers, game.promotions, strict=True):
        logit = q[sender] @ k[receiver] / np.sqrt(x.shape[1])
        found.append(logit + (u[promotion - 2] @ k[receiver] if promotion else 0.0))
    return np.array(found)


def value(params, x: np.ndarray) -> float:
    """By attention pooling and tanh, of the tokens that leave the encoder."""
    h = mish(dense(params["token"], x))
    logits = (h @ params["a"])[:, 0]
    pooled = softmax(np.where(logits > 0, logits, 0.2 * logits)) @ h
    return float(np.tanh(dense(params["out"], mish(dense(params["hidden"], pooled)))[0]))


def evaluate(game: Game, config, params, position: Position) -> tuple[np.ndarray, float]:
    """(prior logits [E], value) of one Position."""
    x = mish(dense(params["embed"], tokens(game, position)))
    if "squares" in params:
        x = scale_and_shift(params["squares"], game.size, x)
    for i in range(config.num_blocks):
        w = params[f"block{i}"]
        x = layer(config.position, w, game.size, config.num_heads, config.num_blocks, x)
    heads = params["heads"]
    return prior_logits(game, heads, x), value(heads["value"], x)
