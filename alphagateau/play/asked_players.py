"""A player's spec in, its checkpoint out, which knows whether it is to play by a search tree or without search."""

import dataclasses
from pathlib import Path

from alphagateau.config import ALGORITHMS, SearchConfig
from alphagateau.config.searches import describe_search
from alphagateau.games.pgn import Identity
from alphagateau.play.boards import run_of
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.run_folder import newest

WITHOUT_TREE = ("policy", "action_value", "state_value")
ASKED = "player"  # key of a manifest in memory: the search that the spec asks for


def find_player(spec: str) -> Checkpoint:
    """The checkpoint, or a run's newest one, that a spec such as "checkpoints/a?search=action_value" names.

    Raises CheckpointError, PlayerError.
    """
    if "?" not in spec:
        return newest(Path(spec))
    from alphagateau.matches.player_specs import check_search, network_config, search_of
    from alphagateau.matches.players import PlayerError, split_spec

    path, options = split_spec(spec)
    found = newest(Path(path))
    search = search_of(spec, options, found.manifest["search"])
    if search.algorithm not in WITHOUT_TREE or search.temperature:
        expected = " or ".join(f"search={name}" for name in WITHOUT_TREE)
        raise PlayerError(f"player {spec!r}: expected {expected}, without temperature: all else is searched by a tree")
    check_search(spec, search, network_config(found))
    return found._replace(manifest={**found.manifest, ASKED: dataclasses.asdict(search)})


def player_without_search(found: Checkpoint) -> SearchConfig | None:
    """How a checkpoint plays without search: as its spec asks, or as in its run by values of moves; None: by a tree."""
    from alphagateau.matches.player_specs import match_config

    asked, trained = found.manifest.get(ASKED), found.manifest["search"]
    if asked:
        return ALGORITHMS[asked["algorithm"]](**asked)
    is_valued = trained.get("algorithm") in ("action_value", "state_value")
    return match_config(trained) if is_valued else None


def identity_of(found: Checkpoint, num_simulations: int) -> Identity:
    """Who it is in PGN; of a player with a tree, how many simulations a move."""
    player = player_without_search(found)
    search = describe_search(player) if player else f"growing gumbel {num_simulations} simulations"
    return Identity(run_of(found), found.manifest["iteration"], found.manifest["weights_hash"], search)
