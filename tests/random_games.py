"""Random games played by ours and by an oracle side by side, every position compared."""

from collections import Counter
from operator import itemgetter
from typing import NamedTuple

import chess
import jax
import numpy as np
from boards import BATCH, CASTLING_AND_PROMOTION, KIWIPETE, PROMOTIONS, batched
from oracles import Line, Said, codes_of

from alphagateau.games.notation import board_from_fen, board_outcome, from_fen, legal_moves, outcome, to_fen
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.rules import Game
from alphagateau.games.state import HISTORY, Position, State
from alphagateau.games.variants import get_game

SAMPLED = {  # where the random games start; the rarer events need a position that leads to them
    "chess": [
        get_game("chess").start_fen,
        get_game("chess").start_fen,
        KIWIPETE,
        "r3k2r/1b4bq/8/8/8/8/7B/R3K2R w KQkq - 0 1",  # rooks are captured at home
        "r3k2r/8/3Q4/8/8/5q2/8/R3K2R b KQkq - 0 1",
        "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",  # double steps, en passant, races
        "4k3/1p1p1p1p/8/P1P1P1P1/p1p1p1p1/8/1P1P1P1P/4K3 w - - 0 1",
        "4k3/p1p1p1p1/8/1P1P1P1P/1p1p1p1p/8/P1P1P1P1/4K3 b - - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",  # en passant along a pinned rank
        PROMOTIONS,
        CASTLING_AND_PROMOTION,
        "k7/P7/2K5/8/8/8/8/8 w - - 0 1",  # stalemate
        "8/8/8/3k4/8/3K4/2R5/7r w - - 60 80",  # fifty moves, repetitions
        "8/8/4k3/8/8/3BK3/8/5n2 w - - 90 120",  # insufficient material
        "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 245",  # the ply limit
    ],
    "gardner_chess": [
        get_game("gardner_chess").start_fen,
        get_game("gardner_chess").start_fen,
        get_game("gardner_chess").start_fen,
        "2k2/P3P/5/p3p/2K2 w - - 0 1",  # promotions
        "n1k1r/P3P/5/p3p/R1K1N b - - 0 1",
        "1r2k/5/5/5/K2R1 w - - 60 80",
        "3bk/5/2P2/5/K1B2 w - - 90 100",
        "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 119",
    ],
    "los_alamos_chess": [
        get_game("los_alamos_chess").start_fen,
        get_game("los_alamos_chess").start_fen,
        "2k3/P4P/6/6/p4p/2K3 w - - 0 1",  # promotions
        "n1k2r/P4P/6/6/p4p/R2K1N b - - 0 1",
        "k5/3PPP/6/6/3ppp/K5 w - - 0 1",
        "k5/P5/2K3/6/6/6 w - - 0 1",  # stalemate
        "1r3k/6/6/6/6/K3R1 w - - 60 80",
        "4nk/6/3P2/6/6/K1N3 w - - 80 100",
        "rnqknr/pppppp/6/6/PPPPPP/RNQKNR w - - 0 183",
    ],
}


class Sample(NamedTuple):
    """Random games of both programs side by side."""

    name: str
    positions: int
    played: Counter  # kinds of moves
    endings: Counter  # reasons
    differences: dict[str, list]  # what differed: (start FEN, moves, ours, theirs)


def choose(line: Line, legal: set[str], is_back_and_forth: bool, rng: np.random.Generator) -> str:
    """A random move with a liking for the rarer kinds, or in some games for going back and forth."""
    back = line.moves[-2][2:4] + line.moves[-2][:2] if len(line.moves) >= 2 else ""
    if is_back_and_forth and back in legal and rng.random() < 0.7:
        return back
    kinds: dict[str, list[str]] = {}
    for uci in sorted(legal):
        kinds.setdefault(kind_of(line, uci), []).append(uci)
    kind = str(rng.choice(sorted(kinds))) if rng.random() < 0.6 else "other"
    return str(rng.choice(kinds.get(kind) or sorted(legal)))


def kind_of(line: Line, uci: str) -> str:
    if len(uci) == 5:
        return "promotion" if uci[4] == "q" else "under-promotion"
    move = chess.Move.from_uci(uci)
    if line.board.is_castling(move):
        return "castling"
    if line.board.piece_type_at(move.from_square) == chess.PAWN:
        if abs(move.from_square - move.to_square) == 16:
            return "double step"
        return "en passant" if line.board.is_en_passant(move) else "other"
    return "other"


def compare(game: Game, line: Line, said: Said, state: State, position: Position) -> dict:
    """(ours, the oracle's) of all that is said of a position."""
    mask = np.unpackbits(position.legal)[: game.num_edges]
    bits = np.unpackbits(position.repeated[None], bitorder="little").astype(bool).tolist()
    return {
        "FEN": (to_fen(game, state), said.fen),
        "FEN of the Position": (to_fen(game, position), said.fen),
        "legal moves": (set(legal_moves(game, state)), said.legal),
        "legal mask": (np.flatnonzero(mask).tolist(), [e for e in state.legal_edges if e >= 0]),
        "terminated": (bool(state.terminated), said.reason != "unterminated"),
        "reward": (float(state.reward), float(said.reason == "checkmate")),
        "reason": (outcome(game, state)[1], said.reason),
        "boards": (state.boards.tolist(), history_of(line)),
        "repeated": (bits, (said.repeated + [False] * HISTORY)[:HISTORY]),
    }


def history_of(line: Line) -> list[list[int]]:
    is_white = line.fens[-1].split()[1] == "w"
    recent = [codes_of(fen, is_white) for fen in reversed(line.fens[-HISTORY:])]
    return recent + [[0] * len(recent[0])] * (HISTORY - len(recent))


def sample_games(name: str, num_rows: int, num_plies: int, seed: int, confirm_every: int = 10) -> Sample:
    """Plays random games in parallel, comparing every position; a finished game starts anew."""
    game, rng = get_game(name), np.random.default_rng(seed)
    step, position = batched(name)
    starts = [(fen, jax.device_get(from_fen(game, fen))) for fen in SAMPLED[name]]
    games = [starts[row % len(starts)] for row in range(BATCH)]
    lines = [Line(name, fen, confirm_every) for fen, _ in games[:num_rows]]
    states = jax.tree.map(lambda *x: np.stack(x), *(state for _, state in games))
    played, endings, differences = Counter(), Counter(), {}
    for _ in range(num_plies):
        positions = jax.device_get(position(states))
        edges = states.legal_edges[:, 0].copy()
        for row in range(num_rows):
            line, said = lines[row], lines[row].say()
            state, seen = jax.tree.map(itemgetter(row), (states, positions))
            for what, (ours, theirs) in compare(game, line, said, state, seen).items():
                if ours != theirs:
                    differences.setdefault(what, []).append((line.start, line.moves, ours, theirs))
            if said.reason != "unterminated":
                endings[said.reason] += 1
                fen, state = starts[rng.integers(len(starts))]
                lines[row] = line = Line(name, fen, confirm_every)
                for column, value in zip(states, state, strict=True):
                    column[row] = value
            moves = legal_moves(game, state)
            uci = choose(line, set(moves), row % 3 == 0, rng)
            played[kind_of(line, uci)] += 1
            line.push(uci)
            edges[row] = moves[uci]
        states = jax.tree.map(np.array, jax.device_get(step(states, edges)))
    return Sample(name, num_rows * num_plies, played, endings, differences)


def random_records(game: Game, number: int, seed: int) -> list[GameRecord]:
    """Games of random moves from the usual start to their end, by python-chess."""
    rng, records = np.random.default_rng(seed), []
    for _ in range(number):
        board, moves = board_from_fen(game, game.start_fen), []
        while board_outcome(game, board, 1)[0] == "*":
            legal = sorted(move.uci() for move in board.legal_moves)
            moves.append(legal[rng.integers(len(legal))])
            board.push_uci(moves[-1])
        records.append(GameRecord(game.name, game.start_fen, tuple(moves), board_outcome(game, board, 1)[0]))
    return records
