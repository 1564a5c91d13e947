"""This machine's throughput as ratios: the fast path and a plain reference timed in turns in one process.

Absolute times on a shared CPU mean little from one minute to the next; the ratio of two programs that take turns does
not change much. Each row has the figure, what it is measured against, their ratio and the target.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pgx
from rich.console import Console
from rich.table import Table

from alphagateau.config import GateauConfig, GumbelConfig
from alphagateau.games.actions import choose
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau import make_gateau
from alphagateau.networks.gateau_reference import make_reference
from alphagateau.networks.network import Network, Variables
from alphagateau.search.make_search import make_search
from alphagateau.search.search import evaluate_states
from alphagateau.training.doctor import search_tree_bytes, tree_bytes
from alphagateau.training.frames import Frame
from alphagateau.training.learner import make_learner
from alphagateau.training.losses import policy_value_loss, reduce_terms
from alphagateau.training.optimizer import make_optimizer
from alphagateau.training.selfplay import make_selfplay, start_games

PAPER = GateauConfig()  # 128 features, 5 blocks
QUICKSTART = GateauConfig(hidden_size=32, num_blocks=2)


class Row(NamedTuple):
    """`ratio` is what the target is about; the spread is its least and greatest value over the rounds."""

    name: str
    value: float
    reference: float
    ratio: float
    target: float  # the least ratio wanted; negative: the greatest
    spread: tuple[float, float]
    unit: str

    @property
    def is_met(self) -> bool:
        return self.ratio <= -self.target if self.target < 0 else self.ratio >= self.target


def in_turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call in each round; one warm-up first, then round by round in the order given."""
    for call in calls.values():
        jax.block_until_ready(call())
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - start)
    return seconds


def compare(name: str, seconds: dict[str, list[float]], target: float) -> Row:
    """How many times faster "fast" is than "plain"."""
    ratios = [b / a for a, b in zip(seconds["fast"], seconds["plain"], strict=True)]
    value, reference = (statistics.median(seconds[k]) for k in ("fast", "plain"))
    return Row(name, value, reference, statistics.median(ratios), target, (min(ratios), max(ratios)), "s")


def random_positions(game: Game, batch: int, num_plies: int = 20) -> Position:
    """B Positions after random legal moves."""

    def one_ply(states, key):
        logits = jnp.where(states.legal_edges >= 0, 0.0, -jnp.inf)
        slot = jax.random.categorical(key, jnp.where(states.terminated[:, None], 0.0, logits))
        return jax.vmap(game.step)(states, choose(states, slot)), None

    def roll(key):
        states, _ = jax.lax.scan(one_ply, start_games(game, batch), jax.random.split(key, num_plies))
        return jax.vmap(game.position)(states)

    return jax.jit(roll)(jax.random.key(0))


def frames_of(game: Game, positions: Position) -> Frame:
    """Frames with a uniform policy and a drawn value, for timing."""
    batch = positions.color.shape[0]
    policy = jnp.full((batch, game.max_legal_moves), 0.05, jnp.float16)
    return Frame(positions, policy, jnp.zeros(batch), jnp.ones(batch, bool))


def forward_of(network: Network, variables: Variables, positions: Position) -> Callable[[], Array]:
    call = jax.jit(lambda v, p: network.apply(v, p, False)[0])
    return lambda: call(variables, positions)


def backward_of(network: Network, variables: Variables, positions: Position) -> Callable[[], Any]:
    def loss(params, rest, positions):
        evaluation, _ = network.apply({"params": params, **rest}, positions, True)
        return jnp.square(evaluation.prior_logits).mean() + jnp.square(evaluation.value).mean()

    call = jax.jit(jax.grad(loss))
    params = variables["params"]
    rest = {k: v for k, v in variables.items() if k != "params"}
    return lambda: call(params, rest, positions)


def network_rows(is_quick: bool) -> Iterator[Row]:
    """The network against the plain jraph reference, forward and forward + backward."""
    rounds, batch = (3, 32) if is_quick else (7, 256)
    for game_name, config, size, forward, backward in (
        ("chess", PAPER, f"8x8, paper size, batch {batch}", 4.0, 3.0),
        ("gardner_chess", QUICKSTART, "5x5, quickstart size, batch 64", 4.0, 1.0),
    ):
        game = get_game(game_name)
        fast, plain = make_gateau(game, config), make_reference(game, config)
        variables = fast.init(jax.random.key(0))
        positions = random_positions(game, batch if game_name == "chess" else 64)
        calls = {k: forward_of(n, variables, positions) for k, n in (("fast", fast), ("plain", plain))}
        yield compare(f"network forward, {size}", in_turns(calls, rounds), forward)
        calls = {k: backward_of(n, variables, positions) for k, n in (("fast", fast), ("plain", plain))}
        yield compare(f"network forward + backward, {size}", in_turns(calls, rounds), backward)
        if game_name == "chess":
            yield flops_row(game, config, fast, variables, positions, rounds)


def forward_flops(game: Game, config: GateauConfig) -> float:
    """Multiplications and additions of the matrix products of one position, as `gateau.py` does them.

    A layer has one K x K product an edge (W_e) and five a node (W_u, W_v, W_0, W_h, W_g); the first layer's edges take
    two values for the whole batch and are not counted; each head has one K x K product.
    """
    nodes, edges, k = game.num_squares, game.num_edges, config.hidden_size
    layers = 2 * config.num_blocks
    return 2.0 * k * k * ((layers - 1) * edges + layers * 5 * nodes + nodes + edges)


def flops_row(game, config, network, variables, positions, rounds) -> Row:
    """Useful FLOP/s of the forward pass as a fraction of what a large float32 matrix product reaches here."""
    size = 2048
    a = jnp.ones((size, size))
    product = jax.jit(jnp.matmul)
    calls = {"fast": forward_of(network, variables, positions), "plain": lambda: product(a, a)}
    seconds = in_turns(calls, rounds)
    flops = forward_flops(game, config) * positions.color.shape[0]
    shares = [(flops / f) / (2 * size**3 / p) for f, p in zip(seconds["fast"], seconds["plain"], strict=True)]
    rate, peak = flops / statistics.median(seconds["fast"]), 2 * size**3 / statistics.median(seconds["plain"])
    name = f"forward FLOP/s, 8x8, paper size, against a {size} x {size} product"
    return Row(name, rate, peak, statistics.median(shares), 0.5, (min(shares), max(shares)), "FLOP/s")


def selfplay_row(game_name: str, config: GateauConfig, sizes: tuple[int, int], rounds: int, target: float) -> Row:
    """The share of self-play spent in the network: its time alone on as many positions, over that of self-play."""
    num_games, num_simulations = sizes
    game = get_game(game_name)
    network = make_gateau(game, config)
    variables = network.init(jax.random.key(0))
    search = make_search(game, network, GumbelConfig(num_simulations=num_simulations))
    play = jax.jit(make_selfplay(game, search, 1))
    games, rows, key = start_games(game, num_games), jnp.arange(num_games), jax.random.key(0)
    for ply in range(3):
        games, _ = play(variables, key, rows, ply, games)

    @jax.jit
    def network_alone(variables, states):
        def body(i, total):
            others = jax.tree.map(lambda x: jnp.roll(x, i, axis=0), states)  # or the compiler would do it once
            logits, value = evaluate_states(game, network, variables, others)
            return total + logits.max(axis=-1) + value

        return jax.lax.fori_loop(0, num_simulations + 1, body, jnp.zeros(num_games))

    calls = {
        "fast": lambda: network_alone(variables, games),
        "plain": lambda: play(variables, key, rows, 3, games),
    }
    seconds = in_turns(calls, rounds)
    shares = [a / b for a, b in zip(seconds["fast"], seconds["plain"], strict=True)]
    name = f"share of self-play in the network, {game_name}, {num_games} games, {num_simulations} simulations"
    value, reference = (statistics.median(seconds[k]) for k in ("fast", "plain"))
    return Row(name, value, reference, statistics.median(shares), target, (min(shares), max(shares)), "s a ply")


def memory_row(num_simulations: int = 128) -> Row:
    """Bytes of one game's search tree against pgx's State and AlphaZero's labels at every node."""
    game, env = get_game("chess"), pgx.make("chess")
    value = search_tree_bytes(game, num_simulations)
    state = tree_bytes(jax.eval_shape(env.init, jax.random.key(0)))
    plain = (num_simulations + 1) * (state + 6 * 4 * env.num_actions + 5 * 4)
    ratio = value / plain
    name = f"search memory a game, 8x8, {num_simulations} simulations"
    return Row(name, value, plain, ratio, -1 / 8, (ratio, ratio), "bytes")


def training_row(rounds: int) -> Row:
    """Frames/s of training from the window against forward + backward alone on a batch that is there already."""
    from alphagateau.training.replay import add_frames, epoch_order, init_window, take_batch

    game, config, batch, shares = get_game("gardner_chess"), QUICKSTART, 256, 8
    network, optimizer = make_gateau(game, config), make_optimizer(1e-3)
    learner = make_learner(game, network, policy_value_loss, optimizer)
    state = learner.init(network.init(jax.random.key(0)))
    frames = frames_of(game, random_positions(game, batch * 4))
    by_share = jax.tree.map(lambda x: x.reshape(shares, -1, *x.shape[1:]), frames)
    window = init_window(jax.tree.map(lambda x: x[0], frames), shares, batch * 4)
    window = add_frames(window, jax.random.key(0), jnp.arange(shares), by_share)

    def epoch(state, window):
        order = epoch_order(window, jax.random.key(1), jnp.arange(shares))

        def body(state, i):
            return learner.step(state, take_batch(window, order, i, batch // shares))

        return jax.lax.scan(body, state, jnp.arange(4))

    def loss(params, rest, frames):
        evaluation, _ = network.apply({"params": params, **rest}, frames.position, True)
        return reduce_terms(policy_value_loss(game, evaluation, frames))[0]

    epoch, gradient = jax.jit(epoch), jax.jit(jax.grad(loss))
    params = state.variables["params"]
    rest = {k: v for k, v in state.variables.items() if k != "params"}
    one = jax.tree.map(lambda x: x[:batch], frames)
    calls = {"fast": lambda: epoch(state, window), "plain": lambda: gradient(params, rest, one)}
    seconds = in_turns(calls, rounds)
    shares_of = [4 * b / a for a, b in zip(seconds["fast"], seconds["plain"], strict=True)]
    value, reference = 4 * batch / statistics.median(seconds["fast"]), batch / statistics.median(seconds["plain"])
    spread = (min(shares_of), max(shares_of))
    return Row(
        "training frames/s, 5x5, quickstart size", value, reference, statistics.median(shares_of), 0.9, spread, "1/s"
    )


def measure(is_quick: bool, say: Callable[[str], None]) -> list[Row]:
    """All rows that this machine can measure."""
    rounds = 3 if is_quick else 7
    rows = []
    for row in network_rows(is_quick):
        rows.append(row)
        say(row.name)
    rows.append(selfplay_row("gardner_chess", QUICKSTART, (64, 16), rounds, 0.6))
    say(rows[-1].name)
    if not is_quick:
        rows.append(selfplay_row("chess", PAPER, (16, 16), 3, 0.75))
        say(rows[-1].name)
    rows += [memory_row(), training_row(rounds)]
    return rows


def print_rows(rows: list[Row]) -> None:
    """A table on standard output."""
    table = Table(title=f"{jax.devices()[0].device_kind}, jax {jax.__version__}", title_justify="left")
    table.add_column("what")
    for name in ("ratio", "spread", "target", ""):
        table.add_column(name, justify="right")
    for row in rows:
        target = f"at most {-row.target:.3g}" if row.target < 0 else f"at least {row.target:.3g}"
        spread = f"{row.spread[0]:.2f} - {row.spread[1]:.2f}"
        table.add_row(row.name, f"{row.ratio:.2f}", spread, target, "met" if row.is_met else "missed")
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)


def write_rows(rows: list[Row], path: Path) -> None:
    """The rows as a JSON list of {name, value, reference, ratio, target, ...}."""
    path.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")
