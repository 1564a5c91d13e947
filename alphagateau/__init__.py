"""AlphaGateau: board-game players trained by self-play with graph networks.

From Python: `load` a checkpoint, `evaluate` positions, `search_position`, `play_match`, `rate` a table, `read_metrics`
of a run; docs/python.md shows each. They are imported when first asked for, so that `import alphagateau` is quick.
"""

TYPE_CHECKING = False  # as in typing, whose import the command line need not wait for
if TYPE_CHECKING:
    from alphagateau.api import (
        FoundMove,
        Model,
        PositionEvaluation,
        evaluate,
        load,
        play_match,
        rate,
        read_metrics,
        register,
        search_position,
    )

__all__ = [
    "FoundMove",
    "Model",
    "PositionEvaluation",
    "evaluate",
    "load",
    "play_match",
    "rate",
    "read_metrics",
    "register",
    "search_position",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'alphagateau' has no attribute {name!r}")
    from alphagateau import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted(__all__)
