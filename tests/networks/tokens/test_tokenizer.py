"""Tokens made on the device against the text of a FEN and of UCI moves, as the code of searchless chess reads them."""

import chess
import jax
import numpy as np
import pytest
from boards import CASTLING_AND_PROMOTION, GAMES, KIWIPETE, PROMOTIONS

from alphagateau.games.move_numbers import action_names
from alphagateau.games.notation import board_edges, board_from_fen, board_outcome, from_fens
from alphagateau.games.variants import get_game
from alphagateau.networks.tokens.tokenizer import CHARACTERS, action_tokens, num_position_tokens, position_tokens

BATCH = 256
EN_PASSANT = "4k3/8/8/8/4Pp2/8/8/4K3 b - e3 0 1"
CASTLING = "r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 0 42"
SPECIAL = {
    "chess": [
        CASTLING,
        KIWIPETE,
        CASTLING_AND_PROMOTION,
        PROMOTIONS,
        EN_PASSANT,
        "8/8/8/3k4/8/3K4/2R5/7r b - - 99 256",
    ],
    "gardner_chess": ["2k2/P3P/5/p3p/2K2 w - - 7 11", "n1k1r/P3P/5/p3p/R1K1N b - - 0 119"],
    "los_alamos_chess": ["1k4/4P1/6/6/6/1K4 w - - 3 100", "1r3k/6/6/6/6/K3R1 w - - 60 80"],
}


def tokenize(fen: str) -> list[int]:
    """The published tokenizer, for boards of any size."""
    pieces, side, castling, en_passant, halfmoves, fullmoves = fen.split()
    for digit in "12345678":
        pieces = pieces.replace(digit, "." * int(digit))
    fields = [side, pieces.replace("/", ""), castling.replace("-", "").ljust(4, ".")]
    fields += [en_passant.replace("-", "..").ljust(2, "."), halfmoves.ljust(3, "."), fullmoves.ljust(3, ".")]
    return [CHARACTERS.index(letter) for letter in "".join(fields)]


def random_fens(game, number: int) -> list[str]:
    """The boards of random games by python-chess."""
    rng, board, fens = np.random.default_rng(0), board_from_fen(game, game.start_fen), []
    while len(fens) < number:
        if board_outcome(game, board, 1)[0] != "*":
            board = board_from_fen(game, game.start_fen)
        fens.append(board.fen())
        moves = sorted(move.uci() for move in board.legal_moves)
        board.push_uci(moves[rng.integers(len(moves))])
    return fens


def tokens_of(game, fens: list[str]):
    """(position tokens, action tokens) of FENs."""
    states = from_fens(game, fens + fens[:1] * (BATCH - len(fens)))  # of one size, so compiled once
    positions = jax.vmap(game.position)(states)
    return np.asarray(position_tokens(game, positions)), np.asarray(action_tokens(game, positions))


@pytest.mark.parametrize("name", GAMES)
def test_the_device_and_the_text_say_the_same(name):
    game = get_game(name)
    fens = [game.start_fen, *SPECIAL[name], *random_fens(game, 60)]
    tokens, actions = tokens_of(game, fens)
    number, kinds = {uci: i for i, uci in enumerate(action_names(game))}, set()
    for fen, found, of_edges in zip(fens, tokens, actions, strict=False):
        assert found.tolist() == tokenize(fen), fen
        moves = board_edges(game, board_from_fen(game, fen))
        assert [number[uci] for uci in moves.values()] == of_edges[list(moves)].tolist(), fen
        assert len(set(of_edges.tolist())) == game.num_edges  # no two edges are one action
        kinds |= {uci[4:] for uci in moves.values()}
    assert kinds == {"", "q", *(chess.PIECE_SYMBOLS[kind] for kind in set(game.promotions.tolist()) - {0})}
    assert tokens.shape[1] == num_position_tokens(game) == {"chess": 77, "los_alamos_chess": 49}.get(name, 38)
    assert len(number) == {"chess": 1968, "gardner_chess": 520}.get(name, len(number))


def test_positions_by_hand():
    """The start of chess, and castling rights of both sides with a capture en passant at move 42."""
    game = get_game("chess")
    (start, other), _ = (x[:2] for x in tokens_of(game, [game.start_fen, CASTLING]))
    first, last = "29 20 19 11 22 21 11 19 20", "26 25 24 27 28 24 25 26 28 27 21 22 30 30 0 30 30 1 30 30"
    expected = [*map(int, first.split()), *[18] * 8, *[30] * 32, *[23] * 8, *map(int, last.split())]
    assert start.tolist() == expected and start.sum() == 1944
    assert other[-12:].tolist() == [28, 22, 30, 30, 13, 6, 0, 30, 30, 4, 2, 30] and other.sum() == 2116


def test_actions_are_all_moves_of_a_queen_and_a_knight_and_promotions():
    """By python-chess's tables of attacks."""
    moves = []
    for start in chess.SQUARES:
        ends = chess.BB_KNIGHT_ATTACKS[start] | chess.BB_DIAG_ATTACKS[start][0] | chess.BB_RANK_ATTACKS[start][0]
        moves += [chess.Move(start, end).uci() for end in chess.SquareSet(ends | chess.BB_FILE_ATTACKS[start][0])]
    for color, rank in ((chess.WHITE, 6), (chess.BLACK, 1)):
        for file in range(8):
            start = chess.square(file, rank)
            step = 8 if color else -8
            ends = [start + step, *chess.SquareSet(chess.BB_PAWN_ATTACKS[color][start])]
            moves += [chess.Move(start, end, kind).uci() for end in ends for kind in (2, 3, 4, 5)]
    assert sorted(moves) == sorted(action_names(get_game("chess")))


def test_actions_by_hand():
    """Numbers of the published code; an edge of a pawn and of a queen, of white and of black."""
    game = get_game("chess")
    number = {uci: i for i, uci in enumerate(action_names(game))}
    known = {"a1b1": 0, "e1g1": 102, "g1f3": 169, "e2e4": 317, "e7e5": 1497, "e7e8": 1510, "a2a1q": 1792}
    known |= {"e7e8q": 1924, "e7e8n": 1927, "h7g8n": 1967}
    assert {uci: number[uci] for uci in known} == known and len(number) == 1968
    fens = ["4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", "4k3/4p3/8/8/8/8/8/4K3 b - - 0 1", "8/4P3/8/k7/8/8/8/4K3 w - - 0 1"]
    _, actions = tokens_of(game, [*fens, fens[2].replace("P", "Q")])
    assert actions[:2, 1032].tolist() == [317, 1497] and actions[2:4, 1167].tolist() == [1924, 1510]
