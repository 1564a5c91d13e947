"""FEN and UCI against python-chess and Fairy-Stockfish, and what is refused."""

import random

import chess
import jax
import numpy as np
import pyffish
import pytest
from boards import GAMES
from fuzzing import fuzzed
from hypothesis import given, settings
from hypothesis import strategies as st

from alphagateau.games.notation import (
    board_from_fen,
    edge_to_uci,
    from_fen,
    legal_moves,
    outcome,
    to_board,
    to_fen,
    uci_to_edge,
)
from alphagateau.games.variants import get_game

CHESS, GARDNER = get_game("chess"), get_game("gardner_chess")
QUICK = settings(max_examples=60, derandomize=True)


def walk(name: str, seed: int, num_plies: int) -> chess.Board:
    """python-chess's board after random moves."""
    board, rng = get_game(name).board_class(), random.Random(seed)
    for _ in range(num_plies):
        moves = sorted(board.legal_moves, key=str)
        if not moves:
            break
        board.push(rng.choice(moves))
    return board


@QUICK
@given(st.sampled_from(GAMES), st.integers(0, 10**6), st.integers(0, 120))
def test_a_fen_of_play_comes_back(name, seed, num_plies):
    game, board = get_game(name), walk(name, seed, num_plies)
    state = from_fen(game, board.fen())
    assert to_fen(game, state) == board.fen()
    assert to_fen(game, jax.device_get(game.position(state))) == board.fen()
    assert to_board(game, state) == board.copy(stack=False)
    assert set(legal_moves(game, state)) == {move.uci() for move in board.legal_moves}


@pytest.mark.parametrize("name", ["gardner_chess", "los_alamos_chess"])
def test_the_fen_of_a_small_board_is_fairy_stockfishs(name):
    game, board = get_game(name), walk(name, seed=4, num_plies=30)
    assert pyffish.start_fen(game.uci_variant) == game.start_fen
    moves = [move.uci() for move in board.move_stack]
    fen = pyffish.get_fen(game.uci_variant, game.start_fen, moves)
    assert to_fen(game, from_fen(game, fen)) == fen == board.fen()


@pytest.mark.parametrize(
    ("fen", "kept"),
    [
        # python-chess writes e3 only where a capture there is legal
        ("4k3/8/8/8/4P3/8/8/4K3 b - e3 0 1", "4k3/8/8/8/4P3/8/8/4K3 b - - 0 1"),
        ("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", "8/8/8/8/k2Pp2Q/8/8/3K4 b - - 0 1"),
        ("4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1", "4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1"),
        # rights without king or rook at home are dropped
        ("r3k2r/8/8/8/8/8/8/R3K1R1 w KQkq - 3 9", "r3k2r/8/8/8/8/8/8/R3K1R1 w Qkq - 3 9"),
        ("r2k3r/8/8/8/8/8/8/R3K2R b KQkq - 3 9", "r2k3r/8/8/8/8/8/8/R3K2R b KQ - 3 9"),
        ("8/8/4k3/8/8/4K3/8/R7 w - - 140 200", "8/8/4k3/8/8/4K3/8/R7 w - - 140 200"),
    ],
)
def test_what_a_fen_keeps(fen, kept):
    assert chess.Board(fen).fen() == kept
    assert to_fen(CHESS, from_fen(CHESS, fen)) == kept


@pytest.mark.parametrize(
    "fen",
    [
        "r3k2r/8/8/8/8/8/8/R3K2R b kqKQ - 0 0",
        "r3k2r/8/8/8/8/8/8/R3K2R b QKqk - 0",
        "r3k2r/8/8/8/8/8/8/R3K2R b KQkq -",
        "r3k2r/8/8/8/8/8/8/R3K2R b HAha - - -",
        " r3k2r/8/8/8/8/8/8/R3K2R  B KQkq - 0 00 ",
    ],
)
def test_fens_that_every_engine_takes(fen):
    """Move number 0, rights in another order and five fields were refused."""
    whole = "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1"
    state = from_fen(CHESS, fen)
    assert to_fen(CHESS, state) == board_from_fen(CHESS, fen).fen() == whole
    assert int(state.ply) == 1 and {"e8g8", "e8c8"} <= legal_moves(CHESS, state).keys()


def test_plies_count_from_the_move_number():
    white, black = "4k/4p/5/P4/K4 w - - 0 {}", "4k/4p/5/P4/K4 b - - 0 {}"
    assert [int(from_fen(GARDNER, fen.format(7)).ply) for fen in (white, black)] == [12, 13]
    assert outcome(GARDNER, from_fen(GARDNER, black.format(128)))[1] == "unterminated"
    assert outcome(GARDNER, from_fen(GARDNER, white.format(129)))[1] == "ply limit"


START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
SMALL = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
MIDDLE = "rnqknr/pppppp/6/6/PPPPPP/RNQKNR w - - 0 1"


@pytest.mark.parametrize(
    ("name", "fen", "sentence"),
    [
        ("chess", "", "has 0 fields: expected 6"),
        ("chess", "8/8/8/8/8/8/8/8 w -", "has 3 fields: expected 6"),
        ("chess", "8/8/8/8/8/8/8/8 w - -", "white has no king: expected one"),
        ("chess", f"{START} 1", "has 7 fields: expected 6"),
        ("chess", SMALL, "has a wrong board: expected 8 rows of 8 squares"),
        ("gardner_chess", START, "has a wrong board: expected 5 rows of 5 squares"),
        ("chess", START.replace("8/8/8", "8/7/8"), "wrong board: expected 8 rows of 8 squares"),
        ("chess", START.replace("8/8/8", "8/9/8"), "wrong board: expected 8 rows of 8 squares"),
        ("chess", START.replace("8/8/8", "8/44/8"), "wrong board: expected 8 rows of 8 squares"),
        ("chess", START.replace("8/8/8", "8/ppppxppp/8"), "wrong board: expected 8 rows"),
        ("gardner_chess", SMALL.replace("5/", "6/"), "wrong board: expected 5 rows of 5 squares"),
        ("gardner_chess", SMALL.replace("5/", "/"), "wrong board: expected 5 rows of 5 squares"),
        ("los_alamos_chess", MIDDLE.replace("N", "B"), "board: expected 6 rows of 6 squares, in PNRQK, pnrqk and"),
        ("los_alamos_chess", MIDDLE.replace("w -", "w K"), "wrong castling field: expected -"),
        ("los_alamos_chess", MIDDLE.replace("- - 0", "- c3 0"), "wrong en passant field: expected -"),
        ("los_alamos_chess", MIDDLE.replace("6/", "p5/", 1), "black has too many pieces: expected"),
        ("los_alamos_chess", "5k/6/6/6/6/K3pP w - - 0 1", "pawn is on a first or last rank: expected"),
        ("chess", START.replace(" w ", " x "), "wrong side to move: expected w or b"),
        ("chess", START.replace("KQkq", "KQxq"), "wrong castling field: expected"),
        ("chess", START.replace("KQkq", "KK"), "wrong castling field: expected - or some of KQkq"),
        ("gardner_chess", SMALL.replace("w -", "w K"), "wrong castling field: expected -"),
        ("chess", START.replace("q -", "q e3"), "wrong en passant field: expected - or a6"),
        ("chess", START.replace("q -", "q e6"), "no pawn has just passed"),
        ("gardner_chess", SMALL.replace("- - 0", "- c3 0"), "wrong en passant field: expected -"),
        ("chess", START.replace("0 1", "-1 1"), "wrong halfmove clock: expected 0 to 9999"),
        ("chess", START.replace("0 1", "0 1.5"), "wrong move number: expected 0 to 9999"),
        ("chess", START.replace("0 1", f"{'9' * 5000} 1"), "halfmove clock: expected 0 to 9999"),
        ("chess", START.replace("0 1", "0 ١"), "wrong move number: expected 0 to 9999"),
        ("chess", START.replace("K", "Q", 1), "white has no king: expected one"),
        ("chess", START.replace("k", "q", 1), "black has no king: expected one"),
        ("chess", START.replace("PPPPPPPP", "PPPPKPPP"), "several kings: expected one each"),
        ("chess", START.replace("8/8", "8/P7"), "white has too many pieces: expected"),
        ("gardner_chess", SMALL.replace("5/", "p4/"), "black has too many pieces: expected"),
        ("chess", "4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "pawn is on a first or last rank: expected"),
        ("gardner_chess", "4k/5/5/5/K3p w - - 0 1", "pawn is on a first or last rank: expected"),
        ("gardner_chess", "k3P/5/5/5/K4 w - - 0 1", "pawn is on a first or last rank: expected"),
        ("chess", "4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "in check: expected it not to be"),
        ("gardner_chess", "4k/5/4R/5/K4 w - - 0 1", "in check: expected it not to be"),
        ("chess", "8/8/8/8/8/8/kK6/8 w - - 0 1", "in check: expected it not to be"),
        (
            "chess",
            "1Q1Q3Q/5Q2/Q6Q/2Q5/Q5Q1/3Q1Q2/1Q5Q/1K2k3 w - - 0 1",
            "it has 221 legal moves: expected at most 218",
        ),
    ],
)
def test_what_is_no_fen(name, fen, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        from_fen(get_game(name), fen)
    assert_one_sentence(str(error.value))


def assert_one_sentence(text: str) -> None:
    assert "\n" not in text and "expected" in text and len(text) < 400


TEXTS = st.one_of(
    st.text(max_size=80),
    st.text("KQRBNPkqrbnp12345678/ wb-0", max_size=90),
    st.lists(st.sampled_from([*START.split(), *SMALL.split(), *MIDDLE.split(), "e3", "99"]), max_size=8).map(" ".join),
)


@fuzzed(300)
@given(st.sampled_from(GAMES), TEXTS)
def test_any_text_is_a_fen_or_is_refused_in_one_sentence(name, text):
    check_any_text(name, text)


@fuzzed(300)
@given(st.sampled_from(GAMES), st.data())
def test_a_damaged_fen_is_refused_or_is_a_position(name, data):
    fen = walk(name, data.draw(st.integers(0, 50)), 20).fen()
    start = data.draw(st.integers(0, len(fen)))
    end = data.draw(st.integers(start, min(start + 4, len(fen))))
    check_any_text(name, fen[:start] + data.draw(st.text(max_size=4)) + fen[end:])


def check_any_text(name: str, text: str) -> None:
    game = get_game(name)
    try:
        state = from_fen(game, text)
    except ValueError as error:
        assert_one_sentence(str(error))
        return
    fen = to_fen(game, state)
    assert to_fen(game, from_fen(game, fen)) == fen


# Moves.


@pytest.mark.parametrize(
    ("name", "fen", "uci", "sender", "receiver", "promotion"),
    [
        ("chess", START, "e2e4", 33, 35, 0),
        ("chess", START.replace(" w ", " b "), "e7e5", 33, 35, 0),  # black sees its side below
        ("chess", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", 32, 48, 0),
        ("chess", "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", 32, 16, 0),
        ("chess", "8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", 6, 7, 0),
        ("chess", "8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a7a8n", 6, 7, 2),
        ("chess", "4k3/8/8/8/8/8/p3K3/1N6 b - - 0 1", "a2b1r", 6, 15, 4),
        ("gardner_chess", SMALL, "b1c3", 5, 12, 0),
        ("gardner_chess", SMALL.replace(" w ", " b "), "b5c3", 5, 12, 0),
        ("gardner_chess", "4k/P4/5/5/K4 w - - 0 1", "a4a5q", 3, 4, 0),
        ("gardner_chess", "k4/5/5/4p/K4 b - - 0 1", "e2e1b", 23, 24, 3),
        ("los_alamos_chess", MIDDLE, "b1c3", 6, 14, 0),
        ("los_alamos_chess", "k5/6/6/6/5p/K5 b - - 0 1", "f2f1q", 34, 35, 0),
        ("los_alamos_chess", "k5/6/6/6/5p/K5 b - - 0 1", "f2f1r", 34, 35, 4),
    ],
)
def test_moves_and_edges(name, fen, uci, sender, receiver, promotion):
    game = get_game(name)
    state = from_fen(game, fen)
    edge = uci_to_edge(game, state, uci)
    assert (game.senders[edge], game.receivers[edge]) == (sender, receiver)
    assert game.promotions[edge] == promotion
    assert edge_to_uci(game, state, edge) == uci
    assert edge_to_uci(game, game.position(state), np.int16(edge)) == uci
    assert edge_to_uci(game, to_board(game, state), edge) == uci


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("color", ["w", "b"])
def test_every_edge_has_its_own_name(name, color):
    game = get_game(name)
    state = from_fen(game, game.start_fen.replace(" w ", f" {color} "))
    names = {edge_to_uci(game, state, edge) for edge in range(game.num_edges)}
    assert len(names) == game.num_edges


@pytest.mark.parametrize("uci", ["e2e5", "e7e5", "e2", "", "e2e4q", "0000", "junk" * 100, "a9a8"])
def test_what_is_no_move(uci):
    with pytest.raises(ValueError, match="is not a move: expected a legal one of rnbqkbnr") as error:
        uci_to_edge(CHESS, CHESS.init(), uci)
    assert_one_sentence(str(error.value))


@pytest.mark.parametrize(
    ("fen", "text", "uci"),
    [
        ("8/4P1k1/8/8/8/8/6K1/8 w - - 0 1", "e7e8Q", "e7e8q"),
        ("8/8/8/8/6k1/8/K3p3/8 b - - 0 1", "E2E1n", "e2e1n"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1h1", "e1g1"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1a1", "e1c1"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8a8", "e8c8"),
    ],
)
def test_moves_as_programs_spell_them(fen, text, uci):
    """Upper-case promotions and the king's move onto its rook were no moves to the engine."""
    state = from_fen(CHESS, fen)
    assert edge_to_uci(CHESS, state, uci_to_edge(CHESS, state, text)) == uci


@pytest.mark.parametrize("text", ["e1h1", "e1a1"])
def test_a_king_that_may_not_castle_takes_no_rook(text):
    with pytest.raises(ValueError, match="is not a move"):
        uci_to_edge(CHESS, from_fen(CHESS, "r3k2r/8/8/8/8/8/8/R3K2R w kq - 0 1"), text)


def test_a_promotion_needs_its_letter():
    state = from_fen(CHESS, "8/P3k3/8/8/8/8/8/4K3 w - - 0 1")
    assert {uci for uci in legal_moves(CHESS, state) if uci.startswith("a7")} == {
        "a7a8q",
        "a7a8r",
        "a7a8b",
        "a7a8n",
    }
    with pytest.raises(ValueError, match="'a7a8' is not a move"):
        uci_to_edge(CHESS, state, "a7a8")


def test_los_alamos_pawns_become_no_bishops():
    game = get_game("los_alamos_chess")
    moves = legal_moves(game, from_fen(game, "5k/P5/6/6/6/5K w - - 0 1"))
    assert {uci for uci in moves if uci.startswith("a5")} == {"a5a6q", "a5a6r", "a5a6n"}


@pytest.mark.parametrize("edge", [-1, 1858])
def test_an_edge_off_the_board_is_refused(edge):
    with pytest.raises(ValueError, match=f"edge {edge} is not on the board: expected 0 to 1857"):
        edge_to_uci(CHESS, CHESS.init(), edge)


def test_a_mated_state_that_was_stepped_again_is_still_mated():
    """A step from a finished state clears its reward; the outcome does not depend on that."""
    mated = from_fen(CHESS, "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1")
    assert outcome(CHESS, mated) == ("1-0", "checkmate")
    assert outcome(CHESS, mated._replace(reward=np.float32(0))) == ("1-0", "checkmate")
