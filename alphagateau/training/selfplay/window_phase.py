"""Puts an iteration's frames into the frame window, and takes batches from it."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagateau.config import Experiment, TargetsConfig
from alphagateau.config.losses import Head, heads_of
from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED, per_device
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.training.frames import Frame, Trajectory
from alphagateau.training.keys import PLAY, WINDOW, key_of
from alphagateau.training.mirrors import mirrored_batches
from alphagateau.training.phases import Phase, RunState
from alphagateau.training.selfplay.replay import Window, add_frames, epoch_order, take_batch
from alphagateau.training.selfplay.selfplay import Games, game_statistics, unsound_searches
from alphagateau.training.selfplay.state import Pending, SelfPlayState, settle
from alphagateau.training.selfplay.targets import frames_from, td_leaf_frames


def make_to_frames(targets: TargetsConfig, heads: Sequence[Head] = ()) -> Callable[[Trajectory], Frame]:
    """Trajectory [T, B] -> Frames [T, B] (by TD-Leaf [t, B]) of `[targets]`, with the targets of `heads`."""
    if targets.kind == "td_leaf":
        return partial(td_leaf_frames, targets=targets)
    options = {name: getattr(targets, name) for name in ("td_lambda", "search_value_weight", "bootstrap")}
    return partial(frames_from, heads=heads, **options)


def make_window_phase(experiment: Experiment, game: Game, mesh: Mesh, begin: Callable | None) -> Phase:
    """The phase that fills the window with frames; `begin` is `new_games` of its producer, None: games go on."""
    share_ids = np.arange(experiment.num_shares, dtype=np.int32)
    to_frames = make_to_frames(experiment.targets, heads_of(experiment.network))
    keeps_newest = experiment.window.keep == "newest"
    new_games = begin and per_device(mesh, (REPLICATED, BY_FIRST), BY_FIRST)(begin)

    @per_device(mesh, (BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND, BY_SECOND), (BY_FIRST, BY_SECOND))
    def local(window, key, share_ids, trajectory, waiting):
        def by_share(x):  # [T, b] -> [shares here, T * games a share]
            x = jnp.moveaxis(x, 0, 1)
            return x.reshape(len(share_ids), -1, *x.shape[2:])

        is_new = None
        if waiting is not None:
            trajectory, is_new, waiting = settle(waiting, trajectory)
        frames, is_new = jax.tree.map(by_share, (to_frames(trajectory), is_new))
        return add_frames(window, key, share_ids, frames, is_new, keeps_newest), waiting

    @partial(jax.jit, donate_argnums=0)
    def fill_window(state: SelfPlayState, seed, iteration) -> SelfPlayState:
        key = key_of(seed, iteration, WINDOW)
        window, waiting = local(state.window, key, share_ids, state.trajectory, state.waiting)
        statistics = fill_statistics(game, state.trajectory, window, (state.waiting, waiting))
        games = Games(state.games, state.resigning)
        if new_games is not None:
            games = new_games(key_of(seed, iteration + 1, PLAY), jnp.arange(len(state.games.ply)))
        return SelfPlayState(games.states, window, state.trajectory, statistics, waiting, games.resigning)

    def run_segment(state: RunState, iteration: int, _: int) -> RunState:
        return state._replace(producer=fill_window(state.producer, experiment.seed, iteration))

    return Phase(
        "window",
        num_segments=lambda _: 1,
        run_segment=run_segment,
        compile=lambda state: fill_window.lower(state.producer, 0, 0).compile(),
    )


def fill_statistics(
    game: Game, trajectory: Trajectory, window: Window, waiting: tuple[Pending | None, Pending | None]
) -> dict[str, Array]:
    """Sums over the iteration's games and pending frames, and the number of frames of an epoch."""
    statistics = game_statistics(trajectory, game.max_plies)
    statistics["unsound"] = unsound_searches(trajectory).sum()
    statistics["frames"] = window.count.min() * len(window.count)  # as a batch has equal parts of all shares
    before, after = waiting
    if before is not None and after is not None:
        statistics["waiting"] = after.is_waiting.sum()
        statistics["new_frames"] = before.is_waiting.sum() + trajectory.discount.size - after.is_waiting.sum()
    return statistics


def epoch_batches(
    experiment: Experiment, game: Game, state: SelfPlayState, key: Array, share_ids: Array
) -> Callable[[Array], Frame]:
    """`Producer.batches`: an epoch has each share's frames once, in an order drawn from `key`."""
    share_batch = experiment.training.batch_size // experiment.num_shares
    order = epoch_order(state.window, key, share_ids)
    take = partial(take_batch, state.window, order, share_batch=share_batch)
    return mirrored_batches(experiment, take, game, key, share_ids)
