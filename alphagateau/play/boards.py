"""A checkpoint in, what it is called and the boards that its network plays out, before any of its weights are read."""

from alphagateau.games.entries import GAMES
from alphagateau.games.pgn import Identity
from alphagateau.networks.make_network import EVERY_BOARD
from alphagateau.runs.checkpoint import Checkpoint, CheckpointError


def plays(found: Checkpoint, game_name: str) -> bool:
    """Whether the weights of a checkpoint fit a board."""
    return game_name == found.manifest["game"] or found.manifest["network"].get("architecture") in EVERY_BOARD


def check_plays(found: Checkpoint, game_name: str) -> None:
    """Raises CheckpointError, naming the board to choose, if the weights do not fit this one."""
    if not plays(found, game_name):
        own = found.manifest["game"]
        raise CheckpointError(
            f"the network of {found.path} does not play {game_name}: "
            f"expected {own} (UCI_Variant {GAMES[own].uci_variant})"
        )


def run_of(found: Checkpoint) -> str:
    """The name of the run that a checkpoint is of, or of the folder in which it lies."""
    folder = found.path.parent
    return folder.parent.name if folder.name == "checkpoints" else folder.name


def name_of(found: Checkpoint) -> str:
    """What a checkpoint is called: quickstart/000014."""
    return f"{run_of(found)}/{found.path.name}"


def identity_of(found: Checkpoint, num_simulations: int) -> Identity:
    """Who it is in PGN, playing with the search that grows."""
    search = f"growing gumbel {num_simulations} simulations"
    return Identity(run_of(found), found.manifest["iteration"], found.manifest["weights_hash"], search)
