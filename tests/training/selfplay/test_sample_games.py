"""Sample games of an iteration: whose they are, and what the search thought."""

from types import SimpleNamespace

import jax
import numpy as np
from boards import single
from chess.engine import Cp

from alphagateau.games.notation import to_fen, uci_to_edge
from alphagateau.games.pgn.pgn import Identity, player_tags, read_pgn
from alphagateau.games.variants import get_game
from alphagateau.training.selfplay.sample_games import duplicate_rate, finished_games, sample_pgn


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
        search_value=np.array([[0.9, 0], [0.5, 0], [0.5, 0], [0, 0]], np.float32),
    )
    tags = {"Event": "run"} | player_tags("White", "run/3", Identity("run", 3, "0123456789abcdef", "gumbel"))
    tags, games = tags | {"Round": "4"}, finished_games(trajectory)
    text = sample_pgn(game, trajectory, games, 9, tags)
    (record,) = read_pgn(text)
    assert record.moves == ("b1c3", "d4c3", "b2c3")
    assert [note.score for note in record.notes] == [Cp(298), Cp(-298), Cp(0)]
    assert (record.headers["Round"], record.headers["WhiteWeights"]) == ("4.1", "0123456789abcdef")
    assert text == sample_pgn(game, trajectory, games, 1, tags)
    assert sample_pgn(game, trajectory, games, 0, tags) == ""


def test_a_resigned_game_is_lost_by_whoever_was_to_move():
    """White gives up at ply 2, black at once after one random ply; the plies at which they do have no move."""
    game = get_game("gardner_chess")
    step, position = single(game.name), jax.jit(game.position)
    states, edges = [game.init()], []
    for uci in ("b2b3", "a4b3"):
        edges.append(uci_to_edge(game, states[-1], uci))
        states.append(step(states[-1], edges[-1]))
    positions = [position(state) for state in states]
    trajectory = SimpleNamespace(
        edge=np.array([[edges[0], -1], [edges[1], edges[0]], [-1, edges[1]]], np.int16),
        discount=np.array([[-1, 0], [-1, -1], [0, -1]], np.float32),
        position=jax.tree.map(lambda *x: np.stack(x)[np.array([[0, 1], [1, 0], [2, 1]])], *positions),
        search_value=np.full((3, 2), -0.95, np.float32),
    )
    games = finished_games(trajectory, are_new=True)
    white, black = read_pgn(sample_pgn(game, trajectory, games, 2, {"Round": "1"}))
    assert (white.moves, white.result, white.termination) == (("b2b3", "a4b3"), "0-1", "resignation")
    assert (black.moves, black.result, black.termination) == ((), "1-0", "resignation")
    assert len(white.notes) == 2 and duplicate_rate(trajectory, games) == 0


def test_a_game_from_random_plies_is_the_game_of_their_fen():
    """Row 0 goes on from the iteration before, row 1 begins after one ply; both are over after two more, by our word.

    The next game of row 0 begins after one ply as well, so it is told though no iteration begins there.
    """
    game = get_game("gardner_chess")
    step, position = single(game.name), jax.jit(game.position)
    opened = step(game.init(), uci_to_edge(game, game.init(), "b2b3"))
    edges, positions, state = [], [], opened
    for uci in ("a4b3", "a2b3"):
        edges.append(uci_to_edge(game, state, uci))
        positions.append(position(state))
        state = step(state, edges[-1])
    rows = [[0, 0], [1, 1], [0, 0]]  # of the two plies, those of each row in turn
    trajectory = SimpleNamespace(
        edge=np.array([[edges[i] for i in row] for row in rows], np.int16),
        discount=np.array([[-1, -1], [0, 0], [-1, -1]], np.float32),
        position=jax.tree.map(lambda *x: np.stack(x)[np.array(rows)], *positions),
        search_value=np.zeros((3, 2), np.float32),
    )
    assert len(finished_games(trajectory).row) == 0
    games = finished_games(trajectory, are_new=True)
    assert (games.row.tolist(), games.first.tolist(), games.last.tolist()) == ([0, 1], [0, 0], [1, 1])
    first, _ = read_pgn(sample_pgn(game, trajectory, games, 2, {"Round": "1"}))
    assert first.start_fen == to_fen(game, opened) and first.moves == ("a4b3", "a2b3")
    later = jax.tree.map(lambda x: x[1:], trajectory.__dict__)
    assert len(finished_games(SimpleNamespace(**later)).row) == 0
    later["discount"] = np.array([[0, 0], [0, -1]], np.float32)
    found = finished_games(SimpleNamespace(**later))
    assert (found.row.tolist(), found.first.tolist(), found.last.tolist()) == ([0], [1], [1])
