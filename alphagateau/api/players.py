"""Loads and saves checkpoints, evaluates and searches positions, plays matches and rates their results.

Positions are FENs, moves are UCI, players are named as for the commands (a run, a checkpoint, `random`, `uci:COMMAND`).
Values are for the player to move, in [-1, 1].
"""

import operator
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagateau.config import NETWORKS, SEARCHES, NetworkConfig, SearchConfig
from alphagateau.config.registers import register as register
from alphagateau.config.searches import option_types
from alphagateau.games.notation import edge_to_uci, from_fen, legal_moves
from alphagateau.games.rules import Game
from alphagateau.games.state import State, pad_rows, stack_rows
from alphagateau.games.variants import get_game
from alphagateau.matches import match, player_specs, specs
from alphagateau.matches.find_moves import check_found
from alphagateau.matches.match import MatchResult
from alphagateau.matches.match_games import Match
from alphagateau.matches.openings import make_openings
from alphagateau.matches.recorded_results import read_any_results
from alphagateau.networks import trained
from alphagateau.networks.make_network import check_part, make_network
from alphagateau.networks.network import Network, Variables
from alphagateau.ratings.rate import Ratings
from alphagateau.ratings.rate import rate as rate_results
from alphagateau.runs import checkpoint
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.search.search import evaluate_states

EVALUATED = 512  # positions that `evaluate` looks at together


class Model(NamedTuple):
    """A checkpoint on a board."""

    game: Game
    network: Network
    variables: Variables
    manifest: dict[str, Any]  # what `alphagateau info` shows of it

    def __repr__(self) -> str:  # no arrays, for notebooks
        learnt, kind = self.manifest["iteration"], self.manifest["network"]["architecture"]
        return f"Model({kind} of {learnt} iterations on {self.game.name})"


class PositionEvaluation(NamedTuple):
    """What a network says of one position."""

    policy: dict[str, float]  # of each legal move in UCI, the best first; they sum to 1
    value: float


class FoundMove(NamedTuple):
    """What a search says of one position."""

    move: str
    policy: dict[str, float]  # the search's improved policy, as in PositionEvaluation
    value: float  # the network's
    search_value: float  # the search's own


def load(source: str | PathLike, game: str | None = None) -> Model:
    """The checkpoint `source`, or the newest whole one of the run `source`; `game`: another board than it learnt on.

    Raises CheckpointError if there is none, or its network cannot play on that board; ValueError for an unknown board.
    """
    found = newest_checkpoint(Path(source))
    board = get_game(game or found.manifest["game"])
    network = make_network(board, trained.network_config(found))
    return Model(board, network, trained.load_weights(found, board.name), found.manifest)


def save(
    path: str | PathLike,
    game: Game,
    network: Mapping[str, Any] | NetworkConfig,
    variables: Variables,
    search: Mapping[str, Any] | SearchConfig | None = None,
) -> Model:
    """Writes weights as a checkpoint, which `load` and every command read; returns it as `load` does.

    `network`, `search`: the keys that made them. Only a checkpoint is replaced, not one that is published or has other
    files beside it. Raises ConfigError as `make_network`, ValueError for variables that are another network's or not
    finite, CheckpointError if it cannot be written.
    """
    keys = network if isinstance(network, NetworkConfig) else NETWORKS.read(network)
    asked = search if isinstance(search, SearchConfig) else SEARCHES.read(search or {})
    place, weights = Path(path).resolve(), jax.device_get(variables)
    expected = jax.eval_shape(make_network(game, keys).init, jax.random.key(0))
    kinds = [jax.tree.map(lambda x: (x.shape, x.dtype), tree) for tree in (expected, weights)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"the variables are not those of this {keys.architecture} on {game.name}")
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(weights)):
        raise ValueError("the variables are not finite")
    if place.exists():
        there = checkpoint.open_checkpoint(place).manifest
        if checkpoint.PUBLISHED in there or {x.name for x in place.iterdir()} - {"manifest.json", *there["parts"]}:
            raise checkpoint.CheckpointError(f"{place} is published, or holds other files: save somewhere else")
    manifest = {
        **{"iteration": 0, "order": [0, 0, 0], "progress": {}, "symptoms": [], "optimizer_steps": 0, "game": game.name},
        **{"network": asdict(keys), "search": asdict(asked), "weights_hash": checkpoint.weights_hash(weights)},
        "parameters": sum(x.size for x in jax.tree.leaves(weights["params"])),
    }
    return load(checkpoint.save(place.parent, place.name, {checkpoint.WEIGHTS: weights}, manifest).path)


def evaluate(model: Model, fens: str | Sequence[str]) -> list[PositionEvaluation]:
    """The network's policy and value of each position, without search; a finished game has its result as its value.

    Raises ValueError for a wrong FEN.
    """
    check_part("model", model, Model, "load")
    game = model.game
    states = [from_fen(game, fen) for fen in ([fens] if isinstance(fens, str) else fens)]
    run, rows = _compiled_evaluation(game.name, model.network), []
    for start in range(0, len(states), EVALUATED):
        some = states[start : start + EVALUATED]
        logits, values = run(model.variables, stack_rows(pad_rows(some)))
        rows += zip(some, np.asarray(jax.nn.softmax(logits)), np.asarray(values), strict=False)  # padded at the end
    return [PositionEvaluation(_by_move(game, state, row), float(value - state.reward)) for state, row, value in rows]


def search_position(model: Model, fen: str, num_simulations: int | None = None, seed: int = 0) -> FoundMove:
    """The move of the search it was trained by, without noise; `num_simulations`: None is as in its training.

    Raises ValueError for a wrong FEN, a finished game or a number that the search does not take, SpecError for a
    checkpoint whose search is none, PlayerError for a search that is not sound.
    """
    check_part("model", model, Model, "load")
    state = from_fen(model.game, fen)
    if state.terminated:
        raise ValueError(f"the game is over in {fen!r}: expected a position to play on")
    number = {} if num_simulations is None else {"num_simulations": num_simulations}
    asked = player_specs.match_config({**model.manifest["search"], **number})
    if number.keys() - option_types(type(asked)):
        raise ValueError(f"num_simulations is {num_simulations}, but search {asked.algorithm} makes none: leave it out")
    config = NETWORKS.read(model.manifest["network"])
    search = _compiled_search(player_specs.match_search(model.game.name, config, asked))
    states, keys = stack_rows([state]), jax.random.split(jax.random.key(operator.index(seed) % 2**32), 1)
    found = jax.device_get(search(model.variables, keys, states))
    check_found(states, found.edge, found.search_value)
    move = edge_to_uci(model.game, state, found.edge[0])
    policy = _by_move(model.game, state, found.action_weights[0])
    return FoundMove(move, policy, float(found.value[0]), float(found.search_value[0]))


def play_match(
    a: str | PathLike,
    b: str | PathLike,
    num_games: int = 64,
    num_simulations: int | None = None,
    game: str | None = None,
    seed: int = 0,
) -> MatchResult:
    """Games between two players from random openings of 4 plies, each played with both colors; wins are a's.

    `num_simulations` (None: as in its training) of players that do not say. Raises PlayerError, CheckpointError,
    ValueError for an odd number of games.
    """
    if isinstance(a, Model) or isinstance(b, Model):
        raise TypeError("a player is named as on the command line: expected a checkpoint's path (`save` writes one)")
    if num_games < 2 or num_games % 2 or not hasattr(num_games, "__index__"):
        raise ValueError(f"num_games is {num_games}, expected an even number: each opening is played with both colors")
    found, seed = [specs.read_spec(str(text)) for text in (a, b)], operator.index(seed)
    board = get_game(specs.board_of(found, game))
    with ExitStack() as held:
        players = []
        for spec in found:
            players.append(player_specs.load_player(spec, board.name, num_simulations))
            held.callback(players[-1].close)
        one, other = players[0], player_specs.distinct(players[1], {players[0].name})
        return match.play_match(board, Match(one, other, make_openings(board, num_games // 2, 4, seed), seed))


def rate(path: str | PathLike, method: str = "bradley-terry", anchor: str | None = None) -> Ratings:
    """Ratings of the players of a results.csv or PGN; `method`: bradley-terry, wls or history. Raises ResultsError."""
    return rate_results(read_any_results(path)[0], method, anchor)


def _by_move(game: Game, state: State, weights: np.ndarray) -> dict[str, float]:
    """Weights [S] of the legal moves by UCI, the largest first."""
    moves = zip(legal_moves(game, state), weights.tolist(), strict=False)  # slots hold them in this order
    return dict(sorted(moves, key=lambda pair: -pair[1]))


@lru_cache
def _compiled_evaluation(game_name: str, network: Network):
    return jax.jit(partial(evaluate_states, get_game(game_name), network))


_compiled_search = lru_cache(jax.jit)
