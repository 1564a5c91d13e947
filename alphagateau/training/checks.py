"""What only games and losses can tell of an experiment: an Experiment in, one sentence on what is impossible out."""

from alphagateau.config import ConfigError, Experiment, nearest, show
from alphagateau.games.variants import get_game
from alphagateau.training.losses import LOSSES

# Losses that learn one kind of value head only, and which.
NEEDED_VALUE_HEAD = {"policy_value": "scalar", "policy_wdl": "wdl"}


def check_experiment(experiment: Experiment) -> None:
    """Raises ConfigError, in the words of `config`, if the experiment cannot be run."""
    try:
        game = get_game(experiment.game)
    except ValueError as error:
        raise ConfigError(f"game: {error}") from None
    num_plies, longest = experiment.selfplay.num_plies if experiment.selfplay else 0, game.max_plies
    if num_plies > longest:
        raise ConfigError(
            f"selfplay.num_plies ({num_plies}) must be at most {longest}, the longest game of {game.name}"
        )
    loss = experiment.training.loss
    if loss not in LOSSES:
        near = nearest(loss, LOSSES)
        hint = f"; did you mean {near}?" if near else ""
        raise ConfigError(f"training.loss must be one of {', '.join(map(show, LOSSES))}, got {show(loss)}{hint}")
    head, needed = experiment.network.value_head, NEEDED_VALUE_HEAD.get(loss)
    if needed not in (None, head):
        raise ConfigError(f"network.value_head must be {show(needed)} for training.loss {show(loss)}, got {show(head)}")
