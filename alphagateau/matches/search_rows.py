"""Widths of searches, from players, games and a device's memory."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import jaxprs_in_params

from alphagateau.games.rules import Game
from alphagateau.matches.players import Player
from alphagateau.networks.chunks import num_cores

CPU_ROWS = 64  # games in progress: more fill a CPU's searches no better
CPU_PARTS, LEAST_PARTS = 8, 4  # of the games in progress, one of which a search takes: on a CPU, on an accelerator
COPIES = 6  # of a search's largest values that are in memory at a time; XLA's own figure on a CPU is below this
MEMORY_SHARE = 0.4  # of what is free, for one of the two searches at once


def choose_rows(
    game: Game, players: Iterable[Player], num_games: int, num_rows: int = 0
) -> tuple[int, tuple[int, ...]]:
    """(games in progress, rows of a search, the widest first); `num_rows`: the first of them, if it is given.

    On an accelerator all games are in progress that its memory can search. A search takes so many of them that while
    two are running the games which wait still fill a third, whoever of the players they wait for; the last games are
    searched a quarter as wide, and a sixteenth, so that most rows are live.
    """
    networks = [p for p in players if p.search]
    if jax.default_backend() == "cpu":
        rows = min(num_rows or CPU_ROWS, max(num_games, 1))
        # Some games last for ten times the others: with few rows a search, those that wait fill them until the last
        # few games, and a CPU searches 8 rows nearly as fast, a row, as 64.
        return rows, (max(rows // CPU_PARTS, 1),)
    parts = max(LEAST_PARTS, len({id(p.variables) for p in networks}) + 2)
    most = min((rows_in_memory(game, p) for p in {id(p.search): p for p in networks}.values()), default=num_games)
    rows = num_rows or max(min(num_games, parts * most), 1)
    at_least = min(rows, CPU_ROWS) // LEAST_PARTS
    widest = max(min(max(min(rows, num_games) // parts, at_least), most * len(jax.local_devices())), 1)
    return rows, tuple(width for width in (widest, widest // 4, widest // 16) if width)


def choose_searches_at_once() -> int:
    """One a core, as small searches use no more; on an accelerator one that waits while one runs."""
    return max(num_cores(), 2) if jax.default_backend() == "cpu" else 2


def rows_in_memory(game: Game, player: Player) -> int:
    """How many rows of the player's search fit on the first device; very many where it is not known."""
    stats: dict[str, Any] = jax.local_devices()[0].memory_stats() or {}
    free = stats.get("bytes_limit", 1 << 62) - stats.get("bytes_in_use", 0)
    return max(int(MEMORY_SHARE * free / row_bytes(game, player)), 1)


def row_bytes(game: Game, player: Player) -> float:
    """Memory of one more row in a search: COPIES of what its largest operation makes, a tree with all its nodes."""
    assert player.search
    search, variables = player.search, jax.eval_shape(lambda: player.variables)

    def largest(rows: int) -> int:
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
        states = jax.eval_shape(lambda: jax.vmap(lambda _: game.init())(jnp.arange(rows)))
        return _largest(jax.make_jaxpr(search)(variables, keys, states).jaxpr)

    return COPIES * max(largest(2) - largest(1), 1)


def _largest(jaxpr: Any) -> int:
    found = 0
    for equation in jaxpr.eqns:
        made = sum(x.aval.size * x.aval.dtype.itemsize for x in equation.outvars if hasattr(x.aval, "size"))
        found = max(found, made, *(_largest(inner) for inner in jaxprs_in_params(equation.params)))
    return found
