"""What play costs beside self-play, in turns in one process: python benchmarks/play_speed.py CHECKPOINT [--game NAME]

Prints evaluations/s of the search that grows (16 leaves at a time), as a share of what self-play's search reaches with
16 games and 16 simulations, and the share of its time in the device call; then how long after `stop` the answer came,
in batches: 1 is the batch in progress. On a machine with other work the quickest rounds say more than the median.
"""

import argparse
import statistics
import time
from pathlib import Path

import jax
import numpy as np
from throughput.ratios import in_turns

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import network_config
from alphagateau.play.opponents import player_of
from alphagateau.play.thinking import Limits, Thinker, Watch, make_thinker, replay, think
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.search.growing.anytime import grow_once, is_done, start_tree
from alphagateau.search.growing.tree import BATCH
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search

SIMULATIONS = 16  # of self-play's search


def calls(thinker: Thinker, search, leaves: int) -> dict:
    """A tree of so many leaves, the device's part of it alone, and self-play's search of as many evaluations."""
    game, tree = thinker.game, thinker.tree
    state = replay(thinker, game.start_fen, ()).state
    states = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], BATCH, axis=0), state)
    edges = np.full(BATCH, state.legal_edges[0], np.int32)
    keys, variables = jax.random.split(jax.random.key(0), BATCH), tree.variables
    plays = jax.jit(search)

    def grown() -> None:
        start_tree(tree, state)
        done = 0
        while done < leaves and not is_done(tree):
            done += grow_once(tree, min(BATCH, leaves - done), leaves)

    def device() -> None:
        for _ in range(leaves // BATCH):
            jax.tree.map(np.asarray, tree.evaluate(variables, states, edges))

    def selfplay() -> None:
        for _ in range(leaves // (BATCH * SIMULATIONS)):
            jax.block_until_ready(plays(variables, keys, states))

    return {"grown": grown, "device": device, "selfplay": selfplay}


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
    parser.add_argument("--leaves", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    use_compilation_cache()
    found = newest_checkpoint(args.checkpoint)
    thinker = make_thinker(player_of(found), args.game, 256)
    network = make_network(thinker.game, network_config(found))
    search = make_search(thinker.game, network, GumbelConfig(num_simulations=SIMULATIONS))
    seconds = in_turns(calls(thinker, search, args.leaves), args.rounds)
    for name in ("selfplay", "device"):
        ratios = [b / a for a, b in zip(seconds["grown"], seconds[name], strict=True)]
        least = min(seconds[name]) / min(seconds["grown"])
        print(f"{name} / grown: median {statistics.median(ratios):.2f}, of the quickest rounds {least:.2f}")
    batch, late = statistics.median(seconds["device"]) / (args.leaves // BATCH), seconds_after_stop(thinker, 50)
    print(f"after stop, in batches: median {statistics.median(late) / batch:.1f}, greatest {max(late) / batch:.1f}")


if __name__ == "__main__":
    main()
