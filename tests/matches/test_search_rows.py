"""How wide searches are: what a row takes, and what an accelerator is given of the games that there are."""

import jax
import jax.numpy as jnp
import pytest

from alphagateau.games.rules import Game
from alphagateau.matches import match, search_rows
from alphagateau.matches.match import play_games
from alphagateau.matches.match_games import Match, PlayedGame
from alphagateau.matches.openings import make_openings
from alphagateau.matches.players import Player
from alphagateau.matches.search_rows import choose_rows, row_bytes, rows_in_memory
from alphagateau.search.baselines import make_random_search
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.gumbel.gumbel import make_gumbel_search

GIB = 2**30


def players(count: int) -> list[Player]:
    search = make_random_search()
    return [Player(f"p{k}", search, {"w": jnp.float32(k)}) for k in range(count)]


def test_no_more_rows_than_games(gardner):
    assert choose_rows(gardner, players(2), 10, 10**14) == (10, (1,))
    assert choose_rows(gardner, players(2), 1000, 0)[0] == search_rows.CPU_ROWS


@pytest.fixture
def accelerator(monkeypatch):
    """As if this were an accelerator on which a row takes a GiB."""

    def with_memory(gib: float) -> None:
        monkeypatch.setattr(search_rows.jax, "default_backend", lambda: "gpu")
        monkeypatch.setattr(search_rows, "rows_in_memory", lambda game, player: int(gib))

    return with_memory


@pytest.mark.parametrize(
    ("memory", "num_players", "num_games", "asked", "expected"),
    [
        (1000, 2, 4000, 0, (4000, 1000)),  # as wide as the memory
        (100, 2, 4000, 0, (400, 100)),
        (1000, 22, 5520, 0, (5520, 230)),  # what waits for each of 22 players fills a search
        (1000, 22, 240, 0, (240, 16)),  # but not less than ever
        (8, 2, 4000, 0, (32, 8)),  # unless no more fit
        (1000, 2, 4000, 64, (64, 16)),  # as asked for
        (1000, 2, 2, 0, (2, 1)),
    ],
)
def test_an_accelerator_searches_as_many_rows_as_its_memory_and_the_games_allow(
    gardner: Game, accelerator, memory, num_players, num_games, asked, expected
):
    accelerator(memory)
    rows, widths = choose_rows(gardner, players(num_players), num_games, asked)
    assert (rows, widths[0]) == expected and widths[1:] == tuple(w for w in (widths[0] // 4, widths[0] // 16) if w)


def test_a_cpu_searches_as_before(gardner: Game):
    assert choose_rows(gardner, players(2), 4000) == (64, (8,)) == choose_rows(gardner, players(9), 4000, 64)
    assert choose_rows(gardner, players(2), 40) == (40, (5,))


def test_rows_in_memory_go_by_what_is_free(gardner: Game, monkeypatch):
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 5 * GIB, "bytes_in_use": 3 * GIB}

    monkeypatch.setattr(search_rows, "row_bytes", lambda game, player: 0.2 * GIB)
    monkeypatch.setattr(search_rows.jax, "local_devices", lambda: [Device()])
    assert rows_in_memory(gardner, players(1)[0]) == 4  # 0.4 of 2 GiB
    monkeypatch.setattr(search_rows.jax, "local_devices", lambda: jax.devices("cpu"))
    assert rows_in_memory(gardner, players(1)[0]) > 10**6  # a CPU does not say


def test_a_match_is_as_wide_as_a_ladder(gardner: Game, accelerator, monkeypatch):
    accelerator(1000)
    asked = []
    monkeypatch.setattr(match, "open_scheduler", lambda game, matches, mesh, sizes, *_: asked.append(sizes) or 1 / 0)
    a, b = players(2)
    for num_rows in (0, 64):
        with pytest.raises(ZeroDivisionError):
            play_games(gardner, [Match(a, b, make_openings(gardner, 100, 4, 0))], num_rows=num_rows)
    assert [(sizes.num_rows, sizes.rows_per_search[0]) for sizes in asked] == [(200, 50), (64, 16)]


@pytest.mark.whole
def test_a_row_is_given_at_least_the_memory_that_xla_counts(gardner: Game, tiny):
    search = make_gumbel_search(gardner, tiny.network, GumbelConfig(num_simulations=8, gumbel_scale=0.0))
    keys = jax.random.split(jax.random.key(0), 32)
    states = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], 32, axis=0), gardner.init())
    memory = jax.jit(search).lower(tiny.variables, keys, states).compile().memory_analysis()
    assert memory is not None
    counted = memory.temp_size_in_bytes / 32
    estimate = row_bytes(gardner, Player("p", search, tiny.variables))
    assert counted <= estimate <= 8 * counted


@pytest.mark.whole
def test_searches_of_many_players_are_full(gardner: Game, accelerator):
    """Twelve players, all pairs, as on an accelerator: searches stay full of live rows."""
    accelerator(1000)
    openings, some = make_openings(gardner, 4, 4, 0), players(12)
    matches = [Match(a, b, openings, seed=k) for k, a in enumerate(some) for b in some[:k]]
    rows, widths = choose_rows(gardner, some, 8 * len(matches))
    assert (rows, widths) == (528, (37, 9, 2))
    played: list[PlayedGame] = []
    statistics = play_games(gardner, matches, num_rows=rows, rows_per_search=widths, on_game=played.append)
    assert statistics.live_fraction > 0.85 and all(game.score is not None for game in played)
