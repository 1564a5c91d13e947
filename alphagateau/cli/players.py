"""Measures the players that a command names."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from alphagateau.cli.arguments import UsageError
from alphagateau.cli.streams import report
from alphagateau.matches.ladder.players import load_players
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerError, read_spec

T = TypeVar("T")


def measure_each(
    specs: Sequence[str], game_name: str, num_simulations: int, measure: Callable[[Player], T]
) -> tuple[dict[str, T], list[str]]:
    """(the measure of each player by name, a sentence on each that cannot play or failed); each is closed after it.

    `num_simulations` of players without a number of their own; 0: as in their training. The sentences are reported as
    they come. Raises UsageError if none can play, PlayerError if all failed.
    """
    players, notes = load_players(list(map(read_spec, specs)), game_name, num_simulations or None)
    found, failures = {}, [note for note in notes if note.startswith("left out")]
    if not players:
        raise UsageError(failures[0])
    for failure in failures:
        report(failure)
    for player in players:
        try:
            found[player.name] = measure(player)
        except PlayerError as error:
            failures.append(f"{player.name} left: {error}")
            report(failures[-1])
        finally:
            player.close()
    if not found:
        raise PlayerError("no player is left: nothing is measured or written")
    return found, failures
