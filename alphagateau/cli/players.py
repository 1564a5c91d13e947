"""Finds and measures the players that a command names."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from alphagateau.cli.arguments import UsageError
from alphagateau.matches.ladder.players import load_players
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerError, read_spec

T = TypeVar("T")


def find_players(specs: Sequence[str], game_name: str, num_simulations: int) -> tuple[list[Player], list[str]]:
    """(the players, a sentence on each that cannot play). Raises UsageError if none can.

    `num_simulations` of players without a number of their own; 0: as in their training.
    """
    players, notes = load_players(list(map(read_spec, specs)), game_name, num_simulations or None)
    left_out = [note for note in notes if note.startswith("left out")]
    if not players:
        raise UsageError(left_out[0])
    return players, left_out


def measure_each(players: Sequence[Player], measure: Callable[[Player], T]) -> tuple[dict[str, T], list[str]]:
    """(the measure of each player by name, a sentence on each that failed); each is closed after it."""
    found, failures = {}, []
    for player in players:
        try:
            found[player.name] = measure(player)
        except PlayerError as error:
            failures.append(f"{player.name} left: {error}")
        finally:
            player.close()
    return found, failures
