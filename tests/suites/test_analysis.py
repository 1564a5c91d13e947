"""What a search thinks of a game, as chances and judgements."""

import numpy as np
import pytest
from chess.engine import Cp

from alphagateau.games.pgn.analysed import judgements
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.variants import get_game
from alphagateau.suites.analysis import _put_together


def test_the_page_shows_the_chance_of_the_value_itself():
    """A value of 0.5 is 75 %, not the chance of another scale's score; a loss of 12 % of winning is a mistake."""
    record = GameRecord("gardner_chess", get_game("gardner_chess").start_fen, ("b1c3", "d4c3"), "*")
    values = np.array([0.5, -0.26, 0.26], np.float32)  # of the player to move
    game = _put_together(record, [""] * 3, values, "somebody", is_over=False)
    assert game.chances == pytest.approx((75, 63, 63)) and game.scores[:2] == (Cp(298), Cp(145))
    assert [found and found.name for found in judgements(game)] == ["mistake", None]
