"""Times Gumbel search by levels against one leaf of a game a call, and counts its calls and their rows."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.config import NetworkConfig
from alphagateau.games.rules import Game
from alphagateau.games.state import State
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.make_network import make_network
from alphagateau.search.baselines import make_policy_search
from alphagateau.search.config import PolicyConfig
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.gumbel.levels import ROWS_A_GAME, make_schedule, pack
from alphagateau.search.make_search import make_search
from alphagateau.training.selfplay.selfplay import Games, make_selfplay, start_games
from throughput.ratios import PAPER, QUICKSTART, Row, board_name, compare, in_turns

ORDERS: dict[str, Literal["level", "leaf"]] = {"fast": "level", "plain": "leaf"}
PLIES = 40  # of self-play by the policy before a search, after which games are far apart
LABELLED = ChessformerConfig(  # of checkpoints/chess_labelled
    hidden_size=128, num_blocks=6, num_heads=4, ffn_size=192, position="bias", square_embedding="edges", attacks=True
)


class Case(NamedTuple):
    """A network's size, games searched at a time, simulations of each, and the lowest ratio."""

    game: str
    config: NetworkConfig
    name: str
    num_games: int
    num_simulations: int
    target: float


CASES = [
    *(
        Case("gardner_chess", QUICKSTART, "quickstart", n, s, 1.0 if n > 8 else 1.6)
        for s in (16, 64)
        for n in (8, 64, 256)
    ),
    *(Case("chess", LABELLED, "chess_labelled", n, 64, 1.0) for n in (4, 16, 64)),
    *(Case("chess", PAPER, "paper size", n, 64, 1.0) for n in (4, 16, 64)),
]


def selfplay_states(game: Game, network: Any, variables: Any, num_games: int) -> State:
    """States of games that a policy plays, anew as they end."""
    search = make_policy_search(game, network, PolicyConfig(temperature=1.0, temperature_plies=10**4))
    play = jax.jit(make_selfplay(game, search, PLIES))
    games, _ = play(variables, jax.random.key(0), jnp.arange(num_games), 0, Games(start_games(game, num_games)))
    return games.states


def count_calls(states: State, num_simulations: int) -> int:
    """Calls of the search of these States by levels."""
    step = jax.jit(lambda schedule: pack(schedule, ROWS_A_GAME * len(states.ply))[1])
    schedule, calls = make_schedule((states.legal_edges >= 0).sum(axis=1), 16, num_simulations), 0
    while np.any(schedule.waiting):
        schedule, calls = step(schedule), calls + 1
    return calls


def search_rows(rounds: int) -> Iterator[Row]:
    """Rows of time, calls and rows of a search of a batch of games, against one leaf of a game a call."""
    for case in CASES:
        game = get_game(case.game)
        network = make_network(game, case.config)
        variables = network.init(jax.random.key(0))
        states = selfplay_states(game, network, variables, case.num_games)
        keys = jax.random.split(jax.random.key(1), case.num_games)
        calls = {}
        for name, batch_by in ORDERS.items():
            config = GumbelConfig(num_simulations=case.num_simulations, batch_by=batch_by)
            run = jax.jit(make_search(game, network, config))
            calls[name] = lambda run=run: run(variables, keys, states)  # noqa: B023
        nodes = np.asarray(calls["fast"]().num_nodes)
        name = f"{board_name(game)}, {case.name}, {case.num_games} games x {case.num_simulations}"
        num_calls, num_leaves = count_calls(states, case.num_simulations), int((nodes - 1).sum())
        for what, value, reference, target in (
            ("calls", num_calls, case.num_simulations, -0.5),
            ("rows", num_calls * ROWS_A_GAME * case.num_games, num_leaves, -1.1),
        ):
            ratio = value / reference
            yield Row(f"{what} of a search, {name}", value, reference, ratio, target, (ratio, ratio), what)
        yield compare(f"time of a search, {name}", in_turns(calls, rounds), case.target)
