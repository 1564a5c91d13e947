"""AlphaGateau: board-game players trained by self-play with graph networks.

From Python: `load` and `save` a checkpoint, `evaluate` positions, `search_position`, `play_match`, `rate` a table,
`train` an experiment, `read_metrics` of a run, `make_env` for programs of pgx, and `make_game`, `make_network`,
`make_search`, `make_selfplay`, `make_learner` to compose an algorithm of one's own; docs/python.md shows each. They are
imported when first asked for, so that `import alphagateau` is quick.
"""

TYPE_CHECKING = False  # as in typing, whose import the command line need not wait for
if TYPE_CHECKING:
    from alphagateau.api.parts import (
        SelfPlay,
        make_env,
        make_game,
        make_learner,
        make_network,
        make_search,
        make_selfplay,
    )
    from alphagateau.api.players import (
        FoundMove,
        Model,
        PositionEvaluation,
        evaluate,
        load,
        play_match,
        rate,
        register,
        save,
        search_position,
    )
    from alphagateau.api.training import TrainedRun, read_metrics, train

__all__ = ["SelfPlay", "make_env", "make_game", "make_learner", "make_network", "make_search", "make_selfplay"]
__all__ += ["FoundMove", "Model", "PositionEvaluation", "evaluate", "load", "play_match", "rate", "register"]
__all__ += ["TrainedRun", "read_metrics", "save", "search_position", "train"]
_HOMES = {
    "parts": ("SelfPlay", "make_env", "make_game", "make_learner", "make_network", "make_search", "make_selfplay"),
    "training": ("TrainedRun", "read_metrics", "train"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'alphagateau' has no attribute {name!r}")
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), "players")
    return getattr(import_module(f"alphagateau.api.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
