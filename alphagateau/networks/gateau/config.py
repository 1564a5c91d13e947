"""GATEAU's keys in an experiment."""

from typing import Literal

from pydantic import model_validator

from alphagateau.config.records import choice, entry, key, num, record, show
from alphagateau.config.registers import NETWORKS, Architecture, NetworkConfig, deferred
from alphagateau.networks import keys


@record
class GateauConfig(NetworkConfig):
    """GATEAU, the graph network."""

    plays_every_board = True
    architecture: Literal["gateau"] = entry("kind of network", NETWORKS, default="gateau")
    hidden_size: int = num("features of a node or an edge", default=128, low=1, high=keys.MOST_FEATURES)
    num_blocks: int = num("residual blocks of two layers each", default=5, low=1, high=keys.MOST_BLOCKS)
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
    rematerialize: bool = key(keys.REMATERIALIZE, default=False)
    dtype: Literal["float32", "bfloat16"] = choice("number format of the computation", default="float32")
    kernel: Literal["auto", "xla", "fused"] = choice(
        "what computes a layer in inference; fused: a kernel for its edges, auto: so on a GPU in bfloat16 if right",
        default="auto",
    )
    batch_norm_momentum: float = num("decay of the running statistics per step", default=0.9, high=0.999999)
    history: bool = key("positions before the present one are seen", default=True)
    value_head: Literal["scalar", "wdl", "bins"] = choice(keys.VALUE_HEADS, default="scalar")
    action_values: bool = key(keys.ACTION_VALUES, default=False)
    num_bins: int = num(keys.NUM_BINS, default=32, low=1, high=keys.MOST_BINS)
    reply_head: bool = key(keys.REPLY_HEAD, default=False)
    moves_left_head: bool = key(keys.MOVES_LEFT_HEAD, default=False)
    board_statistics: str = key("boards with batch statistics of their own: chess, gardner_chess", default="none")

    @property
    def statistics_boards(self) -> tuple[str, ...]:
        """The boards that `board_statistics` names."""
        return () if self.board_statistics == "none" else tuple(map(str.strip, self.board_statistics.split(",")))

    @property
    def can_fuse(self) -> bool:
        """Whether there are fused kernels for rows of this width."""
        return self.hidden_size in (16, 32, 64, 128)

    @property
    def statistics_batch(self) -> int:
        """Positions whose statistics are used together."""
        return self.ghost_size if self.normalization == "ghost" else 1

    @model_validator(mode="after")
    def _check_together(self) -> "GateauConfig":
        if self.statistics_boards and self.normalization not in ("batch", "ghost"):
            expected = '"batch" or "ghost" for network.board_statistics'
            raise ValueError(f"network.normalization must be {expected}, got {show(self.normalization)}")
        if self.kernel == "fused" and not self.can_fuse:
            raise ValueError(
                f'network.kernel = "fused" needs a network.hidden_size of 16, 32, 64 or 128, got {self.hidden_size}'
            )
        return self


GATEAU = Architecture("gateau", GateauConfig, deferred("alphagateau.networks.gateau.kernel:make_gateau_by_kernel"))
