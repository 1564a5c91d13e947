"""Keys of the token transformer in an experiment."""

from typing import Literal

from pydantic import model_validator

from alphagateau.config.records import choice, entry, key, num, record
from alphagateau.config.registers import NETWORKS, Architecture, NetworkConfig, deferred
from alphagateau.networks import keys

# The published sizes of the token transformer, and `small`: hidden_size, num_blocks, num_heads.
TOKEN_SIZES = {"402k": (64, 4, 4), "small": (128, 4, 8), "9M": (256, 8, 8), "136M": (1024, 8, 8), "270M": (1024, 16, 8)}


@record
class TokenTransformerConfig(NetworkConfig):
    """The token transformer of searchless chess, which sees the position's FEN."""

    values_one_move = True
    architecture: Literal["token_transformer"] = entry("kind of network", NETWORKS, default="token_transformer")
    size: Literal["402k", "small", "9M", "136M", "270M"] = choice(
        "sets hidden_size, num_blocks, num_heads: 64, 4, 4; 128, 4, 8; 256, 8, 8; 1024, 8, 8; 1024, 16, 8",
        default="402k",
    )
    hidden_size: int = num("features of a token (0: as size says)", default=0, high=keys.MOST_FEATURES)
    num_blocks: int = num("blocks of attention and a gated layer (0: as size says)", default=0, high=keys.MOST_BLOCKS)
    num_heads: int = num("heads of attention (0: as size says)", default=0, high=keys.MOST_HEADS)
    rematerialize: bool = key(keys.REMATERIALIZE, default=False)
    dtype: Literal["float32", "bfloat16"] = choice("number format of the computation", default="float32")
    policy_head: bool = key("logits over all moves; without it the prior is of action values, or uniform", default=True)
    value_head: Literal["none", "scalar", "wdl", "bins"] = choice(
        f"{keys.VALUE_HEADS}; none: of the best action value, or 0", default="scalar"
    )
    action_values: bool = key("values of moves, by a pass of the network each", default=False)
    num_bins: int = num(keys.NUM_BINS, default=128, low=1, high=keys.MOST_BINS)
    prior_temperature: float = num(
        "of the prior of action values q, softmax(q / prior_temperature)", default=0.05, low=1e-3
    )

    @property
    def widths(self) -> tuple[int, int, int]:
        """hidden_size, num_blocks and num_heads, as given or as the size has them."""
        hidden_size, num_blocks, num_heads = TOKEN_SIZES[self.size]
        return self.hidden_size or hidden_size, self.num_blocks or num_blocks, self.num_heads or num_heads

    @model_validator(mode="after")
    def _check_together(self) -> "TokenTransformerConfig":
        hidden_size, _, num_heads = self.widths
        if hidden_size % num_heads:
            raise ValueError(f"network.num_heads ({num_heads}) must divide {hidden_size}, network.hidden_size")
        if self.value_head == "none" and not (self.policy_head or self.action_values):
            raise ValueError("network.policy_head, value_head or action_values must be there: the network says nothing")
        return self


TOKEN_TRANSFORMER = Architecture(
    "token_transformer", TokenTransformerConfig, deferred("alphagateau.networks.tokens.network:make_token_transformer")
)
