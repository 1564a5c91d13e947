"""AlphaZero's residual CNN on the board's planes, the paper's baseline.

A pre-activation residual network of `num_blocks` blocks of two 3x3 convolutions. With `readout` "dense" the policy is a
1x1 convolution to 2 planes and a dense layer to pgx's labels, from which those of edges are gathered; dense layers
depend on the board, so the weights play no other one.

With "squares" they do: as in AlphaZero's paper, the policy is a plane for each of the 73 moves of 8x8, of which an edge
takes the logit at its sender; the value pools the squares as in GATEAU.
"""

from collections.abc import Callable
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.actions import edges_by_slot, legal_edge_mask
from alphagateau.games.edges import move_planes
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.alphazero.convolutions import convolve
from alphagateau.networks.heads import attention_pooling, make_evaluation, read_moves_left, read_value, value_layer
from alphagateau.networks.network import Network, Outputs, Variables, statistics_of
from alphagateau.networks.planes import NUM_PLANES, square_planes

Conv = partial(nn.Conv, conv_general_dilated=convolve)
MOVE_PLANES = move_planes(8)  # of the largest board: (files right, ranks up, under-promotion or 0)


class AlphaZeroNetwork(nn.Module):
    """Planes [B, size, size, 119] to outputs by name; policy [B, A] and action values [B, A, bins] are by place.

    A place is a label of the board, or (sender, plane of the move), as in `places_on_every_board`.
    """

    config: AlphaZeroConfig
    num_places: int

    @property
    def is_dense(self) -> bool:
        return self.config.readout == "dense"

    @property
    def conv(self) -> Callable:
        """A 1x1 convolution."""
        return partial(Conv, kernel_size=(1, 1), dtype=self.config.dtype)

    @nn.compact
    def __call__(self, planes: Array, train: bool, axis_name: str | None = None) -> dict[str, Array]:
        config = self.config

        def bnr(x: Array) -> Array:
            if config.normalization == "batch":
                norm = nn.BatchNorm(not train, momentum=config.batch_norm_momentum, axis_name=axis_name)
            else:
                norm = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}[config.normalization]()
            return nn.relu(norm(x.astype(jnp.float32)))

        conv = partial(Conv, config.hidden_size, (3, 3), use_bias=False, dtype=config.dtype)
        x = conv()(planes)
        for _ in range(config.num_blocks):
            y = conv()(bnr(x))
            x = x + conv()(bnr(y))
        x = bnr(x)
        outputs = self.policies(bnr, x)
        if config.action_values:
            outputs["action_value_logits"] = self.at_squares(x, config.num_bins, "action_values")
        return outputs | self.values(bnr, x)

    def policies(self, bnr: Callable[[Array], Array], x: Array) -> dict[str, Array]:
        """Logits [B, A] of the policy and of the opponent's reply, if there is a head."""
        p = bnr(self.conv(2 if self.is_dense else self.config.hidden_size, use_bias=False)(x))

        def logits(name: str | None) -> Array:
            if self.is_dense:
                return nn.Dense(self.num_places, name=name)(p.reshape(len(p), -1))
            return self.at_squares(p, 1, name)[..., 0]

        return {"prior_logits": logits(None)} | (
            {"reply_logits": logits("reply_logit")} if self.config.reply_head else {}
        )

    def at_squares(self, x: Array, num_outputs: int, name: str | None) -> Array:
        """[B, A, outputs] by a 1x1 convolution of x [B, rank, file, K]."""
        places_a_square = self.num_places // x[0, ..., 0].size
        a = self.conv(places_a_square * num_outputs, name=name)(x)
        a = a.astype(jnp.float32).swapaxes(1, 2)  # squares are numbered file by file
        return a.reshape(len(a), self.num_places, num_outputs)

    def values(self, bnr: Callable[[Array], Array], x: Array) -> dict[str, Array]:
        """Value and plies left, by name."""
        config = self.config
        v = bnr(self.conv(1 if self.is_dense else config.hidden_size, use_bias=False)(x))
        if self.is_dense:
            v = v.reshape(len(v), -1)
        else:
            a = self.param("value_pooling", nn.initializers.glorot_uniform(), (config.hidden_size, 1))
            v = attention_pooling(a, v.reshape(len(v), -1, config.hidden_size))
        v = nn.relu(nn.Dense(config.hidden_size)(v))
        moves_left = (
            {"moves_left": read_moves_left(nn.Dense(1, name="moves_left")(v))} if config.moves_left_head else {}
        )
        return moves_left | read_value(config.value_head, nn.Dense(value_layer(config)[1])(v))


def places_on_every_board(game: Game) -> np.ndarray:
    """int32 [E]: sender * 73 + the plane of the edge's move on 8x8."""
    plane = {move: number for number, move in enumerate(MOVE_PLANES)}
    (file, rank), (to_file, to_rank) = (np.divmod(x, game.size) for x in (game.senders, game.receivers))
    moves = zip((to_file - file).tolist(), (to_rank - rank).tolist(), game.promotions.tolist(), strict=True)
    return game.senders * len(MOVE_PLANES) + np.array([plane[move] for move in moves], np.int32)


def make_alphazero(game: Game, config) -> Network:
    """Makes the CNN of an AlphaZeroConfig, for `game`."""
    is_dense = config.readout == "dense"
    places = jnp.asarray(game.labels if is_dense else places_on_every_board(game))
    module = AlphaZeroNetwork(config, game.num_labels if is_dense else game.num_squares * len(MOVE_PLANES))

    def init(key: jax.Array) -> Variables:
        planes = jnp.zeros((1, game.size, game.size, NUM_PLANES))
        return jax.jit(partial(module.init, train=False))(key, planes)

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        statistics = statistics_of(variables)
        planes = square_planes(game, positions).reshape(-1, game.size, game.size, NUM_PLANES)
        call = partial(module.apply, variables, planes.transpose(0, 2, 1, 3))  # squares are numbered file by file
        outputs, new = call(train=train, axis_name=axis_name, mutable=list(statistics) if train else [])
        outputs |= {name: x[:, places] for name, x in outputs.items() if name in ("prior_logits", "reply_logits")}
        if config.action_values:
            edges = edges_by_slot(legal_edge_mask(game, positions), game.max_legal_moves)
            slot_places = places[jnp.minimum(edges, game.num_edges - 1)][..., None]
            outputs["action_value_logits"] = jnp.take_along_axis(outputs["action_value_logits"], slot_places, axis=1)
        return make_evaluation(outputs), {**statistics, **new}

    return Network(init, apply)
