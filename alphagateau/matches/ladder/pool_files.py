"""Reference pools on disk: a folder of pool.json, openings.txt and games.pgn.gz; who of the members is here to play."""

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, TypeAdapter

from alphagateau.matches.ladder.games import LadderGamesError, PlayerKey
from alphagateau.matches.ladder.rounds import Table
from alphagateau.matches.player_specs import distinct
from alphagateau.matches.players import Player
from alphagateau.ratings.pool import Pool
from alphagateau.ratings.rate import Ratings, anchors_of
from alphagateau.runs.files import reason, to_json, write_text

POOLS = Path("eval") / "pools"
FILE, OPENINGS, GAMES = "pool.json", "openings.txt", "games.pgn.gz"


class Member(NamedTuple):
    """A player of a pool; rating and standard error in Elo, games among members."""

    name: str
    key: PlayerKey
    rating: float
    standard_error: float
    games: int


class PoolText(NamedTuple):
    """What pool.json has. specs: players as in a ladder file, of which the members are by its two options."""

    board: str
    protocol: str
    anchor: str
    anchor_rating: float
    specs: Annotated[list[str], Field(min_length=1)]
    members: Annotated[list[Member], Field(min_length=2)]
    covariance: list[list[float]]  # Elo squared, relative to the anchor
    dispersion: float = 1.0
    simulations: int = 0
    gumbel_scale: float = 0.0


def write_pool(folder: Path, ratings: Ratings, table: Table, specs: Sequence[str]) -> None:
    """Writes pool.json, by which other ladders rate newcomers. Raises LadderGamesError for a pool in several parts."""
    if ratings.component.any() or not np.isfinite(ratings.rating).all():
        raise LadderGamesError("make_pool: some players have no rating on the pool's one scale: play more games")
    keys = {p.name: p.key for p in table.players}
    columns = zip(ratings.players, ratings.rating, ratings.standard_error, ratings.games, strict=True)
    members = [Member(name, keys[name], round(r, 2), round(e, 2), int(n)) for name, r, e, n in columns]
    head = table.game.name, table.protocol, table.ladder.anchor, table.ladder.anchor_rating
    options = table.ladder.simulations, table.ladder.gumbel_scale
    covariance = np.round(ratings.covariance, 3).tolist()
    text = PoolText(*head, list(specs), members, covariance, round(ratings.dispersion, 3), *options)
    parts = []
    for name, value in sorted(text._asdict().items(), key=lambda part: isinstance(part[1], list)):  # lists at the end
        rows = ",\n".join(f"  {to_json(row, None)}" for row in value) if isinstance(value, list) else ""
        parts.append(f" {json.dumps(name)}: " + (f"[\n{rows}\n ]" if rows else json.dumps(value)))
    with suppress(shutil.SameFileError):
        shutil.copyfile(table.ladder.openings, folder / OPENINGS)
    write_text(folder / FILE, "{\n" + ",\n".join(parts) + "\n}\n")


def find_pool(name: str) -> Path:
    """The folder `name`, or that of eval/pools. Raises LadderGamesError."""
    places = [Path(name), POOLS / name]
    found = next((place for place in places if (place / FILE).is_file()), None)
    if found is None:
        known = ", ".join(sorted(path.parent.name for path in POOLS.glob(f"*/{FILE}"))) or "none"
        raise LadderGamesError(f"pool {name!r}: no {FILE} in {places[0]} or {places[1]}; pools here: {known}")
    return found


def read_pool(folder: Path, board: str = "") -> tuple[PoolText, Pool]:
    """The pool of a folder, of `board` or any, as trusted as a ladder file: it names programs. LadderGamesError."""
    path = folder / FILE
    try:
        text = TypeAdapter(PoolText).validate_json(path.read_bytes())
        pool = _pool_of(text)
    except (OSError, ValueError, np.linalg.LinAlgError) as error:
        raise LadderGamesError(f"{path} is no pool: {reason(error)}") from None
    if board and text.board != board:
        raise LadderGamesError(f"{path} is a pool of {text.board}, expected one of {board}")
    return text, pool


def _pool_of(text: PoolText) -> Pool:
    """Raises ValueError, LinAlgError for what no ladder can have written."""
    names, rating = tuple(m.name for m in text.members), np.asarray_chkfinite([m.rating for m in text.members])
    covariance = np.asarray_chkfinite(text.covariance, dtype=np.float64)
    if len({m.key for m in text.members}) < len(names) or not np.isfinite([text.anchor_rating, text.dispersion]).all():
        raise ValueError("two members of one key, or a number that is not finite")
    if covariance.shape != (len(names),) * 2 or len({*names}) < len(names):
        raise ValueError(f"covariance {covariance.shape} of {len({*names})} members")
    np.linalg.cholesky(covariance[1:, 1:] - covariance[1:, :1] - covariance[:1, 1:] + covariance[0, 0])
    anchors_of(names, text.anchor, text.anchor_rating)
    return Pool(names, rating, covariance, text.anchor, text.anchor_rating, text.dispersion)


def seat_members(
    members: Sequence[Member], here: Sequence[Player], players: Sequence[Player], notes: list[str]
) -> list[Player]:
    """The members that are `here` by the pool's specs, under their names in it, and the players, under other names.

    Others by those specs, such as an engine of another version, leave. `notes` gets a sentence on each absent member.
    """
    names, seated = {m.key: m.name for m in members}, {}
    for p in (*here, *players):
        if p.key in seated or (p.key not in names and any(p is one for one in here)):
            p.close()
            notes += [f"{p.name} is {seated[p.key].name}, a member of the pool"] if p.key in seated else []
        else:
            taken = {*names.values(), *(one.name for one in seated.values())}
            seated[p.key] = p._replace(name=names[p.key]) if p.key in names else distinct(p, taken)
    notes += [f"member {name} of the pool is not here: nobody meets it" for k, name in names.items() if k not in seated]
    return [*seated.values()]
