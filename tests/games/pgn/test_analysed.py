"""Judgements as Lichess defines them, by hand."""

from chess.engine import Cp

from alphagateau.games.pgn.analysed import AnalysedGame, judgements
from alphagateau.games.pgn.pgn import GameRecord
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
