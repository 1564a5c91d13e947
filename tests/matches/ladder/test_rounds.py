"""The rounds of a ladder: when one begins, what it goes by, and where it ends."""

from itertools import product
from pathlib import Path

import pytest
from host_players import BOARD, host_player

from alphagateau.config import LadderConfig
from alphagateau.matches.ladder import ladder as ladders
from alphagateau.matches.ladder.games import GameKey, key_of, read_games
from alphagateau.matches.ladder.ladder import RatedPool, play_ladder
from alphagateau.matches.ladder.pairings import Standing, next_pairings
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.specs import PlayerError
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Row, make_results

PAWNS = ("1pppp", "p1ppp", "pp1pp", "ppp1p")
HOSTS = [host_player(name) for name in "abcd"]


@pytest.fixture
def play(monkeypatch, tmp_path):
    """Plays an informative ladder of host players in a folder, whose games are short: its pool, and what it said."""

    def run(folder: Path, players=HOSTS, **keys) -> tuple[RatedPool, list[str]]:
        monkeypatch.setattr(ladders, "load_players", lambda *_: (list(players), []))
        said: list[str] = []
        openings = tmp_path / "openings.txt"
        openings.write_text("".join(f"rnbqk/{a}/5/{b.upper()}/RNBQK w - - 0 118\n" for a, b in product(PAWNS, PAWNS)))
        keys = {"boards": (BOARD,), "games_per_pair": 4, "max_games": 32, "rows": 8, **keys}
        callbacks = Callbacks(said.append, should_stop=keys.pop("should_stop", lambda: False))
        (pool,) = play_ladder(LadderConfig(players=("a", "b"), openings=str(openings), **keys), [], folder, callbacks)
        return pool, [line for line in said if "next" in line]

    return run


def games_in(folder: Path) -> set[GameKey]:
    return {key_of(game) for game in read_games(folder / "games.jsonl")}


def test_a_round_begins_before_the_last_has_ended_and_goes_by_no_clock(play, tmp_path):
    pool, said = play(tmp_path / "wide", rows=12)
    others, _ = play(tmp_path / "narrow", rows=3)
    assert said[0] == f"{BOARD}: 0 games played; next 8 games of 2 pairs"
    assert said[1] == f"{BOARD}: 0 games played, 8 in progress; next 8 games of 2 pairs"
    assert len(said) == 4 and {game.result for game in read_games(tmp_path / "wide" / "games.jsonl")} > {"1/2-1/2"}
    assert games_in(tmp_path / "wide") == games_in(tmp_path / "narrow") and len(games_in(tmp_path / "wide")) == 32
    assert pool.results == others.results and pool.ratings.players == others.ratings.players


@pytest.mark.parametrize(("most", "expected"), [(8, 8), (13, 12), (30, 30)])
def test_no_more_games_are_played_than_at_most(most, expected, play, tmp_path):
    play(tmp_path, max_games=most)
    assert len(games_in(tmp_path)) == expected
    assert not play(tmp_path, max_games=most)[1]  # the same command again


def test_a_ladder_stopped_anywhere_ends_with_as_many_games_none_twice(play, tmp_path):
    for stop_at in (3, 9, 20):
        play(tmp_path, should_stop=lambda most=stop_at: len(games_in(tmp_path)) >= most)
        assert stop_at <= len(games_in(tmp_path)) < 32
    play(tmp_path)
    assert 31 <= len(games_in(tmp_path)) == len(read_games(tmp_path / "games.jsonl")) <= 32


@pytest.mark.parametrize("method", ["bradley-terry", "wls"])
def test_the_error_asked_for_is_reached_by_the_method_that_rates(play, tmp_path, method):
    keys = {"max_games": 0, "target_error": 120.0, "method": method}
    pool, _ = play(tmp_path, **keys)
    assert pool.ratings.standard_error.max() <= 120.0
    assert not play(tmp_path, **keys)[1]


def test_only_an_error_relative_to_the_anchor_sends_everybody_against_it():
    names = list("abcdef")
    standing = Standing(names, make_results([], names))
    met = next_pairings(LadderConfig(players=tuple(names), anchor="a", max_games=60), standing)
    assert sorted(name for pairing in met for name in pairing[:2]) == names
    met = next_pairings(LadderConfig(players=tuple(names), anchor="a", target_error=50.0), standing)
    assert len(met) == 3 and all("a" in pairing[:2] for pairing in met)


def test_ratings_are_precise_when_all_players_are_on_one_scale_with_small_errors():
    linked = [Row("a", "b", 30, 0, 30), Row("b", "c", 30, 0, 30)]
    error = rate(make_results(linked)).standard_error.max()

    def ends(names: str, rows: list[Row], target_error: float) -> bool:
        ladder = LadderConfig(players=("x",), target_error=target_error)
        return not next_pairings(ladder, Standing([*names], make_results(rows, [*names])))

    assert not ends("abc", linked, error - 0.1) and ends("abc", linked, error + 0.1)
    assert not ends("abcd", [Row("a", "b", 30, 0, 30), Row("c", "d", 30, 0, 30)], 1e6)
    assert not ends("abc", [Row("a", "b", 30, 0, 30)], 1e6) and not ends("ab", [], 1e6)


def failing(number: int) -> list:
    """The hosts, of whom one fails at its first move."""

    def give_up(start_fen, moves):
        raise PlayerError("engine 'x' ended by itself")

    bad = HOSTS[number]._replace(move=give_up)
    return [*HOSTS[:number], bad, *HOSTS[number + 1 :]]


def test_a_ladder_ends_at_the_error_asked_for_of_those_who_have_not_left(play, tmp_path):
    pool, _ = play(tmp_path, failing(0), max_games=0, target_error=150.0, anchor="a")
    assert pool.notes[0].startswith("a left the ladder")
    assert len(games_in(tmp_path)) < 96  # of three pairs and sixteen openings


def test_a_player_that_fails_leaves_and_the_others_play_on(play, tmp_path):
    pool, _ = play(tmp_path, failing(3))
    assert pool.notes[0] == "d left the ladder: engine 'x' ended by itself"
    assert len(games_in(tmp_path)) == 32 and dict(zip(pool.ratings.players, pool.ratings.games, strict=True))["d"] == 0
