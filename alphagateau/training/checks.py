"""Checks of an experiment that need its game, its loss and its heads."""

from pathlib import Path

from alphagateau.config import ConfigError, Experiment, NetworkConfig, show
from alphagateau.config.losses import LOSSES, Loss, heads_of
from alphagateau.games.variants import get_game
from alphagateau.networks.trained import SPLITS


def check_experiment(experiment: Experiment) -> None:
    """Raises ConfigError, in the words of `config`, if the experiment cannot be run."""
    for board in experiment.boards:
        check_game(experiment, board)
    loss = LOSSES.entry(experiment.training.loss, "training.")
    check_frames(experiment, loss)
    check_search(experiment)
    check_heads(loss.name, experiment.network)
    check_action_values(experiment, loss)


def check_game(experiment: Experiment, board: str) -> None:
    """Raises ConfigError if a board is unknown, or its longest game is shorter than an iteration's."""
    try:
        game = get_game(board)
    except ValueError as error:
        raise ConfigError(f"game: {error}") from None
    num_plies, longest = experiment.selfplay.num_plies if experiment.selfplay else 0, game.max_plies
    if num_plies > longest:
        raise ConfigError(
            f"selfplay.num_plies ({num_plies}) must be at most {longest}, the longest game of {game.name}"
        )


def check_frames(experiment: Experiment, loss: Loss) -> None:
    """Raises ConfigError if the frames lack what the loss or a head learns from."""
    if experiment.selfplay and not loss.learns_from_games:
        raise ConfigError(f"training.loss {show(loss.name)} learns from labels, and the frames of [selfplay] have none")
    heads = " and ".join(f"network.{head.key}" for head in heads_of(experiment.network) if head.target)
    if heads and not experiment.selfplay:
        raise ConfigError(f"{heads} must be false with [data]: only the games of [selfplay] have what they learn")
    if heads and experiment.targets.kind == "td_leaf":
        raise ConfigError(f'{heads} must be false with targets.kind "td_leaf": they learn from results')


def check_search(experiment: Experiment) -> None:
    """Raises ConfigError if the search cannot be made of this network, or its shares of the checkpoint it names."""
    search = experiment.search
    if search.algorithm == "random" and experiment.evaluation.num_games:
        why = f'with search.algorithm "random", under which no network plays, got {experiment.evaluation.num_games}'
        raise ConfigError(f"evaluation.num_games must be 0 {why}")
    name = show(search.algorithm)
    if search.needs_action_values and not experiment.network.action_values:
        raise ConfigError(f"network.action_values must be true for search.algorithm {name}, got false")
    if search.needs_action_values and "action_value" not in LOSSES[loss := experiment.training.loss].teaches:
        raise ConfigError(f"training.loss {show(loss)} teaches no action values, by which search {name} plays")
    if search.split not in SPLITS and not (Path(search.split) / "manifest.json").is_file():  # a run's newest may change
        expected = '"prior", "uniform" or a checkpoint, such as checkpoints/moves/checkpoints/12'
        raise ConfigError(f"search.split must be {expected}, got {show(search.split)}")


def check_heads(loss: str, network: NetworkConfig) -> None:
    """Raises ConfigError if the network lacks an output that the loss needs, or has a head that it does not train."""
    unlearnt = () if LOSSES[loss].has_heads else heads_of(network)
    for key, allowed in {**LOSSES[loss].needs, **{head.key: (False,) for head in unlearnt}}.items():
        value = getattr(network, key, None)  # None: not of this architecture
        if value is None or value not in allowed:
            expected = f"{allowed[0]} or more" if isinstance(allowed, range) else " or ".join(map(show, allowed))
            raise ConfigError(f"network.{key} must be {expected} for training.loss {show(loss)}, got {show(value)}")


def check_action_values(experiment: Experiment, loss: Loss) -> None:
    """Raises ConfigError if action values are learnt by a network or for a search that takes them otherwise."""
    if "action_value" not in loss.teaches:
        return
    network, search, data = experiment.network, experiment.search, experiment.data
    if loss.teaches == ("action_value",) and not network.values_one_move and search.algorithm != "action_value":
        others = [other.name for other in LOSSES.values() if {*other.teaches} == {"policy", "value", "action_value"}]
        raise ConfigError(
            f'search.algorithm must be "action_value" for training.loss {show(loss.name)}, which teaches no policy and '
            f"no state's value ({', '.join(others)} do), got {show(search.algorithm)}"
        )
    if network.values_one_move and data is not None and data.record == "board":
        why = f"for training.loss {show(loss.name)}, as the network values one move a pass"
        raise ConfigError(f'data.record must be "move" {why}, got "board"')
