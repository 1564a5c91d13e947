"""Games replayed by the rules on the device: what python-chess plays is legal, and ends where the oracles say."""

from dataclasses import replace

import pytest
from boards import GAMES
from test_pgn import edges_of, play_out

from alphagateau.games.notation import to_fen
from alphagateau.games.pgn.pgn import GameRecord, read_pgn, record_game, replay, to_pgn
from alphagateau.games.pgn.rule_checks import check_games, check_records
from alphagateau.games.pgn.text import read_games
from alphagateau.games.state import State
from alphagateau.games.variants import get_game


@pytest.mark.parametrize("name", GAMES)
def test_random_games_are_legal_and_over_where_they_end(name):
    game, lines = get_game(name), [play_out(name, seed) for seed in range(5)]
    records = [record_game(game, edges_of(line)) for line in lines]
    for record, line, ruling in zip(records, lines, check_records(game, records, with_states=True), strict=True):
        assert ruling.illegal == 0 and ruling.states is not None
        assert ruling.over == (0 if record.result == "*" else len(record.moves))
        fens = [to_fen(game, State(*(x[ply] for x in ruling.states))) for ply in range(len(record.moves) + 1)]
        assert fens == line.fens


def test_the_first_illegal_move_is_named():
    game = get_game("gardner_chess")
    record = GameRecord("gardner_chess", game.start_fen, ("a2a3", "e4e2", "a3a2", "e2e4"), "*")
    off_board = replace(record, moves=("a2a3", "a4h8"))
    fine = replace(record, moves=("a2a3", "b4a3"))
    assert [found.illegal for found in check_records(game, [record, off_board, fine])] == [2, 2, 0]


def test_a_game_may_go_on_after_a_draw_by_repetition():
    shuffle = "Nf3 Nf6 Ng1 Ng8 " * 3
    (one,) = check_games(read_games([f"{shuffle} e4 e5 *"]))
    assert one.fault == "" and one.check and one.check.over == 8


def test_games_of_several_boards_keep_their_order():
    texts = [to_pgn(record_game(get_game(name), edges_of(play_out(name, seed)))) for seed in (1, 2) for name in GAMES]
    texts.insert(3, "1. e5 *\n\n")
    judged = list(check_games(read_games("".join(texts).splitlines())))
    assert [one.record and one.record.game for one in judged] == [*GAMES, None, *GAMES]
    assert judged[3].check is None and judged[3].ply == 1
    assert replay(judged[0].written).record == read_pgn(texts[0])[0]
