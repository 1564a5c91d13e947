"""Finds the player of a spec for games against people and programs: by a growing tree, or by another search."""

from pathlib import Path

from alphagateau.config import NETWORKS, SEARCHES
from alphagateau.games.entries import have_equal_moves
from alphagateau.games.pgn.pgn import Identity
from alphagateau.matches.specs import PlayerSpec, SpecError, parse_spec, run_of
from alphagateau.runs.checkpoint import Checkpoint, verify_weights
from alphagateau.runs.newest import newest_checkpoint


def find_player(text: str) -> PlayerSpec:
    """The player of a spec such as "checkpoints/a?search=action_value", its weights verified.

    Raises CheckpointError, SpecError.
    """
    spec = parse_spec(text)
    return player_of(verify_weights(newest_checkpoint(Path(spec.path))), spec)


def player_of(found: Checkpoint, spec: PlayerSpec | None = None) -> PlayerSpec:
    """The player of a checkpoint by the options of a spec, or by its training. Raises SpecError, CheckpointError."""
    trained, spec = found.manifest["search"], (spec or parse_spec(str(found.path)))._replace(checkpoint=found)
    has_options = "?" in spec.text
    if not has_options and SEARCHES.read(trained).grows_in_play:
        return spec
    from alphagateau.matches.player_specs import check_search, match_config, search_of
    from alphagateau.networks.trained import network_config

    if not has_options:
        return spec._replace(search=match_config(trained))
    search = search_of(spec, trained)
    if (search.grows_in_play and search.algorithm != "policy") or search.temperature:
        as_they_are = ["policy", *(name for name, kind in SEARCHES.configs.items() if not kind.grows_in_play)]
        expected = " or ".join(f"search={name}" for name in as_they_are)
        raise SpecError(
            f"player {spec.text!r}: expected {expected}, without temperature: all else is searched by a tree"
        )
    check_search(spec, search, network_config(found))
    return spec._replace(search=search)


def plays(found: Checkpoint, game_name: str) -> bool:
    """Whether the weights of a checkpoint fit a board; those of some networks fit the one they learnt alone."""
    return (
        have_equal_moves(found.manifest["game"], game_name)
        or NETWORKS.read(found.manifest["network"]).plays_every_board
    )


def identity_of(spec: PlayerSpec, num_simulations: int) -> Identity:
    """Who it is in PGN; of a player with a tree, how many simulations a move."""
    from alphagateau.networks.trained import player_search_name

    found = spec.found
    search = player_search_name(spec.search) if spec.search else f"growing gumbel {num_simulations} simulations"
    return Identity(run_of(found), found.manifest["iteration"], found.manifest["weights_hash"], search)
