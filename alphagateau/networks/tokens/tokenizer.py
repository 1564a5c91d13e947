"""Tokenizes positions and moves on the device: FENs, character by character in fields of fixed width, and UCI moves.

The tokens are those of the code of searchless chess (Ruoss et al. 2024; tokenizer.py and utils.py). Like a FEN they are
written from White's side in true colors. On 8x8 there are 77 (the paper's text adds up to 76), on N squares N + 13:

    side to move 1 | squares N, the last rank first | castling 4 | en passant 2 | halfmove clock 3 | move number 3
"""

from functools import lru_cache
from typing import NamedTuple

import chess
import jax.numpy as jnp
import numpy as np

from alphagateau.games.entries import PAWN
from alphagateau.games.move_numbers import action_names
from alphagateau.games.notation import edges_by_uci
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.games.variants import get_game

# A token is an index into it; b is bishop, file and black, . pads fields.
CHARACTERS = "0123456789abcdefghpnrkqPBNRQKw."
PIECES = "kqrbnp.PNBRQK"  # by piece code + 6, positive codes being white's
DIGITS = 3  # of a number; larger ones are written as 999


class Tables(NamedTuple):
    """Tables from which tokens are gathered; the first axis is the color to move, 0 white."""

    squares: np.ndarray  # int32 [2, N], of each place of a FEN's board its square, by numbers of the player to move
    castling: np.ndarray  # int32 [2, 16, 4], by the bits of `Position.castling`
    en_passant: np.ndarray  # int32 [2, N + 1, 2], by square; the last row is of none
    actions: np.ndarray  # int32 [2, 2, E], the action of an edge, for other pieces and for pawns
    pieces: np.ndarray  # int32 [13], by piece code + 6
    numbers: np.ndarray  # int32 [1000, DIGITS]


def num_position_tokens(game: Game) -> int:
    """Tokens of a position, 77 on 8x8."""
    return game.num_squares + 13


def position_tokens(game: Game, positions: Position) -> Array:
    """int32 [B, T] of Positions [B]: the characters of their FENs."""
    tables, color = make_tables(game.name), positions.color.astype(jnp.int32)
    places = jnp.asarray(tables.squares)[color]
    codes = jnp.take_along_axis(positions.boards[:, 0].astype(jnp.int32), places, axis=1) * (1 - 2 * color)[:, None]
    side = jnp.where(color == 0, *(jnp.int32(CHARACTERS.index(letter)) for letter in "wb"))
    clocks = positions.halfmove_count.astype(jnp.int32), positions.ply.astype(jnp.int32) // 2 + 1
    fields = [
        side[:, None],
        jnp.asarray(tables.pieces)[codes + 6],
        jnp.asarray(tables.castling)[color, positions.castling.astype(jnp.int32)],
        jnp.asarray(tables.en_passant)[color, positions.en_passant.astype(jnp.int32)],  # -1 is the last row
        *(jnp.asarray(tables.numbers)[jnp.clip(clock, 0, 10**DIGITS - 1)] for clock in clocks),
    ]
    return jnp.concatenate(fields, axis=1)


def action_tokens(game: Game, positions: Position) -> Array:
    """int32 [B, E] of Positions [B]: the number of each edge's move in `action_names`, by White's names of squares.

    A pawn's edge to the last rank without an under-promotion promotes to a queen.
    """
    is_pawn = positions.boards[:, 0][:, game.senders] == PAWN
    actions = jnp.asarray(make_tables(game.name).actions)[positions.color.astype(jnp.int32)]
    piece_actions, pawn_actions = jnp.moveaxis(actions, 1, 0)
    return jnp.where(is_pawn, pawn_actions, piece_actions)


@lru_cache
def make_tables(game_name: str) -> Tables:
    """The Tables of a game's board."""
    game = get_game(game_name)
    size, number = game.size, {name: i for i, name in enumerate(action_names(game))}
    (file, rank), (to_file, to_rank) = (np.divmod(x, size) for x in (game.senders, game.receivers))
    is_queening = (rank == size - 2) & (to_rank == size - 1) & (abs(to_file - file) <= 1) & (game.promotions == 0)
    ranks = [range(size), range(size - 1, -1, -1)]  # of the player to move, for White's 0, 1, ...
    squares = [
        [file * size + rank_of[rank] for rank in reversed(range(size)) for file in range(size)] for rank_of in ranks
    ]
    castling, en_passant, actions = [], [], []
    for is_black, rank_of in enumerate(ranks):
        order = "qkQK" if is_black else "QKqk"  # the bits: own queen's side, own king's, the opponent's two
        rights = [[letter for letter in "KQkq" if bits >> order.index(letter) & 1] for bits in range(16)]
        castling.append([_write("".join(letters), 4) for letters in rights])
        names = [chess.square_name(chess.square(at // size, rank_of[at % size])) for at in range(size**2)]
        en_passant.append([_write(name, 2) for name in [*names, ""]])
        moves = edges_by_uci(game_name, not is_black)
        of_pawns = [uci + "q" * queens for uci, queens in zip(moves, is_queening.tolist(), strict=True)]
        actions.append([[number[uci] for uci in names_of] for names_of in (moves, of_pawns)])
    return Tables(
        squares=np.array(squares, np.int32),
        castling=np.array(castling, np.int32),
        en_passant=np.array(en_passant, np.int32),
        actions=np.array(actions, np.int32),
        pieces=np.array(_write(PIECES, len(PIECES)), np.int32),
        numbers=np.array([_write(str(n), DIGITS) for n in range(10**DIGITS)], np.int32),
    )


def _write(text: str, width: int) -> list[int]:
    """The tokens of a field, padded on the right."""
    return [CHARACTERS.index(letter) for letter in text.ljust(width, ".")]
