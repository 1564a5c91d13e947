"""The board at the terminal: lines typed in, the text of a game out."""

from pathlib import Path

import chess
import pytest
from boards import GardnerBoard
from tiny_checkpoints import save_tiny

from alphagateau.games.pgn.pgn import Identity, read_pgn
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.opponents import player_of
from alphagateau.play.terminal import HELP, Setup, converse, fit, render
from alphagateau.play.thinking import Thinker, make_thinker

START = """\
5  ♜ ♞ ♝ ♛ ♚
4  ♟ ♟ ♟ ♟ ♟
3  · · · · ·
2  ♙ ♙ ♙ ♙ ♙
1  ♖ ♘ ♗ ♕ ♔
   a b c d e"""


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Thinker:
    found = save_tiny(tmp_path_factory.mktemp("play"), "gardner_chess", GateauConfig)
    return make_thinker(player_of(found), "gardner_chess", 16)


def talk(thinker: Thinker, *lines: str, is_white: bool = True, simulations: int = 16) -> list[str]:
    return list(converse(thinker, Setup(is_white, simulations), iter(lines)))


def test_the_board_from_both_sides(gardner: Game):
    assert render(gardner, GardnerBoard(), True) == START
    turned = render(gardner, GardnerBoard(), False).splitlines()
    assert turned[0] == "1  ♔ ♕ ♗ ♘ ♖" and turned[-1] == "   e d c b a"
    assert render(get_game("chess"), chess.Board(), True).splitlines()[0] == "8  ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜"


def test_a_terminal_without_chess_pieces_gets_letters():
    assert fit(START, "utf-8") == START
    for encoding in ("ascii", "latin-1", "cp437", "no such encoding"):
        assert fit(START, encoding).splitlines()[0] == "5  r n b q k" and fit(START, encoding).isascii()


def test_a_move_in_san_or_uci_is_answered(thinker: Thinker):
    for word in ("Nc3", "b1c3", " B1C3 "):
        texts = talk(thinker, word)
        assert texts[:2] == [HELP, START] and len(texts) == 4
        assert texts[2].startswith("black plays ") and "(value " in texts[2]
        assert texts[3].splitlines()[4].split()[:3] == ["1", "♖", "·"]


def test_black_waits_for_white(thinker: Thinker):
    texts = talk(thinker, is_white=False)
    assert texts[1].startswith("white plays ") and texts[2].endswith("e d c b a")


def test_without_search(thinker: Thinker):
    assert talk(thinker, "Nc3", simulations=0)[2].endswith(", 0 visits)")


def test_undo_takes_back_both_moves(thinker: Thinker):
    assert talk(thinker, "Nc3", "undo")[-1] == START
    second = talk(thinker, "Nc3", "moves")[-1].split()[0]  # whatever it answered
    assert talk(thinker, "Nc3", second, "undo", "undo")[-1] == START
    assert talk(thinker, "undo")[-1] == "There is no move to take back."
    assert talk(thinker, "undo", is_white=False)[-1] == "There is no move to take back."


def test_other_words(thinker: Thinker):
    assert talk(thinker, "moves")[-1] == "Na3 Nc3 a3 b3 c3 d3 e3"
    assert talk(thinker, "help")[-1] == HELP
    assert talk(thinker, "", "board")[-2:] == [START, START]
    assert talk(thinker, "Nc3", "new")[-1] == START
    assert len(talk(thinker, "quit", "Nc3")) == 2


def test_the_game_so_far_as_pgn_says_who_plays(thinker: Thinker):
    setup = Setup(True, 0, "run/000003", Identity("run", 3, "abc", "growing gumbel 0 simulations"))
    *_, text = converse(thinker, setup, iter(["Nc3", "pgn"]))
    (record,) = read_pgn(text)
    assert record.game == "gardner_chess" and record.moves[0] == "b1c3" and len(record.moves) == 2
    assert record.result == "*" and not record.termination
    tags = {name: record.headers[name] for name in ("White", "WhiteType", "Black", "BlackIteration", "BlackWeights")}
    assert list(tags.values()) == ["Human", "human", "run/000003", "3", "abc"]


@pytest.mark.parametrize("word", ["Nf3", "e2e4", "--", "0000", "Z0", "\x00", "x" * 10_000, "O-O"])
def test_what_is_no_move_is_said(thinker: Thinker, word: str):
    (said,) = talk(thinker, word)[2:]
    assert "is no legal move here" in said and len(said) < 120


def test_a_game_to_its_end_and_on(thinker: Thinker):
    """The person plays the first legal move that there is."""
    words, board, texts = [], GardnerBoard(), [""]
    while not texts[-1].startswith("The game is over"):
        words.append(next(iter(board.legal_moves)).uci())
        board.push_uci(words[-1])
        texts = talk(thinker, *words)
        reply = next(text for text in reversed(texts) if text.startswith("black plays "))
        if board.legal_moves:
            board.push_san(reply.split()[2])
    assert " by " in texts[-1]
    assert talk(thinker, *words, "a1a2")[-1] == texts[-1]
    assert not talk(thinker, *words, "undo")[-1].startswith("The game is over")


def test_the_command_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from alphagateau.commands.main import main

    found, lines = save_tiny(tmp_path, "gardner_chess", GateauConfig), iter(["Nc3"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines, None) or (_ for _ in ()).throw(EOFError))
    assert main(["play", str(found.path), "--simulations", "8"]) == 0
    assert "black plays " in capsys.readouterr().out
    assert main(["play", str(found.path), "--game", "checkers"]) == 2
    assert main(["play", str(found.path), "--simulations", "-1"]) == 2
    assert main(["play", str(tmp_path / "none")]) == 2
