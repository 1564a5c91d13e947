"""Mirror images against python-chess's flip, against FENs read backward, and against games played in the mirror."""

from functools import cache, partial

import chess
import jax
import numpy as np
import pytest
from boards import BATCH, GAMES, KIWIPETE, PROMOTIONS, batched

from alphagateau.games.actions import legal_edge_mask, slots_to_edges
from alphagateau.games.notation import from_fen, legal_moves, to_fen
from alphagateau.games.state import Position, State
from alphagateau.games.symmetry import has_mirror, mirror_edges, mirror_positions, mirror_slots, mirror_square
from alphagateau.games.variants import get_game

WITHOUT_CASTLING = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1"
POSITIONS = {
    "chess": [
        WITHOUT_CASTLING,
        PROMOTIONS,
        KIWIPETE.replace("KQkq", "-"),
        "4k3/1p1p1p1p/8/P1P1P1P1/p1p1pPp1/8/1P5P/4K3 b - f3 0 1",  # en passant from two sides
        "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w - f6 0 3",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    ],
    "gardner_chess": ["rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1", "n1k1r/P3P/5/p3p/R1K1N b - - 3 9"],
    "los_alamos_chess": ["rnqknr/pppppp/6/6/PPPPPP/RNQKNR w - - 0 1", "n1k2r/P4P/6/6/p4p/R2K1N b - - 1 8"],
}
FLIPPED = {  # as the mirror shows the board of a FEN
    fen: "/".join(row[::-1] for row in fen.split()[0].split("/")) for fens in POSITIONS.values() for fen in fens
}


@cache
def mirror(name: str):
    return jax.jit(partial(mirror_positions, get_game(name)))


def many(state: State) -> State:
    """BATCH games of one State, the size for which each game has compiled functions."""
    return jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], BATCH, axis=0), state)


@pytest.mark.parametrize("name", GAMES)
def test_an_edge_and_its_image_lead_between_images_of_squares(name):
    game = get_game(name)
    squares, edges = mirror_square(game.size, np.arange(game.num_squares)), mirror_edges(game)
    files, ranks = np.divmod(np.arange(game.num_squares), game.size)
    assert (squares // game.size == game.size - 1 - files).all() and (squares % game.size == ranks).all()
    for table in (squares, edges):
        assert (table[table] == np.arange(len(table))).all()
    assert (game.senders[edges] == squares[game.senders]).all()
    assert (game.receivers[edges] == squares[game.receivers]).all()
    assert (game.promotions[edges] == game.promotions).all()


@pytest.mark.parametrize(("name", "fen"), [(name, fen) for name in POSITIONS for fen in POSITIONS[name]])
def test_the_image_of_a_position_is_the_position_of_the_flipped_fen(name, fen):
    game = get_game(name)
    color, castling, en_passant, *clocks = fen.split()[1:]
    if en_passant != "-":
        en_passant = "hgfedcba"["abcdefgh".index(en_passant[0])] + en_passant[1]
    flipped = from_fen(game, " ".join([FLIPPED[fen], color, castling, en_passant, *clocks]))
    position = batched(name)[1]
    image = jax.device_get(mirror(name)(position(many(from_fen(game, fen)))))
    jax.tree.map(np.testing.assert_array_equal, image, jax.device_get(position(many(flipped))))


@pytest.mark.parametrize("fen", POSITIONS["chess"])
def test_python_chess_flips_a_board_alike(fen):
    game, board = get_game("chess"), chess.Board(fen).transform(chess.flip_horizontal)
    state = from_fen(game, fen)
    image = jax.tree.map(lambda x: x[0], jax.device_get(mirror("chess")(batched("chess")[1](many(state)))))
    assert to_fen(game, image) == board.fen(en_passant="fen")
    mask = np.unpackbits(image.legal)[: game.num_edges]
    there = legal_moves(game, from_fen(game, board.fen()))
    assert set(there) == {move.uci() for move in board.legal_moves}
    assert np.flatnonzero(mask).tolist() == sorted(there.values())


@pytest.mark.parametrize(("name", "fen"), [(name, fens[0]) for name, fens in POSITIONS.items()])
def test_games_played_in_the_mirror_are_images_with_their_past(name, fen):
    """60 plies of 256 random games, endings and repetitions included, and the same games moved in the mirror."""
    game, (step, position) = get_game(name), batched(name)
    there = from_fen(game, " ".join([FLIPPED[fen], *fen.split()[1:]]))
    one, other = many(from_fen(game, fen)), many(there)
    rng, edges = np.random.default_rng(0), mirror_edges(game)
    for _ in range(60):
        image = jax.device_get(mirror(name)(position(one)))
        jax.tree.map(np.testing.assert_array_equal, image, jax.device_get(position(other)))
        slots = rng.integers(np.maximum((one.legal_edges >= 0).sum(axis=1), 1))
        chosen = one.legal_edges[np.arange(BATCH), slots]
        one, other = jax.device_get((step(one, chosen), step(other, edges[chosen].astype(np.int16))))
        assert (one.terminated == other.terminated).all() and (one.reward == other.reward).all()
    assert one.terminated.any() and (image.repeated > 0).any()


def test_a_castling_right_has_no_image():
    rights = ["KQkq", "K", "q", "-"]
    states = [from_fen(get_game("chess"), f"r3k2r/8/8/8/8/8/8/R3K2R w {right} - 0 1") for right in rights]
    rows = jax.tree.map(lambda *x: np.stack([*x, *[x[0]] * (BATCH - 4)]), *jax.device_get(states))
    assert has_mirror(batched("chess")[1](rows))[:4].tolist() == [False, False, False, True]


@pytest.mark.parametrize("name", GAMES)
def test_what_is_stored_by_slot_follows_its_edge(name):
    game, state = get_game(name), many(from_fen(get_game(name), POSITIONS[name][1]))
    positions = jax.tree.map(lambda x: x[:4], batched(name)[1](state))
    by_slot = np.random.default_rng(0).random((4, game.max_legal_moves)).astype(np.float16)
    by_slot[:, int((state.legal_edges[0] >= 0).sum()) :] = 0

    @jax.jit
    def compare(positions: Position, by_slot):
        moved, image = mirror_slots(game, positions, by_slot), mirror_positions(game, positions)
        by_edge, there = (
            slots_to_edges(legal_edge_mask(game, p), x) for p, x in ((positions, by_slot), (image, moved))
        )
        return moved, by_edge[:, mirror_edges(game)], there

    moved, expected, found = jax.device_get(compare(positions, by_slot))
    assert moved.dtype == by_slot.dtype and (np.sort(moved) == np.sort(by_slot)).all()
    np.testing.assert_array_equal(found, expected)
