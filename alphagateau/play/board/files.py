"""Files of the browser's page; the page requests all else from the server."""

from collections.abc import Sequence
from importlib import resources
from pathlib import PurePath
from typing import Any

from alphagateau.games.entries import GAMES
from alphagateau.games.variants import get_game
from alphagateau.matches.specs import PlayerSpec, name_of
from alphagateau.play.opponents import plays
from alphagateau.reports.drawing.pages import UNSHOWABLE, environment

_TYPES = {".js": "text/javascript", ".css": "text/css"}


def files(players: Sequence[PlayerSpec]) -> dict[str, tuple[bytes, str]]:
    """(content, media type) of each path."""
    folder = resources.files("alphagateau.play.board").joinpath("page")
    served = {
        f"/{file.name}": (file.read_bytes(), _TYPES[suffix])
        for file in folder.iterdir()
        if (suffix := PurePath(file.name).suffix) in _TYPES
    }
    template = environment().from_string(folder.joinpath("page.html").read_text(encoding="utf-8"))
    page = UNSHOWABLE.sub("\ufffd", template.render(setup=setup_of(players)))
    return {**served, "/": (page.encode(), "text/html")}


def setup_of(players: Sequence[PlayerSpec]) -> dict[str, Any]:
    """What the page must know from the start: the boards that can be played, and the checkpoints."""
    shown, boards = [], []
    for player in players:
        found, manifest = player.found, player.found.manifest
        about = {
            "name": name_of(found) + player.text.removeprefix(player.path),
            "hash": manifest["weights_hash"],
            "game": manifest["game"],
            "architecture": manifest["network"].get("architecture", ""),
            "parameters": manifest["parameters"],
            "boards": [name for name in GAMES if plays(found, name)],
        }
        shown.append(about)
    for game in (get_game(name) for name in GAMES if any(name in player["boards"] for player in shown)):
        title = f"{game.name.removesuffix('_chess').replace('_', ' ').title()} {game.size}×{game.size}"
        boards.append({"name": game.name, "title": title, "size": game.size, "fen": game.start_fen})
    return {"board": shown[0]["game"], "boards": boards, "players": shown}
