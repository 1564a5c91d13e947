"""Minimax search by the probability of lines (Lai 2015, section 5) or by depth, of a batch of games.

The main trees of all games grow together (`node_pool.py`); then quiescence follows captures, promotions and checks, and
values are backed up (`values.py`). There is no pruning: alpha-beta would find the same values, one position at a time.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edge_at
from alphagateau.games.attacks import PIECE_VALUES, attack_maps
from alphagateau.games.entries import KING, PAWN
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network, Variables
from alphagateau.networks.trained import SPLITS, load_policy, with_policy
from alphagateau.search.minimax.config import MinimaxConfig
from alphagateau.search.minimax.node_pool import (
    FULL,
    QUIET,
    Growth,
    NodeEvaluator,
    Nodes,
    Trees,
    frontier,
    grow,
    init_trees,
    take_nodes,
)
from alphagateau.search.minimax.values import back_up, last_of_line, root_move_values, without_distance
from alphagateau.search.search import ILLEGAL, Search, SearchOutput, evaluate_states, softmax_over_legal

BATCH = 256  # most children of a round
MAIN_SHARE = 2 / 3  # of a game's nodes; quiescence has the rest


def make_minimax_search(game: Game, network: Network, config: MinimaxConfig, tie_break: None = None) -> Search:
    """Makes a search that expands each root by all its moves, and then the most probable lines or all of a length.

    Raises CheckpointError if `config.split` is no path of a checkpoint.
    """
    split = config.split
    if split not in SPLITS:
        network, split = with_policy(network, *load_policy(Path(split), game, config.average_mirrors)), "prior"
    room = max(config.num_nodes, game.max_legal_moves + 1)

    def search(variables: Variables, keys: Array, states: State) -> SearchOutput:
        del keys
        rows = len(states.ply)
        batch = max(game.max_legal_moves, min(BATCH, 16 * rows))
        evaluate = partial(_evaluate, game, network, variables, split)
        trees = init_trees(evaluate, states, config.quiescence_plies + 1, rows * room + batch)
        trees = _grow(game, evaluate, config, batch, trees)
        return _make_output(game, network, variables, trees, states, config.temperature)

    return search


def _evaluate(game: Game, network: Network, variables: Variables, split: str, states: State) -> tuple[Array, Array]:
    logits, value = evaluate_states(game, network, variables, states)
    if split == "uniform":
        number = (states.legal_edges >= 0).sum(axis=-1, keepdims=True)
        return 1 / jnp.maximum(number, 1).astype(jnp.float32), value
    return softmax_over_legal(logits), value


def _grow(game: Game, evaluate: NodeEvaluator, config: MinimaxConfig, batch: int, trees: Trees) -> Trees:
    """Grows the main tree in waves, then quiescence as the last one, in one loop that is compiled once.

    A wave expands the lines whose probability is at least the highest power of two that any open line reaches.
    """
    plies = config.quiescence_plies
    main_nodes = round(MAIN_SHARE * config.num_nodes) if plies else config.num_nodes

    def is_in_main_tree(nodes: Nodes) -> Array:
        return (nodes.depth < config.depth) & (nodes.probability >= config.least_probability)

    def one_wave(carry: tuple[Trees, Array, Array]) -> tuple[Trees, Array, Array]:
        trees, is_quiet, _ = carry
        trees = trees._replace(is_open=trees.is_open | is_quiet)
        leaves = frontier(trees, is_in_main_tree)
        _, exponent = jnp.frexp(jnp.max(jnp.where(leaves, trees.nodes.probability, 0.0)))  # of a half or more, below 1
        level = jnp.ldexp(jnp.float32(0.5), exponent) if config.least_probability else 0.0

        def is_expandable(nodes: Nodes) -> Array:
            return jnp.where(is_quiet, nodes.quiet > 0, is_in_main_tree(nodes) & (nodes.probability >= level))

        def all_moves(nodes: Nodes) -> tuple[Array, Array, Array]:
            return nodes.states.legal_edges >= 0, jnp.full(nodes.quiet.shape, FULL), nodes.quiet

        growth = Growth(
            choose=partial(jax.lax.cond, is_quiet, partial(quiet_choice, game, plies), all_moves),
            is_expandable=is_expandable,
            batch=batch,
            max_nodes=jnp.where(is_quiet, config.num_nodes, main_nodes),
        )
        trees = grow(game, evaluate, growth, trees)
        is_next_quiet = ~frontier(trees, is_in_main_tree).any()
        return trees, is_next_quiet, is_quiet | (is_next_quiet & (plies == 0))

    start = trees, ~frontier(trees, is_in_main_tree).any(), jnp.bool_(False)
    return jax.lax.while_loop(lambda carry: ~carry[2], one_wave, start)[0]


def noisy_moves(game: Game, state: State) -> tuple[Array, Array]:
    """(slots of a State's noisy moves bool [S], whether the player to move is in check).

    Noisy are promotions to a queen, and captures of an undefended piece or one of at least the capturer's worth; an
    under-promotion is neither. Whether the victim is defended is read before the move.
    """
    board, edge = state.boards[0].astype(jnp.int32), state.legal_edges.astype(jnp.int32)
    sender, receiver, promotion = (jnp.asarray(x)[edge] for x in (game.senders, game.receivers, game.promotions))
    maps, mover, victim = attack_maps(game.size, board), board[sender], -board[receiver]
    is_pawn = mover == PAWN
    victim = jnp.where(is_pawn & (receiver == state.en_passant), PAWN, jnp.maximum(victim, 0))
    worth, is_defended = jnp.asarray(PIECE_VALUES), maps.count[1][receiver] > 0
    is_good = (victim > 0) & ((worth[victim] >= worth[mover]) | ~is_defended)
    is_queening = is_pawn & (receiver % game.size == game.size - 1)
    is_noisy = (edge >= 0) & (promotion == 0) & (is_good | is_queening)
    return is_noisy, ((board == KING) & (maps.count[1] > 0)).any()


def quiet_choice(game: Game, num_plies: int, nodes: Nodes) -> tuple[Array, Array, Array]:
    """`Growth.choose` of quiescence: all moves of a main-tree leaf in check, else the noisy ones."""
    is_noisy, in_check = jax.vmap(partial(noisy_moves, game))(nodes.states)
    is_extended = in_check & (nodes.quiet > num_plies)
    mask = jnp.where(is_extended[:, None], nodes.states.legal_edges >= 0, is_noisy)
    left = jnp.minimum(nodes.quiet, num_plies)
    return mask, jnp.where(is_extended, FULL, QUIET), jnp.where(is_extended, left, left - 1)


def _make_output(
    game: Game, network: Network, variables: Variables, trees: Trees, states: State, temperature: float
) -> SearchOutput:
    """The SearchOutput of grown trees."""
    rows, backed = len(states.ply), back_up(trees)
    logits, value = evaluate_states(game, network, variables, states)
    is_legal = states.legal_edges >= 0
    slot = jnp.where(backed.has_best[:rows], trees.nodes.slot[backed.best[:rows]], 0)
    values = root_move_values(trees, backed, is_legal.shape[1])
    if temperature:
        weights = softmax_over_legal(jnp.where(jnp.isneginf(values), ILLEGAL, values / temperature))
    else:
        weights = jax.nn.one_hot(slot, is_legal.shape[1])
    return SearchOutput(
        edge=edge_at(states, slot),
        action_weights=jnp.where(is_legal, weights, 0.0),
        prior_logits=logits,
        value=value,
        search_value=without_distance(backed.value[:rows]),
        leaf=take_nodes(trees.nodes.states, last_of_line(backed, rows)),
        move_values=values,
        num_nodes=trees.used,
    )
