"""AlphaZero in one file: self-play by Gumbel search, a window of frames, gradient steps, a match at the end.

    python examples/minimal_alphazero.py --iterations 16

learns 5x5 Gardner chess on a laptop's processor. Each part is a record of pure functions; put your own in its place.
"""

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import alphagateau

NUM_GAMES, NUM_PLIES = 64, 64  # of self-play, an iteration
WINDOW, BATCH, STEPS = 32_768, 256, 48  # frames kept, frames a step, steps an iteration

game = alphagateau.make_game("gardner_chess")
network = alphagateau.make_network(game, {"architecture": "gateau", "hidden_size": 32, "num_blocks": 2})
search = alphagateau.make_search(game, network, {"algorithm": "gumbel", "num_simulations": 16})
selfplay = alphagateau.make_selfplay(game, search, NUM_GAMES, NUM_PLIES, td_lambda=0.9)
learner = alphagateau.make_learner(game, network, "policy_value", optax.adam(2e-3))
play, step = jax.jit(selfplay.play), jax.jit(learner.step)


class FrameWindow:
    """The newest frames, on the host; those of an unknown result train the policy alone."""

    def __init__(self) -> None:
        self.frames: Any = None

    def add(self, new: Any) -> None:
        new = jax.tree.map(np.asarray, new)
        old = new if self.frames is None else jax.tree.map(lambda a, b: np.concatenate([a, b]), self.frames, new)
        self.frames = jax.tree.map(lambda x: x[-WINDOW:], old)

    def sample(self, rng: np.random.Generator) -> Any:
        chosen = rng.integers(len(self.frames.value_target), size=BATCH)
        return jax.tree.map(lambda x: x[chosen], self.frames)


def train(num_iterations: int, seed: int) -> Any:
    """Variables of a network after some iterations of self-play and gradient steps."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    state, states, window = learner.init(network.init(key)), selfplay.init(), FrameWindow()
    began = 0.0
    for iteration in range(num_iterations):
        states, frames = play(state.variables, jax.random.fold_in(key, iteration), states)
        window.add(frames)
        for _ in range(STEPS):
            state, metrics = step(state, window.sample(rng))
        began = began if iteration else time.monotonic()  # the first compiles
        losses = f"policy {metrics['policy_loss']:.3f}, value {metrics['value_loss']:.3f}"
        print(f"iteration {iteration + 1}: {losses}, {time.monotonic() - began:.0f} s after compiling", flush=True)
    return state.variables


def results(white: Any, black: Any, variables: Any, key: jax.Array, num_games: int) -> jax.Array:
    """1, 0 or -1 for White [B] of games between two searches; one that reaches the limit of plies is drawn."""

    def two_plies(carry: tuple[Any, jax.Array], key: jax.Array) -> tuple[tuple[Any, jax.Array], None]:
        states, result = carry
        for search, sign, seed in zip((white, black), (1, -1), jax.random.split(key), strict=True):
            keys = jax.random.split(seed, num_games)
            states = jax.vmap(game.step)(states, search(variables, keys, states).edge)
            result += sign * states.reward  # of the player who moved: 1 for checkmate
        return (states, result), None

    start = alphagateau.make_selfplay(game, white, num_games, 1).init(), jnp.zeros(num_games)
    (_, result), _ = jax.lax.scan(two_plies, start, jax.random.split(key, game.max_plies // 2))
    return result


def score(variables: Any, num_games: int, seed: int) -> float:
    """Points a game against uniformly random moves, half of the games with each color."""
    trained = alphagateau.make_search(game, network, {"num_simulations": 16, "gumbel_scale": 0.0})
    random = alphagateau.make_search(game, network, {"algorithm": "random"})
    match = jax.jit(results, static_argnums=(0, 1, 4))
    as_white = match(trained, random, variables, jax.random.key(seed), num_games // 2)
    as_black = -match(random, trained, variables, jax.random.key(seed + 1), num_games // 2)
    return float((jnp.concatenate([as_white, as_black]) + 1).mean() / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"score against the random mover: {score(train(args.iterations, args.seed), 64, args.seed):.3f} of 64 games")


if __name__ == "__main__":
    main()
