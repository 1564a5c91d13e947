"""Minimax search: variables, keys and States in, the best moves and the lines that show it out.

The trees grow by the probability of their lines (Lai 2015, section 5) or by depth, for all games together
(`node_pool.py`); then captures, promotions and checks are followed (`quiescence.py`), and values backed up
(`minimax_values.py`). Nothing is cut: alpha-beta would find the same values, one position at a time.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.actions import choose as edges_in
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network, Variables
from alphagateau.search.minimax.node_pool import (
    FULL,
    Evaluate,
    Growth,
    Nodes,
    Trees,
    grow,
    plant,
    queue_of,
    rows_of,
    waiting,
)
from alphagateau.search.minimax.quiescence import make_quiet_choice
from alphagateau.search.minimax.values import back_up, last_of_line, root_move_values, without_distance
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states, softmax_over_legal

BATCH = 256  # children made in a round, at most
MAIN_SHARE = 2 / 3  # of a game's nodes; quiescence has the rest
LEAST_PROBABLE = 1e-30  # of lines that are gone on with; a policy may leave a move none

FAR = 2**20  # plies: no limit


class _Limits(NamedTuple):
    """How far trees grow."""

    num_nodes: int  # of a game
    main_nodes: int  # of them, in the tree proper
    depth: int  # plies of the tree proper
    threshold: float  # of the probability of its lines; 0: all alike
    quiescence_plies: int


def make_minimax_search(
    game: Game,
    network: Network,
    *,
    num_nodes: int,
    depth: int | None = None,
    threshold: float = 0.0,
    split: str = "uniform",
    quiescence_plies: int = 6,
    temperature: float = 0.0,
) -> Search:
    """A search of at most `num_nodes` positions of each game, roots always by all their moves.

    `depth`: the tree proper has all lines of so many plies. None: it grows by probability, the likeliest lines first,
    to those of `threshold`; a move has a share of its position's probability, by `split` that of the network's policy
    ("prior") or an equal one ("uniform"). `temperature`: of the improved policy, softmax(value / temperature); 0: the
    best move alone. The output's `leaf` is the last State of the principal variation.
    """
    limits = _Limits(
        num_nodes=num_nodes,
        main_nodes=round(MAIN_SHARE * num_nodes) if quiescence_plies else num_nodes,
        depth=FAR if depth is None else depth,
        threshold=max(threshold, LEAST_PROBABLE) if depth is None else 0.0,
        quiescence_plies=quiescence_plies,
    )
    room = max(num_nodes, game.max_legal_moves + 1)

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del keys
        rows = len(states.ply)
        batch = max(game.max_legal_moves, min(BATCH, 16 * rows))
        evaluate = _make_evaluate(game, network, variables, split)
        trees = plant(evaluate, states, quiescence_plies + 1, rows * room + batch)
        trees = _grow(game, evaluate, limits, batch, trees)
        return _read(game, network, variables, trees, states, temperature)

    return search


def _make_evaluate(game: Game, network: Network, variables: Variables, split: str) -> Evaluate:
    def evaluate(states: State) -> tuple[Array, Array]:
        logits, value = evaluate_states(game, network, variables, states)
        if split == "uniform":
            number = (states.legal_edges >= 0).sum(axis=-1, keepdims=True)
            return 1 / jnp.maximum(number, 1).astype(jnp.float32), value
        return softmax_over_legal(logits), value

    return evaluate


def _grow(game: Game, evaluate: Evaluate, limits: _Limits, batch: int, trees: Trees) -> Trees:
    """The tree proper wave after wave, then quiescence as the last one; one loop, so that it is compiled once.

    A wave goes on with the lines whose probability is at least the highest power of two that any of them reaches.
    """
    quiet_choice = make_quiet_choice(game, limits.quiescence_plies)

    def is_left(nodes: Nodes) -> Array:
        return (nodes.depth < limits.depth) & (nodes.probability >= limits.threshold)

    def one_wave(carry: tuple[Trees, Array, Array]) -> tuple[Trees, Array, Array]:
        trees, is_quiet, _ = carry
        trees = trees._replace(is_open=trees.is_open | is_quiet)
        left = waiting(trees, is_left)
        _, exponent = jnp.frexp(jnp.max(jnp.where(left, trees.nodes.probability, 0.0)))  # of a half or more, below 1
        level = jnp.ldexp(jnp.float32(0.5), exponent) if limits.threshold else 0.0

        def goes_on(nodes: Nodes) -> Array:
            return jnp.where(is_quiet, nodes.quiet > 0, is_left(nodes) & (nodes.probability >= level))

        growth = Growth(
            choose=lambda nodes: jax.lax.cond(is_quiet, lambda: quiet_choice(nodes), lambda: _all_moves(nodes)),
            goes_on=goes_on,
            width=2 * batch,
            batch=batch,
            max_nodes=jnp.where(is_quiet, limits.num_nodes, limits.main_nodes),
        )
        trees = grow(game, evaluate, growth, trees, queue_of(waiting(trees, goes_on)))
        is_next_quiet = ~waiting(trees, is_left).any()
        return trees, is_next_quiet, is_quiet | (is_next_quiet & (limits.quiescence_plies == 0))

    start = trees, ~waiting(trees, is_left).any(), jnp.bool_(False)
    return jax.lax.while_loop(lambda carry: ~carry[2], one_wave, start)[0]


def _all_moves(nodes: Nodes) -> tuple[Array, Array, Array]:
    return nodes.states.legal_edges >= 0, jnp.full(nodes.quiet.shape, FULL), nodes.quiet


def _read(
    game: Game, network: Network, variables: Variables, trees: Trees, states: State, temperature: float
) -> SearchOutput:
    """What the trees say of their roots."""
    rows, backed = len(states.ply), back_up(trees)
    logits, value = evaluate_states(game, network, variables, states)
    is_legal = states.legal_edges >= 0
    slot = jnp.where(backed.goes_on[:rows], trees.nodes.slot[backed.best[:rows]], 0)
    values = root_move_values(trees, backed, is_legal.shape[1])
    if temperature:
        weights = softmax_over_legal(jnp.where(jnp.isneginf(values), ILLEGAL, values / temperature))
    else:
        weights = jax.nn.one_hot(slot, is_legal.shape[1])
    return SearchOutput(
        edge=edges_in(states, slot),
        action_weights=jnp.where(is_legal, weights, 0.0),
        prior_logits=logits,
        value=value,
        search_value=without_distance(backed.value[:rows]),
        leaf=rows_of(trees.nodes.states, last_of_line(backed, rows)),
        move_values=values,
        num_nodes=trees.used,
    )
