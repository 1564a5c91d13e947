"""What only games and losses can tell of an experiment: an Experiment in, one sentence on what is impossible out."""

from alphagateau.config import ConfigError, Experiment, nearest, show
from alphagateau.games.variants import get_game
from alphagateau.training.losses import LOSSES


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
