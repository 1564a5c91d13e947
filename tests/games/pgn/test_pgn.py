"""PGN of all boards, and python-chess's small boards against Fairy-Stockfish."""

import io
import random
import re
import shutil
import subprocess
import sys
from functools import cache

import chess
import chess.engine
import chess.pgn
import pyffish
import pytest
from boards import GAMES, GardnerBoard, LosAlamosBoard
from chess.engine import Cp, Mate
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st
from oracles import Line

from alphagateau.games.notation import uci_to_edge
from alphagateau.games.pgn.pgn import GameRecord, Identity, MoveNote, player_tags, read_pgn, record_game, to_pgn
from alphagateau.games.small_boards import board_class
from alphagateau.games.variants import get_game

SMALL = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
MIDDLE = "rnqknr/pppppp/6/6/PPPPPP/RNQKNR w - - 0 1"
VARIANT_TAGS = {"gardner_chess": "Gardner", "los_alamos_chess": "Los Alamos"}
FAIRY = shutil.which("fairy-stockfish", path="/usr/games:/usr/bin:/usr/local/bin")


def play_out(name: str, seed: int, fen: str | None = None) -> Line:
    """A random game to its end, by the oracle's rules."""
    line, rng = Line(name, fen or get_game(name).start_fen), random.Random(seed)
    while not line.board.is_game_over(claim_draw=True) and len(line.moves) < 200:
        line.push(rng.choice(sorted(move.uci() for move in line.board.legal_moves)))
    return line


def edges_of(line: Line) -> list[int]:
    """The edges of a line's moves, each found without a State."""
    game, edges = get_game(line.name), []
    tables = {}
    for edge in range(game.num_edges):
        key = (int(game.senders[edge]), int(game.receivers[edge]), int(game.promotions[edge]))
        tables[key] = edge
    for ply, uci in enumerate(line.moves):
        is_white = line.fens[ply].split()[1] == "w"
        files, ranks = ["abcdefgh".index(c) for c in uci[0:4:2]], [int(c) - 1 for c in uci[1:4:2]]
        seen = [rank if is_white else game.size - 1 - rank for rank in ranks]
        promotion = " pnbr".find(uci[4]) if len(uci) == 5 else 0
        squares = [file * game.size + rank for file, rank in zip(files, seen, strict=True)]
        edges.append(tables[*squares, max(promotion, 0)])
    return edges


def test_no_tag_needs_an_escape():
    said = "engine \"sh -c 'x'\" ended\nby itself \\"
    written = to_pgn(GameRecord("chess", get_game("chess").start_fen, (), "0-1", said, {"White": said}))
    assert written.count("\"engine 'sh -c 'x'' ended by itself /\"]") == 2


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("seed", range(6))
def test_a_game_becomes_pgn_that_python_chess_reads(name, seed):
    game, line = get_game(name), play_out(name, seed)
    record = record_game(game, edges_of(line), headers={"White": "a", "Round": "3"})
    assert record.moves == tuple(line.moves)
    assert record.start_fen == game.start_fen
    said = line.say()
    assert record.termination == said.reason
    winner = {"w": "0-1", "b": "1-0"}[said.fen.split()[1]]
    draw = "*" if said.reason == "unterminated" else "1/2-1/2"
    assert record.result == (winner if said.reason == "checkmate" else draw)
    text = to_pgn(record)
    read = chess.pgn.read_game(io.StringIO(text))
    assert read.errors == []
    assert read.end().board().fen() == line.fens[-1]
    assert (read.headers["White"], read.headers["Result"]) == ("a", record.result)
    if name in VARIANT_TAGS:
        tags = {tag: read.headers[tag] for tag in ("Variant", "FEN", "SetUp")}
        assert tags == {"Variant": VARIANT_TAGS[name], "FEN": game.start_fen, "SetUp": "1"}


def test_records_come_back_from_a_file_of_all_boards():
    records = []
    for name, fen in [
        ("chess", None),
        ("gardner_chess", None),
        ("los_alamos_chess", None),
        ("chess", "4k3/8/8/8/8/8/4P3/4K3 b - - 3 40"),
        ("gardner_chess", "4k/4p/5/P4/K4 b - - 3 40"),
        ("los_alamos_chess", "5k/5p/6/6/P5/K5 b - - 3 40"),
    ]:
        line = play_out(name, 5, fen)
        records.append(record_game(get_game(name), edges_of(line), fen, {"Black": "b"}))
    records.append(GameRecord("chess", get_game("chess").start_fen, (), "0-1", "forfeit"))
    records.append(GameRecord("chess", get_game("chess").start_fen, (), "0-1", "'sh' said 'no'"))
    read = read_pgn("".join(map(to_pgn, records)))
    for before, after in zip(records, read, strict=True):
        assert (after.game, after.start_fen, after.moves) == (
            before.game,
            before.start_fen,
            before.moves,
        )
        assert (after.result, after.termination) == (before.result, before.termination)
        assert before.headers.items() <= after.headers.items()
    assert read_pgn("".join(map(to_pgn, read))) == read


def test_python_chess_alone_reads_tags_and_result_of_a_5x5_game():
    record = record_game(get_game("gardner_chess"), edges_of(play_out("gardner_chess", 1)))
    program = (
        "import chess.pgn, sys; game = chess.pgn.read_game(sys.stdin)\n"
        "print(game.headers['Variant'], game.headers['Result'], game.errors[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], input=to_pgn(record) * 2, text=True, capture_output=True)
    assert done.stdout == f"Gardner {record.result} unsupported variant: Gardner\n"


@pytest.mark.parametrize(
    ("name", "promotions"),
    [("gardner_chess", "2k2/P3P/5/p3p/2K2 w - - 0 1"), ("los_alamos_chess", "2k3/P4P/6/6/p4p/2K3 w - - 0 1")],
)
def test_san_of_a_small_board_is_fairy_stockfishs(name, promotions):
    for seed in range(8):
        line = play_out(name, seed, [promotions, None][seed % 2])
        board, sans = board_class(name)(line.start), []
        for uci in line.moves:
            sans.append(board.san_and_push(chess.Move.from_uci(uci)))
        assert sans == pyffish.get_san_moves(board.uci_variant, line.start, line.moves)


def perft(board: chess.Board, depth: int) -> int:
    if depth == 1:
        return board.legal_moves.count()
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += perft(board, depth - 1)
        board.pop()
    return total


def test_the_5x5_board():
    board = GardnerBoard()
    assert board.fen() == SMALL and board.is_valid()
    assert [perft(board, depth) for depth in (1, 2, 3, 4)] == [7, 53, 506, 4775]
    assert perft(GardnerBoard("2k2/P3P/5/p3p/2K2 w - - 0 1"), 4) == 8106
    assert not any(board.is_legal(chess.Move.from_uci(uci)) for uci in ("a2a4", "e1f1", "a2a3q"))
    assert board.parse_san("Nc3").uci() == "b1c3"
    board.push_san("Nc3")
    assert board.copy().root().fen() == SMALL
    assert not GardnerBoard("4k/P3P/5/5/K3P w - - 0 1").is_valid()  # a pawn on the first rank
    assert not GardnerBoard("4P/P3k/5/5/K4 w - - 0 1").is_valid()  # a pawn on the last rank


def test_the_6x6_board():
    board = LosAlamosBoard()
    assert board.fen() == MIDDLE and board.is_valid()
    assert [perft(board, depth) for depth in (1, 2, 3)] == [10, 100, 1212]
    assert not any(board.is_legal(chess.Move.from_uci(uci)) for uci in ("a2a4", "b1d2", "a2a3q", "f6f5"))
    board.push_san("Nd3")
    assert board.copy().root().fen() == MIDDLE and type(board.copy()) is LosAlamosBoard
    assert repr(board).startswith("LosAlamosBoard('rnqknr/")
    assert not LosAlamosBoard("5P/P4k/6/6/6/K5 w - - 0 1").is_valid()  # a pawn on the last rank


@pytest.mark.skipif(FAIRY is None, reason="fairy-stockfish is not installed")
def test_fairy_stockfish_plays_the_5x5_board():
    with chess.engine.SimpleEngine.popen_uci(FAIRY, timeout=20) as engine:
        board = GardnerBoard("4k/5/4K/5/R4 w - - 0 1")
        played = engine.play(board, chess.engine.Limit(nodes=200))
    assert played.move == chess.Move.from_uci("a1a5")  # mate in one


@pytest.mark.parametrize("time", ["9" * 400 + ":00:00", "0:00:" + "9" * 400, "9" * 5000 + ":00:00"])
def test_a_time_longer_than_numbers_are_is_text(time):
    (record,) = read_pgn(f"1. e4 {{ [%emt {time}] }} e5 *")
    assert record.notes[0].seconds is None and "[%emt" in record.notes[0].comment
    assert len(read_pgn(to_pgn(record))[0].moves) == 2


# What is refused.


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "PGN game 1: it has neither tags nor moves"),
        ("1. e4 e5 2. Ke3 *", "PGN game 1: illegal san: 'Ke3' in .*: expected a legal move"),
        ("1. e4 *\n\n1. e5 *\n", "PGN game 2: illegal san: 'e5'"),
        ("1. e4 -- 2. d4 *", "PGN game 1: '--' is a null move: expected a legal move"),
        ("1. e4 Z0+ 2. d4 *", r"PGN game 1: 'Z0\+' is a null move: expected a legal move"),
        ('[Result "2-0"]\n\n1. e4 *', "PGN game 1: result '2-0': expected one of 1-0, 0-1"),
        ('[FEN "x"]\n\n1. e4 *', "PGN game 1: FEN 'x' has 1 fields: expected 6"),
        ('[Variant "Atomic"]\n\n1. e4 *', "PGN game 1: variant 'atomic': expected 'Standard' or"),
        ('[Variant "Los Alamos"]\n\n1. a4 *', "PGN game 1: illegal san: 'a4' in rnqknr/pppppp"),
        ('[Variant "Horde"]\n\n1. e4 *', "PGN game 1: variant 'horde': expected"),
        ('[Variant "Gardner"]\n\n1. e4 *', "PGN game 1: illegal san: 'e4' in rnbqk/ppppp"),
        ("1. e4 $" + "9" * 5000, "PGN game 1: "),
    ],
)
def test_what_is_no_pgn(text, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        read_pgn(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("unknown", ["", "?", "-"])
def test_a_variant_or_start_that_is_unknown_is_that_of_chess(unknown):
    (read,) = read_pgn(f'[Variant "{unknown}"]\n[FEN "{unknown}"]\n\n1. e4 *')
    assert (read.game, read.moves) == ("chess", ("e2e4",))


@fuzzed(150)
@given(st.data())
def test_a_damaged_pgn_is_read_or_refused_in_one_sentence(data):
    text = to_pgn(GameRecord("gardner_chess", SMALL, ("b1c3", "d4c3", "b2c3"), "*")) * 2
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 9, len(text))))
    text = text[:start] + data.draw(st.text(max_size=9)) + text[end:]
    try:
        records = read_pgn(text)
    except ValueError as error:
        assert re.match(r"PGN game \d+: ", str(error)) and "\n" not in str(error)
        return
    again = read_pgn("".join(map(to_pgn, records)))
    assert [(x.moves, x.result) for x in again] == [(x.moves, x.result) for x in records]
    assert read_pgn("".join(map(to_pgn, again))) == again  # quotes in a tag changed only once


def test_variants_and_comments_are_left_out():
    (record,) = read_pgn('[White "x"]\n\n1. e4 {good} (1. d4 d5) e5! $1 ; so\n2. Nf3 1-0\n')
    assert record.moves == ("e2e4", "e7e5", "g1f3")
    assert (record.result, record.headers["White"]) == ("1-0", "x")


def test_no_games_in_no_text():
    assert read_pgn("") == read_pgn("\n\n") == []


def test_tags_stay_on_their_line():
    start = get_game("chess").start_fen
    record = GameRecord("chess", start, (), "*", headers={"White": 'a "b"\n[Black "c"]', "Event": "a\\b\\"})
    (read,) = read_pgn(to_pgn(record))
    assert (read.headers["White"], read.headers["Black"]) == ("a 'b' [Black 'c']", "?")
    assert read.headers["Event"] == "a/b/"


def test_what_is_known_of_players_and_moves_is_written_as_other_programs_read_it():
    tags = player_tags(
        "White", "quickstart/14", Identity("quickstart", 14, "0123456789abcdef", "gumbel 64 simulations")
    )
    tags |= player_tags("Black", "a person", Identity(type="human"))
    notes = (MoveNote(Cp(-3), 1.5), MoveNote(Mate(-2), nag=4, comment="two\nlines }"), MoveNote())
    text = to_pgn(GameRecord("gardner_chess", SMALL, ("b1c3", "d4c3", "b2c3"), "*", "", tags, notes))
    assert '[WhiteIteration "14"]\n[WhiteWeights "0123456789abcdef"]\n[WhiteSearch "gumbel 64 simulations"]' in text
    assert '[BlackType "human"]\n[Variant "Gardner"]' in text
    moves = "1. Nc3 { [%eval -0.03] [%emt 0:00:01.5] } 1... dxc3 $4 { [%eval #-2] two lines } 2. bxc3 *"
    assert " ".join(text.split()).endswith(moves)
    first, second, third = chess.pgn.read_game(io.StringIO(text)).mainline()
    assert (first.eval().white(), first.emt(), second.eval().white(), third.eval()) == (Cp(-3), 1.5, Mate(-2), None)


NOTES = st.builds(
    MoveNote,
    st.none() | st.integers(-3000, 3000).map(Cp) | st.integers(-40, 40).filter(bool).map(Mate),
    st.none() | st.integers(0, 10**8).map(lambda milliseconds: milliseconds / 1000),
    st.integers(0, 139),
    st.sampled_from(["", "a remark", "[%clk 0:01:00]", "; ( $3 1-0 1. e4 [Event"]),
)


played_once = cache(play_out)


@fuzzed(40)
@given(st.sampled_from(GAMES), st.integers(0, 4), st.integers(0, 60), st.lists(NOTES, max_size=40))
def test_any_game_comes_back_with_all_that_is_known_of_it(name, seed, cut, notes):
    line = played_once(name, seed)
    known = Identity("a run", seed, f"{seed:016x}", "gumbel 16 simulations")
    tags = player_tags("White", "a run/3", known) | player_tags("Black", "b", Identity(type="human"))
    moves = tuple(line.moves[:cut])
    record = GameRecord(name, line.start, moves, "*", "unterminated", tags, tuple(notes[:cut])[: len(moves)])
    (read,) = read_pgn(to_pgn(record))
    kept = {tag: read.headers[tag] for tag in tags}
    assert (read.moves, read.result, read.termination, kept) == (moves, "*", "unterminated", tags)
    assert list(read.notes) == without_empty_ends(record.notes)
    assert to_pgn(read) == to_pgn(record)


def without_empty_ends(notes) -> list[MoveNote]:
    kept = list(notes)
    while kept and kept[-1] == MoveNote():
        kept.pop()
    return kept


def test_what_cannot_be_written():
    game = get_game("chess")
    illegal = uci_to_edge(game, game.init(), "e2e4")
    with pytest.raises(ValueError, match="move 3, 'e2e4': expected a legal move of rnbqkbnr/"):
        record_game(game, [illegal, illegal, illegal])
    with pytest.raises(ValueError, match="move 1, 'e2e5': expected a legal move of"):
        to_pgn(GameRecord("chess", game.start_fen, ("e2e5",), "*"))
    with pytest.raises(ValueError, match="result 'won': expected one of 1-0, 0-1"):
        to_pgn(GameRecord("chess", game.start_fen, (), "won"))


@pytest.mark.parametrize("name", GAMES)
def test_the_boards_are_those_of_the_games(name):
    game = get_game(name)
    assert game.board_class is board_class(name)
    assert (game.board_class.starting_fen, game.board_class.uci_variant) == (game.start_fen, game.uci_variant)
