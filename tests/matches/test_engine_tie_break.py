"""Won positions: an engine's choice among the moves that a player of values cannot tell apart."""

import shutil

import jax
import numpy as np
import pytest

from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.notation import from_fen, legal_moves
from alphagateau.games.variants import get_game
from alphagateau.matches.find_moves import compiled_search
from alphagateau.matches.specs import PlayerError, SpecError
from alphagateau.matches.uci_player import make_finish
from alphagateau.search.search import SearchOutput

STOCKFISH = shutil.which("stockfish", path="/usr/games:/usr/bin:/usr/local/bin")
CHESS = get_game("chess")
needs_stockfish = pytest.mark.skipif(STOCKFISH is None, reason="no stockfish")


def asked(fen: str, *moves: str) -> str | None:
    """What Stockfish chooses in the first of two rows, the second not being asked about."""
    state = from_fen(CHESS, fen)
    edges = legal_moves(CHESS, state)
    position = jax.tree.map(lambda x: np.stack([x, x]), jax.device_get(jax.jit(CHESS.position)(state)))
    candidates = np.full((2, 5), -1, np.int16)
    candidates[0, : len(moves)] = [edges[move] for move in moves]
    found = make_finish("chess", str(STOCKFISH))(position, candidates)
    assert found[1] == -1
    return next((move for move, edge in edges.items() if edge == found[0]), None)


@needs_stockfish
def test_the_engine_mates():
    assert asked("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "a1a2", "a1a3", "a1a8", "g1f1") == "a1a8"
    assert asked("6k1/5ppp/8/8/8/8/8/RR4K1 b - - 0 1", "h7h6", "g7g6") is None  # black to move is lost


@needs_stockfish
def test_a_position_that_is_not_won_is_left_to_the_player():
    assert asked(CHESS.start_fen, "e2e4", "d2d4") is None


def test_an_engine_that_fails_within_a_search_is_its_players_failure():
    """What a callback raises comes back as JAX's error with a text."""

    def fail(positions, candidates):
        raise PlayerError("engine 'x' ended: exit code 9")

    def search(variables, keys, states):
        shape = jax.ShapeDtypeStruct(states.ply.shape, np.int16)
        edge = jax.pure_callback(fail, shape, states.ply, states.ply)
        return SearchOutput(edge, *4 * [states.ply.astype(np.float32)])

    states = jax.tree.map(lambda x: np.asarray(x)[None], jax.device_get(CHESS.init()))
    found = compiled_search("chess", search, make_mesh(1))
    with pytest.raises(PlayerError, match=r"^engine 'x' ended: exit code 9$"):
        found({"w": np.zeros(1)}, np.zeros((1, 3), np.uint32), states)


def test_a_finisher_that_is_no_engine_is_named():
    with pytest.raises(SpecError, match=r"engine 'nothing-here' cannot be started"):
        make_finish("chess", "nothing-here")
