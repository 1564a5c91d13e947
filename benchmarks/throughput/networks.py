"""Times GATEAU against its plain reference: forward pass, training, compilation."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from alphagateau.config.losses import LOSSES
from alphagateau.games.actions import legal_edge_mask, random_positions
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.gateau.reference import make_reference
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import statistics_of
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.training.flops import forward_flops
from alphagateau.training.frames import ACTION_KNOWN, ACTION_SLOT, ACTION_VALUE, Frame
from alphagateau.training.learner import Learner, TrainState, make_learner
from alphagateau.training.losses.policy_value import policy_value_loss, reduce_terms
from alphagateau.training.optimizer import make_optimizer
from alphagateau.training.selfplay.replay import add_frames, epoch_order, init_window, take_batch
from throughput.ratios import PAPER, QUICKSTART, Row, compare, frames_of, in_turns, make_row

BATCH = 64


class Size(NamedTuple):
    """A network on a board, with targets of how many times faster than the plain one it is."""

    game: str
    config: GateauConfig
    name: str
    forward: float
    training: float


SIZES = (
    Size("chess", PAPER, f"8x8, paper size, batch {BATCH}", 4.0, 3.2),
    Size("gardner_chess", QUICKSTART, f"5x5, quickstart size, batch {BATCH}", 4.0, 2.3),
)
TOKEN_SIZES = {"402k": 10.0, "small": 30.0}  # target of how many times cheaper GATEAU's action value is


def network_rows(rounds: int) -> Iterator[Row]:
    """Rows of the forward pass against the plain jraph reference, and against a large matrix product."""
    for size in SIZES:
        game = get_game(size.game)
        fast, plain = make_gateau(game, size.config), make_reference(game, size.config)
        variables, positions = fast.init(jax.random.key(0)), random_positions(game, BATCH)
        forward = {k: jax.jit(lambda v, p, n=n: n.apply(v, p, False)[0]) for k, n in (("fast", fast), ("plain", plain))}
        calls = {k: partial(fn, variables, positions) for k, fn in forward.items()}
        yield compare(f"network forward, {size.name}", in_turns(calls, rounds), size.forward)
        if size.config is PAPER:
            yield flops_row(game, size, calls["fast"], rounds)


def flops_row(game: Game, size: Size, forward: Callable[[], Any], rounds: int) -> Row:
    """The row of FLOP/s of the forward pass as a fraction of those of a large float32 matrix product."""
    width = 2048
    a, product = jnp.ones((width, width)), jax.jit(jnp.matmul)
    seconds = in_turns({"fast": forward, "plain": lambda: product(a, a)}, rounds)
    flops, large = forward_flops(game, make_gateau(game, size.config)) * BATCH, 2 * width**3
    rates, peaks = [flops / s for s in seconds["fast"]], [large / s for s in seconds["plain"]]
    shares = [rate / peak for rate, peak in zip(rates, peaks, strict=True)]
    name = f"forward FLOP/s, {size.name}, against a {width} x {width} product"
    return make_row(name, (rates, peaks), shares, 0.5, "FLOP/s")


def make_learners(size: Size) -> tuple[dict[str, Learner], TrainState, Frame]:
    """The fast and the plain network's Learners, and the state and frames of a step."""
    game, optimizer = get_game(size.game), make_optimizer(1e-3)
    networks = {"fast": make_gateau(game, size.config), "plain": make_reference(game, size.config)}
    learners = {k: make_learner(game, n, policy_value_loss, optimizer) for k, n in networks.items()}
    state = learners["fast"].init(networks["fast"].init(jax.random.key(0)))
    return learners, state, frames_of(game, random_positions(game, BATCH))


def training_rows(rounds: int) -> Iterator[Row]:
    """Rows of optimizer steps, of action values against a token transformer's, and of training from the window."""
    for size in SIZES:
        learners, state, frames = make_learners(size)
        calls = {k: partial(jax.jit(learner.step), state, frames) for k, learner in learners.items()}
        yield compare(f"optimizer step, {size.name}", in_turns(calls, rounds), size.training)
    for name in TOKEN_SIZES:
        yield token_row(name, rounds)
    yield window_row(rounds)


def token_row(size: str, rounds: int) -> Row:
    """The row of an optimizer step by number of action values: a token transformer's as a multiple of GATEAU's.

    A forward pass of GATEAU values all legal moves of a board, one of a token transformer a single move.
    """
    game = get_game("gardner_chess")
    positions = random_positions(game, BATCH)
    legal = legal_edge_mask(game, positions).sum(axis=-1)
    slots = {"fast": jnp.arange(game.max_legal_moves), "plain": jnp.zeros(1, jnp.int32)}
    heads: Any = {"action_values": True, "num_bins": 32}
    configs = {
        "fast": dataclasses.replace(QUICKSTART, **heads),
        "plain": TokenTransformerConfig(size=size, policy_head=False, value_head="none", **heads),  # pyright: ignore
    }
    calls, num_values = {}, {}
    for name, config in configs.items():
        known = slots[name] < legal[:, None]
        labels = {ACTION_VALUE: jnp.full(known.shape, 0.5), ACTION_KNOWN: known}
        labels |= {ACTION_SLOT: jnp.zeros((BATCH, 1), jnp.int32)} if name == "plain" else {}
        network, frames = make_network(game, config), frames_of(game, positions)._replace(extra=labels)
        learner = make_learner(game, network, LOSSES["action_value_hl_gauss"].terms, make_optimizer(1e-3))
        state, step = learner.init(network.init(jax.random.key(0))), jax.jit(learner.step)
        calls[name], num_values[name] = partial(step, state, frames), int(known.sum())
    seconds = {name: [x / num_values[name] for x in times] for name, times in in_turns(calls, rounds).items()}
    title = f"an action value learnt, 5x5, GATEAU of quickstart size against tokens {size}"
    return compare(title, seconds, TOKEN_SIZES[size])


def compilation_rows(rounds: int) -> Iterator[Row]:
    """Rows of seconds to trace and compile an optimizer step, as a multiple of the plain network's."""
    for size in SIZES:
        learners, state, frames = make_learners(size)
        seconds: dict[str, list[float]] = {name: [] for name in learners}
        for _ in range(rounds):
            for name, learner in learners.items():
                seconds[name].append(seconds_to_compile(learner, state, frames))
        yield compare(f"compiling the optimizer step, {size.name}", seconds, -1.5)


def seconds_to_compile(learner: Learner, *inputs: Any) -> float:
    """Seconds to trace and compile a step, without caches."""
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # or the option has no effect after the first compilation
    jax.clear_caches()
    start = time.perf_counter()
    jax.jit(learner.step).lower(*inputs).compile()
    seconds = time.perf_counter() - start
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()
    return seconds


def window_row(rounds: int) -> Row:
    """The row of frames/s of training from the window against forward and backward passes of a ready batch."""
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
    rest = statistics_of(state.variables)
    one = jax.tree.map(lambda x: x[:batch], frames)
    calls = {"fast": partial(epoch, state, window), "plain": partial(gradient, params, rest, one)}
    seconds = in_turns(calls, rounds)
    paces, references = [4 * batch / s for s in seconds["fast"]], [batch / s for s in seconds["plain"]]
    ratios = [pace / reference for pace, reference in zip(paces, references, strict=True)]
    return make_row("training frames/s, 5x5, quickstart size", (paces, references), ratios, 0.9, "1/s")
