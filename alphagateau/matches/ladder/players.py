"""Loads the players of a ladder, with a note on each that cannot play."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from alphagateau.config import NetworkConfig
from alphagateau.matches.player_specs import distinct, load_player
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerError, PlayerSpec, at_checkpoint, parse_spec, read_spec
from alphagateau.ratings.curves import Curves
from alphagateau.runs.checkpoint import CheckpointError, find

OF_TRAINING = ("rematerialize",)  # keys of [network] that do not change what it computes


def list_specs(texts: Sequence[str], every: int) -> list[PlayerSpec]:
    """The players' specs, each run replaced by every `every`-th of its iterations and the last. Raises SpecError."""
    found = []
    for spec in map(parse_spec, texts):
        whole = [c for c in find(Path(spec.path) / "checkpoints")[0] if c.order[1] == 0]
        last = max((c.order[0] for c in whole), default=0)
        chosen = [c for c in whole if c.order[0] % every == 0 or c.order[0] == last]
        found += [at_checkpoint(spec, c) for c in reversed(chosen)] or [read_spec(spec.text)]
    return found


def load_players(
    specs: Sequence[PlayerSpec], board: str, num_simulations: int | None = None, gumbel_scale: float = 0.0
) -> tuple[list[Player], list[str]]:
    """The players that can be had, and one sentence on each that cannot."""
    players: dict[tuple[str, ...], Player] = {}
    sources: dict[tuple[str, ...], PlayerSpec] = {}
    notes = []
    for spec in specs:
        try:
            player = load_player(spec, board, num_simulations, gumbel_scale)
        except (CheckpointError, PlayerError) as error:
            notes.append(f"left out: {error}")
            continue
        same = players.get(player.key)
        if same is None:
            players[player.key] = distinct(player, {other.name for other in players.values()})
            sources[player.key] = spec
            continue
        player.close()  # an engine would run on beside the other
        if spec.path.startswith("uci:") and spec.path != sources[player.key].path:
            notes.append(f"left out: {spec.text} calls itself {player.name}, as {sources[player.key].text} does")
        elif not _is_alike(same.network, player.network):
            notes.append(f"left out: {player.name} has the weights of {same.name}, in another network")
        else:
            why = "the same weights and search, one player" if player.network else "one player, named twice"
            notes.append(f"{player.name} is {same.name}: {why}")
            if player.folder is not None and player.identity.iteration is not None:
                players[player.key] = same._replace(also=(*same.also, (player.folder, player.identity.iteration)))
    return list(players.values()), notes


def _is_alike(one: NetworkConfig | None, other: NetworkConfig | None) -> bool:
    """Whether networks of the same weights compute the same, whatever they were trained with."""
    if one is None or other is None:
        return True
    kept = [{k: v for k, v in asdict(x).items() if k not in OF_TRAINING} for x in (one, other)]
    return kept[0] == kept[1]


def curves_of(players: Sequence[Player]) -> Curves:
    """For each player the curves, a run under one search each, that it stands on, and its iteration there."""
    found = {}
    for p in players:
        places = [(p.folder, p.identity.iteration), *p.also] if p.identity.iteration is not None else []
        found[p.name] = [(folder or Path(p.identity.run), p.key[1], iteration) for folder, iteration in places]
    runs = {place[:2] for places in found.values() for place in places}
    per_name, per_folder = (Counter(part(folder) for folder, _ in runs) for part in (lambda f: f.name, str))

    def name(folder: Path, search: str) -> str:
        if per_name[folder.name] == 1:
            return folder.name
        shown = folder.name if per_name[folder.name] == per_folder[str(folder)] else str(folder)
        return f"{shown} ({search})" if per_folder[str(folder)] > 1 else shown

    return {
        player: tuple((name(folder, search), iteration) for folder, search, iteration in places)
        for player, places in found.items()
        if places
    }
