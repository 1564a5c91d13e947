"""A network's view of a game: values, policy, a search in progress, attention.

All values are white's, in [-1, 1], as the value bar shows them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import chess
import jax
import numpy as np

from alphagateau.games.notation import edge_to_uci, edges_by_uci, legal_moves, outcome, to_board
from alphagateau.games.rules import Game
from alphagateau.games.state import State, pad_rows, stack_rows
from alphagateau.games.variants import get_game
from alphagateau.matches.specs import PlayerError, PlayerSpec
from alphagateau.networks.chessformer.network import make_square_attention
from alphagateau.networks.gateau.attention import make_attention
from alphagateau.networks.network import Variables
from alphagateau.networks.trained import network_config
from alphagateau.play.board.requests import GameRequest
from alphagateau.play.thinking import Limits, Played, Thinker, Watch, choose, make_thinker, replay, think
from alphagateau.search.growing.anytime import BATCH, Leaves
from alphagateau.search.growing.tree_lines import Line, lines, prior_weights, root_value

TREE_MEGABYTES = 128
REPORT_SECONDS = 0.15  # between two reports of a search
RESULTS = {"1-0": 1.0, "1/2-1/2": 0.0, "0-1": -1.0}

Report = Callable[[Mapping[str, Any]], None]


@dataclass(eq=False)
class Engine:
    """A checkpoint's network on a board, compiled."""

    thinker: Thinker
    attend: Callable[[Variables, State], jax.Array] | None  # [L, E] or, with heads, [L * H, N * N], of one State
    heads: int = 0  # H of attention between squares; 0: it is of edges
    turn: anyio.Lock = field(default_factory=anyio.Lock)  # held by the one search that the tree is for


def load_engine(player: PlayerSpec, game_name: str) -> Engine:
    """Raises CheckpointError if the weights are damaged, or do not fit the board."""
    thinker, game = make_thinker(player, game_name, TREE_MEGABYTES), get_game(game_name)
    config = network_config(player.found)
    of_squares = make_square_attention(game, config)
    attention = of_squares or make_attention(game, config)

    def attend(variables: Variables, state: State) -> jax.Array:
        assert attention
        weights = attention(variables, jax.tree.map(lambda x: x[None], game.position(state)))[0]
        return weights.reshape(-1, game.num_squares**2) if of_squares else weights

    heads = config.num_heads if of_squares else 0
    return Engine(thinker, jax.jit(attend) if attention else None, heads)


def view(engine: Engine, request: GameRequest) -> dict[str, Any]:
    """Values, or results, of the positions from ply `since` on, and the policy at the last, by UCI."""
    game, played, found = engine.thinker.game, None, []
    for ply in range(request.since, len(request.moves) + 1):
        played = replay(engine.thinker, request.fen, request.moves[:ply], played)
        found.append(played.state)
    leaves = [_evaluate(engine.thinker, found[i : i + BATCH]) for i in range(0, len(found), BATCH)]
    values = np.concatenate([part.values for part in leaves])
    moves = legal_moves(game, found[-1])
    logits = leaves[-1].prior_logits[(len(found) - 1) % BATCH, : len(moves)]
    weights = np.exp(logits - logits.max(initial=-np.inf))
    policy = dict(zip(moves, (weights / weights.sum()).tolist(), strict=True))
    pairs = zip(found, values, strict=False)  # the last batch ends in rows of no meaning
    results = [RESULTS.get(outcome(game, state)[0], _sign(state) * float(value)) for state, value in pairs]
    return {"values": results, "policy": policy}


def _evaluate(thinker: Thinker, states: Sequence[State]) -> Leaves:
    batch = stack_rows(pad_rows(states, BATCH))
    found = jax.tree.map(np.asarray, thinker.tree.evaluate(thinker.tree.variables, batch, np.full(BATCH, -1, np.int32)))
    logits = np.where(found.states.legal_edges >= 0, found.prior_logits, 0)
    if not (np.isfinite(found.values).all() and np.isfinite(logits).all()):
        raise PlayerError("the network is not sound: a value or a legal move's logit is not finite")
    return found


def _sign(state: State) -> int:
    """What turns a value of the player to move into white's."""
    return 1 if int(state.color) == 0 else -1


def searched(thinker: Thinker, played: Played, done: int) -> dict[str, Any]:
    """How far a search of a position is: each move with prior, visits and value, the best first, and its line."""
    game, sign, priors = thinker.game, _sign(played.state), prior_weights(thinker.tree)
    board = to_board(game, played.state)
    found = lines(thinker.tree, game.max_legal_moves)
    moves = [
        {
            "uci": edge_to_uci(game, board, line.edges[0]),
            "prior": priors[line.edges[0]],
            "visits": line.visits,
            "value": sign * line.value if line.visits or thinker.evaluate_root else None,
            "mate": None if line.mate is None else sign * line.mate,
        }
        for line in found
    ]
    line = _line(game, board, found[0]) if found else []
    unit = "positions" if thinker.evaluate_root else "simulations"
    return {"done": done, "unit": unit, "value": sign * root_value(thinker.tree), "moves": moves, "line": line}


def _line(game: Game, board: chess.Board, line: Line) -> list[dict[str, str]]:
    board, found = board.copy(), []
    for edge in line.edges:
        move = chess.Move.from_uci(edge_to_uci(game, board, edge))
        found.append({"uci": move.uci(), "san": board.san(move)})
        board.push(move)
    return found


def search(engine: Engine, request: GameRequest, is_stopped: Callable[[], bool], report_fn: Report) -> dict[str, Any]:
    """Searches the last position, reporting now and then how far it is. Returns the last report, with the move.

    For one caller at a time, with the engine's `turn`.
    """
    thinker, reported = engine.thinker, time.monotonic()
    played = replay(thinker, request.fen, request.moves)

    def report(done: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_SECONDS:
            report_fn(searched(thinker, played, done))
            reported = time.monotonic()

    _, done = think(thinker, played, Limits(request.simulations), Watch(reported, is_stopped, report))
    line = choose(thinker, played, request.temperature, request.seed)
    move = line and edge_to_uci(thinker.game, played.state, line.edges[0])
    return {**searched(thinker, played, done), "move": move}


def attended(engine: Engine, request: GameRequest) -> dict[str, Any]:
    """The edges of the board, as UCI, and the weight of each in each layer, in ten-thousandths.

    Of a Chessformer edges are all pairs of squares, the one attended to first, and each layer has `heads` rows, head
    by head. Raises ValueError for a network without attention.
    """
    if engine.attend is None:
        raise ValueError("the network of this checkpoint has no attention: expected a GATEAU or a Chessformer")
    thinker = engine.thinker
    state = replay(thinker, request.fen, request.moves).state
    weights = np.asarray(engine.attend(thinker.tree.variables, state))
    name, is_white = thinker.game.name, int(state.color) == 0  # each edge as UCI, a plain one without its promotion
    names = pair_names(name, is_white) if engine.heads else list(edges_by_uci(name, is_white))
    return {"edges": names, "layers": np.rint(weights * 10_000).astype(int).tolist(), "heads": engine.heads}


def pair_names(game_name: str, is_white: bool) -> list[str]:
    """Each pair of squares as UCI, query by query, the key first, seen by the player to move."""
    size = get_game(game_name).size
    ranks = range(1, size + 1) if is_white else range(size, 0, -1)
    squares = [f"{file}{rank}" for file in "abcdefgh"[:size] for rank in ranks]
    return [key + query for query in squares for key in squares]
