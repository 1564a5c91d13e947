"""Self-play: States and a search in, Trajectories out."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import Array, State
from alphagateau.games.symmetry import select
from alphagateau.networks.network import Variables
from alphagateau.search.search import ILLEGAL, Search, SearchOutput
from alphagateau.training.frames import Trajectory
from alphagateau.training.keys import FULL
from alphagateau.training.openings import RandomOpenings, make_begin

# (variables, key, rows [B], first_ply, states [B]) -> (states [B], Trajectory [T, B])
SelfPlay = Callable[[Variables, Array, Array, Array, State], tuple[State, Trajectory]]


class CheapSearch(NamedTuple):
    """Playout cap randomization (Wu 2019, KataGo, section 3.1)."""

    search: Search  # of the plies that are not searched in full; it plays as well as it can, without noise
    full_share: float  # of the plies, searched in full


def start_games(game: Game, num_games: int) -> State:
    """B games at the first position."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (num_games, *x.shape)), game.init())


def make_capped_search(search: Search, cheap: CheapSearch | None) -> Callable:
    """(variables, PLAY's key, ply, keys [B], states [B]) -> (SearchOutput, which were searched in full: bool [B]).

    KataGo draws for each ply of each game. Here all games are searched in one batch, which takes as long as its longest
    search, so the draw is made for all games of the run together, from the key and the ply: all devices agree on it
    without asking, and a cheap ply is cheap. Games begin and end at different plies, so they still differ in it.
    """

    def find(variables: Variables, key: Array, ply: Array, keys: Array, states: State):
        if cheap is None:
            return search(variables, keys, states), None
        is_full = jax.random.bernoulli(jax.random.fold_in(jax.random.fold_in(key, FULL), ply), cheap.full_share)
        found: SearchOutput = jax.lax.cond(is_full, search, cheap.search, variables, keys, states)
        return found, jnp.broadcast_to(is_full, keys.shape)

    return find


def make_selfplay(
    game: Game,
    search: Search,
    num_plies: int,
    cheap: CheapSearch | None = None,
    openings: RandomOpenings | None = None,
) -> SelfPlay:
    """B games for `num_plies` (T) plies; a game that ends starts anew at once, so each search has a live root.

    `rows` are the games' numbers in the whole run: ply t of game r draws from fold_in(fold_in(key, t), r), wherever
    the game is played and however the plies are cut into calls (`first_ply`: the first of this call).
    """
    find = make_capped_search(search, cheap)

    def play(variables: Variables, key: Array, rows: Array, first_ply: Array, states: State):
        begin = make_begin(game, openings, start_games(game, len(rows)), key, rows)

        def one_ply(states: State, ply: Array) -> tuple[State, Trajectory]:
            keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.fold_in(key, ply), rows)
            found, is_full = find(variables, key, ply, keys, states)
            after = jax.vmap(game.step)(states, found.edge)
            reward, discount = reward_and_discount(states, after)
            prior = jax.nn.log_softmax(found.prior_logits)
            entropy = -jnp.sum(jnp.where(found.prior_logits == ILLEGAL, 0.0, jnp.exp(prior) * prior), axis=-1)
            record = Trajectory(
                position=jax.vmap(game.position)(states),
                policy_target=found.action_weights.astype(jnp.float16),
                edge=found.edge,
                reward=reward,
                discount=discount,
                prior_entropy=entropy,
                root_value=found.value,
                search_value=found.search_value,
                is_full=is_full,
            )
            return select(after.terminated, begin(ply + 1), after), record

        return jax.lax.scan(one_ply, states, first_ply + jnp.arange(num_plies))

    return play


def game_statistics(trajectory: Trajectory, max_plies: int) -> dict[str, Array]:
    """Sums over a Trajectory [T, B] of what the log reports of the games; plies and games, not means."""
    over = trajectory.discount == 0
    decisive = over & (trajectory.reward != 0)
    # A mover at an odd ply is black: the color of the position, not of the row's time.
    white_moved = trajectory.position.color == 0
    sums = {} if trajectory.is_full is None else {"full_searches": trajectory.is_full.sum()}
    return sums | {
        "plies": jnp.float32(over.size),
        "games": over.sum(),
        "draws": (over & ~decisive).sum(),
        "white_wins": (decisive & white_moved).sum(),
        "at_ply_limit": (over & ~decisive & (trajectory.position.ply + 1 >= max_plies)).sum(),
        "finished_plies": jnp.where(over, trajectory.position.ply + 1, 0).sum(),
        "prior_entropy": trajectory.prior_entropy.sum(),
        "saturated_values": (jnp.abs(trajectory.root_value) > 0.99).sum(),
    }
