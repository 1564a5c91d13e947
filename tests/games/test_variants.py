"""A game is one entry: what is said of the entries, and a toy game that is added by nothing else."""

from dataclasses import replace

import chess.variant
import jax
import numpy as np
import pytest

from alphagateau.config import ConfigError
from alphagateau.games.entries import CHESS, GAMES, KNIGHT, ROOK, GameEntry
from alphagateau.games.notation import edge_to_uci, from_fen, legal_moves, outcome, to_fen
from alphagateau.games.pgn.pgn import read_pgn, record_game, to_pgn
from alphagateau.games.small_boards import board_class
from alphagateau.games.variants import get_game

TOY = GameEntry(
    name="silverman_chess",
    size=4,
    start_fen="rqkr/pppp/PPPP/RQKR w - - 0 1",
    max_legal_moves=80,
    max_plies=60,
    variant_names=("Silverman", "Silverman 4x4"),
    uci_variant="silverman",
    under_promotions=(KNIGHT, ROOK),
)


WIDE = replace(
    TOY,
    name="wide_chess",
    size=8,
    start_fen="r6r/1ppkpp2/8/8/3n4/8/1PPKPP2/R6R w - - 0 1",
    max_legal_moves=120,
    variant_names=("Wide",),
    uci_variant="wide",
)


@pytest.fixture
def toy(monkeypatch, request):
    entry = getattr(request, "param", TOY)
    monkeypatch.setitem(GAMES._entries, entry.name, entry)
    monkeypatch.setattr(chess.variant, "VARIANTS", [*chess.variant.VARIANTS])
    return get_game(entry.name)


@pytest.mark.parametrize(("toy", "num_games"), [(TOY, 12), (WIDE, 2)], indirect=["toy"])
def test_a_game_is_added_by_one_entry(toy, num_games):
    """Random games of it, held against python-chess's board, which finds moves in its own way.

    On 8x8, whose rows may end in a piece, no FEN of it could be read.
    """
    assert to_fen(toy, toy.init()) == toy.start_fen
    step, rng, endings = jax.jit(toy.step), np.random.default_rng(1), set()
    for _ in range(num_games):
        state, board, edges = toy.init(), toy.board_class(), []
        while not state.terminated:
            moves = legal_moves(toy, state)
            assert set(moves) == {move.uci() for move in board.legal_moves}
            edges.append(moves[str(rng.choice(sorted(moves)))])
            board.push_uci(edge_to_uci(toy, state, edges[-1]))
            state = step(state, edges[-1])
            assert to_fen(toy, state) == board.fen() == to_fen(toy, from_fen(toy, board.fen()))
        record = record_game(toy, edges)
        assert (record.result, record.termination) == outcome(toy, state)
        endings.add(record.termination)
        (read,) = read_pgn(to_pgn(record))
        assert (read.game, read.moves, read.result) == (toy.name, record.moves, record.result)
    assert ("checkmate" in endings or num_games < 12) and "unterminated" not in endings


@pytest.mark.parametrize(
    ("size", "start_fen"), [(9, TOY.start_fen), (5, TOY.start_fen), (4, "rqkr/pppp/PPPP/RQK w - - 0 1"), (2, "k1/K1 w")]
)
def test_a_board_whose_start_has_another_size_is_refused(size, start_fen):
    """It was an IndexError when the board was first used."""
    with pytest.raises(
        ConfigError, match=f"'silverman_chess': size must be 3 to 8, as start_fen's ranks .*], got {size}"
    ):
        replace(TOY, size=size, start_fen=start_fen)


def test_a_promotion_that_the_toy_lacks_has_no_edge(toy):
    assert set(toy.promotions) == {0, KNIGHT, ROOK}
    state = from_fen(toy, "3k/P3/4/K3 w - - 0 1")
    assert {uci for uci in legal_moves(toy, state) if uci.startswith("a3")} == {"a3a4q", "a3a4r", "a3a4n"}


@pytest.mark.parametrize("toy", [WIDE], indirect=True)
def test_promotions_of_a_board_of_8x8_are_listed_once(toy):
    """python-chess lists all of them there, and each was expanded to all."""
    for fen in ("7k/P7/8/8/8/8/8/K7 w - - 0 1", "k7/8/8/8/8/8/p7/7K b - - 0 1"):
        board = toy.board_class(fen)
        assert sorted(move.uci() for move in board.legal_moves) == sorted(legal_moves(toy, from_fen(toy, fen)))


def test_a_small_board_cannot_castle_in_python_chess(monkeypatch):
    monkeypatch.setitem(GAMES._entries, "castling", replace(TOY, name="castling", castlings=CHESS.castlings))
    with pytest.raises(
        ValueError, match="game 'castling' has castling or double steps: expected none, or a board_class"
    ):
        board_class("castling")


def test_the_entries_have_names_of_their_own():
    assert tuple(GAMES)[:3] == ("chess", "gardner_chess", "los_alamos_chess")
    assert [name for name, entry in GAMES.items() if name != entry.name] == []
    names = [alias.lower() for entry in GAMES.values() for alias in entry.variant_names]
    assert len(names) == len(set(names))
