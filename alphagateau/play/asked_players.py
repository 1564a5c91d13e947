"""Finds the checkpoint of a player's spec, and whether it plays by the growing tree or by another search."""

import dataclasses
from pathlib import Path

from alphagateau.config import SEARCHES, SearchConfig
from alphagateau.games.pgn.pgn import Identity
from alphagateau.play.board.boards import run_of
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.newest import newest_checkpoint

ASKED = "player"  # key of a manifest in memory: the search that the spec asks for


def find_player(spec: str) -> Checkpoint:
    """The checkpoint, or a run's newest one, that a spec such as "checkpoints/a?search=action_value" names.

    Raises CheckpointError, SpecError.
    """
    if "?" not in spec:
        return newest_checkpoint(Path(spec))
    from alphagateau.matches.player_specs import check_search, search_of
    from alphagateau.matches.players import SpecError, split_spec
    from alphagateau.networks.trained import network_config

    path, options = split_spec(spec)
    found = newest_checkpoint(Path(path))
    search = search_of(spec, options, found.manifest["search"])
    if (search.grows_in_play and search.algorithm != "policy") or search.temperature:
        as_they_are = ["policy", *(name for name, kind in SEARCHES.configs.items() if not kind.grows_in_play)]
        expected = " or ".join(f"search={name}" for name in as_they_are)
        raise SpecError(f"player {spec!r}: expected {expected}, without temperature: all else is searched by a tree")
    check_search(spec, search, network_config(found))
    return found._replace(manifest={**found.manifest, ASKED: dataclasses.asdict(search)})


def player_without_tree(found: Checkpoint) -> SearchConfig | None:
    """The search whose moves a checkpoint plays as they are, of its spec or its run; None: it plays by a tree."""
    from alphagateau.matches.player_specs import match_config

    asked, trained = found.manifest.get(ASKED), found.manifest["search"]
    if asked:
        return SEARCHES.read(asked)
    return None if SEARCHES.read(trained).grows_in_play else match_config(trained)


def identity_of(found: Checkpoint, num_simulations: int) -> Identity:
    """Who it is in PGN; of a player with a tree, how many simulations a move."""
    from alphagateau.networks.trained import player_search_name

    player = player_without_tree(found)
    search = player_search_name(player) if player else f"growing gumbel {num_simulations} simulations"
    return Identity(run_of(found), found.manifest["iteration"], found.manifest["weights_hash"], search)
