"""Boards of games: each once, finished ones left out, games never cut between training and test."""

from itertools import pairwise
from pathlib import Path

import pytest
from random_games import random_records

from alphagateau.data.positions import board_name, boards_of, gather, split_of
from alphagateau.data.tables import BOARDS, DataError, read_table
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.variants import get_game

CHESS = get_game("chess")


def record(*moves: str, start_fen: str = CHESS.start_fen) -> GameRecord:
    return GameRecord("chess", start_fen, moves, "*")


def gathered(folder: Path, split: str) -> list[dict]:
    return read_table(folder / f"{split}.parquet", BOARDS)[0].to_pylist()


def test_a_board_seen_again_counts_and_keeps_its_first_clocks(tmp_path):
    """The knights go out and back: two of five boards are old ones, with other clocks."""
    game = record("g1f3", "g8f6", "f3g1", "f6g8")
    found = gather(CHESS, [game], tmp_path, 0.0)
    boards = gathered(tmp_path, "train")
    assert [(row["ply"], row["count"]) for row in boards] == [(0, 2), (1, 1), (2, 1), (3, 1)]
    assert boards[0]["fen"] == CHESS.start_fen and found.repeated == 1 and found.boards == {"train": 4, "test": 0}


def test_en_passant_makes_another_board_only_where_it_is_legal(tmp_path):
    """After e2e4 nobody can take; after e4e5 d7d5 white can."""
    boards = {board.ply: board.key for board in boards_of(CHESS, record("e2e4", "a7a6", "e4e5", "d7d5"))}
    assert boards[1].endswith("b KQkq -") and boards[4].endswith("w KQkq d6")


def test_a_finished_board_is_not_one_to_label():
    mated = record("f2f3", "e7e5", "g2g4", "d8h4")
    assert [board.ply for board in boards_of(CHESS, mated)] == [0, 1, 2, 3]
    drawn = record("a1a2", start_fen="8/8/8/3k4/8/3K4/8/R6r w - - 99 80")
    assert [board.ply for board in boards_of(CHESS, drawn)] == [0]


def test_boards_after_random_moves_follow_theirs_and_depend_on_nothing_else(gardner, tmp_path):
    for one in random_records(gardner, 5, seed=3):
        played, found = list(boards_of(gardner, one)), list(boards_of(gardner, one, 1.0))
        assert [board for board in found if board in played] == played
        for before, board in pairwise(found):
            if board not in played:  # a legal move away from the board that it follows
                successors = set()
                for uci in board_edges(gardner, board_from_fen(gardner, before.fen)).values():
                    after = board_from_fen(gardner, before.fen)
                    after.push_uci(uci)
                    successors.add(after.fen(en_passant="legal"))
                assert board.fen in successors and board.ply == before.ply + 1 and board.game == before.game
    records, keys = random_records(gardner, 20, seed=3), {}
    for share in (0.0, 0.5, 1.0):
        gather(gardner, records, tmp_path, 0.3, random_moves=share)
        keys[share] = {row["fen"].rsplit(" ", 2)[0] for split in ("train", "test") for row in gathered(tmp_path, split)}
    assert keys[0.0] < keys[0.5] < keys[1.0]
    assert 0.4 < len(keys[0.5] - keys[0.0]) / len(keys[1.0] - keys[0.0]) < 0.6


def test_boards_of_a_game_stay_together_whatever_the_order(gardner, tmp_path):
    records = random_records(gardner, 30, seed=1)
    gather(gardner, records, tmp_path, 0.3)
    games = {split: {row["game"] for row in gathered(tmp_path, split)} for split in ("train", "test")}
    assert games["train"] and games["test"] and not games["train"] & games["test"]
    for split, found in games.items():
        assert {split_of(game, 0.3) for game in found} == {split}
    fens = [row["fen"].rsplit(" ", 2)[0] for split in ("train", "test") for row in gathered(tmp_path, split)]
    assert len(fens) == len(set(fens))


def test_a_sample_does_not_depend_on_the_order_of_the_games(gardner, tmp_path):
    records = random_records(gardner, 10, seed=2)
    samples = []
    for order in (records, records[::-1]):
        found = gather(gardner, order, tmp_path, 0.0, max_boards=50)
        assert found.boards["train"] == 50
        samples.append({row["fen"].rsplit(" ", 2)[0] for row in gathered(tmp_path, "train")})
    assert samples[0] == samples[1]


def test_halves_of_two_gatherings_are_refused(gardner, tmp_path):
    """As a kill between the two leaves them, when a folder is used again with another share: they may overlap."""
    records = random_records(gardner, 4, seed=2)
    for name, share in (("old", 0.5), ("new", 0.25)):
        (tmp_path / name).mkdir()
        gather(gardner, records, tmp_path / name, share)
    assert board_name(tmp_path / "new") == "gardner_chess"
    (tmp_path / "new" / "test.parquet").write_bytes((tmp_path / "old" / "test.parquet").read_bytes())
    with pytest.raises(DataError, match=r"new holds train.parquet and test.parquet of two gatherings"):
        board_name(tmp_path / "new")


def test_no_board_is_refused(tmp_path):
    with pytest.raises(DataError, match="the 0 games hold no board of chess"):
        gather(CHESS, [], tmp_path, 0.1)
