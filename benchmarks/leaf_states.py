"""Times minimax with leaves that compute no legal moves and keys: python benchmarks/leaf_states.py

Searches one ply of 64 positions with Giraffe's network, by the usual program and by one whose leaves are boards with
rights and clocks; they still store a State. Neither expands a leaf. The two take turns; a ratio is that of their times
in one round. Then searches 2 048 nodes a position with quiescence, as Giraffe plays, and counts the nodes whose legal
moves are not used: those at the end of quiescence, and those that are left when the nodes have run out.
"""

import dataclasses
import statistics
from functools import partial

import jax
import jax.numpy as jnp
from throughput.ratios import in_turns

from alphagateau.games.edges import make_edges
from alphagateau.games.entries import GAMES
from alphagateau.games.moves import move
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State, stack_rows
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import make_openings
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.networks.giraffe.network import make_giraffe
from alphagateau.search.minimax import minimax
from alphagateau.search.minimax.config import DepthConfig, ProbabilityConfig

POSITIONS, ROUNDS, NODES, QUIESCENCE_PLIES = 64, 15, 2048, 6


def without_states(game: Game) -> Game:
    """The game whose moves lead to bare boards."""
    entry = GAMES[game.name]
    edges = make_edges(entry)

    def step(state: State, edge: Array) -> State:
        after = move(entry, edges, state, edge)
        bare = state._replace(
            boards=jnp.zeros_like(state.boards).at[0].set(after.board.astype(jnp.int8)),
            color=1 - state.color,
            castling=after.castling,
            en_passant=after.en_passant.astype(jnp.int8),
            halfmove_count=after.halfmove_count.astype(jnp.int16),
            ply=state.ply + 1,
            legal_edges=jnp.full_like(state.legal_edges, -1),
            reward=jnp.zeros_like(state.reward),
        )
        return jax.lax.optimization_barrier(bare)  # else each feature computes the board anew

    return dataclasses.replace(game, step=step)


def main() -> None:
    for name in ("gardner_chess", "chess"):
        game = get_game(name)
        network = make_giraffe(game, GiraffeConfig())
        variables = network.init(jax.random.key(0))
        states = stack_rows([opening.state for opening in make_openings(game, POSITIONS, 12, seed=1)])

        def one_ply(game: Game, network=network, variables=variables, states=states):
            nodes = 1 + game.max_legal_moves
            search = minimax.make_minimax_search(
                game, network, DepthConfig(depth=1, num_nodes=nodes, quiescence_plies=0)
            )
            run = jax.jit(lambda states: search(variables, jax.random.split(jax.random.key(0), POSITIONS), states))
            return lambda: jax.block_until_ready([run(states).search_value for _ in range(10)])

        seconds = in_turns({"states": one_ply(game), "boards": one_ply(without_states(game))}, ROUNDS)
        ratios = sorted(a / b for a, b in zip(seconds["states"], seconds["boards"], strict=True))
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f} in {ROUNDS} rounds"
        print(f"{name}: without legal moves {statistics.median(ratios):.2f} times as fast ({spread})")

        evaluate = partial(minimax._evaluate, game, network, variables, "uniform")
        config = ProbabilityConfig(num_nodes=NODES, split="uniform", quiescence_plies=QUIESCENCE_PLIES)
        start = minimax.init_trees(evaluate, states, QUIESCENCE_PLIES + 1, POSITIONS * NODES + minimax.BATCH)
        trees = jax.jit(partial(minimax._grow, game, evaluate, config, minimax.BATCH))(start)
        is_node = jnp.arange(len(trees.expansion)) < trees.count
        is_open = trees.is_open[trees.nodes.game]
        unasked = is_node & (trees.expansion == 0) & ((trees.nodes.quiet == 0) | ~is_open)
        print(f"  of {int(is_node.sum())} nodes {float(unasked.sum() / is_node.sum()):.2f} need no legal moves")


if __name__ == "__main__":
    main()
