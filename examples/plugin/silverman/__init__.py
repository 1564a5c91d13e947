"""Declares what this plug-in adds to AlphaGateau; what imports JAX is imported when it is made."""

from typing import Literal

from alphagateau.config.losses import Head, Loss
from alphagateau.config.records import entry, key, num, record
from alphagateau.config.registers import (
    NETWORKS,
    SEARCHES,
    Architecture,
    NetworkConfig,
    SearchConfig,
    SearchMethod,
    deferred,
)
from alphagateau.games.entries import ROOK, GameEntry

SILVERMAN = GameEntry(
    name="silverman_chess",
    size=4,
    start_fen="rqkr/pppp/PPPP/RQKR w - - 0 1",  # Silverman 1981
    # On an empty board: 5 queens (11 moves from each of the 4 squares of the centre, 9 elsewhere), 2 rooks of 6 moves,
    # the king's 8. A pawn about to promote has 6 moves, fewer than the queen that it becomes.
    max_legal_moves=73,
    max_plies=128,
    variant_names=("Silverman", "Silverman 4x4"),
    uci_variant="silverman",
    under_promotions=(ROOK,),
)


@record
class GatConfig(NetworkConfig):
    """GAT, the graph attention network, on the board's move graph."""

    plays_every_board = True  # no weight belongs to a square
    architecture: Literal["gat"] = entry("kind of network", NETWORKS, default="gat")
    hidden_size: int = num("features of a square, divisible by num_heads", default=32, low=1, high=4096)
    num_blocks: int = num("layers of attention", default=2, low=1, high=64)
    num_heads: int = num("attention heads a layer", default=4, low=1, high=64)
    material_head: bool = key("a head that learns the pieces' balance two plies later", default=False)


@record
class OnePlyConfig(SearchConfig):
    """One ply of search: the prior, improved by the value of the position after each move."""

    algorithm: Literal["one_ply"] = entry("kind of search", SEARCHES, default="one_ply")
    value_scale: float = num("weight of a move's value beside the logarithm of its prior", default=4.0, high=1000)
    temperature: float = num("of the moves sampled in self-play; matches play the best", default=1.0, high=100)


MATERIAL = Head(
    name="material",
    key="material_head",
    output="material",
    terms=deferred("silverman.losses:material_terms"),
    target=deferred("silverman.losses:material_later"),
    meaning={"train/material_loss": "squared error of the pieces' balance two plies later"},
)
HUBER = Loss(
    name="policy_value_huber",
    terms=deferred("silverman.losses:policy_value_huber"),
    teaches=("policy", "value"),
    needs={"value_head": ("scalar",)},
    has_heads=True,
)

RECORDS = (
    SILVERMAN,
    Architecture("gat", GatConfig, deferred("silverman.gat:make_gat")),
    SearchMethod("one_ply", OnePlyConfig, deferred("silverman.one_ply:make_one_ply")),
    MATERIAL,
    HUBER,
)
