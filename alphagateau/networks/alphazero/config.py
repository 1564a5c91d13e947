"""Keys of AlphaZero's CNN in an experiment."""

from typing import Literal

from alphagateau.config.records import choice, entry, key, num, record
from alphagateau.config.registers import NETWORKS, Architecture, NetworkConfig, deferred
from alphagateau.networks import keys


@record
class AlphaZeroConfig(NetworkConfig):
    """AlphaZero's residual CNN, the baseline."""

    architecture: Literal["alphazero"] = entry("kind of network", NETWORKS, default="alphazero")
    hidden_size: int = num("channels of a convolution", default=128, low=1, high=keys.MOST_FEATURES)
    num_blocks: int = num("residual blocks of two layers each", default=5, low=1, high=keys.MOST_BLOCKS)
    readout: Literal["dense", "squares"] = choice(
        "policy and value come from dense layers (one board), or from every square alike", default="dense"
    )
    normalization: Literal["batch", "layer", "rms"] = choice("what precedes each ReLU", default="batch")
    dtype: Literal["float32", "bfloat16"] = choice("number format of the computation", default="float32")
    batch_norm_momentum: float = num("decay of the running statistics per step", default=0.9, high=0.999999)
    history: bool = key("positions before the present one are seen", default=True)
    value_head: Literal["scalar", "wdl", "bins"] = choice(keys.VALUE_HEADS, default="scalar")
    action_values: bool = key(keys.ACTION_VALUES, default=False)
    num_bins: int = num(keys.NUM_BINS, default=32, low=1, high=keys.MOST_BINS)
    reply_head: bool = key(keys.REPLY_HEAD, default=False)
    moves_left_head: bool = key(keys.MOVES_LEFT_HEAD, default=False)

    @property
    def plays_every_board(self) -> bool:
        """Whether no weight belongs to a square."""
        return self.readout == "squares"


ALPHAZERO = Architecture(
    "alphazero", AlphaZeroConfig, deferred("alphagateau.networks.alphazero.network:make_alphazero")
)
