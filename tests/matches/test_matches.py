"""Matches: openings, who moves where, the books of results, many matches at once, players that fail."""

import gzip
import itertools
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import chess
import jax
import jax.numpy as jnp
import pytest

from alphagateau.commands.main import main
from alphagateau.games.notation import board_from_fen, to_fen
from alphagateau.games.pgn.pgn import read_pgn, to_pgn
from alphagateau.games.rules import Game
from alphagateau.games.small_boards import board_class
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.matches.match import play_games, play_match
from alphagateau.matches.match_games import Match, PlayedGame
from alphagateau.matches.openings import Opening, make_openings, read_openings
from alphagateau.matches.players import Player, random_player
from alphagateau.matches.search_rows import choose_rows
from alphagateau.matches.specs import PlayerError
from alphagateau.runs.stop import StopRequest
from alphagateau.search.baselines import make_policy_search, make_random_search
from alphagateau.search.config import PolicyConfig
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.gumbel.gumbel import make_gumbel_search
from alphagateau.search.search import SearchOutput

ROWS = 4  # of every search here, so that each search is compiled once


@pytest.fixture(scope="module")
def openings(gardner: Game) -> list[Opening]:
    return make_openings(gardner, 64, 4, seed=1)


def take_last(variables, keys: Array, states: State) -> SearchOutput:
    """A player that moves along its last legal edge."""
    slot = (states.legal_edges >= 0).sum(axis=-1) - 1
    edge = jnp.take_along_axis(states.legal_edges, slot[:, None], axis=-1)[:, 0]
    return SearchOutput(edge, *[jnp.zeros_like(states.legal_edges, jnp.float32)] * 2, *[jnp.zeros(len(edge))] * 2)


def first_by_name(start_fen: str, moves: Sequence[str]) -> str:
    """A host player: the first legal move in the alphabet."""
    board = board_from_fen(get_game("gardner_chess"), start_fen)
    for move in moves:
        board.push_uci(move)
    return min(move.uci() for move in board.legal_moves)


def replay(played: PlayedGame) -> Iterator[tuple[chess.Board, str]]:
    """(board, move made on it) of each ply."""
    board = board_class(played.record.game)(played.record.start_fen)
    for uci in played.record.moves:
        yield board, uci
        board.push_uci(uci)


def moves_by_game(records: list[PlayedGame]) -> dict[tuple[int, bool], tuple[str, ...]]:
    return {(played.opening, played.a_is_white): played.record.moves for played in records}


def test_positions_looked_at_are_counted_of_players_that_say(gardner, openings):
    """One says as many as it has legal moves, the other, asked on the host, says nothing."""

    def count(variables, keys: Array, states: State) -> SearchOutput:
        return take_last(variables, keys, states)._replace(num_nodes=(states.legal_edges >= 0).sum(axis=-1))

    match = Match(Player("a", count, {}), Player("b", move=first_by_name), openings[:2])
    result = play_match(gardner, match, num_rows=ROWS, rows_per_search=ROWS)
    counted = [
        board.legal_moves.count()
        for played in result.records
        for ply, (board, _) in enumerate(replay(played))
        if ply >= 4 and (board.turn == chess.WHITE) == played.a_is_white
    ]
    assert result.nodes == pytest.approx((sum(counted) / len(counted), math.nan), nan_ok=True)


@pytest.mark.parametrize("name", ["gardner_chess", "chess"])
def test_openings_are_distinct_unfinished_legal_lines(name: str) -> None:
    game = get_game(name)
    openings = make_openings(game, 20, 4, seed=7)
    fens = []
    for state, start_fen, line in openings:
        board = board_class(name)(start_fen)
        for uci in line:
            board.push(board.parse_uci(uci))
        assert not board.is_game_over()
        fens.append(board.fen(en_passant="legal").rsplit(" ", 2)[0])
        assert to_fen(game, state).rsplit(" ", 2)[0] == fens[-1]
        assert state.ply == 4
    assert len(openings) == len(set(fens)) == 20


def lines_of(openings: list[Opening]) -> list[tuple[str, ...]]:
    return [opening.line for opening in openings]


def test_openings_depend_on_the_seed_alone(gardner: Game) -> None:
    assert lines_of(make_openings(gardner, 5, 4, 7)) == lines_of(make_openings(gardner, 9, 4, 7))[:5]
    assert lines_of(make_openings(gardner, 5, 4, 7)) != lines_of(make_openings(gardner, 5, 4, 8))


def test_there_are_seven_openings_of_one_ply(gardner: Game) -> None:
    assert len(make_openings(gardner, 7, 1, 0)) == 7
    with pytest.raises(ValueError, match=r"^8 different openings of 1 plies .* 7 found: ask for fewer"):
        make_openings(gardner, 8, 1, 0)


def test_the_solved_first_moves_are_all_seven(gardner: Game) -> None:
    folder = Path(__file__).parents[2] / "eval" / "openings"
    (drawn, _), (lost, _) = (read_openings(gardner, folder / f"gardner_{name}.pgn") for name in ("drawn", "lost"))
    assert (len(drawn), len(lost)) == (4, 3)
    assert {one.line for one in drawn + lost} == {one.line for one in make_openings(gardner, 7, 1, 0)}


def test_openings_file(gardner: Game, tmp_path: Path) -> None:
    path = tmp_path / "openings.txt"
    path.write_text("# mine\n\nA2a3 b4A3  # a capture\nrnbqk/1pppp/p4/PPPPP/RNBQK w - - 0 1\n1r2k/5/5/5/1R2K b - -\n")
    openings, notes = read_openings(gardner, path)
    assert lines_of(openings) == [("a2a3", "b4a3"), (), ()] and notes == ()
    assert openings[0].start_fen == gardner.start_fen
    assert openings[2].start_fen == "1r2k/5/5/5/1R2K b - - 0 1"
    assert [int(opening.state.color) for opening in openings] == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a2a3\nhello\n", r"line 2: 'hello' is not a move"),
        ("a2a5\n", r"line 1: 'a2a5' is not a move: expected a legal one of rnbqk/"),
        ("\nrnbqk/ppppp/5/PPPPP w - - 0 1\n", r"line 2: FEN .* wrong board"),
        ("4k/5/5/5/4K w - - 0 1\n", r"line 1: the game is over in this position"),
        ("a2a3\nb2b3\na2a3\n", r"line 3: it gives the position of line 1"),
        ("# nothing\n", r"openings.txt: it has no openings"),
    ],
)
def test_openings_file_that_is_wrong(gardner: Game, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "openings.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_openings(gardner, path)
    assert str(error.value).startswith(str(path))


FENS = [
    "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2",
    "rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq - 0 2",
]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + "\n\n".join(FENS),
        ";\n".join([*FENS, ""]),
        "".join(f'{fen.rsplit(" ", 2)[0]} hmvc 0; fmvn 2; id "# {n}; it\'s \\"so\\"";\n' for n, fen in enumerate(FENS)),
        "".join(f"{fen} bm Nf3;  # good\n" for fen in FENS),
        gzip.compress("\n".join(FENS).encode(), mtime=0),
        ("# Réti\n" + "\n".join(FENS)).encode("latin-1"),
        "\n".join(FENS).encode("utf-16"),
        f'[FEN "{FENS[0]}"]\n\n*\n\n[Event "x"]\n[FEN "{FENS[1]}"]\n\n*\n',
    ],
)
def test_books_of_others_give_their_openings(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "book"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    openings, _ = read_openings(get_game("chess"), path)
    assert [opening.start_fen for opening in openings] == FENS


def test_a_book_of_games_gives_last_positions_and_says_which_are_none(tmp_path: Path) -> None:
    path = tmp_path / "book.pgn"
    games = ["1. e4 e5", "1. d4 (1. c4) d5 {equal}", "1. e4 e5", "1. f3 e5 2. g4 Qh4# 0-1", "1. e4 Ke7"]
    path.write_text("".join(f'[Event "x"]\n\n{game} *\n\n'.replace("0-1 *", "0-1") for game in games))
    openings, (note,) = read_openings(get_game("chess"), path)
    assert lines_of(openings) == [("e2e4", "e7e5"), ("d2d4", "d7d5")]
    assert [to_fen(get_game("chess"), opening.state) for opening in openings] == FENS
    assert note.startswith("3 games left out as openings, the first: ") and "game 3" in note


def test_player_without_noise_scores_half_against_itself(gardner: Game, tiny, openings: list[Opening]) -> None:
    search = make_gumbel_search(gardner, tiny.network, GumbelConfig(num_simulations=4, gumbel_scale=0.0))
    player = Player("p", search, tiny.variables)
    again = Player("the same, stored elsewhere", search, dict(tiny.variables))
    result = play_match(gardner, Match(player, again, openings[:12]), rows_per_search=ROWS)
    assert result.wins == result.losses
    assert result.pentanomial == (0, 0, 12, 0, 0)
    games = moves_by_game(result.records)
    assert all(games[opening, True] == games[opening, False] for opening in range(12))


@pytest.fixture(scope="module")
def random_result(gardner: Game, openings: list[Opening]):
    return play_match(gardner, Match(random_player(), random_player(), openings, seed=3), rows_per_search=ROWS)


def opening_points(records: list[PlayedGame]) -> dict[int, float]:
    """Opening -> a's points in its two games."""
    points: dict[int, float] = {}
    for played in records:
        points[played.opening] = points.get(played.opening, 0.0) + played.score
    return points


def test_books_of_a_match(random_result, openings: list[Opening]) -> None:
    result = random_result
    assert result.wins + result.draws + result.losses == 128
    assert result.unfinished == 0 and not result.statistics.failures
    assert {(p.opening, p.a_is_white) for p in result.records} == {(q, c) for q in range(64) for c in (True, False)}
    scores = Counter(played.score for played in result.records)
    assert (scores[1.0], scores[0.5], scores[0.0]) == (result.wins, result.draws, result.losses)
    points = Counter(opening_points(result.records).values())
    assert result.pentanomial == tuple(points[k / 2] for k in range(5))
    assert sum(result.pentanomial) == 64
    assert result.statistics.moves == sum(len(p.record.moves) - 4 for p in result.records)
    assert result.statistics.moves_per_second > 0


def test_records_say_what_python_chess_says(random_result, openings: list[Opening]) -> None:
    for played in random_result.records[:40]:
        line = openings[played.opening].line
        assert played.record.moves[: len(line)] == line
        *_, (board, _) = replay(played)  # all moves made
        winner = {"1-0": played.a_is_white, "0-1": not played.a_is_white}.get(played.record.result)
        assert played.score == {True: 1.0, False: 0.0, None: 0.5}[winner]
        assert (played.record.termination == "checkmate") == board.is_checkmate() == (winner is not None)
        (read,) = read_pgn(to_pgn(played.record))
        assert (read.moves, read.result) == (played.record.moves, played.record.result)
        assert re.fullmatch(r"\d{4}\.\d\d\.\d\d", read.headers["Date"])


def test_rows_searched_belong_to_live_games_in_one_match(random_result) -> None:
    assert random_result.statistics.live_fraction >= 0.85


def test_game_depends_on_no_other_game(gardner: Game, random_result, openings: list[Opening]) -> None:
    records: list[PlayedGame] = []
    match = Match(random_player(), random_player(), openings[:10], seed=3)
    play_games(gardner, [match], num_rows=5, rows_per_search=ROWS, on_game=records.append)
    all_games = moves_by_game(random_result.records)
    assert moves_by_game(records) == {key: all_games[key] for key in moves_by_game(records)}
    assert len(records) == 20


def test_round_robin_fills_its_rows(gardner: Game, openings: list[Opening]) -> None:
    search = make_random_search()
    players = [Player(f"random {i}", search, {"i": jnp.int32(i)}) for i in range(6)]
    pairs = [(a, b) for i, a in enumerate(players) for b in players[:i]]
    matches = [Match(a, b, openings[:10], seed) for seed, (a, b) in enumerate(pairs)]
    records: list[PlayedGame] = []
    statistics = play_games(gardner, matches, rows_per_search=ROWS, on_game=records.append)
    assert Counter(played.match for played in records) == dict.fromkeys(range(15), 20)
    assert all(played.score is not None for played in records)
    assert statistics.live_fraction >= 0.85
    for played in records:
        a, b = pairs[played.match]
        white, black = (a, b) if played.a_is_white else (b, a)
        assert (played.record.headers["White"], played.record.headers["Black"]) == (white.name, black.name)


def test_each_player_moves_in_its_own_positions(gardner: Game, stub_network, openings: list[Opening]) -> None:
    network = stub_network(gardner)
    first = Player("first", make_policy_search(gardner, network, PolicyConfig()), network.init(None))
    last = Player("last", take_last, {})
    result = play_match(gardner, Match(first, last, openings[:8]), rows_per_search=ROWS)
    order = {}
    for edge in range(gardner.num_edges):
        key = (int(gardner.receivers[edge]), int(gardner.senders[edge]), int(gardner.promotions[edge]))
        order[key] = edge

    def edge_of(board: chess.Board, move: chess.Move) -> int:
        def flip(square):
            file, rank = chess.square_file(square), chess.square_rank(square)
            return file * 5 + (rank if board.turn else 4 - rank)

        promotion = 0 if move.promotion in (None, chess.QUEEN) else move.promotion
        return order[flip(move.to_square), flip(move.from_square), promotion]

    for played in result.records:
        for ply, (board, uci) in enumerate(replay(played)):
            edges = sorted(edge_of(board, move) for move in board.legal_moves)
            chosen = edge_of(board, board.parse_uci(uci))
            if ply >= 4:
                assert chosen == edges[0 if board.turn == played.a_is_white else -1]


def test_stopped_match_calls_nothing_a_draw(gardner: Game, openings: list[Opening]) -> None:
    seen: list[PlayedGame] = []
    match = Match(random_player(), random_player(), openings, seed=3)
    play_games(gardner, [match], rows_per_search=ROWS, on_game=seen.append, should_stop=lambda: len(seen) >= 20)
    finished = [played for played in seen if played.score is not None]
    assert 20 <= len(finished) < 128 and len(seen) > len(finished)
    for played in seen[len(finished) :]:
        assert (played.record.result, played.record.termination) == ("*", "stopped")


def test_sequential_test_sees_openings_in_order(gardner: Game, random_result, openings: list[Opening]) -> None:
    seen = []

    def is_decided(pentanomial: tuple[int, ...]) -> bool:
        seen.append(pentanomial)
        return sum(pentanomial) >= 10

    match = Match(random_player(), random_player(), openings, seed=3)
    result = play_match(gardner, match, rows_per_search=ROWS, is_decided=is_decided)
    points = opening_points(random_result.records)
    for pentanomial in seen:
        expected = Counter(points[n] for n in range(sum(pentanomial)))
        assert pentanomial == tuple(expected[k / 2] for k in range(5))
    assert result.tested == seen[-1] and sum(result.pentanomial) >= 10 and result.unfinished > 0
    assert result.wins + result.draws + result.losses + result.unfinished == 128
    assert result.draws == sum(p.record.result == "1/2-1/2" for p in result.records)


def test_more_matches_are_asked_for_while_games_are_in_progress(gardner: Game, openings: list[Opening]) -> None:
    """At once where a place is free, and after each game that ended; the last time when all have."""
    ended: list[PlayedGame] = []
    asked: list[tuple[int, frozenset[int]]] = []
    first, *others = [Match(random_player(), random_player(), openings[:8], seed) for seed in range(3)]

    def more(matches: frozenset[int], failures: Mapping[str, str]) -> list[Match]:
        asked.append((len(ended), matches))
        return [others.pop(0)] if others and 0 not in matches and not failures else []

    play_games(gardner, [first], more=more, num_rows=18, rows_per_search=ROWS, on_game=ended.append)
    assert Counter(played.match for played in ended) == {0: 16, 1: 16, 2: 16}
    assert [played.match for played in ended[:16]] == [0] * 16  # as the second waited for all of the first
    assert asked[0] == (0, frozenset({0})) and asked[-1] == (48, frozenset())
    assert len(asked) == len(set(number for number, _ in asked)) > 17


def test_games_done_before_are_not_played_again(gardner: Game, random_result, openings: list[Opening]) -> None:
    records: list[PlayedGame] = []
    match = Match(random_player(), random_player(), openings[:2], seed=3, done={0, 3})
    play_games(gardner, [match], rows_per_search=ROWS, on_game=records.append)
    games, before = moves_by_game(records), moves_by_game(random_result.records)
    assert games == {key: before[key] for key in [(0, False), (1, True)]}


def test_host_player(gardner: Game, openings: list[Opening]) -> None:
    host = Player("alphabet", move=first_by_name, num_workers=2)
    some = openings[:4]
    result = play_match(gardner, Match(host, Player("last", take_last, {}), some), rows_per_search=ROWS)
    assert result.unfinished == 0
    for played in result.records:
        for ply, (board, uci) in enumerate(replay(played)):
            if ply >= 4 and board.turn == played.a_is_white:
                assert uci == min(move.uci() for move in board.legal_moves)
    itself = play_match(gardner, Match(host, host, some), rows_per_search=ROWS)
    assert itself.pentanomial == (0, 0, 4, 0, 0)


def test_failed_player_leaves_the_others_playing(gardner: Game, openings: list[Opening]) -> None:
    def give_up(start_fen: str, moves: Sequence[str]) -> str:
        if len(moves) > 8:
            raise PlayerError("engine 'x' ended by itself (exit code 3)")
        return first_by_name(start_fen, moves)

    records: list[PlayedGame] = []
    bad, good = Player("bad", move=give_up), random_player()
    some = openings[:3]
    statistics = play_games(
        gardner,
        [
            Match(good, good, some),
            Match(bad, good, some),
            Match(good, bad, some),
            Match(good, good, some, seed=1),
        ],
        num_rows=10,
        rows_per_search=ROWS,
        on_game=records.append,
    )
    assert statistics.failures == {"bad": "engine 'x' ended by itself (exit code 3)"}
    finished = [played for played in records if played.score is not None]
    assert {0, 3} <= {played.match for played in finished}
    assert sum(played.match in (0, 3) for played in finished) == 12
    assert len(finished) < 24
    for played in records:
        assert (played.score is None) == (played.record.termination == statistics.failures["bad"])


def test_illegal_move_is_said_of_its_player(gardner: Game, openings: list[Opening]) -> None:
    cheat = Player("cheat", move=lambda start_fen, moves: "e2e4")
    result = play_match(gardner, Match(random_player(), cheat, openings[:3]), rows_per_search=ROWS)
    assert (result.wins, result.draws, result.losses, result.unfinished) == (0, 0, 0, 6)
    assert "cheat broke the rules: 'e2e4' is not a move: expected a legal one of" in result.statistics.failures["cheat"]


@pytest.mark.parametrize("changes", [{"edge": 0}, {"edge": -1}, {"search_value": jnp.nan}, {"search_value": 5}])
def test_a_search_that_is_not_sound_is_said_of_its_player(gardner: Game, openings: list[Opening], changes) -> None:
    """Its illegal moves were played and scored, a NaN or an edge -1 ended all games with a traceback."""

    def search(variables, key, states):
        found = make_random_search()(variables, key, states)
        return found._replace(**{name: jnp.full_like(getattr(found, name), x) for name, x in changes.items()})

    cheat = Player("cheat", search, {"w": jnp.float32(0)})
    result = play_match(gardner, Match(random_player(), cheat, openings[:2]), rows_per_search=ROWS)
    assert (result.wins, result.draws, result.losses, result.unfinished) == (0, 0, 0, 4)
    assert result.statistics.failures["cheat"].startswith(
        "its search is not sound: a move is not legal, or its search_v"
    )


@pytest.mark.parametrize(("num_rows", "num_games", "rows"), [(64, 128, 8), (64, 40, 5), (2, 2, 1)])
def test_rows_of_a_search(gardner, num_rows: int, num_games: int, rows: int) -> None:
    assert choose_rows(gardner, [], num_games, num_rows) == (min(num_rows, num_games), (rows,))


TWO_DEVICES = """
import jax
from alphagateau.games.variants import get_game
from alphagateau.matches.match import play_match
from alphagateau.matches.openings import make_openings
from alphagateau.matches.players import random_player
from alphagateau.matches.match_games import Match
game = get_game("gardner_chess")
openings = make_openings(game, 64, 4, 1)[:8]
result = play_match(game, Match(random_player(), random_player(), openings, seed=3), rows_per_search=4)
print(jax.device_count(), sorted((p.opening, p.a_is_white, " ".join(p.record.moves)) for p in result.records))
"""


@pytest.mark.slow
def test_two_devices_play_the_same_games(random_result) -> None:
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
    }
    done = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    games = sorted((q, c, " ".join(m)) for (q, c), m in moves_by_game(random_result.records).items() if q < 8)
    assert done.stdout.strip() == f"2 {games}"


def test_a_match_that_is_stopped_keeps_its_games(tmp_path, monkeypatch, capfd):
    """Of players of one name, which are told apart."""
    asked = itertools.count()
    ask = partial(StopRequest, ask=lambda: "enough" if next(asked) > 2000 else None)
    monkeypatch.setattr("alphagateau.commands.match.StopRequest", ask)
    path, words = tmp_path / "games.pgn", "match random random --game gardner_chess --games 1000 --pgn"
    assert main([*words.split(), str(path)]) == 1
    assert "stopped (enough): " in capfd.readouterr().out
    text = path.read_text()
    assert text.count('[Result "1-0"]') > 0 and text.count('[Result "*"]') > 0
    assert {'[White "random"]', '[White "random 2"]'} <= set(text.splitlines())
