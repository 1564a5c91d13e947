"""What a search thinks of a game, as chances and judgements."""

import jax.numpy as jnp
import numpy as np
import pytest
from chess.engine import Cp, MateGiven
from tiny_checkpoints import save_tiny

from alphagateau.games.pgn.analysed import judgements
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.pgn.rule_checks import check_games
from alphagateau.games.pgn.text import read_games
from alphagateau.games.variants import get_game
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerError
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.search.baselines import make_random_search
from alphagateau.suites.analysis import _put_together, analyse_games
from alphagateau.suites.answers import find_answers, positions_of_fens

MATED = '[Variant "Gardner"]\n[FEN "1k3/p2P1/2K2/P4/5 w - - 0 20"]\n\n'


def test_the_page_shows_the_chance_of_the_value_itself():
    """A value of 0.5 is 75 %, not the chance of another scale's score; a loss of 12 % of winning is a mistake."""
    record = GameRecord("gardner_chess", get_game("gardner_chess").start_fen, ("b1c3", "d4c3"), "*")
    values = np.array([0.5, -0.26, 0.26], np.float32)  # of the player to move
    game = _put_together(record, [""] * 3, values, "somebody", is_over=False)
    assert game.chances == pytest.approx((75, 63, 63)) and game.scores[:2] == (Cp(298), Cp(145))
    assert [found and found.name for found in judgements(game)] == ["mistake", None]


@pytest.mark.parametrize(
    "options", ["search=depth&depth=1", "search=probability&nodes=32", "search=gumbel&simulations=2"]
)
def test_a_mate_is_analysed_by_every_search(tmp_path, options):
    """A minimax of the mated position never ended."""
    save_tiny(tmp_path / "net" / "checkpoints", "gardner_chess", GiraffeConfig)
    text = MATED + "1. d5=Q# 1-0\n\n" + MATED.replace("1k3/p2P1/2K2/P4/5 w", "1k1Q1/p4/2K2/P4/5 b") + "1-0\n"
    games = check_games(read_games(text.splitlines(keepends=True)), with_states=True)
    (_, played), (_, mated) = analyse_games(f"{tmp_path / 'net'}?{options}", 0, games)
    assert len(played.scores) == 2 and played.best[0] and not played.best[1]
    assert played.scores[1] == mated.scores[0] == MateGiven and played.chances[1] == 100


def test_an_unsound_value_is_said_of_its_player(gardner):
    """It was a traceback of a NaN that is made an integer."""

    def search(variables, key, states):
        found = make_random_search()(variables, key, states)
        return found._replace(search_value=jnp.full_like(found.search_value, jnp.nan))

    fens = positions_of_fens(gardner, [gardner.start_fen], seed=0)
    with pytest.raises(PlayerError, match="cheat: its search is not sound"):
        next(find_answers(gardner, Player("cheat", search, {"w": jnp.float32(0)}), fens))
