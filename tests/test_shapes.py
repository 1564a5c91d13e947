"""The records of arrays have the types and shapes that they declare, on every board and by every network and search.

All of it is traced and nothing is run.
"""

from collections.abc import Callable
from types import NoneType
from typing import Any, get_args, get_type_hints

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import jaxtyped

from alphagateau.config import NETWORKS, SEARCHES
from alphagateau.games.entries import GAMES
from alphagateau.games.state import Array
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.search.make_search import make_search
from alphagateau.training.selfplay.selfplay import Games, make_selfplay, start_games
from alphagateau.training.selfplay.targets import frames_from


def check(record: Any) -> None:
    """Fails if an array of a record is not as declared; a letter means the same in all of them."""
    with jaxtyped("context"):
        _check(record)


def _check(record: Any) -> None:
    for name, kind in get_type_hints(type(record)).items():
        value = getattr(record, name)
        if value is None:
            assert NoneType in get_args(kind), name
        elif hasattr(value, "_fields"):
            _check(value)
        elif isinstance(value, Array):
            kinds = [one for one in get_args(kind) or (kind,) if one is not NoneType]
            assert any(isinstance(value, one) for one in kinds), f"{name} is {value.dtype}{value.shape}, not {kind}"


def traced(check_all: Callable[[], None]) -> None:
    def trace() -> Array:
        check_all()
        return jnp.int32(0)

    jax.eval_shape(trace)


@pytest.mark.parametrize("board", list(GAMES))
def test_states_positions_trajectories_and_frames(board):
    game = get_game(board)
    network = make_network(game, NETWORKS.read({"hidden_size": 8, "num_blocks": 1}))
    search = make_search(game, network, SEARCHES.read({"num_simulations": 2}))

    def check_all():
        states = start_games(game, 3)
        check(game.init())
        check(states)
        check(jax.vmap(game.position)(states))
        variables = network.init(jax.random.key(0))
        rows, play = jnp.arange(3), make_selfplay(game, search, 2)
        games, trajectory = play(variables, jax.random.key(1), rows, jnp.int32(0), Games(states))
        check(games.states)
        check(trajectory)
        check(frames_from(trajectory))

    traced(check_all)


@pytest.mark.parametrize("architecture", list(NETWORKS))
def test_evaluations(architecture):
    game = get_game("chess")
    network = make_network(game, NETWORKS.read({"architecture": architecture}))

    def check_all():
        positions = jax.vmap(game.position)(start_games(game, 3))
        evaluation, _ = network.apply(network.init(jax.random.key(0)), positions, False)
        check(evaluation)
        assert evaluation.prior_logits.shape == (3, game.num_edges)

    traced(check_all)


@pytest.mark.parametrize("algorithm", [name for name in SEARCHES if name != "action_value"])
def test_search_outputs(algorithm):
    game = get_game("gardner_chess")
    network = make_network(game, NETWORKS.read({"hidden_size": 8, "num_blocks": 1}))
    search = make_search(game, network, SEARCHES.read({"algorithm": algorithm}))

    def check_all():
        variables = network.init(jax.random.key(0))
        check(search(variables, jax.random.split(jax.random.key(1), 3), start_games(game, 3)))

    traced(check_all)


def test_a_wrong_type_or_shape_is_seen():
    game = get_game("gardner_chess")
    state = game.init()
    check(state)
    for wrong in (state._replace(ply=jnp.int32(0)), state._replace(castling=jnp.zeros(3, bool))):
        with pytest.raises(AssertionError):
            check(wrong)
    with pytest.raises(AssertionError):
        check(start_games(game, 3)._replace(color=jnp.zeros(2, jnp.int8)))
