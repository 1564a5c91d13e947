"""Sample games of an iteration: whose they are, and what the search thought."""

from types import SimpleNamespace

import numpy as np
from boards import single
from chess.engine import Cp

from alphagateau.games.notation import uci_to_edge
from alphagateau.games.pgn import Identity, player_tags, read_pgn
from alphagateau.games.variants import get_game
from alphagateau.training.sample_games import sample_pgn


def test_sample_games_say_what_the_search_thought():
    """Row 0: one game of 3 plies, from ply 1 of the trajectory on; row 1: none that began and ended in it."""
    game = get_game("gardner_chess")
    state, edges = game.init(), np.zeros((4, 2), np.int16)
    for ply, uci in enumerate(("b1c3", "d4c3", "b2c3"), 1):
        edges[ply, 0] = uci_to_edge(game, state, uci)
        state = single(game.name)(state, edges[ply, 0])
    trajectory = SimpleNamespace(
        edge=edges,
        discount=np.array([[0, -1], [-1, -1], [-1, -1], [0, -1]], np.float32),
        position=SimpleNamespace(ply=np.array([[9, 5], [0, 6], [1, 7], [2, 8]])),
        search_value=np.array([[0.9, 0], [9 / 11, 0], [9 / 11, 0], [0, 0]], np.float32),
    )
    tags = {"Event": "run"} | player_tags("White", "run/3", Identity("run", 3, "0123456789abcdef", "gumbel"))
    text = sample_pgn(game, trajectory, 4, tags, 4)
    (record,) = read_pgn(text)
    assert record.moves == ("b1c3", "d4c3", "b2c3")
    assert [note.score for note in record.notes] == [Cp(400), Cp(-400), Cp(0)]
    assert (record.headers["Round"], record.headers["WhiteWeights"]) == ("4.1", "0123456789abcdef")
    assert text == sample_pgn(game, trajectory, 4, tags, 4)
