"""Times a step of each game against pgx, and self-play against the plain network; counts the bytes of a search tree."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pgx

from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.gateau.reference import make_reference
from alphagateau.networks.network import Network, Variables
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search
from alphagateau.search.search import evaluate_states
from alphagateau.training.doctor import search_bytes, tree_bytes
from alphagateau.training.selfplay.selfplay import Games, make_selfplay, start_games
from throughput.ratios import PAPER, QUICKSTART, Row, board_name, compare, in_turns, make_row

BATCH, PLIES = 1024, 20  # games of a step, and random moves before it
SIMULATIONS = 16  # of a ply of self-play


# Games, their references in pgx and how many times faster a step must be. pgx has no 6x6 board, but a smaller one.
STEP_TARGETS: tuple[tuple[str, pgx.EnvId, float], ...] = (
    ("gardner_chess", "gardner_chess", 15.0),
    ("los_alamos_chess", "gardner_chess", 6.0),
    ("chess", "chess", 6.0),
)


class PlayCase(NamedTuple):
    """A size of self-play, with targets: times faster than with the plain network, and the network's share."""

    game: str
    config: GateauConfig
    name: str
    num_games: int
    pace: float
    share: float


PLAY_CASES = (
    PlayCase("gardner_chess", QUICKSTART, "5x5, quickstart size", 64, 1.0, 0.6),
    PlayCase("chess", QUICKSTART, "8x8, 32 x 2", 64, 3.0, 0.7),
    PlayCase("chess", PAPER, "8x8, paper size", 16, 1.0, 0.75),
)


def make_step_call(step: Callable, states: Any, legal: Callable[[Any], Array], act: Callable) -> Callable[[], Any]:
    """Makes a call of a step of B games after PLIES random moves; `act` maps indices of the mask `legal` to actions."""

    def choose(states, key):
        return act(states, jax.random.categorical(key, jnp.where(legal(states), 0.0, -jnp.inf)))

    step = jax.jit(step)
    play = jax.jit(lambda states, key: step(states, choose(states, key)))
    for ply in range(PLIES):
        states = play(states, jax.random.key(ply))
    actions = choose(states, jax.random.key(PLIES))
    return lambda: step(states, actions)


def our_step(game: Game) -> Callable[[], State]:
    """Makes a call of a step of B games."""

    def edge(states: State, slot: Array) -> Array:
        return jnp.take_along_axis(states.legal_edges, slot[:, None], axis=-1)[:, 0]

    return make_step_call(jax.vmap(game.step), start_games(game, BATCH), lambda states: states.legal_edges >= 0, edge)


def pgx_step(pgx_id: pgx.EnvId) -> Callable[[], Any]:
    """Makes a call of a step of B games of pgx."""
    env = pgx.make(pgx_id)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), BATCH))
    return make_step_call(jax.vmap(env.step), states, lambda states: states.legal_action_mask, lambda _, action: action)


def game_rows(rounds: int) -> Iterator[Row]:
    """Rows of a step of each board against pgx."""
    plain: dict[str, Callable[[], Any]] = {}
    for name, pgx_id, target in STEP_TARGETS:
        if pgx_id not in plain:
            plain[pgx_id] = pgx_step(pgx_id)
        game = get_game(name)
        title = f"a step of the game, {board_name(game)}, batch {BATCH}, against pgx's {pgx_id}"
        yield compare(title, in_turns({"fast": our_step(game), "plain": plain[pgx_id]}, rounds), target)


def make_ply_call(
    game: Game, network: Network, variables: Variables, case: PlayCase
) -> tuple[Callable[[], Any], State]:
    """(a call of a ply of self-play, the States of its games)."""
    search = make_search(game, network, GumbelConfig(num_simulations=SIMULATIONS))
    selfplay = jax.jit(make_selfplay(game, search, 1))
    games, rows, key = Games(start_games(game, case.num_games)), jnp.arange(case.num_games), jax.random.key(0)
    for ply in range(3):
        games, _ = selfplay(variables, key, rows, ply, games)
    return lambda: selfplay(variables, key, rows, 3, games), games.states


def network_alone(game: Game, network: Network, num_evaluations: int) -> Callable[[Variables, State], Array]:
    """The network evaluations of a ply of self-play alone."""

    @jax.jit
    def evaluate(variables: Variables, states: State) -> Array:
        def body(i, total):
            others = jax.tree.map(lambda x: jnp.roll(x, i, axis=0), states)  # or the compiler evaluates once
            logits, value = evaluate_states(game, network, variables, others)
            return total + logits.max(axis=-1) + value

        return jax.lax.fori_loop(0, num_evaluations, body, jnp.zeros(len(states.ply)))

    return evaluate


def selfplay_rows(rounds: int) -> Iterator[Row]:
    """Rows of a ply of self-play against the plain network in the same search, and of the network's share of its time.

    The share is the time of the network alone on as many positions, divided by that of self-play.
    """
    for case in PLAY_CASES:
        game = get_game(case.game)
        network = make_gateau(game, case.config)
        variables = network.init(jax.random.key(0))
        fast, games = make_ply_call(game, network, variables, case)
        plain, _ = make_ply_call(game, make_reference(game, case.config), variables, case)
        alone = network_alone(game, network, SIMULATIONS + 1)
        calls = {"fast": fast, "plain": plain, "alone": lambda: alone(variables, games)}  # noqa: B023
        seconds = in_turns(calls, rounds)
        name = f"{case.name}, {case.num_games} games, {SIMULATIONS} simulations"
        yield compare(f"a ply of self-play, {name}", seconds, case.pace)
        shares = [a / b for a, b in zip(seconds["alone"], seconds["fast"], strict=True)]
        pair = seconds["alone"], seconds["fast"]
        yield make_row(f"share of it in the network, {name}", pair, shares, case.share, "s a ply")


def memory_rows(rounds: int) -> Iterator[Row]:
    """The row of a search tree's bytes against one with pgx's State and AlphaZero's labels at every node."""
    del rounds  # counted, not timed
    game, env, num_simulations = get_game("chess"), pgx.make("chess"), 128
    value = search_bytes(game, GumbelConfig(num_simulations=num_simulations))
    state = tree_bytes(jax.eval_shape(env.init, jax.random.key(0)))
    plain = (num_simulations + 1) * (state + 6 * 4 * env.num_actions + 5 * 4)
    ratio = value / plain
    name = f"search memory a game, 8x8, {num_simulations} simulations"
    yield Row(name, value, plain, ratio, -1 / 8, (ratio, ratio), "bytes")
