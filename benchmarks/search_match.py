"""The search that grows against Gumbel MuZero at equal time: python benchmarks/search_match.py CHECKPOINT

The same network on both sides, `--seconds` a move, games in pairs with the colors swapped, a sequential test of the
growing search against the other. Gumbel MuZero fixes its simulations in advance: against a clock it is a chain of
searches, each twice the size of the one before, as long as the next should end in time; the last one's move is played.
"""

import argparse
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.games.notation import edge_to_uci, outcome
from alphagateau.matches.openings import make_openings
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import load_weights, network_config
from alphagateau.play.clock import fixed
from alphagateau.play.opponents import player_of
from alphagateau.play.thinking import Limits, Played, Thinker, choose, make_thinker, replay, think
from alphagateau.ratings.sprt import pentanomial, sprt
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search

SIZES = (8, 16, 32, 64, 128)  # simulations of Gumbel MuZero

Mover = Callable[[Played], int]  # the edge to play


def growing(thinker: Thinker, limits: Limits, sizes: list[int]) -> Mover:
    def move(played: Played) -> int:
        _, done = think(thinker, played, limits)
        sizes.append(done)
        edge = choose(thinker, played)
        return int(played.state.legal_edges[0]) if edge is None else edge

    return move


def gumbel(thinker: Thinker, checkpoint: Path, limits: Limits, sizes: list[int]) -> Mover:
    game, found = thinker.game, newest_checkpoint(checkpoint)
    network, variables = make_network(game, network_config(found)), load_weights(found, thinker.game.name)
    keys, timed = jax.random.split(jax.random.key(0), 1), defaultdict(lambda: deque(maxlen=15))

    def compiled(size: int):
        config = GumbelConfig(num_simulations=size, gumbel_scale=0.0, **thinker.tree.sigma._asdict())
        return jax.jit(make_search(game, network, config))

    searches = {size: compiled(size) for size in ([limits.simulations] if limits.simulations else SIZES)}

    def search(size: int, played: Played) -> int:
        states = jax.tree.map(lambda x: np.asarray(x)[None], played.state)
        started = time.monotonic()
        edge = int(searches[size](variables, keys, states).edge[0])
        timed[size].append(time.monotonic() - started)
        return edge

    def move(played: Played) -> int:
        started, edge, last = time.monotonic(), -1, 0
        for size in searches:
            ends = time.monotonic() - started + statistics.median(timed[size])
            if last and limits.budget and ends > limits.budget.target:
                break
            edge, last = search(size, played), size
        sizes.append(last)
        return edge

    for size in searches:
        for _ in range(6):
            search(size, replay(thinker, game.start_fen, ()))
        for _ in range(2):
            timed[size].remove(max(timed[size]))  # the compiler's, and one more
    return move


def play(thinker: Thinker, movers: tuple[Mover, Mover], line: tuple[str, ...]) -> tuple[float, int]:
    """(Points of the player of the first mover, who has white; plies) of a game after an opening's line."""
    played = replay(thinker, thinker.game.start_fen, line)
    while (result := outcome(thinker.game, played.state)[0]) == "*":
        edge = movers[len(played.moves) % 2](played)
        move = edge_to_uci(thinker.game, played.state, edge)
        played = replay(thinker, played.fen, [*played.moves, move], played)
    return {"1-0": 1.0, "0-1": 0.0}.get(result, 0.5), len(played.moves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--game", default="gardner_chess")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--simulations", type=int, nargs=2, metavar=("GROWING", "GUMBEL"), help="in place of a time")
    parser.add_argument("--pairs", type=int, default=500, help="the most that are played")
    parser.add_argument("--elo1", type=float, default=30.0, help="of the test; elo0 is 0")
    parser.add_argument("--all", action="store_true", help="play all pairs, whatever the test says of fewer")
    args = parser.parse_args()
    use_compilation_cache()
    thinker = make_thinker(player_of(newest_checkpoint(args.checkpoint)), args.game, 256)
    ours, theirs = [], []
    timed = Limits(budget=fixed(args.seconds, 0.0))
    limits = [Limits(number) for number in args.simulations] if args.simulations else [timed, timed]
    movers = growing(thinker, limits[0], ours), gumbel(thinker, args.checkpoint, limits[1], theirs)
    points = []
    for _, _, line in make_openings(thinker.game, args.pairs, 4, 0):
        first, plies = play(thinker, movers, line)
        second, _ = play(thinker, (movers[1], movers[0]), line)
        points.append(first + 1 - second)
        found = sprt(pentanomial(points), 0, args.elo1)
        elo, lower, upper, *_ = found.strength
        print(
            f"pairs {len(points)}, score {np.mean(points) / 2:.3f}, elo {elo:.0f} ({lower:.0f} to {upper:.0f}), "
            f"llr {found.llr:.2f}, {found.decision}; simulations a "
            f"move: {np.mean(ours):.0f} growing, {np.mean(theirs):.0f} Gumbel; {plies} plies",
            flush=True,
        )
        if found.decision != "continue" and not args.all:
            return


if __name__ == "__main__":
    main()
