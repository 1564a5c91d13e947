"""What a ladder pools: openings counted before the first game, protocols, the parts of a team, games merged."""

import csv
import dataclasses
import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from host_players import BOARD, host_player

from alphagateau.config import ConfigError, LadderConfig, make_record
from alphagateau.games.pgn.pgn import to_pgn
from alphagateau.games.rules import Game
from alphagateau.games.small_boards import board_class
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder import ladder as ladders
from alphagateau.matches.ladder import meetings
from alphagateau.matches.ladder.games import LadderGamesError, key_of, read_games, read_records
from alphagateau.matches.ladder.ladder import merge_ladders, play_ladder
from alphagateau.matches.ladder.meetings import count_openings, open_openings, take_openings
from alphagateau.matches.ladder.protocol import write_protocol
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.player_specs import search_of
from alphagateau.matches.players import random_player
from alphagateau.matches.specs import PlayerError, parse_spec

HOSTS = [host_player("a"), host_player("b"), host_player("c")]
RANDOM = random_player()._replace(key=("random", "", BOARD), has_noise=True)
TRAINED = {"algorithm": "gumbel", "num_simulations": 32, "gumbel_scale": 1.0}


@pytest.fixture
def seat(monkeypatch):
    """Lets these players be the ones of every ladder."""

    def sit(players):
        monkeypatch.setattr(ladders, "load_players", lambda *_: (list(players), []))

    sit(HOSTS)
    return sit


def ladder_of(**keys) -> LadderConfig:
    keys = {"matching": "all", "games_per_pair": 2, "boards": (BOARD,), "rows": 8, **keys}
    return LadderConfig(players=("a", "b", "c"), **keys)


def played(folder: Path, **keys):
    """The pool of a ladder after all of its games, and what it said."""
    said: list[str] = []
    (pool,) = play_ladder(ladder_of(**keys), [], folder, Callbacks(said.append))
    return pool, said


def num_games(pool) -> int:
    return sum(sum(row[2:5]) for row in pool.results.rows)


def test_games_of_another_protocol_are_kept_named_and_not_counted(seat, tmp_path):
    first, _ = played(tmp_path, opening_plies=4)
    other, _ = played(tmp_path, opening_plies=3, seed=1)
    assert num_games(first) == num_games(other) == 6 and not first.notes
    assert len(read_games(tmp_path / "games.jsonl")) == 12  # all are kept
    named = "6 games of another protocol (openings: 4 random plies, seed 0; at most 256 plies; rules 1) are kept"
    assert [note for note in other.notes if note.startswith(named)] == other.notes
    again, said = played(tmp_path, opening_plies=4)
    assert again.results == first.results and not any("next" in line for line in said)  # nothing to play
    assert again.protocol["openings"] == "4 random plies, seed 0" and other.protocol["rules version"] == "1"


def test_every_part_of_a_protocol_makes_another(gardner: Game, tmp_path, monkeypatch):
    def protocol(game=gardner, path="", plies=4, seed=0):
        return write_protocol(game, open_openings(game, path, plies, seed))

    (tmp_path / "one.txt").write_text("a2a3\nb2b3  # the same\n")
    (tmp_path / "two.txt").write_text("a2a3\nc2c3\n")
    found = [
        protocol(),
        protocol(plies=3),
        protocol(seed=1),
        protocol(plies=0),
        protocol(dataclasses.replace(gardner, max_plies=9)),
    ]
    found += [protocol(path=str(tmp_path / name)) for name in ("one.txt", "two.txt")]
    monkeypatch.setattr("alphagateau.matches.ladder.protocol.RULES_VERSION", 2)
    found.append(protocol())
    assert len(set(found)) == len(found)
    (tmp_path / "one.txt").write_text("# said otherwise\na2a3\n\nb2b3\n")
    assert protocol(path=str(tmp_path / "one.txt")).startswith(found[5].removesuffix("rules 1"))


@pytest.mark.parametrize(
    ("options", "noise", "shown"),
    [
        ("", 0.0, "gumbel 32 simulations, 16 considered"),
        ("", 1.0, "gumbel 32 simulations, 16 considered, 1 gumbel_scale"),
        ("?gumbel_scale=1.0", 0.0, "gumbel 32 simulations, 16 considered, 1 gumbel_scale"),
        ("?gumbel_scale=0", 1.0, "gumbel 32 simulations, 16 considered"),
        ("?search=policy", 1.0, "policy"),
        ("?considered=4&simulations=8", 0.0, "gumbel 8 simulations, 4 considered"),
    ],
)
def test_noise_simulations_and_considered_moves_are_part_of_a_player(options, noise, shown):
    """The paper's own evaluation, Gumbel scale 1.0, by a ladder's key or by a player's spec."""
    from alphagateau.config.searches import describe_search

    assert describe_search(search_of(parse_spec(f"runs/a{options}"), TRAINED, gumbel_scale=noise)) == shown


@pytest.mark.whole
def test_from_the_start_position_noise_makes_every_game_another(seat, tmp_path):
    seat([RANDOM, HOSTS[0]])
    pool, _ = played(tmp_path, opening_plies=0, games_per_pair=4)
    assert num_games(pool) == 4 and pool.protocol["openings"] == "the start position"
    pool, _ = played(tmp_path, opening_plies=0, games_per_pair=12)  # a second meeting is not the first again
    games = read_games(tmp_path / "games.jsonl")
    assert len({game.moves for game in games}) == len(games) == 12
    assert sorted(game.opening for game in games) == [k // 2 for k in range(12)]
    (tmp_path / "packed").mkdir()
    text = "".join(map(to_pgn, pool.records))
    (tmp_path / "packed" / "games.pgn.gz").write_bytes(gzip.compress(text.encode()))
    ladder, said = ladder_of(opening_plies=0, games_per_pair=12), []
    (_,) = merge_ladders(ladder, [], tmp_path / "merged", [tmp_path / "packed"], Callbacks(said.append))
    assert "12 games on gardner_chess were added" in said[0]


def test_openings_are_counted_and_none_is_made_that_is_not_played(gardner: Game, seat, tmp_path):
    lines = set()
    for first in board_class(BOARD)().legal_moves:
        board = board_class(BOARD)()
        board.push(first)
        for second in list(board.legal_moves):
            board.push(second)
            lines.add(board.fen().rsplit(" ", 2)[0])
            board.pop()
    openings = open_openings(gardner, "", 2, 0)
    assert count_openings(openings, 3) == 3 == len(openings.made)
    assert count_openings(openings, 1000) == len(lines) == len(openings.made)
    again = take_openings(openings, [1, len(lines) + 1])
    assert again[0] is again[1]
    pool, _ = played(tmp_path, opening_plies=2)
    assert num_games(pool) == 6 and len({game.opening for game in read_games(tmp_path / "games.jsonl")}) == 1


@pytest.mark.parametrize("matching", ["all", "paper"])
def test_too_few_openings_are_said_before_the_first_game(matching, seat, tmp_path):
    with pytest.raises(LadderGamesError, match=r"^7 openings here \(1 random plies, seed 0\), 8 are needed") as error:
        played(tmp_path, opening_plies=1, games_per_pair=16, matching=matching)
    assert "more opening_plies, or noise" in str(error.value) and not (tmp_path / "games.jsonl").exists()


def test_without_any_opening_no_ladder_begins(seat, tmp_path, monkeypatch):
    """Of a plug-in's board; among players of noise it ended in a division by nothing."""
    monkeypatch.setattr(meetings, "random_openings", lambda *_: iter(()))
    with pytest.raises(LadderGamesError, match=r"^there is no opening .*: ask for fewer opening_plies$"):
        played(tmp_path)


def test_an_informative_ladder_plays_no_opening_twice(seat, tmp_path):
    seat(HOSTS[:2])
    pool, said = played(tmp_path, opening_plies=1, games_per_pair=16, max_games=40, matching="informative")
    assert num_games(pool) == 14 and any(line.startswith("7 openings here") for line in said)
    assert {key_of(g)[2] for g in read_games(tmp_path / "games.jsonl")} == set(range(7))


@pytest.mark.parametrize(("most", "expected"), [(0, "6 games of 3 pairs"), (3, "2 games of 1 pair")])
def test_algorithm_2_honours_the_keys_of_a_ladder(most, expected, seat, tmp_path):
    pool, said = played(tmp_path, matching="paper", games_per_pair=2, max_games=most)
    assert num_games(pool) == int(expected[0])
    assert [line for line in said if "next" in line] == [f"{BOARD}: 0 games played; next {expected}"]
    assert played(tmp_path, matching="paper", max_games=3)[0].results == pool.results  # 60 games a pair, but no more


def test_games_stored_before_protocols_count_if_they_began_as_the_ladder_says(seat, tmp_path):
    pool, _ = played(tmp_path)
    file = tmp_path / "games.jsonl"
    stored = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({k: v for k, v in one.items() if k != "protocol"}) + "\n" for one in stored))
    again, said = played(tmp_path)
    assert again.results == pool.results and not any("next" in line for line in said)
    other, _ = played(tmp_path, seed=5)
    assert num_games(other) == 6 and other.notes == [
        "6 games of another protocol (unknown openings) are kept and not counted"
    ]


def test_ratings_csv_and_the_page_state_the_protocol(seat, tmp_path):
    from alphagateau.cli.ladders import run_ladder

    run_ladder(ladder_of(), tmp_path, Callbacks(lambda text: None))
    with (tmp_path / "ratings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["protocol"] for row in rows} == {"openings: 4 random plies, seed 0; at most 256 plies; rules 1"}
    assert {row["search"] for row in rows} == {"hash"}
    page = (tmp_path / "index.html").read_text()
    assert "4 random plies, seed 0" in page and "ply limit" in page


@pytest.mark.whole
def test_machines_of_a_team_play_other_openings_and_their_games_are_merged(seat, tmp_path):
    for part in ("1/2", "2/2"):
        played(tmp_path / part[0], part=part)
    read = [read_games(tmp_path / part / "games.jsonl") for part in "12"]
    assert {g.opening for g in read[0]} == {0} and {g.opening for g in read[1]} == {1}
    ladder, said = ladder_of(), []
    merge = partial(merge_ladders, ladder, [], tmp_path / "all")
    (pool,) = merge([tmp_path / "1", tmp_path / "2" / "games.jsonl", tmp_path / "1"], Callbacks(said.append))
    assert num_games(pool) == 12 and "6 games on gardner_chess were added, 0 were here" in said[0]
    assert said[2].endswith(": 0 games on gardner_chess were added, 6 were here, 0 are of another protocol")
    whole, _ = played(tmp_path / "whole", games_per_pair=4)
    assert pool.results == whole.results  # as one machine alone
    played(tmp_path / "3", seed=9)
    (pool,) = merge([tmp_path / "3"], Callbacks(said.append))
    assert said[-1].endswith("0 games on gardner_chess were added, 0 were here, 6 are of another protocol")
    assert len(read_games(tmp_path / "all" / "games.jsonl")) == 12 == num_games(pool)


def test_games_of_a_pgn_file_are_those_that_it_was_written_of(seat, tmp_path):
    """By a ladder, packed; its players are told apart by the tags of their weights, of the random mover by its own."""
    seat([*HOSTS[:2], RANDOM])
    pool, _ = played(tmp_path / "whole")
    text = "".join(map(to_pgn, pool.records))
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "games.pgn.gz").write_bytes(gzip.compress(text.encode()))
    stored, read = (read_games(tmp_path / "whole" / "games.jsonl"), read_records(tmp_path / "only" / "games.pgn.gz"))
    hashed = {("a", "hash", BOARD): ("a", "uci", BOARD), ("b", "hash", BOARD): ("b", "uci", BOARD)}  # they have no tags
    assert {key_of(game)[:3] for game in read} == {
        (hashed.get(game.white, game.white), hashed.get(game.black, game.black), game.opening) for game in stored
    }
    assert {(g.moves, g.start_fen, g.result, g.termination) for g in read} == {
        (g.moves, g.start_fen, g.result, g.termination) for g in stored
    }
    seat([player._replace(key=hashed.get(player.key, player.key)) for player in (*HOSTS[:2], RANDOM)])
    said: list[str] = []
    (again,) = merge_ladders(ladder_of(), [], tmp_path / "again", [tmp_path / "only"], Callbacks(said.append))
    assert again.results == pool.results and "6 games on gardner_chess were added, 0 were here, 0 are" in said[0]
    more, _ = played(tmp_path / "again", games_per_pair=4)
    assert num_games(more) == 12  # each pair two more


def test_a_pgn_file_that_no_ladder_wrote_is_refused(tmp_path):
    (tmp_path / "a.pgn").write_text('[White "a"]\n[Black "b"]\n[Result "1-0"]\n\n1. e4 1-0\n')
    with pytest.raises(LadderGamesError, match=r"a\.pgn, game 1: expected a finished game of a ladder, its Round"):
        read_records(tmp_path / "a.pgn")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (None, "has no games to merge: expected a games.jsonl, or the folder of a ladder"),
        ({"white": 3}, "line 1 is damaged: expected one finished game"),
        ({"white": []}, "line 1 is damaged"),
        ({"black": ["b", 1]}, "line 1 is damaged"),
        ({"result": "*"}, "line 1 is damaged"),
        ({"start_fen": None}, "line 1 is damaged"),
        ({"opening": -1}, "line 1 is damaged"),
        ({"elo": 2800}, "line 1 is damaged"),
        ({"moves": ["a2a3", "a2a3"]}, "game 1 of 1 on gardner_chess: illegal uci: 'a2a3'"),
        ({"moves": ["0000"]}, "game 1 of 1 on gardner_chess: '0000' is no move"),
        ({"start_fen": "nowhere"}, "game 1 of 1 on gardner_chess: "),
    ],
)
def test_what_cannot_be_merged_is_said_and_leaves_the_games_as_they_were(changes, said, seat, tmp_path):
    name = write_protocol(get_game(BOARD), open_openings(get_game(BOARD), "", 4, 0))
    both = {"white": ["a", "hash", BOARD], "black": ["b", "hash", BOARD]}
    game = {"opening": 0, "result": "1-0", "termination": "", "start_fen": board_class(BOARD)().fen(), "moves": []}
    (tmp_path / "games.jsonl").write_text(json.dumps({**both, **game, "protocol": name}) + "\n")
    before = (tmp_path / "games.jsonl").read_bytes()
    source = tmp_path / "other.jsonl"
    if changes is not None:
        source.write_text(json.dumps({**both, **game, "protocol": name, "opening": 1, **changes}) + "\n")
    with pytest.raises(LadderGamesError) as error:
        list(merge_ladders(ladder_of(), [], tmp_path, [tmp_path, source], Callbacks(print)))
    assert said in str(error.value) and source.name in str(error.value) and "\n" not in str(error.value)
    assert (tmp_path / "games.jsonl").read_bytes() == before


def test_players_that_the_ladder_does_not_name_are_named_and_not_counted(seat, tmp_path):
    played(tmp_path)
    seat(HOSTS[:2])
    pool, said = played(tmp_path)
    named = "4 games of players that are not on this ladder are kept and not counted: c (hash)"
    assert pool.notes == [named] == said and num_games(pool) == 2
    merged: list[str] = []
    (pool,) = merge_ladders(ladder_of(), [], tmp_path / "other", [tmp_path], Callbacks(merged.append))
    assert merged[0].endswith("6 games on gardner_chess were added, 0 were here, 0 are of another protocol")
    assert merged[1:] == [named] == pool.notes and num_games(pool) == 2


def test_an_anchor_that_is_no_player_is_said_before_the_first_game(seat, tmp_path):
    with pytest.raises(LadderGamesError, match=r"^anchor 'd' is not a player on gardner_chess: a, b, c$"):
        played(tmp_path, anchor="d")
    with pytest.raises(LadderGamesError, match=r"^anchor 'UCI_Elo' is not a player"):  # nor has one such a level
        played(tmp_path, anchor="UCI_Elo")
    assert not (tmp_path / "games.jsonl").exists()


def test_an_anchor_that_fails_leaves_the_others_to_play_and_be_rated(seat, tmp_path):
    def give_up(start_fen, moves):
        raise PlayerError("it ended by itself")

    seat([*HOSTS[:2], HOSTS[2]._replace(move=give_up)])
    pool, _ = played(tmp_path, matching="informative", max_games=6, anchor="c")
    assert num_games(pool) == 6 and pool.notes[0] == "c left the ladder: it ended by itself"
    assert any("anchor c ties only the players linked to it" in note for note in pool.ratings.notes)


def test_games_that_are_there_twice_are_counted_once(seat, tmp_path):
    pool, _ = played(tmp_path)
    with (tmp_path / "games.jsonl").open("a") as file:
        file.write((tmp_path / "games.jsonl").read_text())
    twice, _ = played(tmp_path)
    assert twice.results == pool.results and twice.notes == ["6 games are there twice and counted once"]


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "a/b", "1/0", "1/2/3"])
def test_a_part_that_is_none_is_refused(part):
    with pytest.raises(ConfigError, match="part must be a number and how many there are, such as 2/3"):
        make_record(LadderConfig, {"players": ["random"], "part": part}, "ladder")
