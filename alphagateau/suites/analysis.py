"""Analyses games by a network: what its search thinks of every position."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import chess
import jax
import numpy as np
from chess.engine import Cp, Mate, MateGiven, Score

from alphagateau.games.notation import board_from_fen
from alphagateau.games.pgn.analysed import AnalysedGame
from alphagateau.games.pgn.pgn import GameRecord, Replayed, RuleCheck
from alphagateau.games.pgn.text import WrittenGame
from alphagateau.games.scores import centipawns
from alphagateau.games.variants import get_game
from alphagateau.matches.player_specs import load_player
from alphagateau.matches.players import Player
from alphagateau.matches.specs import SpecError, read_spec
from alphagateau.suites.answers import find_answers, positions_of_states

ROWS = 32  # positions of a search
GAMES = 16  # whose positions are searched together


def analyse_games(
    spec: str, num_simulations: int, games: Iterable[Replayed]
) -> Iterator[tuple[WrittenGame, AnalysedGame]]:
    """The games that were ruled with their States, as written and analysed by the player `spec`, such as a checkpoint.

    `num_simulations` of each search, 0 for none, where the spec has no options. Raises SpecError, CheckpointError.
    """
    found_spec, simulations = read_spec(spec), None if "?" in spec else num_simulations
    players: dict[str, Player] = {}
    left = ((one.written, one.record, one.check) for one in games if one.record and one.check)
    while batch := list(islice(left, GAMES)):
        found: dict[int, AnalysedGame] = {}
        for name in {record.game for _, record, _ in batch}:
            if name not in players:
                players[name] = load_player(found_spec, name, simulations)
                if players[name].search is None or not players[name].variables:
                    raise SpecError(f"player {found_spec.path!r} has no network: expected a run or a checkpoint")
            rows = [row for row, (_, record, _) in enumerate(batch) if record.game == name]
            found |= dict(zip(rows, _analyse(players[name], [batch[row][1:] for row in rows]), strict=True))
        yield from ((written, found[row]) for row, (written, _, _) in enumerate(batch))


def _analyse(player: Player, games: Sequence[tuple[GameRecord, RuleCheck]]) -> Iterator[AnalysedGame]:
    board, states = get_game(games[0][0].game), [ruling.states for _, ruling in games]
    whole = jax.tree.map(lambda *x: np.concatenate(x), *states)
    whole = whole._replace(terminated=whole.legal_edges[:, 0] < 0)  # a minimax of no move would not end
    positions = positions_of_states(board, whole, seed=0)
    parts = list(find_answers(board, player, positions, ROWS))
    moves = [move for part in parts for move in part.moves]
    values = np.concatenate([part.output.search_value for part in parts if part.output])
    first, analyst = 0, f"{player.name}, {player.identity.search}"
    for record, ruling in games:
        here = slice(first, first + len(record.moves) + 1)
        is_over = ruling.over == len(record.moves) > 0
        yield _put_together(record, moves[here], values[here], analyst, is_over)
        first = here.stop


def _put_together(
    record: GameRecord, best: Sequence[str], values: np.ndarray, analyst: str, is_over: bool
) -> AnalysedGame:
    board, best, found = board_from_fen(get_game(record.game), record.start_fen), [*best], []
    for uci, value in zip([*record.moves, ""], values.clip(-1, 1).tolist(), strict=True):
        found.append(value if board.turn else -value)
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
