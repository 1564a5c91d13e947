"""Keys of Giraffe's two networks in an experiment."""

from typing import Literal

from alphagateau.config.records import choice, entry, num, record
from alphagateau.config.registers import NETWORKS, Architecture, NetworkConfig, deferred
from alphagateau.networks import keys


@record
class GiraffeConfig(NetworkConfig):
    """Giraffe's evaluation network."""

    architecture: Literal["giraffe"] = entry("kind of network", NETWORKS, default="giraffe")
    hidden_size: int = num("width of the second hidden layer", default=64, low=1, high=keys.MOST_FEATURES)
    group_divisor: int = num("features of a group to one unit of its first layer", default=8, low=1)
    view: Literal["white", "mover"] = choice("whose side of the board the features are seen from", default="white")


@record
class GiraffeMovesConfig(NetworkConfig):
    """Giraffe's move-probability network, which has no value."""

    value_head = "none"
    architecture: Literal["giraffe_moves"] = entry("kind of network", NETWORKS, default="giraffe_moves")
    hidden_size: int = num("width of the second hidden layer", default=64, low=1, high=keys.MOST_FEATURES)
    group_divisor: int = num("features of a group to one unit of its first layer", default=10, low=1)
    num_passes: int = num(
        "passes over the moves; from the second on, inputs hold their ranks in the last", default=2, low=1, high=16
    )


GIRAFFE = Architecture("giraffe", GiraffeConfig, deferred("alphagateau.networks.giraffe.network:make_giraffe"))
GIRAFFE_MOVES = Architecture(
    "giraffe_moves", GiraffeMovesConfig, deferred("alphagateau.networks.giraffe.network:make_giraffe_moves")
)
