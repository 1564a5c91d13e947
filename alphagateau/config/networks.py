"""What `[network]` may say: a record an architecture, each key declared once."""

from typing import ClassVar, Literal

from pydantic import model_validator

from alphagateau.config.chessformer import ChessformerConfig
from alphagateau.config.network_keys import (
    ACTION_VALUES,
    ARCHITECTURE,
    MOST_BINS,
    MOST_BLOCKS,
    MOST_FEATURES,
    MOST_HEADS,
    MOVES_LEFT_HEAD,
    NUM_BINS,
    REMATERIALIZE,
    REPLY_HEAD,
    VALUE_HEADS,
)
from alphagateau.config.records import choice, key, kinds_of, num, record, show


@record
class GateauConfig:
    """GATEAU, the graph network."""

    plays_every_board: ClassVar[bool] = True
    policy_head: ClassVar[bool] = True
    architecture: Literal["gateau"] = choice(ARCHITECTURE, default="gateau")
    hidden_size: int = num("features of a node or an edge", default=128, low=1, high=MOST_FEATURES)
    num_blocks: int = num("residual blocks of two layers each", default=5, low=1, high=MOST_BLOCKS)
    normalization: Literal["batch", "ghost", "layer", "rms"] = choice(
        "what precedes each ReLU; ghost: batch normalization over ghost_size positions", default="batch"
    )
    ghost_size: int = num("positions whose statistics ghost normalization uses together", default=16, low=1)
    message: Literal["edge", "updated_edge"] = choice(
        "edge feature that equation (6) mixes: g_ij as printed, or the g'_ij of (4)", default="edge"
    )
    neighbors: Literal["incoming", "outgoing"] = choice(
        "edges N(i) of (5) and (6): those into square i, or those out of it", default="incoming"
    )
    rematerialize: bool = key(REMATERIALIZE, default=False)
    dtype: Literal["float32", "bfloat16"] = choice("number format of the computation", default="float32")
    batch_norm_momentum: float = num("decay of the running statistics per step", default=0.9, high=1)
    history: bool = key("positions before the present one are seen", default=True)
    value_head: Literal["scalar", "wdl", "bins"] = choice(VALUE_HEADS, default="scalar")
    action_values: bool = key(ACTION_VALUES, default=False)
    num_bins: int = num(NUM_BINS, default=32, low=1, high=MOST_BINS)
    reply_head: bool = key(REPLY_HEAD, default=False)
    moves_left_head: bool = key(MOVES_LEFT_HEAD, default=False)
    board_statistics: str = key("boards with batch statistics of their own: chess, gardner_chess", default="none")

    @property
    def statistics_boards(self) -> tuple[str, ...]:
        """The boards that `board_statistics` names."""
        return () if self.board_statistics == "none" else tuple(map(str.strip, self.board_statistics.split(",")))

    @model_validator(mode="after")
    def _check_together(self) -> "GateauConfig":
        if self.statistics_boards and self.normalization not in ("batch", "ghost"):
            raise ValueError(
                'network.normalization must be "batch" or "ghost" for network.board_statistics, '
                f"got {show(self.normalization)}"
            )
        return self


@record
class AlphaZeroConfig:
    """AlphaZero's residual CNN, the baseline."""

    policy_head: ClassVar[bool] = True
    architecture: Literal["alphazero"] = choice(ARCHITECTURE, default="alphazero")
    hidden_size: int = num("channels of a convolution", default=128, low=1, high=MOST_FEATURES)
    num_blocks: int = num("residual blocks of two layers each", default=5, low=1, high=MOST_BLOCKS)
    readout: Literal["dense", "squares"] = choice(
        "policy and value come from dense layers (one board), or from every square alike", default="dense"
    )
    normalization: Literal["batch", "layer", "rms"] = choice("what precedes each ReLU", default="batch")
    dtype: Literal["float32", "bfloat16"] = choice("number format of the computation", default="float32")
    batch_norm_momentum: float = num("decay of the running statistics per step", default=0.9, high=1)
    history: bool = key("positions before the present one are seen", default=True)
    value_head: Literal["scalar", "wdl", "bins"] = choice(VALUE_HEADS, default="scalar")
    action_values: bool = key(ACTION_VALUES, default=False)
    num_bins: int = num(NUM_BINS, default=32, low=1, high=MOST_BINS)
    reply_head: bool = key(REPLY_HEAD, default=False)
    moves_left_head: bool = key(MOVES_LEFT_HEAD, default=False)

    @property
    def plays_every_board(self) -> bool:
        """Whether no weight belongs to a square."""
        return self.readout == "squares"


# The published sizes of the token transformer, and `small`: hidden_size, num_blocks, num_heads.
TOKEN_SIZES = {"402k": (64, 4, 4), "small": (128, 4, 8), "9M": (256, 8, 8), "136M": (1024, 8, 8), "270M": (1024, 16, 8)}


@record
class TokenTransformerConfig:
    """The token transformer of searchless chess, which sees the position's FEN."""

    plays_every_board: ClassVar[bool] = False
    history: ClassVar[bool] = False
    reply_head: ClassVar[bool] = False
    moves_left_head: ClassVar[bool] = False
    architecture: Literal["token_transformer"] = choice(ARCHITECTURE, default="token_transformer")
    size: Literal["402k", "small", "9M", "136M", "270M"] = choice(
        "sets hidden_size, num_blocks, num_heads: 64, 4, 4; 128, 4, 8; 256, 8, 8; 1024, 8, 8; 1024, 16, 8",
        default="402k",
    )
    hidden_size: int = num("features of a token (0: as size says)", default=0, high=MOST_FEATURES)
    num_blocks: int = num("blocks of attention and a gated layer (0: as size says)", default=0, high=MOST_BLOCKS)
    num_heads: int = num("heads of attention (0: as size says)", default=0, high=MOST_HEADS)
    rematerialize: bool = key(REMATERIALIZE, default=False)
    dtype: Literal["float32", "bfloat16"] = choice("number format of the computation", default="float32")
    policy_head: bool = key("logits over all moves; without it the prior is of action values, or uniform", default=True)
    value_head: Literal["none", "scalar", "wdl", "bins"] = choice(
        f"{VALUE_HEADS}; none: of the best action value, or 0", default="scalar"
    )
    action_values: bool = key("values of moves, by a pass of the network each", default=False)
    num_bins: int = num(NUM_BINS, default=128, low=1, high=MOST_BINS)
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


@record
class GiraffeConfig:
    """Giraffe's evaluation network."""

    plays_every_board: ClassVar[bool] = False
    policy_head: ClassVar[bool] = True  # which finds all moves alike
    history: ClassVar[bool] = False
    value_head: ClassVar[str] = "scalar"
    num_bins: ClassVar[int] = 1
    action_values: ClassVar[bool] = False
    reply_head: ClassVar[bool] = False
    moves_left_head: ClassVar[bool] = False
    architecture: Literal["giraffe"] = choice(ARCHITECTURE, default="giraffe")
    hidden_size: int = num("width of the second hidden layer", default=64, low=1, high=MOST_FEATURES)
    group_divisor: int = num("features of a group to one unit of its first layer", default=8, low=1)
    view: Literal["white", "mover"] = choice("whose side of the board the features are seen from", default="white")


@record
class GiraffeMovesConfig:
    """Giraffe's move-probability network, which has no value."""

    plays_every_board: ClassVar[bool] = False
    policy_head: ClassVar[bool] = True
    history: ClassVar[bool] = False
    value_head: ClassVar[str] = "none"
    num_bins: ClassVar[int] = 1
    action_values: ClassVar[bool] = False
    reply_head: ClassVar[bool] = False
    moves_left_head: ClassVar[bool] = False
    architecture: Literal["giraffe_moves"] = choice(ARCHITECTURE, default="giraffe_moves")
    hidden_size: int = num("width of the second hidden layer", default=64, low=1, high=MOST_FEATURES)
    group_divisor: int = num("features of a group to one unit of its first layer", default=10, low=1)
    num_passes: int = num(
        "looks at the moves; from the second on they know their place in the last", default=2, low=1, high=16
    )


NetworkConfig = (
    GateauConfig | AlphaZeroConfig | TokenTransformerConfig | ChessformerConfig | GiraffeConfig | GiraffeMovesConfig
)
ARCHITECTURES = kinds_of(NetworkConfig, "architecture")  # a new one is a record and its name in the line above
