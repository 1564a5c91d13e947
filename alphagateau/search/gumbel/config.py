"""Keys of Gumbel MuZero search in an experiment."""

from functools import partial
from typing import Any, Literal

from alphagateau.config.records import choice, entry, key, num, record
from alphagateau.config.registers import SEARCHES, SearchConfig, SearchMethod
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


def _make(game: Any, network: Any, config: GumbelConfig, tie_break: None = None) -> Any:
    import mctx

    from alphagateau.search.gumbel.gumbel import make_gumbel_search

    of_values = {name: getattr(config, name) for name in ("value_scale", "maxvisit_init", "rescale_values")}
    qtransform = partial(mctx.qtransform_completed_by_mix_value, **of_values)
    names = ("num_simulations", "max_num_considered_actions", "gumbel_scale", "batch_by")
    return make_gumbel_search(game, network, qtransform=qtransform, **{name: getattr(config, name) for name in names})


GUMBEL = SearchMethod("gumbel", GumbelConfig, _make)
