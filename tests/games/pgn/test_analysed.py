"""Judgements as Lichess defines them, by hand."""

import io

import chess.pgn
import pytest
from chess.engine import Cp

from alphagateau.games.pgn.analysed import AnalysedGame, annotated_text, judgements
from alphagateau.games.pgn.pgn import GameRecord, replay
from alphagateau.games.pgn.text import read_games
from alphagateau.games.variants import get_game


def test_judgements_go_by_winning_chances_lost():
    """Of the player who moves: White loses 4.9, Black 5, White 10, Black 15, and White gains."""
    record = GameRecord("gardner_chess", get_game("gardner_chess").start_fen, ("a2a3",) * 5, "*")
    chances = (50.0, 45.1, 50.1, 40.1, 55.1, 75.1)
    found = judgements(AnalysedGame(record, (Cp(0),) * 6, chances, ("",) * 6, "somebody"))
    assert [one and one.name for one in found] == [None, "inaccuracy", "mistake", "blunder", None]


def test_the_move_that_the_analyst_would_have_made_is_no_blunder():
    start = get_game("gardner_chess").start_fen
    record = GameRecord("gardner_chess", start, ("b1c3", "d4c3", "b2c3"), "*")
    scores, chances = (Cp(0), Cp(-300), Cp(300), Cp(300)), (50.0, 24.9, 75.1, 75.1)
    found = judgements(AnalysedGame(record, scores, chances, ("a2a3", "d4c3", "b2c3", "a4a3"), "somebody"))
    assert [one and one.glyph for one in found] == ["??", None, None]


def annotated(text: str) -> str:
    """The game with a blunder found in every move, by scores of 0."""
    (written,) = read_games([text], keep_text=True)
    record = replay(written).record
    chances = tuple(90.0 if ply % 2 == 0 else 10.0 for ply in range(len(record.moves) + 1))
    game = AnalysedGame(record, (Cp(0),) * len(chances), chances, ("",) * len(chances), "somebody")
    return annotated_text(written, game)


@pytest.mark.parametrize(
    ("nags", "kept"), [("$146", "$146 $4"), ("$14 $2", "$14  $4"), ("$2 $14", "$14 $4"), ("$1", "$4"), ("", "$4")]
)
def test_a_judgement_takes_the_place_of_a_judgement_alone(nags, kept):
    """A novelty or the assessment of a position stays; once annotated, a game is annotated so again."""
    once = annotated(f"1. e4 {nags} *")
    assert once.split("{")[0].split("e4")[1].split() == kept.split()
    assert annotated(once).count("$4") == 1


@pytest.mark.parametrize("comment", ["{ [%eval 0.3] }", "  {[%eval 0.3]}", "{[%eval 0.3]} \t{[%eval\n0.2]} "])
def test_a_comment_on_its_own_line_leaves_no_empty_line(comment):
    """One ended the game for other readers, so that its moves stood in three games."""
    text = f'[Result "1-0"]\n\n1. e4\n{comment}\n1... e5\n{comment}\n2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0\n'
    file = io.StringIO(annotated(text))
    game = chess.pgn.read_game(file)
    assert not game.errors and len(list(game.mainline_moves())) == 7 and chess.pgn.read_game(file) is None
