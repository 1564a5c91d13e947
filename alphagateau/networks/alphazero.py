"""The paper's baseline: AlphaZero's residual CNN on the board's planes, its dense policy read out at the edges.

A pre-activation residual network: `num_blocks` blocks of two 3x3 convolutions; the policy is a 1x1 convolution to 2
planes and a dense layer to pgx's labels, of which the labels of edges are kept (the others can never be played). Its
dense layers depend on the board, so its weights do not move to another one.
"""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp

from alphagateau.games.actions import edges_by_slot, legal_edge_mask
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.graph_features import NODE_FEATURES, node_features
from alphagateau.networks.heads import Heads, make_evaluation, make_heads, read_moves_left, read_value
from alphagateau.networks.network import Evaluation, Network, Variables


class AlphaZeroNetwork(nn.Module):
    """Planes [B, size, size, 119] to outputs by name: logits over labels [B, A], what the heads say.

    Action values are of labels too, [B, A, bins].
    """

    hidden_size: int
    num_blocks: int
    normalization: str
    batch_norm_momentum: float
    num_labels: int
    dtype: str
    heads: Heads

    @nn.compact
    def __call__(self, planes: Array, train: bool, axis_name: str | None = None) -> dict[str, Array]:
        def bnr(x: Array) -> Array:
            if self.normalization == "batch":
                norm = nn.BatchNorm(not train, momentum=self.batch_norm_momentum, axis_name=axis_name)
            else:
                norm = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[self.normalization]()
            return nn.relu(norm(x.astype(jnp.float32)))

        conv = partial(nn.Conv, kernel_size=(3, 3), use_bias=False, dtype=self.dtype)
        x = conv(self.hidden_size)(planes)
        for _ in range(self.num_blocks):
            y = conv(self.hidden_size)(bnr(x))
            x = x + conv(self.hidden_size)(bnr(y))
        x = bnr(x)
        p = bnr(nn.Conv(2, (1, 1), use_bias=False, dtype=self.dtype)(x))
        p = p.reshape(len(p), -1)
        outputs = {"prior_logits": nn.Dense(self.num_labels)(p)}
        if self.heads.reply:
            outputs["reply_logits"] = nn.Dense(self.num_labels, name="reply_logit")(p)
        if self.heads.num_slots:
            labels_a_square = self.num_labels // x[0, ..., 0].size
            a = nn.Conv(labels_a_square * self.heads.num_bins, (1, 1), dtype=self.dtype, name="action_values")(x)
            a = a.astype(jnp.float32).swapaxes(1, 2)  # squares are numbered file by file
            outputs["action_value_logits"] = a.reshape(len(a), self.num_labels, self.heads.num_bins)
        v = bnr(nn.Conv(1, (1, 1), use_bias=False, dtype=self.dtype)(x))
        v = nn.relu(nn.Dense(self.hidden_size)(v.reshape(len(v), -1)))
        if self.heads.moves_left:
            outputs["moves_left"] = read_moves_left(nn.Dense(1, name="moves_left")(v))
        return outputs | read_value(self.heads, nn.Dense(self.heads.value_layer[1])(v))


def make_alphazero(game: Game, config) -> Network:
    """The CNN for `game`, as its configuration record says."""
    module = AlphaZeroNetwork(
        hidden_size=config.hidden_size,
        num_blocks=config.num_blocks,
        normalization=config.normalization,
        batch_norm_momentum=config.batch_norm_momentum,
        num_labels=game.num_labels,
        dtype=config.dtype,
        heads=make_heads(game, config),
    )

    def planes_of(positions: Position) -> Array:
        """[B, rank, file, 119]: squares are numbered file by file."""
        features = node_features(game, positions)
        return features.reshape(-1, game.size, game.size, NODE_FEATURES).transpose(0, 2, 1, 3)

    def init(key: jax.Array) -> Variables:
        planes = jnp.zeros((1, game.size, game.size, NODE_FEATURES))
        return jax.jit(partial(module.init, train=False))(key, planes)

    def apply(
        variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None
    ) -> tuple[Evaluation, Variables]:
        statistics = {k: v for k, v in variables.items() if k != "params"}
        call = partial(module.apply, variables, planes_of(positions))
        outputs, new = call(train=train, axis_name=axis_name, mutable=list(statistics) if train else [])
        labels = jnp.asarray(game.labels)
        outputs |= {name: x[:, labels] for name, x in outputs.items() if name in ("prior_logits", "reply_logits")}
        if module.heads.num_slots:
            edges = edges_by_slot(legal_edge_mask(game, positions), module.heads.num_slots)
            of_slots = labels[jnp.minimum(edges, game.num_edges - 1)][..., None]
            outputs["action_value_logits"] = jnp.take_along_axis(outputs["action_value_logits"], of_slots, axis=1)
        return make_evaluation(outputs), {**statistics, **new}

    return Network(init, apply)
