"""Keys of Gumbel MuZero search in an experiment."""

from typing import Literal

from alphagateau.config.records import choice, entry, key, num, record
from alphagateau.config.registers import SEARCHES, SearchConfig, SearchMethod, deferred
from alphagateau.search.config import MIRRORS

MOST_SIMULATIONS = 65_536  # of one search; beyond it no memory holds its tree


@record
class GumbelConfig(SearchConfig):
    """Gumbel MuZero search."""

    grows_in_play = True
    algorithm: Literal["gumbel"] = entry("kind of search", SEARCHES, default="gumbel")
    num_simulations: int = num("search simulations a ply", default=128, low=1, high=MOST_SIMULATIONS)
    max_num_considered_actions: int = num("moves considered at the root", default=16, low=1, high=4096)
    gumbel_scale: float = num("scale of the Gumbel noise at the root", default=1.0, high=1000)
    value_scale: float = num("weight of the search's values beside the prior's logits", default=0.1, high=1e6)
    maxvisit_init: float = num(
        "visits added to the most visited move's, which values are weighed by", default=50.0, high=1e6
    )
    rescale_values: bool = key("a position's values stretched to 0 to 1 before they are weighed", default=True)
    batch_by: Literal["level", "leaf"] = choice(
        "leaves of a network call: two a game, packed from levels of sequential halving, or one as published",
        default="level",
    )
    average_mirrors: bool = key(MIRRORS, default=False)


GUMBEL = SearchMethod("gumbel", GumbelConfig, deferred("alphagateau.search.gumbel.gumbel:make_gumbel_search"))
