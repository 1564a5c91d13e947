"""The compiled steps of a run: Experiment and mesh in, functions that advance a RunState by one segment out.

A segment is the work of one device call: some plies of self-play or some optimizer steps. All that a run is lies in
its RunState and Progress, so a run can be put on disk between any two segments and go on as if it had never stopped.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from alphagateau.config import Experiment, SelfPlayConfig
from alphagateau.distributed.mesh import AXIS, BY_FIRST, BY_SECOND, REPLICATED, per_device, shardings
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Network, Variables
from alphagateau.search.gumbel import make_gumbel_search
from alphagateau.search.search import Search
from alphagateau.training.frames import Trajectory
from alphagateau.training.learner import TrainState, init_train_state, make_optimizer, make_train_step
from alphagateau.training.replay import Window, add_frames, epoch_order, init_window, take_batch
from alphagateau.training.selfplay import SelfPlay, game_statistics, make_selfplay, start_games
from alphagateau.training.targets import frames_from


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


class Plan(NamedTuple):
    """What all functions of an Engine are made from."""

    experiment: Experiment
    selfplay: SelfPlayConfig
    game: Game
    mesh: Mesh

    @property
    def share_ids(self) -> Array:
        return jnp.arange(self.experiment.num_shares)

    @property
    def rows(self) -> Array:
        """The games' numbers."""
        return jnp.arange(self.selfplay.num_games)

    @property
    def share_batch(self) -> int:
        return self.experiment.training.batch_size // self.experiment.num_shares

    def key_of(self, *path: int | Array) -> Array:
        """The key of a purpose: an iteration, what for, and so on; a function of the seed and these."""
        return functools.reduce(jax.random.fold_in, path, jax.random.key(self.experiment.seed))


PLAY, WINDOW, TRAIN = range(3)  # what an iteration's keys are for


def make_play(plan: Plan, play_segment: SelfPlay) -> Callable:
    """(RunState, iteration, first_ply) -> RunState."""

    @per_device(plan.mesh, (REPLICATED, REPLICATED, BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND), (BY_FIRST, BY_SECOND))
    def local(variables, key, rows, first_ply, games, trajectory):
        games, segment = play_segment(variables, key, rows, first_ply, games)
        write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=first_ply, axis=0)
        return games, jax.tree.map(write, trajectory, segment)

    @partial(jax.jit, donate_argnums=0)
    def play(state: RunState, iteration, first_ply) -> RunState:
        key = plan.key_of(iteration, PLAY)
        variables, games, trajectory = state.train.variables, state.games, state.trajectory
        games, trajectory = local(variables, key, plan.rows, first_ply, games, trajectory)
        return state._replace(games=games, trajectory=trajectory)

    return play


def make_fill_window(plan: Plan) -> Callable:
    """(RunState, iteration) -> (RunState, statistics by name)."""
    selfplay = plan.selfplay

    @per_device(plan.mesh, (BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND), BY_FIRST)
    def local(window, key, share_ids, trajectory):
        def by_share(x):  # [T, b] -> [shares here, T * games a share]
            x = jnp.moveaxis(x, 0, 1)
            return x.reshape(len(share_ids), -1, *x.shape[2:])

        frames = jax.tree.map(by_share, frames_from(trajectory))
        return add_frames(window, key, share_ids, frames)

    @partial(jax.jit, donate_argnums=0)
    def fill_window(state: RunState, iteration) -> tuple[RunState, dict[str, Array]]:
        window = local(state.window, plan.key_of(iteration, WINDOW), plan.share_ids, state.trajectory)
        statistics = game_statistics(state.trajectory, plan.game.max_plies)
        statistics["frames"] = window.count.sum()
        games = state.games
        if not selfplay.continue_games:  # said where they lie, or each device would hold them all
            games = start_games(plan.game, selfplay.num_games)
            games = jax.lax.with_sharding_constraint(games, shardings(plan.mesh, BY_FIRST))
        totals = jax.tree.map(jnp.zeros_like, state.totals)
        return state._replace(window=window, games=games, totals=totals), statistics

    return fill_window


def make_train(plan: Plan, train_step: Callable) -> Callable:
    """(RunState, iteration, epoch, first_step, last_step) -> RunState."""

    @per_device(plan.mesh, (REPLICATED, REPLICATED, BY_FIRST, REPLICATED, BY_FIRST, REPLICATED), REPLICATED)
    def local(train, totals, window, key, share_ids, steps):
        order = epoch_order(window, key, share_ids)

        def body(step, carry):
            train, totals = carry
            train, terms = train_step(train, take_batch(window, order, step, plan.share_batch))
            return train, jax.tree.map(jnp.add, totals, terms)

        return jax.lax.fori_loop(*steps, body, (train, totals))

    @partial(jax.jit, donate_argnums=0)
    def train(state: RunState, iteration, epoch, first_step, last_step) -> RunState:
        key = plan.key_of(iteration, TRAIN, epoch)
        steps = jnp.stack([first_step, last_step])
        train_state, totals = local(state.train, state.totals, state.window, key, plan.share_ids, steps)
        return state._replace(train=train_state, totals=totals)

    return train


def make_build(plan: Plan, network: Network, play_segment: SelfPlay) -> Callable[[Variables], RunState]:
    """Variables -> the RunState of a run that begins with them."""
    experiment, game = plan.experiment, plan.game
    optimizer = make_optimizer(experiment.training.learning_rate)
    step_alone = make_train_step(game, network, optimizer)

    def build(variables: Variables) -> RunState:
        games = start_games(game, plan.selfplay.num_games)
        window = init_window(game, experiment.num_shares, experiment.window.size)
        train = init_train_state(variables, optimizer)
        segment = jax.eval_shape(play_segment, variables, plan.key_of(), plan.rows, 0, games)[1]
        order = jax.eval_shape(epoch_order, window, plan.key_of(), plan.share_ids)
        batch = jax.eval_shape(partial(take_batch, share_batch=plan.share_batch), window, order, 0)
        terms = jax.eval_shape(step_alone, train, batch)[1]
        num_plies = plan.selfplay.num_plies
        trajectory = jax.tree.map(lambda x: jnp.zeros((num_plies, *x.shape[1:]), x.dtype), segment)
        return RunState(train, games, window, trajectory, zeros_like(terms))

    return build


def zeros_like(shapes: Any) -> Any:
    """Zeros of a tree of shapes and types."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def make_engine(experiment: Experiment, mesh: Mesh) -> Engine:
    """Compiles nothing yet: jit does at the first call of each function."""
    selfplay = experiment.selfplay
    assert selfplay is not None  # an experiment without frames is refused when it is made
    game = get_game(experiment.game)
    network = make_network(game, experiment.network)
    search = make_gumbel_search(
        game,
        network,
        num_simulations=experiment.search.num_simulations,
        max_num_considered_actions=experiment.search.max_num_considered_actions,
        gumbel_scale=experiment.search.gumbel_scale,
    )
    segment_plies = largest_divisor(selfplay.num_plies, selfplay.segment_plies)
    play_segment = make_selfplay(game, search, segment_plies)
    train_step = make_train_step(game, network, make_optimizer(experiment.training.learning_rate), AXIS)
    plan = Plan(experiment, selfplay, game, mesh)
    build = make_build(plan, network, play_segment)

    def init_variables() -> Variables:
        return network.init(plan.key_of(2**31 - 1))

    abstract = jax.eval_shape(build, jax.eval_shape(init_variables))
    parts = zip(abstract, shardings(mesh, SPECS), strict=True)
    sharded = RunState(*(jax.tree.map(lambda _, s=s: s, part) for part, s in parts))
    abstract = jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), abstract, sharded)
    between = {name: getattr(abstract, name) for name in ("trajectory", "totals")}
    return Engine(
        game=game,
        network=network,
        search=search,
        mesh=mesh,
        segment_plies=segment_plies,
        init=jax.jit(build, out_shardings=sharded),
        play=make_play(plan, play_segment),
        fill_window=make_fill_window(plan),
        train=make_train(plan, train_step),
        abstract_state=abstract,
        init_variables=init_variables,
        zeros_between=jax.jit(
            lambda: zeros_like(between), out_shardings={name: getattr(sharded, name) for name in between}
        ),
    )
