"""Plays games by a search, and records their plies as trajectories."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.config import SelfPlayConfig
from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import Array, State
from alphagateau.games.symmetry import select
from alphagateau.networks.network import Variables
from alphagateau.search.search import ILLEGAL, MAX_VALUE, Search, SearchOutput
from alphagateau.training.frames import Trajectory
from alphagateau.training.keys import BEGIN, FULL, OPENING, fold_in_rows
from alphagateau.training.selfplay.openings import StartPositions, sample_openings, sample_starts
from alphagateau.training.selfplay.resignation import LOST, NOT_LOST, RESIGNED, Resigning, begin_resigning, resign


class Games(NamedTuple):
    """B games in progress."""

    states: State
    resigning: Resigning | None = None  # None: nobody may resign


# (variables, key, rows [B], first_ply, Games [B]) -> (Games [B], Trajectory [T, B])
SelfPlay = Callable[[Variables, Array, Array, Array, Games], tuple[Games, Trajectory]]


def start_games(game: Game, num_games: int) -> State:
    """B games at the first position."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (num_games, *x.shape)), game.init())


class SelfPlayOptions(NamedTuple):
    """Options of self-play."""

    config: SelfPlayConfig = SelfPlayConfig(num_games=1, num_plies=1)  # on full searches, openings and resignation
    cheap_search: Search | None = None  # of the plies that are not searched in full, without noise
    starts: StartPositions | None = None  # None: games begin at the first position
    own_openings: bool = False  # each game's beginning is drawn anew, not once an iteration for each row
    with_leaves: bool = False  # the last position of each search's line is recorded


PLAIN = SelfPlayOptions()


def make_begin(game: Game, options: SelfPlayOptions, key: Array, rows: Array) -> Callable[[int | Array], Games]:
    """Ply -> Games [B]: new games of `rows` that begin at this ply; `key` is PLAY's.

    Whether a game begins after random plies is drawn for each game; its opening once a row and iteration or, as a
    search without noise plays but one game from a position, for each game (`own_openings`).
    """
    config = options.config

    def sample(key: Array) -> tuple[State, State]:
        """First States [B] of the rows, and those after random plies."""
        start = start_games(game, len(rows))
        if options.starts is not None:
            start = sample_starts(game, options.starts, config.start_moves, key, rows)
        if not config.random_openings:
            return start, start
        keys = fold_in_rows(jax.random.fold_in(key, OPENING), rows)
        return start, sample_openings(game, start, keys, config.opening_plies)

    shared = None if options.own_openings else sample(key)

    def begin(ply: int | Array) -> Games:
        states, opened = shared or sample(jax.random.fold_in(key, ply))
        if config.random_openings:
            keys = fold_in_rows(jax.random.fold_in(jax.random.fold_in(key, BEGIN), ply), rows)
            states = select(jax.vmap(jax.random.bernoulli, (0, None))(keys, config.random_openings), opened, states)
        return Games(states, begin_resigning(config, key, rows, ply) if config.resign_plies else None)

    return begin


def make_selfplay(game: Game, search: Search, num_plies: int, options: SelfPlayOptions = PLAIN) -> SelfPlay:
    """Plays B games for `num_plies` (T) plies; a game that ends is replaced by a new one, so each root is alive.

    `rows` are the games' numbers in the run: ply t of game r draws from fold_in(fold_in(key, t), r), on any device and
    in any division of plies into calls, of which `first_ply` is the first.

    KataGo draws for each ply of each game whether it is searched in full (playout cap randomization, Wu 2019, section
    3.1). Here a batch takes as long as its longest search, so one draw from the key and the ply is for all games of the
    run: devices agree on it, and a cheap ply is cheap. Games still differ in it, as they begin and end at different
    plies.
    """

    def play(variables: Variables, key: Array, rows: Array, first_ply: Array, games: Games):
        begin = make_begin(game, options, key, rows)

        def one_ply(games: Games, ply: Array) -> tuple[Games, Trajectory]:
            states, resigning = games
            keys = fold_in_rows(jax.random.fold_in(key, ply), rows)
            if options.cheap_search is None:
                found, is_full = search(variables, keys, states), None
            else:
                of_ply = jax.random.fold_in(jax.random.fold_in(key, FULL), ply)
                drawn = jax.random.bernoulli(of_ply, options.config.full_search_share)
                found = jax.lax.cond(drawn, search, options.cheap_search, variables, keys, states)
                is_full = jnp.broadcast_to(drawn, keys.shape)
            after = jax.vmap(game.step)(states, found.edge)
            record = record_ply(game, states, found, after)._replace(is_full=is_full)
            if options.with_leaves and found.leaf is not None:
                leaf = jax.vmap(game.position)(found.leaf)
                record = record._replace(leaf=leaf, leaf_is_over=found.leaf.terminated)
            if resigning is not None:
                record, resigning = resign(options.config, resigning, record)
                after = after._replace(terminated=record.discount == 0)
            return select(after.terminated, begin(ply + 1), Games(after, resigning)), record

        return jax.lax.scan(one_ply, games, first_ply + jnp.arange(num_plies))

    return play


def record_ply(game: Game, states: State, found: SearchOutput, after: State) -> Trajectory:
    """The Trajectory [B] of one ply, from `states` to `after`."""
    reward, discount = reward_and_discount(states, after)
    prior = jax.nn.log_softmax(found.prior_logits)
    entropy = -jnp.sum(jnp.where(found.prior_logits == ILLEGAL, 0.0, jnp.exp(prior) * prior), axis=-1)
    return Trajectory(
        position=jax.vmap(game.position)(states),
        policy_target=found.action_weights.astype(jnp.float16),
        edge=found.edge,
        reward=reward,
        discount=discount,
        prior_entropy=entropy,
        root_value=found.value,
        search_value=found.search_value,
    )


def unsound_searches(trajectory: Trajectory) -> Array:
    """Bool [T, B], where a search played no legal move, or has weights that are no probabilities of these, or a value.

    To a thousandth of a value and a hundredth of all weights.
    """
    edge, legal, weights = trajectory.edge, trajectory.position.legal, trajectory.policy_target
    bits = jnp.take_along_axis(legal, (edge >> 3)[..., None], axis=-1, mode="clip")[..., 0]
    is_move = (edge >= 0) & ((bits >> (7 - (edge & 7)).astype(bits.dtype)) & 1 == 1)
    if trajectory.resignation is not None:
        is_move |= trajectory.resignation == RESIGNED
    num_legal = jax.lax.population_count(legal).sum(axis=-1, dtype=jnp.int32)
    is_slot = jnp.arange(weights.shape[-1]) < num_legal[..., None]
    total = jnp.where(is_slot, weights, 0).sum(axis=-1, dtype=jnp.float32)
    are_weights = (jnp.abs(total - 1) <= 0.01) & (weights >= 0).all(axis=-1)
    return ~(is_move & are_weights & (jnp.abs(trajectory.search_value) <= MAX_VALUE))


def game_statistics(trajectory: Trajectory, max_plies: int) -> dict[str, Array]:
    """Sums over a Trajectory [T, B], of which metrics are made; a game's plies include those of a random opening."""
    over = trajectory.discount == 0
    decisive = over & (trajectory.reward != 0)
    white_moved = trajectory.position.color == 0
    has_won, num_moves = trajectory.reward > 0, trajectory.position.ply + 1
    optional = {}
    if trajectory.is_full is not None:
        optional["full_searches"] = trajectory.is_full.sum()
    if trajectory.resignation is not None:
        for name, kind in (("resigned", RESIGNED), ("rightly_given_up", LOST), ("wrongly_given_up", NOT_LOST)):
            optional[name] = (trajectory.resignation == kind).sum()
        num_moves -= trajectory.resignation == RESIGNED
    return optional | {
        "plies": jnp.float32(over.size),
        "games": over.sum(),
        "draws": (over & ~decisive).sum(),
        "white_wins": (decisive & (white_moved == has_won)).sum(),
        "at_ply_limit": (over & ~decisive & (trajectory.position.ply + 1 >= max_plies)).sum(),
        "finished_plies": jnp.where(over, num_moves, 0).sum(),
        "prior_entropy": trajectory.prior_entropy.sum(),
        "saturated_values": (jnp.abs(trajectory.root_value) > 0.99).sum(),
    }
