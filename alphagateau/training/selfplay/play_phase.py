"""Plays an iteration's plies by search with the present weights, some plies of all games a segment."""

import dataclasses
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jax.sharding import Mesh

from alphagateau.config import SelfPlayConfig
from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED, per_device
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.search.make_search import make_search
from alphagateau.search.search import Search
from alphagateau.training.keys import PLAY, key_of
from alphagateau.training.phases import Phase, RunState
from alphagateau.training.plan import BoardPlan
from alphagateau.training.selfplay.openings import RandomOpenings
from alphagateau.training.selfplay.resignation import ResignationRule
from alphagateau.training.selfplay.selfplay import (
    CheapSearch,
    Games,
    SelfPlay,
    SelfPlayOptions,
    make_begin,
    make_selfplay,
)
from alphagateau.training.selfplay.starts import read_starts
from alphagateau.training.selfplay.state import SelfPlayState


def make_play_phase(
    board: BoardPlan, selfplay: SelfPlayConfig, search: Search, options: SelfPlayOptions, mesh: Mesh
) -> Phase:
    """The phase that plays `num_plies` plies of all games into the trajectory."""
    segment_plies = largest_divisor(selfplay.num_plies, selfplay.segment_plies)
    play_segment = make_selfplay(board.game, search, segment_plies, options)
    play = make_play(board.experiment.seed, selfplay.num_games, mesh, play_segment)

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        return state._replace(producer=play(state.producer, state.train.playing, iteration, segment * segment_plies))

    def compile(state: RunState) -> None:
        play.lower(state.producer, state.train.playing, 0, 0).compile()

    return Phase("selfplay", lambda _: selfplay.num_plies // segment_plies, run_segment, segment_plies, compile)


def make_selfplay_options(board: BoardPlan, selfplay: SelfPlayConfig) -> SelfPlayOptions:
    """The options of `[selfplay]`. A cheap search explores nothing, as in KataGo."""
    experiment, game, network = board
    cheap = openings = rule = starts = None
    if selfplay.full_search_share < 1:
        config = dataclasses.replace(experiment.search, num_simulations=selfplay.cheap_simulations, gumbel_scale=0.0)
        cheap = CheapSearch(make_search(game, network, config), selfplay.full_search_share)
    if selfplay.random_openings:
        openings = RandomOpenings(selfplay.random_openings, selfplay.opening_plies)
    if selfplay.resign_plies:
        rule = ResignationRule(selfplay.resign_plies, selfplay.resign_value, selfplay.resign_played_out)
    if selfplay.starts != "none":
        starts = read_starts(game, selfplay.starts, selfplay.start_moves, experiment.seed)
    return SelfPlayOptions(
        cheap,
        openings,
        rule,
        starts,
        own_openings=not experiment.search.gumbel_scale,
        with_leaves=experiment.targets.kind == "td_leaf",
    )


def make_new_games(seed: int, game: Game, options: SelfPlayOptions) -> Callable[[int | Array, Array], Games]:
    """(iteration, rows [B]) -> the Games [B] with which an iteration begins if none goes on."""
    return lambda iteration, rows: make_begin(game, options, key_of(seed, iteration, PLAY), rows)(0)


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` up to `limit`."""
    return max(d for d in range(1, min(number, limit) + 1) if number % d == 0)


def make_play(seed: int, num_games: int, mesh: Mesh, play_segment: SelfPlay) -> jax.stages.Wrapped:
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
