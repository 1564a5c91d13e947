"""Names of a checkpoint and of the boards that its network plays; no weights are read."""

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


def run_of(found: Checkpoint) -> str:
    """The name of the run that a checkpoint is of, or its own if it is of none."""
    return (found.run or found.path).name


def name_of(found: Checkpoint) -> str:
    """What a checkpoint is called: quickstart/000014."""
    return f"{found.run.name}/{found.path.name}" if found.run else found.path.name
