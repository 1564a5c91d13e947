"""Checks of an experiment that need games and losses."""

import re
from pathlib import Path

from alphagateau.config import ConfigError, Experiment, NetworkConfig, board_experiments, nearest, show
from alphagateau.config.records import MAX_INT
from alphagateau.games.variants import get_game
from alphagateau.networks.trained import SPLITS
from alphagateau.training.losses.auxiliary import HEADS, auxiliary_targets
from alphagateau.training.losses.label_losses import LABEL_LOSSES
from alphagateau.training.losses.policy_value import LOSSES

ACTION_VALUE_LOSSES = "action_value_.*|all_labels_.*"
ONE_MOVE = ("token_transformer",)  # architectures that value one move a pass
# Losses, a key of [network] and what it may be for them; win, draw and loss would not be learnt from a mean alone.
NEEDED_HEADS = (
    ("policy_value|policy_value_l1", "value_head", ("scalar", "bins")),
    ("policy_wdl", "value_head", ("wdl",)),
    ("state_value_.*|all_labels_.*", "value_head", ("bins",)),
    (ACTION_VALUE_LOSSES, "action_values", (True,)),
    (".*_hl_gauss|.*_log", "num_bins", range(2, MAX_INT)),
    (".*_l2", "num_bins", (1,)),
    ("behavioral_cloning", "reply_head", (False,)),
    ("behavioral_cloning", "moves_left_head", (False,)),
    ("policy_.*|behavioral_cloning|all_labels_.*", "policy_head", (True,)),
    ("behavioral_cloning", "search_value_head", (False,)),
    ("behavioral_cloning", "short_term_head", (False,)),
    ("behavioral_cloning|state_value_.*|action_value_.*|all_labels_.*", "soft_policy_head", (False,)),
)


def check_experiment(experiment: Experiment) -> None:
    """Raises ConfigError, in the words of `config`, if the experiment cannot be run."""
    for part in board_experiments(experiment):
        check_board(part)


def check_board(experiment: Experiment) -> None:
    """Raises ConfigError if an experiment of one board cannot be run."""
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
    if loss in LABEL_LOSSES and experiment.selfplay:
        raise ConfigError(f"training.loss {show(loss)} learns from labels, and the frames of [selfplay] have none")
    heads = " and ".join(f"network.{HEADS[name]}" for name in auxiliary_targets(experiment.network))
    if heads and not experiment.selfplay:
        raise ConfigError(f"{heads} must be false with [data]: only the games of [selfplay] have what they learn")
    if heads and experiment.targets.kind == "td_leaf":
        raise ConfigError(f'{heads} must be false with targets.kind "td_leaf": they learn from results')
    if experiment.search.algorithm == "random" and experiment.evaluation.num_games:
        raise ConfigError(
            'evaluation.num_games must be 0 with search.algorithm "random", under which no network plays, '
            f"got {experiment.evaluation.num_games}"
        )
    if experiment.search.algorithm == "action_value" and not experiment.network.action_values:
        raise ConfigError('network.action_values must be true for search.algorithm "action_value", got false')
    check_heads(loss, experiment.network)
    split = experiment.search.split
    if split not in SPLITS and not (Path(split) / "manifest.json").is_file():  # the newest of a run may change
        raise ConfigError(
            f'search.split must be "prior", "uniform" or a checkpoint, such as checkpoints/moves/checkpoints/12, '
            f"got {show(split)}"
        )
    if (
        loss.startswith("action_value_")
        and experiment.network.architecture not in ONE_MOVE
        and experiment.search.algorithm != "action_value"
    ):
        raise ConfigError(
            f'search.algorithm must be "action_value" for training.loss {show(loss)}, which teaches no policy and no '
            f"state's value (all_labels_* do), got {show(experiment.search.algorithm)}"
        )
    is_of_boards = experiment.data is not None and experiment.data.record == "board"
    if is_of_boards and experiment.network.architecture in ONE_MOVE and re.fullmatch(ACTION_VALUE_LOSSES, loss):
        raise ConfigError(
            f'data.record must be "move" for training.loss {show(loss)}, as the network values one move a pass, '
            'got "board"'
        )


def check_heads(loss: str, network: NetworkConfig) -> None:
    """Raises ConfigError if the network has not the heads that a loss learns."""
    for losses, name, allowed in NEEDED_HEADS:
        value = getattr(network, name)
        if re.fullmatch(losses, loss) and value not in allowed:
            expected = "2 or more" if isinstance(allowed, range) else " or ".join(map(show, allowed))
            raise ConfigError(f"network.{name} must be {expected} for training.loss {show(loss)}, got {show(value)}")
