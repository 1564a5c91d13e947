"""The players of a ladder: specs in, runs among them, the players that can be had and a note on each other out."""

from collections.abc import Sequence
from pathlib import Path

from alphagateau.matches.player_specs import RatedPlayer, load_player
from alphagateau.matches.players import PlayerError, split_spec
from alphagateau.runs.checkpoint import CheckpointError, find


def list_specs(specs: Sequence[str], every: int) -> list[str]:
    """The players' specs, each run replaced by every `every`-th of its iterations and the last."""
    found = []
    for spec in specs:
        path, _ = split_spec(spec)
        query = spec[len(path) :]
        if not (Path(path) / "checkpoints").is_dir():
            found.append(spec)
            continue
        whole = [c for c in find(Path(path) / "checkpoints")[0] if c.order[1] == 0]
        last = max((c.order[0] for c in whole), default=0)
        chosen = [c for c in whole if c.order[0] % every == 0 or c.order[0] == last]
        found += [f"{c.path}{query}" for c in reversed(chosen)]
        if not chosen:
            found.append(spec)  # loading it says what is wrong
    return found


def load_players(
    specs: Sequence[str], board: str, num_simulations: int | None = None
) -> tuple[list[RatedPlayer], list[str]]:
    """The players that can be had, and one sentence on each that cannot."""
    players: dict[tuple[str, ...], RatedPlayer] = {}
    notes = []
    for spec in specs:
        try:
            player = load_player(spec, board, num_simulations)
        except (CheckpointError, PlayerError) as error:
            notes.append(f"left out: {error}")
            continue
        same = players.get(player.identity)
        if same:
            notes.append(f"{player.name} is {same.name}: the same weights and search, one player")
            continue
        if player.name in {other.name for other in players.values()}:
            name = f"{player.name} ({player.identity[1]}, {player.identity[0][:6]})"
            player = player._replace(name=name, player=player.player._replace(name=name))
        players[player.identity] = player
    return list(players.values()), notes
