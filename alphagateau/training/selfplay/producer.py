"""Frames from self-play: games played with the present weights, kept in the frame window on the devices."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagateau.config import Experiment, SelfPlayConfig, TargetsConfig
from alphagateau.config.searches import simulations_per_ply
from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED, per_device
from alphagateau.games.pgn.pgn import Identity, player_tags
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Network
from alphagateau.networks.trained import describe_players_search
from alphagateau.search.baselines import make_random_search
from alphagateau.search.make_search import make_search
from alphagateau.search.search import SearchOutput
from alphagateau.training.frames import Frame, Trajectory
from alphagateau.training.iteration_metrics import selfplay_metrics, selfplay_pace
from alphagateau.training.keys import PLAY, WINDOW, key_of
from alphagateau.training.losses.auxiliary import auxiliary_targets
from alphagateau.training.mirrors import mirrored_batches
from alphagateau.training.phases import Phase, Producer, RunState
from alphagateau.training.plan import BoardPlan
from alphagateau.training.selfplay.openings import RandomOpenings
from alphagateau.training.selfplay.pending_frames import Waiting, none_waiting, settle
from alphagateau.training.selfplay.probes import make_probe, probe_metrics
from alphagateau.training.selfplay.replay import Window, add_frames, epoch_order, init_window, take_batch
from alphagateau.training.selfplay.resignation import ResignationRule, Resigning
from alphagateau.training.selfplay.sample_games import duplicate_rate, finished_games, first_games, sample_pgn
from alphagateau.training.selfplay.selfplay import (
    CheapSearch,
    Games,
    SelfPlay,
    Variations,
    game_statistics,
    make_begin,
    make_selfplay,
)
from alphagateau.training.selfplay.starts import read_starts
from alphagateau.training.selfplay.targets import frames_from
from alphagateau.training.selfplay.td_leaf import num_frames, td_leaf_frames


class SelfPlayState(NamedTuple):
    """Games in progress and what they left."""

    games: State  # [B]
    window: Window  # [num_shares, ...]
    trajectory: Trajectory  # [T, B], the iteration in progress
    statistics: dict[str, Array]  # sums over the trajectory, once the window holds its frames
    waiting: Waiting | None = None  # [P, B], plies before the trajectory; None: frames do not wait for their result
    resigning: Resigning | None = None  # [B], of the games; None: nobody may resign


# How the fields of a SelfPlayState lie on the devices.
SPECS: Any = SelfPlayState(*(BY_FIRST, BY_FIRST, BY_SECOND, REPLICATED, BY_SECOND, BY_FIRST))  # pyright: ignore


def make_selfplay_producer(board: BoardPlan, selfplay: SelfPlayConfig, mesh: Mesh) -> Producer:
    """The producer that `[selfplay]`, `[search]` and `[window]` describe."""
    experiment, game, network = board
    search = make_search(game, network, experiment.search)
    segment_plies = largest_divisor(selfplay.num_plies, selfplay.segment_plies)
    variations = make_variations(experiment, selfplay, game, network)
    play_segment = make_selfplay(game, search, segment_plies, variations)
    play = make_play(experiment.seed, selfplay.num_games, mesh, play_segment)
    begin = make_new_games(experiment.seed, game, variations)
    fill_window = make_fill_window(experiment, game, mesh, None if selfplay.continue_games else begin)
    probe, are_new = make_probe(experiment, game, search, mesh), not selfplay.continue_games

    def run_play(state: RunState, iteration: int, segment: int) -> RunState:
        return state._replace(producer=play(state.producer, state.train.playing, iteration, segment * segment_plies))

    def run_fill(state: RunState, iteration: int, segment: int) -> RunState:
        return state._replace(producer=fill_window(state.producer, iteration))

    def compile_play(state: RunState) -> None:
        play.lower(state.producer, state.train.playing, 0, 0).compile()

    def compile_fill(state: RunState) -> None:
        fill_window.lower(state.producer, 0).compile()

    def num_new_frames(state: SelfPlayState) -> int:
        made = selfplay.num_games * num_frames(experiment.targets, selfplay.num_plies)
        return int(state.statistics.get("new_frames", made))

    def metrics(state: RunState, iteration: int, seconds: Mapping[str, float]) -> dict[str, float]:
        played: SelfPlayState = state.producer
        sums = {name: float(x) for name, x in played.statistics.items()}
        if experiment.targets.kind == "td_leaf":
            sums["new_frames"] = num_new_frames(played)
        rates = selfplay_metrics(sums)
        num_simulations = simulations_per_ply(experiment, rates.get("selfplay/full_search_rate"))
        pace = selfplay_pace(sums["plies"], num_simulations, seconds)
        games = finished_games(played.trajectory, are_new)
        repeated = {"selfplay/duplicate_rate": duplicate_rate(played.trajectory, games)}
        found = probe(state.train.playing, played.trajectory.position, iteration) if experiment.sample_roots else {}
        return rates | pace | repeated | probe_metrics({name: float(x) for name, x in found.items()})

    def sample_games(state: SelfPlayState, run: str, iteration: int, weights: str) -> str:
        player = Identity(run, iteration - 1, weights, describe_players_search(experiment.search))
        name = f"{run}/{iteration - 1}"
        tags = (
            {"Event": run, "Round": str(iteration)}
            | player_tags("White", name, player)
            | player_tags("Black", name, player)
        )
        games = first_games(finished_games(state.trajectory, are_new), experiment.sample_games)
        return sample_pgn(game, state.trajectory, games, tags)

    return Producer(
        init=make_init(experiment, selfplay, game, variations),
        specs=SPECS,
        transient=frozenset({"trajectory", "statistics"}),
        phases=(
            Phase("selfplay", lambda _: selfplay.num_plies // segment_plies, run_play, segment_plies, compile_play),
            Phase("window", lambda _: 1, run_fill, compile=compile_fill),
        ),
        num_batches=lambda state: int(state.statistics["frames"]) // experiment.training.batch_size,
        num_new_frames=num_new_frames,
        batches=make_batches(experiment, game),
        metrics=metrics,
        sample_games=sample_games,
    )


def make_variations(experiment: Experiment, selfplay: SelfPlayConfig, game: Game, network: Network) -> Variations:
    """What `[selfplay]` asks for beside the search of each ply. A cheap search explores nothing, as in KataGo."""
    cheap = openings = rule = None
    if selfplay.full_search_share < 1:
        config = dataclasses.replace(experiment.search, num_simulations=selfplay.cheap_simulations, gumbel_scale=0.0)
        cheap = CheapSearch(make_search(game, network, config), selfplay.full_search_share)
    if selfplay.random_openings:
        openings = RandomOpenings(selfplay.random_openings, selfplay.opening_plies)
    if selfplay.resign_plies:
        rule = ResignationRule(selfplay.resign_plies, selfplay.resign_value, selfplay.resign_played_out)
    starts = None
    if selfplay.starts != "none":
        starts = read_starts(game, selfplay.starts, selfplay.start_moves, experiment.seed)
    return Variations(
        cheap,
        openings,
        rule,
        starts,
        own_openings=not getattr(experiment.search, "gumbel_scale", 0.0),
        with_leaves=experiment.targets.kind == "td_leaf",
    )


def make_new_games(seed: int, game: Game, variations: Variations) -> Callable[[int | Array, Array], Games]:
    """(iteration, rows [B]) -> Games [B]: those with which an iteration begins if none goes on."""

    def new_games(iteration: int | Array, rows: Array) -> Games:
        return make_begin(game, variations, key_of(seed, iteration, PLAY), rows)(0)

    return new_games


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` up to `limit`."""
    return max(d for d in range(1, min(number, limit) + 1) if number % d == 0)


def make_play(seed: int, num_games: int, mesh: Mesh, play_segment: SelfPlay) -> Callable:
    """(SelfPlayState, variables, iteration, first_ply) -> SelfPlayState, compiled."""
    rows = np.arange(num_games, dtype=np.int32)  # the games' numbers

    @per_device(mesh, (REPLICATED, REPLICATED, BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND), (BY_FIRST, BY_SECOND))
    def local(variables, key, rows, first_ply, games, trajectory):
        games, segment = play_segment(variables, key, rows, first_ply, games)
        write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=first_ply, axis=0)
        return games, jax.tree.map(write, trajectory, segment)

    @partial(jax.jit, donate_argnums=0)
    def play(state: SelfPlayState, variables, iteration, first_ply) -> SelfPlayState:
        key = key_of(seed, iteration, PLAY)
        games = Games(state.games, state.resigning)
        games, trajectory = local(variables, key, rows, first_ply, games, state.trajectory)
        return state._replace(games=games.states, resigning=games.resigning, trajectory=trajectory)

    return play


def make_to_frames(targets: TargetsConfig, auxiliary: tuple[str, ...] = ()) -> Callable[[Trajectory], Frame]:
    """Trajectory [T, B] -> Frames [T, B] (by TD-Leaf [t, B]), as `[targets]` says, with `auxiliary` targets."""
    if targets.kind == "td_leaf":
        return partial(td_leaf_frames, targets=targets)
    return partial(
        frames_from,
        auxiliary=auxiliary,
        td_lambda=targets.td_lambda,
        search_value_weight=targets.search_value_weight,
        bootstrap=targets.bootstrap,
    )


def make_fill_window(experiment: Experiment, game: Game, mesh: Mesh, begin: Callable | None) -> Callable:
    """(SelfPlayState, iteration) -> SelfPlayState, compiled; `begin`: see `make_new_games`, None: games go on."""
    share_ids = np.arange(experiment.num_shares, dtype=np.int32)
    to_frames = make_to_frames(experiment.targets, auxiliary_targets(experiment.network))
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
        return add_frames(window, key, share_ids, frames, is_new), waiting

    @partial(jax.jit, donate_argnums=0)
    def fill_window(state: SelfPlayState, iteration) -> SelfPlayState:
        key = key_of(experiment.seed, iteration, WINDOW)
        window, waiting = local(state.window, key, share_ids, state.trajectory, state.waiting)
        statistics = fill_statistics(game, state.trajectory, window, (state.waiting, waiting))
        games = Games(state.games, state.resigning)
        if new_games is not None:
            games = new_games(iteration + 1, jnp.arange(len(state.games.ply)))
        return SelfPlayState(games.states, window, state.trajectory, statistics, waiting, games.resigning)

    return fill_window


def fill_statistics(
    game: Game, trajectory: Trajectory, window: Window, waiting: tuple[Waiting | None, Waiting | None]
) -> dict[str, Array]:
    """Sums over the iteration: its games, the frames of an epoch, and what waited before and waits after it.

    All shares of a batch are equal, so an epoch is as long as the share with the fewest frames; once the window is
    full, or if no frame waits, they have equally many.
    """
    statistics = game_statistics(trajectory, game.max_plies)
    statistics["frames"] = window.count.min() * len(window.count)
    before, after = waiting
    if before is not None and after is not None:
        statistics["waiting"] = after.is_waiting.sum()
        statistics["new_frames"] = before.is_waiting.sum() + trajectory.discount.size - after.is_waiting.sum()
    return statistics


def make_batches(experiment: Experiment, game: Game) -> Callable[[SelfPlayState, Array, Array], Callable]:
    """`Producer.batches`: an epoch goes through each share's frames once, in an order drawn from `key`."""
    share_batch = experiment.training.batch_size // experiment.num_shares

    def batches(state: SelfPlayState, key: Array, share_ids: Array) -> Callable:
        order = epoch_order(state.window, key, share_ids)

        def take(step: Array) -> Frame:
            return take_batch(state.window, order, step, share_batch)

        return mirrored_batches(take, game, key, share_ids, share_batch) if experiment.training.mirror else take

    return batches


def make_init(
    experiment: Experiment, selfplay: SelfPlayConfig, game: Game, variations: Variations
) -> Callable[[], Any]:
    """() -> the SelfPlayState of a run that has not begun."""
    to_frames = make_to_frames(experiment.targets, auxiliary_targets(experiment.network))
    begin = make_new_games(experiment.seed, game, variations)
    random_search = make_random_search()

    def any_search(variables: Any, keys: Array, states: State) -> SearchOutput:
        """Of any search, records have these shapes."""
        return random_search(variables, keys, states)._replace(leaf=states)

    if variations.cheap is not None:
        variations = variations._replace(cheap=CheapSearch(any_search, variations.cheap.full_share))
    play = make_selfplay(game, any_search, selfplay.num_plies, variations)

    def init() -> SelfPlayState:
        key, rows = jax.random.key(0), jnp.arange(selfplay.num_games)
        games = begin(0, rows)
        played = jax.eval_shape(lambda: play({}, key, rows, jnp.int32(0), games)[1])
        trajectory = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), played)
        frame = jax.eval_shape(lambda: jax.tree.map(lambda x: x[0, 0], to_frames(trajectory)))
        window = init_window(frame, experiment.num_shares, experiment.window.size)
        waiting = none_waiting(played, game.max_plies - 1) if experiment.targets.wait_for_result else None
        sums = jax.eval_shape(lambda: fill_statistics(game, trajectory, window, (waiting, waiting)))
        statistics = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), sums)
        return SelfPlayState(games.states, window, trajectory, statistics, waiting, games.resigning)

    return init
