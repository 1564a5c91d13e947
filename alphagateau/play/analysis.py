"""Analyses games by a network: what its search thinks of every position."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

import chess
import jax
import numpy as np
from chess.engine import Cp, Mate, MateGiven, Score

from alphagateau.games.notation import board_from_fen, edge_to_uci
from alphagateau.games.pgn.accuracy import AnalysedGame
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.pgn.rule_checks import CheckedGame, RuleCheck
from alphagateau.games.scores import centipawns
from alphagateau.games.state import State
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import select_states
from alphagateau.matches.player_specs import load_player
from alphagateau.matches.players import Player
from alphagateau.matches.specs import SpecError, read_spec
from alphagateau.search.search import Search

ROWS = 32  # positions of a search
GAMES = 16  # whose positions are searched together


def analyse_games(spec: str, num_simulations: int, games: Iterable[CheckedGame]) -> Iterator[AnalysedGame]:
    """The games that were ruled with their States, analysed by the player `spec`, such as a checkpoint.

    `num_simulations` of each search, 0 for none, where the spec has no options. Raises SpecError, CheckpointError.
    """
    has_options = "?" in spec
    found_spec = read_spec(spec if has_options or num_simulations else f"{spec}?simulations=0")
    simulations = None if has_options else num_simulations
    players: dict[str, Player] = {}
    left = ((one.game.record, one.check) for one in games if one.game.record and one.check)
    while batch := list(islice(left, GAMES)):
        found: dict[int, AnalysedGame] = {}
        for name in {record.game for record, _ in batch}:
            if name not in players:
                players[name] = load_player(found_spec, name, simulations)
                if players[name].search is None or not players[name].variables:
                    raise SpecError(f"player {found_spec.path!r} has no network: expected a run or a checkpoint")
            rows = [row for row, (record, _) in enumerate(batch) if record.game == name]
            found |= dict(zip(rows, _analyse(players[name], [batch[row] for row in rows]), strict=True))
        yield from (found[row] for row in range(len(batch)))


def _analyse(player: Player, games: Sequence[tuple[GameRecord, RuleCheck]]) -> Iterator[AnalysedGame]:
    edges, values = _search(player, jax.tree.map(lambda *x: np.concatenate(x), *[ruling.states for _, ruling in games]))
    first, analyst = 0, f"{player.name}, {player.identity.search}"
    for record, ruling in games:
        here = slice(first, first + len(record.moves) + 1)
        is_over = ruling.over == len(record.moves) > 0
        yield _put_together(record, edges[here], values[here], analyst, is_over)
        first = here.stop


def _search(player: Player, states: State) -> tuple[np.ndarray, np.ndarray]:
    """(edges [M], values [M] for the player to move) of States [M], ROWS at a time."""
    count, keys, found = len(states.ply), jax.random.split(jax.random.key(0), ROWS), []
    for first in range(0, count, ROWS):
        rows = np.minimum(np.arange(first, first + ROWS), count - 1).tolist()
        found.append(jax.device_get(_compiled(player.search)(player.variables, keys, select_states(states, rows))))
    edges, values = (np.concatenate(x)[:count] for x in zip(*found, strict=True))
    return edges, values


@lru_cache
def _compiled(search: Search):
    def search_batch(variables, keys, states):
        found = search(variables, keys, states)
        return found.edge, found.search_value

    return jax.jit(search_batch)


def _put_together(
    record: GameRecord, edges: np.ndarray, values: np.ndarray, analyst: str, is_over: bool
) -> AnalysedGame:
    game = get_game(record.game)
    board, found, best = board_from_fen(game, record.start_fen), [], []
    for uci, edge, value in zip([*record.moves, ""], edges.tolist(), values.clip(-1, 1).tolist(), strict=True):
        found.append(value if board.turn else -value)
        best.append(edge_to_uci(game, board, edge) if edge >= 0 else "")
        if uci:
            board.push_uci(uci)
    scores: list[Score] = [Cp(centipawns(value)) for value in found]
    if is_over or not any(board.generate_legal_moves()):
        found[-1], scores[-1], best[-1] = *_end(board), ""
    return AnalysedGame(record, tuple(scores), tuple(50 + 50 * value for value in found), tuple(best), analyst)


def _end(board: chess.Board) -> tuple[float, Score]:
    if not board.is_checkmate():
        return 0.0, Cp(0)
    return (-1.0, Mate(0)) if board.turn else (1.0, MateGiven)
