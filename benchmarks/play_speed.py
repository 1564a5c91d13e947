"""The pace of the search that grows, in turns in one process: python benchmarks/play_speed.py CHECKPOINT [--game NAME]

Prints its pace as a multiple of that with all leaves evaluated in batches of 16 ("whole"), and as a share of the
network's own at the same batches, from the start and in endgames; then as a share of what self-play's search reaches
with 16 games and 16 simulations; last how long after `stop` the answer came, in batches: 1 is the batch in progress. On
a machine with other work CPU time says more than the clock.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from alphagateau.bench.ratios import in_turns
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.games.notation import from_fen
from alphagateau.games.rules import reward_and_discount
from alphagateau.games.state import State, pad_rows, stack_rows
from alphagateau.games.variants import get_endless_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Network
from alphagateau.networks.trained import network_config
from alphagateau.play.opponents import player_of
from alphagateau.play.thinking import Limits, Thinker, Watch, make_thinker, replay, think
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.search.growing.anytime import grow, start_tree
from alphagateau.search.growing.evaluate import batch_sizes, make_evaluate
from alphagateau.search.growing.tree import BATCH, Evaluate, Leaves, Tree, make_tree
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search
from alphagateau.search.search import evaluate_states

SIMULATIONS = 16  # of self-play's search
CLOCKS = {"CPU": time.process_time, "clock": time.perf_counter}
NOW: Any = lambda: np.array([clock() for clock in CLOCKS.values()])  # noqa: E731
ENDGAMES = {
    "chess": {
        "queen": "8/5k2/8/8/3Q4/8/2K5/8 w - - 0 1",
        "rooks": "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "pawns": "8/8/1p1k4/p1p2p2/P1P2P1p/1P1K3P/8/8 w - - 0 1",
    },
    "gardner_chess": {"queen": "k4/5/q4/1P3/4K w - - 0 1", "pawns": "4k/1p3/p4/PP3/3K1 w - - 0 1"},
}


def evaluate_whole_batches(thinker: Thinker, network: Network) -> Evaluate:
    """The evaluation of every leaf, in batches of 16, and of the root alone, each by one program."""
    rules = get_endless_game(thinker.game.name)

    @jax.jit
    def root(variables, states: State) -> tuple:
        return states, *evaluate_states(rules, network, variables, states), np.zeros(1), np.ones(1)

    @jax.jit
    def leaves(variables, states: State, edges) -> tuple:
        after = jax.vmap(rules.step)(states, edges)
        return after, *evaluate_states(rules, network, variables, after), *reward_and_discount(states, after)

    def evaluate(variables, states: State, edges: Any, known: Any) -> Leaves:
        if edges is None:
            return Leaves(*jax.device_get(root(variables, states)))
        rows = np.resize(np.arange(len(edges)), BATCH)
        found = jax.device_get(leaves(variables, jax.tree.map(lambda x: x[rows], states), edges[rows]))
        return Leaves(*jax.tree.map(lambda x: x[: len(edges)], found))

    return evaluate


class Paces:
    """A search as it is, the same with whole batches, and the network alone in the batches of the first."""

    def __init__(self, thinker: Thinker, network: Network):
        self.tree, self.sizes = thinker.tree, []
        game, variables, rules = thinker.game, thinker.tree.variables, get_endless_game(thinker.game.name)

        def recorded(num_rows: int) -> list[int]:
            self.sizes.extend(batch_sizes(num_rows))
            return batch_sizes(num_rows)

        recording = make_evaluate(rules, network, recorded)
        self.recording = make_tree(game, recording, variables, 4096, thinker.tree.known is None)
        self.whole = make_tree(game, evaluate_whole_batches(thinker, network), variables, 4096)
        self.apply = jax.jit(partial(evaluate_states, rules, network))

    def calls(self, state: State, simulations: int) -> dict[str, Callable[[], None]]:
        def grown(tree: Tree) -> None:
            start_tree(tree, state)
            grow(tree, simulations)

        self.sizes.clear()
        grown(self.recording)
        batches = [stack_rows(pad_rows([state], size)) for size in self.sizes]

        def alone() -> None:
            for states in batches:
                jax.device_get(self.apply(self.tree.variables, states))

        return {"grown": partial(grown, self.tree), "whole": partial(grown, self.whole), "network": alone}


def selfplay(thinker: Thinker, network: Network, simulations: int) -> dict[str, Callable[[], None]]:
    """A search from the start, and self-play's search of as many evaluations."""
    tree, state = thinker.tree, thinker.game.init()
    search = jax.jit(make_search(thinker.game, network, GumbelConfig(num_simulations=SIMULATIONS)))
    keys, states = jax.random.split(jax.random.key(0), BATCH), stack_rows(pad_rows([state], BATCH))

    def grown() -> None:
        start_tree(tree, state)
        grow(tree, simulations)

    def played() -> None:
        for _ in range(simulations // (BATCH * SIMULATIONS)):
            jax.block_until_ready(search(tree.variables, keys, states))

    return {"grown": grown, "selfplay": played}


def ratios(calls: dict[str, Callable[[], None]], rounds: int) -> str:
    """Each other call's time over the first's: the median of the rounds, with the lowest and the highest."""
    seconds = {name: np.array(found) for name, found in in_turns(calls, rounds, NOW).items()}
    first, *others = seconds
    texts = []
    for other in others:
        for clock, found in zip(CLOCKS, (seconds[other] / seconds[first]).T, strict=True):
            texts.append(f"{other} {clock} {np.median(found):.2f} ({found.min():.2f} to {found.max():.2f})")
    return ", ".join(texts)


def seconds_after_stop(thinker: Thinker, rounds: int) -> list[float]:
    """Seconds from a stop, which comes at any time, to the end of the search."""
    played, rng, late = replay(thinker, thinker.game.start_fen, ()), np.random.default_rng(0), []
    for _ in range(rounds):
        thinker.root, at = None, time.monotonic() + rng.uniform(0.05, 0.3)
        think(thinker, played, Limits(), Watch(time.monotonic(), lambda at=at: time.monotonic() >= at))
        late.append(time.monotonic() - at)
    return late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--game", default="gardner_chess")
    parser.add_argument("--simulations", type=int, nargs="*", default=[64, 800])
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    use_compilation_cache()
    found = newest_checkpoint(args.checkpoint)
    thinker = make_thinker(player_of(found), args.game, 256)
    game, network = thinker.game, make_network(thinker.game, network_config(found))
    paces = Paces(thinker, network)
    for name, fen in {"start": game.start_fen, **ENDGAMES.get(game.name, {})}.items():
        for simulations in args.simulations:
            calls = paces.calls(from_fen(game, fen), simulations)
            print(f"{name}, {simulations}: {ratios(calls, args.rounds)}", flush=True)
    print(f"start, 512: {ratios(selfplay(thinker, network, 512), args.rounds)}", flush=True)
    late = [seconds / max(thinker.batch_cost.usual, 1e-9) for seconds in seconds_after_stop(thinker, 50)]
    print(f"after stop, in batches: median {statistics.median(late):.1f}, greatest {max(late):.1f}")


if __name__ == "__main__":
    main()
