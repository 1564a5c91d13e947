"""Plays games by search with the present weights, and keeps their frames in the window on the devices."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagateau.config import SelfPlayConfig
from alphagateau.config.losses import heads_of
from alphagateau.config.records import show
from alphagateau.config.searches import simulations_per_ply
from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED, per_device
from alphagateau.games.pgn.pgn import Identity, player_tags
from alphagateau.games.state import Array, State
from alphagateau.networks.trained import player_search_name
from alphagateau.runs.run_folder import RunError
from alphagateau.search.baselines import make_random_search
from alphagateau.search.make_search import make_search
from alphagateau.search.search import Search, SearchOutput
from alphagateau.training.iteration_metrics import selfplay_metrics, selfplay_pace
from alphagateau.training.keys import PLAY, key_of
from alphagateau.training.optimizer import num_made_frames
from alphagateau.training.phases import Phase, Producer, RunState
from alphagateau.training.plan import BoardPlan
from alphagateau.training.selfplay.openings import read_starts
from alphagateau.training.selfplay.probes import make_probe, probe_metrics
from alphagateau.training.selfplay.replay import init_window
from alphagateau.training.selfplay.sample_games import duplicate_rate, finished_games, sample_pgn
from alphagateau.training.selfplay.selfplay import Games, SelfPlayOptions, make_begin, make_selfplay
from alphagateau.training.selfplay.state import SPECS, SelfPlayState, no_pending
from alphagateau.training.selfplay.window_phase import epoch_batches, fill_statistics, make_to_frames, make_window_phase


def make_selfplay_producer(board: BoardPlan, selfplay: SelfPlayConfig, mesh: Mesh) -> Producer:
    """The producer that `[selfplay]`, `[search]` and `[window]` describe."""
    experiment, game, network = board
    search, options = make_search(game, network, experiment.search), make_selfplay_options(board, selfplay)
    are_new = not selfplay.continue_games
    probe = make_probe(experiment, game, search, mesh)

    def new_games(key: Array, rows: Array) -> Games:
        """The Games [B] with which an iteration begins if none goes on; `key` is its PLAY's."""
        return make_begin(game, options, key, rows)(0)

    def num_new_frames(state: SelfPlayState) -> int:
        return int(state.statistics.get("new_frames", num_made_frames(experiment)))

    def metrics(state: RunState, iteration: int, seconds: Mapping[str, float]) -> dict[str, float]:
        """Rates and pace of the games, repeated games, and the probe's measures."""
        played: SelfPlayState = state.producer
        sums = {name: float(x) for name, x in played.statistics.items()} | {"new_frames": num_new_frames(played)}
        rates = selfplay_metrics(sums)
        num_simulations = simulations_per_ply(experiment, rates.get("selfplay/full_search_rate"))
        pace = selfplay_pace(sums["plies"], num_simulations, seconds)
        games = finished_games(played.trajectory, are_new)
        repeated = {"selfplay/duplicate_rate": duplicate_rate(played.trajectory, games)} if len(games.row) else {}
        probed = probe(state.train.playing, played.trajectory.position, iteration) if experiment.sample_roots else {}
        return rates | pace | repeated | probe_metrics({name: float(x) for name, x in probed.items()})

    def sample_games(state: SelfPlayState, run: str, iteration: int, weights: str) -> str:
        """The first finished games of the iteration as PGN. Raises RunError if a search is not sound."""
        if unsound := int(state.statistics["unsound"]):
            name, plies = show(experiment.search.algorithm), int(state.statistics["plies"])
            raise RunError(
                f"search {name} is not sound: at {unsound} of {plies} plies its move is not legal, its action_weights "
                "are no probabilities of the legal moves, or its search_value is not from -1 to 1; network "
                f"{show(experiment.network.architecture)} must have finite logits and a value from -1 to 1"
            )
        player = Identity(run, iteration - 1, weights, player_search_name(experiment.search))
        tags = {"Event": run, "Round": str(iteration)}
        for color in ("White", "Black"):
            tags |= player_tags(color, f"{run}/{iteration - 1}", player)
        games = finished_games(state.trajectory, are_new)
        return sample_pgn(game, state.trajectory, games, experiment.sample_games, tags)

    return Producer(
        init=make_init(board, selfplay, options, new_games),
        specs=SPECS,
        transient=frozenset({"trajectory", "statistics"}),
        phases=(
            make_play_phase(board, selfplay, search, options, mesh),
            make_window_phase(experiment, game, mesh, new_games if are_new else None),
        ),
        num_batches=lambda state: int(state.statistics["frames"]) // experiment.training.batch_size,
        num_new_frames=num_new_frames,
        batches=partial(epoch_batches, experiment, game),
        metrics=metrics,
        sample_games=sample_games,
    )


def make_play_phase(
    board: BoardPlan, selfplay: SelfPlayConfig, search: Search, options: SelfPlayOptions, mesh: Mesh
) -> Phase:
    """The phase that plays `num_plies` plies of all games into the trajectory."""
    num_plies, most = selfplay.num_plies, min(selfplay.num_plies, selfplay.segment_plies)
    segment_plies = max(d for d in range(1, most + 1) if num_plies % d == 0)
    play_segment = make_selfplay(board.game, search, segment_plies, options)
    rows = np.arange(selfplay.num_games, dtype=np.int32)  # the games' numbers

    @per_device(mesh, (REPLICATED, REPLICATED, BY_FIRST, REPLICATED, BY_FIRST, BY_SECOND), (BY_FIRST, BY_SECOND))
    def local(variables, key, rows, first_ply, games, trajectory):
        games, segment = play_segment(variables, key, rows, first_ply, games)
        write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=first_ply, axis=0)
        return games, jax.tree.map(write, trajectory, segment)

    @partial(jax.jit, donate_argnums=0)
    def play(state: SelfPlayState, variables, seed, iteration, first_ply) -> SelfPlayState:
        key = key_of(seed, iteration, PLAY)
        games = Games(state.games, state.resigning)
        games, trajectory = local(variables, key, rows, first_ply, games, state.trajectory)
        return state._replace(games=games.states, resigning=games.resigning, trajectory=trajectory)

    def run_segment(state: RunState, iteration: int, segment: int) -> RunState:
        place = (board.experiment.seed, iteration, segment * segment_plies)
        return state._replace(producer=play(state.producer, state.train.playing, *place))

    def compile(state: RunState) -> object:
        return play.lower(state.producer, state.train.playing, 0, 0, 0).compile()

    return Phase("selfplay", lambda _: num_plies // segment_plies, run_segment, segment_plies, compile)


def make_selfplay_options(board: BoardPlan, selfplay: SelfPlayConfig) -> SelfPlayOptions:
    """The options of `[selfplay]`. A cheap search explores nothing, as in KataGo."""
    experiment, game, network = board
    cheap_search = None
    if selfplay.full_search_share < 1:
        config = dataclasses.replace(experiment.search, num_simulations=selfplay.cheap_simulations, gumbel_scale=0.0)
        cheap_search = make_search(game, network, config)
    return SelfPlayOptions(
        selfplay,
        cheap_search,
        read_starts(game, selfplay.starts, experiment.seed) if selfplay.starts != "none" else None,
        own_openings=not experiment.search.gumbel_scale,
        with_leaves=experiment.targets.kind == "td_leaf",
    )


def make_init(
    board: BoardPlan, selfplay: SelfPlayConfig, options: SelfPlayOptions, new_games: Callable
) -> Callable[[], SelfPlayState]:
    """Makes the SelfPlayState of a run that has not begun."""
    experiment, game, _ = board
    to_frames = make_to_frames(experiment.targets, heads_of(experiment.network))
    random_search = make_random_search()

    def any_search(variables: Any, keys: Array, states: State) -> SearchOutput:
        """Has the shapes of every search."""
        return random_search(variables, keys, states)._replace(leaf=states)

    if options.cheap_search is not None:
        options = options._replace(cheap_search=any_search)
    play = make_selfplay(game, any_search, selfplay.num_plies, options)

    def init() -> SelfPlayState:
        key, rows = jax.random.key(0), jnp.arange(selfplay.num_games)
        games = new_games(key_of(experiment.seed, 0, PLAY), rows)
        played = jax.eval_shape(lambda: play({}, key, rows, jnp.int32(0), games)[1])
        trajectory = jax.tree.map(jnp.zeros_like, played)
        frame = jax.eval_shape(lambda: jax.tree.map(lambda x: x[0, 0], to_frames(trajectory)))
        window = init_window(frame, experiment.num_shares, experiment.window.size)
        waiting = no_pending(played, game.max_plies - 1) if experiment.targets.wait_for_result else None
        sums = jax.eval_shape(lambda: fill_statistics(game, trajectory, window, (waiting, waiting)))
        statistics = jax.tree.map(jnp.zeros_like, sums)
        return SelfPlayState(games.states, window, trajectory, statistics, waiting, games.resigning)

    return init
