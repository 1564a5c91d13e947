"""Checks which boards the network of a checkpoint plays; no weights are read."""

from alphagateau.config import NETWORKS
from alphagateau.games.entries import GAMES
from alphagateau.runs.checkpoint import Checkpoint, NoCheckpointError


def plays(found: Checkpoint, game_name: str) -> bool:
    """Whether the weights of a checkpoint fit a board; those of some networks fit the one they learnt alone."""
    return game_name == found.manifest["game"] or NETWORKS.read(found.manifest["network"]).plays_every_board


def check_plays(found: Checkpoint, game_name: str) -> None:
    """Raises NoCheckpointError, naming the board to choose, if the weights do not fit this one."""
    if not plays(found, game_name):
        own = found.manifest["game"]
        raise NoCheckpointError(
            f"the network of {found.path} does not play {game_name}: "
            f"expected {own} (UCI_Variant {GAMES[own].uci_variant})"
        )
