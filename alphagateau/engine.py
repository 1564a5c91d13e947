"""The compiled steps of a run: Experiment and mesh in, functions that advance a RunState by one segment out.

A segment is the work of one device call: some plies of self-play or some optimizer steps. All that a run is lies in
its RunState and Progress, so a run can be put on disk between any two segments and go on as if it had never stopped.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from alphagateau.config import Experiment
from alphagateau.games import Game, get_game
from alphagateau.networks import Network, make_network
from alphagateau.replay import Window, add_frames, epoch_order, init_window, take_batch
from alphagateau.search import Search, make_gumbel_search
from alphagateau.selfplay import frames_from, game_statistics, make_selfplay, start_games
from alphagateau.sharding import AXIS, BY_FIRST, BY_SECOND, REPLICATED, per_device, shardings
from alphagateau.training import TrainState, init_train_state, make_optimizer, make_train_step
from alphagateau.types import Array, State, Trajectory, Variables


class RunState(NamedTuple):
    """All arrays of a run."""

    train: TrainState  # replicated
    games: State  # [B], games in progress
    window: Window  # [num_shares, ...]
    trajectory: Trajectory  # [T, B], the iteration in progress; of no meaning between iterations
    totals: dict[str, Array]  # sums over the epoch's steps so far


# How the fields of a RunState lie on the devices.
SPECS = (REPLICATED, BY_FIRST, BY_FIRST, BY_SECOND, REPLICATED)


class Engine(NamedTuple):
    """What a run does with its RunState, compiled. `iteration` picks the randomness; all else is in the state."""

    game: Game
    network: Network
    search: Search
    mesh: Mesh
    segment_plies: int
    init: Any  # (variables) -> RunState
    play: Any  # (RunState, iteration, first_ply) -> RunState
    fill_window: Any  # (RunState, iteration) -> (RunState, statistics by name)
    train: Any  # (RunState, iteration, epoch, first_step, last_step) -> RunState
    abstract_state: RunState  # shapes and shardings, for reading a checkpoint
    init_variables: Any  # () -> Variables, drawn from the seed
    zeros_between: Any  # () -> {trajectory, totals} as they may be between iterations


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` up to `limit`."""
    return max(d for d in range(1, min(number, limit) + 1) if number % d == 0)


def make_engine(experiment: Experiment, mesh: Mesh) -> Engine:
    """Compiles nothing yet: jit does at the first call of each function."""
    selfplay, training, shares = experiment.selfplay, experiment.training, experiment.num_shares
    num_games, num_plies = selfplay.num_games, selfplay.num_plies
    segment_plies = largest_divisor(num_plies, selfplay.segment_plies)
    game = get_game(experiment.game)
    network = make_network(game, experiment.network)
    search = make_gumbel_search(
        game,
        network,
        num_simulations=selfplay.num_simulations,
        max_num_considered_actions=selfplay.max_num_considered_actions,
        gumbel_scale=selfplay.gumbel_scale,
    )
    optimizer = make_optimizer(training.learning_rate)
    train_step = make_train_step(game, network, optimizer, AXIS)
    play_segment = make_selfplay(game, search, segment_plies)
    root = jax.random.key(experiment.seed)
    rows, share_ids = jnp.arange(num_games), jnp.arange(shares)

    def key_of(iteration, purpose: int):
        return jax.random.fold_in(jax.random.fold_in(root, iteration), purpose)

    @partial(jax.jit, donate_argnums=0)
    def play(state: RunState, iteration, first_ply) -> RunState:
        @per_device(
            mesh,
            (REPLICATED, REPLICATED, BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND),
            (BY_FIRST, BY_SECOND),
        )
        def local(variables, key, rows, first_ply, games, trajectory):
            games, segment = play_segment(variables, key, rows, first_ply, games)
            write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=first_ply, axis=0)
            return games, jax.tree.map(write, trajectory, segment)

        games, trajectory = local(
            state.train.variables,
            key_of(iteration, 0),
            rows,
            first_ply,
            state.games,
            state.trajectory,
        )
        return state._replace(games=games, trajectory=trajectory)

    @partial(jax.jit, donate_argnums=0)
    def fill_window(state: RunState, iteration) -> tuple[RunState, dict[str, Array]]:
        @per_device(mesh, (BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND), BY_FIRST)
        def local(window, key, share_ids, trajectory):
            def by_share(x):  # [T, b] -> [shares here, T * games a share]
                x = jnp.moveaxis(x, 0, 1)
                return x.reshape(len(share_ids), -1, *x.shape[2:])

            frames = jax.tree.map(by_share, frames_from(trajectory))
            return add_frames(window, key, share_ids, frames)

        window = local(state.window, key_of(iteration, 1), share_ids, state.trajectory)
        statistics = game_statistics(state.trajectory, game.max_plies)
        statistics["frames"] = window.count.sum()
        games = state.games
        if not selfplay.continue_games:  # said where they lie, or each device would hold them all
            games = jax.lax.with_sharding_constraint(start_games(game, num_games), shardings(mesh, BY_FIRST))
        totals = jax.tree.map(jnp.zeros_like, state.totals)
        return state._replace(window=window, games=games, totals=totals), statistics

    @partial(jax.jit, donate_argnums=0)
    def train(state: RunState, iteration, epoch, first_step, last_step) -> RunState:
        @per_device(mesh, (REPLICATED, REPLICATED, BY_FIRST, REPLICATED, BY_FIRST, REPLICATED), REPLICATED)
        def local(train, totals, window, key, share_ids, steps):
            order = epoch_order(window, key, share_ids)

            def body(step, carry):
                train, totals = carry
                train, terms = train_step(train, take_batch(window, order, step, training.batch_size // shares))
                return train, jax.tree.map(jnp.add, totals, terms)

            return jax.lax.fori_loop(*steps, body, (train, totals))

        key = jax.random.fold_in(key_of(iteration, 2), epoch)
        steps = jnp.stack([first_step, last_step])
        train_state, totals = local(state.train, state.totals, state.window, key, share_ids, steps)
        return state._replace(train=train_state, totals=totals)

    def build(variables: Variables) -> RunState:
        games = start_games(game, num_games)
        window = init_window(game, shares, experiment.window.size)
        train = init_train_state(variables, optimizer)
        segment = jax.eval_shape(play_segment, variables, root, rows, 0, games)[1]
        batch = jax.eval_shape(
            partial(take_batch, share_batch=training.batch_size // shares),
            window,
            jax.eval_shape(epoch_order, window, root, share_ids),
            0,
        )
        terms = jax.eval_shape(make_train_step(game, network, optimizer), train, batch)[1]
        trajectory = jax.tree.map(lambda x: jnp.zeros((num_plies, *x.shape[1:]), x.dtype), segment)
        totals = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), terms)
        return RunState(train, games, window, trajectory, totals)

    def init_variables() -> Variables:
        return network.init(jax.random.fold_in(root, 2**31 - 1))

    variables = jax.eval_shape(init_variables)
    abstract = jax.eval_shape(build, variables)
    sharded = RunState(
        *(jax.tree.map(lambda _, s=s: s, part) for part, s in zip(abstract, shardings(mesh, SPECS), strict=True))
    )
    abstract = jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), abstract, sharded)
    return Engine(
        game=game,
        network=network,
        search=search,
        mesh=mesh,
        segment_plies=segment_plies,
        init=jax.jit(build, out_shardings=sharded),
        play=play,
        fill_window=fill_window,
        train=train,
        abstract_state=abstract,
        init_variables=init_variables,
        zeros_between=jax.jit(
            lambda: jax.tree.map(
                lambda x: jnp.zeros(x.shape, x.dtype),
                {"trajectory": abstract.trajectory, "totals": abstract.totals},
            ),
            out_shardings={"trajectory": sharded.trajectory, "totals": sharded.totals},
        ),
    )
