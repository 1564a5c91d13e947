"""Chessformer's keys in an experiment."""

from typing import Literal

from pydantic import model_validator

from alphagateau.config.records import choice, entry, key, num, record
from alphagateau.config.registers import NETWORKS, Architecture, NetworkConfig, deferred
from alphagateau.networks import keys


@record
class ChessformerConfig(NetworkConfig):
    """Chessformer, the transformer on squares."""

    architecture: Literal["chessformer"] = entry("kind of network", NETWORKS, default="chessformer")
    hidden_size: int = num("features of a square, divisible by num_heads", default=128, low=1, high=keys.MOST_FEATURES)
    num_blocks: int = num("encoder layers", default=5, low=1, high=keys.MOST_BLOCKS)
    num_heads: int = num("attention heads a layer", default=4, low=1, high=keys.MOST_HEADS)
    ffn_size: int = num("features within a layer's feed-forward part", default=128, low=1, high=keys.MOST_FEATURES)
    position: Literal["absolute", "bias", "shaw_kv", "shaw"] = choice(
        "what attention knows of places: a vector a square (one board), a bias an offset, or vectors an offset for "
        "keys and values (shaw_kv), for queries too (shaw)",
        default="shaw",
    )
    square_embedding: Literal["edges", "absolute", "none"] = choice(
        "scale and shift of tokens: by distance to the board's edges, by square (one board), none", default="edges"
    )
    value_pooling: Literal["attention", "flatten"] = choice(
        "tokens of a value head are pooled, or joined (one board)", default="attention"
    )
    rematerialize: bool = key(keys.REMATERIALIZE, default=False)
    dtype: Literal["float32", "bfloat16"] = choice("number format of the products", default="float32")
    history: bool = key("positions before the present one are seen", default=True)
    attacks: bool = key("each square says each side's least attacker of it and the number of attackers", default=False)
    value_head: Literal["scalar", "wdl", "bins"] = choice(keys.VALUE_HEADS, default="scalar")
    action_values: bool = key(keys.ACTION_VALUES, default=False)
    num_bins: int = num(keys.NUM_BINS, default=32, low=1, high=keys.MOST_BINS)
    reply_head: bool = key(keys.REPLY_HEAD, default=False)
    moves_left_head: bool = key(keys.MOVES_LEFT_HEAD, default=False)
    soft_policy_head: bool = key("a head that learns the policy target to the power 1/4", default=False)
    search_value_head: bool = key("a head that learns the search's value, and its own error", default=False)
    short_term_head: bool = key(
        "a head that learns the search's values of the next plies, and its error", default=False
    )
    categorical_values: bool = key("these two heads learn 32 bins of their value too", default=False)

    @model_validator(mode="after")
    def _check_heads(self) -> "ChessformerConfig":
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"network.hidden_size ({self.hidden_size}) must be divisible by {self.num_heads}, network.num_heads"
            )
        if self.categorical_values and not (self.search_value_head or self.short_term_head):
            raise ValueError(
                "network.categorical_values needs network.search_value_head or network.short_term_head = true"
            )
        return self

    @property
    def plays_every_board(self) -> bool:
        """Whether no weight belongs to a square, so that the same tree fits every board."""
        return {"absolute", "flatten"}.isdisjoint((self.position, self.square_embedding, self.value_pooling))


CHESSFORMER = Architecture(
    "chessformer", ChessformerConfig, deferred("alphagateau.networks.chessformer.network:make_chessformer")
)
