"""Our moves and labels against pgx's on the boards that both have."""

import re
from collections import Counter
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boards import BATCH, batched
from pgx_moves import make_pgx_move, pgx_chess, pgx_gardner
from random_games import SAMPLED

import alphagateau
from alphagateau.games.edges import make_edges
from alphagateau.games.entries import BISHOP, GAMES, KING, KNIGHT, PAWN, ROOK
from alphagateau.games.moves import move
from alphagateau.games.notation import from_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.games.variants import get_game

NUM_PLIES = 12


def random_states(game: Game) -> list[State]:
    """Batches of unfinished and finished States, ply by ply along random games."""
    rng, (step, _) = np.random.default_rng(5), batched(game.name)
    starts = [jax.device_get(from_fen(game, fen)) for fen in SAMPLED[game.name]]
    states = jax.tree.map(lambda *x: np.stack(x), *(starts[row % len(starts)] for row in range(BATCH)))
    found = [states]
    for _ in range(NUM_PLIES):
        num_legal = (states.legal_edges >= 0).sum(axis=1)
        slots = (rng.random(BATCH) * num_legal).astype(int)
        states = jax.device_get(step(states, states.legal_edges[np.arange(BATCH), slots]))
        found.append(states)
    return found


def count_kinds(game: Game, states: State) -> Counter:
    """How many legal moves of these States are of a rare kind."""
    rows, slots = np.nonzero(states.legal_edges >= 0)
    edges = states.legal_edges[rows, slots]
    sender, receiver = game.senders[edges], game.receivers[edges]
    pieces, target = states.boards[rows, 0, sender], states.boards[rows, 0, receiver]
    is_pawn, corners = pieces == PAWN, np.isin(receiver, (7, 63))
    return Counter(
        {
            "capture": (target < 0).sum(),
            "promotion": (is_pawn & (receiver % game.size == game.size - 1)).sum(),
            "under-promotion": (game.promotions[edges] > 0).sum(),
            "double step": (is_pawn & (receiver == sender + 2)).sum(),
            "en passant": (is_pawn & (receiver == states.en_passant[rows])).sum(),
            "castling": ((pieces == KING) & (abs(receiver - sender) == 2 * game.size)).sum(),
            "rook captured at home": (corners & (target == -ROOK) & states.castling[rows, 2:].any(axis=1)).sum(),
        }
    )


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("gardner_chess", {"capture", "promotion", "under-promotion"}),
        ("chess", {"capture", "promotion", "under-promotion", "double step", "en passant", "castling"}),
    ],
)
def test_our_moves_are_pgxs(name, kinds):
    game, entry = get_game(name), GAMES[name]
    edges = make_edges(entry)
    of_all_slots = [
        jax.jit(jax.vmap(jax.vmap(move_fn, (None, 0))))
        for move_fn in (partial(move, entry, edges), make_pgx_move(name, game.labels))
    ]
    met = Counter()
    for states in random_states(game):
        ours, theirs = (jax.device_get(find(states, states.legal_edges)) for find in of_all_slots)
        is_legal = states.legal_edges >= 0
        for field in ours._fields:
            mine, its = getattr(ours, field)[is_legal], getattr(theirs, field)[is_legal]
            np.testing.assert_array_equal(mine, its, err_msg=field)
            assert mine.dtype == its.dtype
        met += count_kinds(game, states)
    assert {kind for kind in met if met[kind] >= 20} >= kinds | (
        {"rook captured at home"} if entry.castlings else set()
    )


@pytest.mark.parametrize(("name", "of_pgx"), [("chess", pgx_chess), ("gardner_chess", pgx_gardner)])
def test_our_labels_are_pgxs_actions(name, of_pgx):
    game = get_game(name)
    action = jax.vmap(of_pgx.Action._from_label)(jnp.arange(game.num_labels))
    promotions = np.where(action.underpromotion >= 0, np.array([ROOK, BISHOP, KNIGHT])[action.underpromotion], 0)
    theirs = np.stack([action.to, action.from_, promotions], axis=1)
    np.testing.assert_array_equal(
        theirs[game.labels], np.stack([game.receivers, game.senders, game.promotions], axis=1)
    )
    assert (theirs[:, 0] >= 0).sum() == game.num_edges  # pgx has no other move on the board


def test_pgx_is_for_its_environments_alone():
    """It compiles programs when imported, and its private modules change without notice."""
    package = Path(alphagateau.__file__).parent
    imports = {
        path.relative_to(package).as_posix(): set(re.findall(r"(?:import|from) +(pgx[\w.]*)", path.read_text()))
        for path in package.rglob("*.py")
    }
    users = {name: modules for name, modules in imports.items() if modules}
    assert users == {"envs/pgx_env.py": {"pgx"}}
