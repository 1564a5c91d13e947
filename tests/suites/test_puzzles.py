"""Puzzles: files read and refused, lines that must be found whole, mates that are taken for them."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from random_games import random_records

from alphagateau.games.notation import board_edges, to_fen
from alphagateau.games.pgn.text_files import TextFileError
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import one_state
from alphagateau.matches.players import Player
from alphagateau.search.search import SearchOutput
from alphagateau.suites.puzzles import Puzzle, read_puzzles
from alphagateau.suites.solving import find_states, solve

HEADER = "PuzzleId,FEN,Moves,Rating,Themes"
MATE = "k4/p2P1/2K2/P4/5 b - - 0 19"  # of 5x5: after a5b5, d4d5 mates as a queen and as a rook
AFTER = "rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2"  # 1. f3 e5


def write(folder: Path, *rows: str, header: str = HEADER) -> str:
    path = folder / "puzzles.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def puzzles(gardner, tmp_path_factory) -> list[Puzzle]:
    """Three lines of random games, each from a ply of its own, and a mate."""
    records = [record for record in random_records(gardner, 12, seed=5) if len(record.moves) >= 8][:3]
    rows = []
    for number, record in enumerate(records):
        start = record.start_fen.rsplit(" ", 1)[0]
        rows.append(f"p{number},{start} {10 * number + 10},{' '.join(record.moves[:6])},{1000 + 300 * number},long")
    file = write(tmp_path_factory.mktemp("puzzles"), *rows, f"m,{MATE},a5b5 d4d5q,801,mate mateIn1")
    found, left_out = read_puzzles(gardner, file)
    assert not left_out
    return found


def scripted(variables, keys, states) -> SearchOutput:
    """Plays what its variables say for the ply."""
    del keys
    edge, zeros = variables["edges"][states.ply], jnp.zeros(states.legal_edges.shape)
    return SearchOutput(edge, zeros, zeros, zeros[:, 0], zeros[:, 0])


def table_of(game: Game, puzzles: list[Puzzle]) -> np.ndarray:
    """The edge to find at each ply."""
    table = np.zeros(256, np.int16)
    for puzzle in puzzles:
        board = game.board_class(puzzle.start_fen)
        for at, uci in enumerate(puzzle.moves):
            if at >= puzzle.first and (at - puzzle.first) % 2 == 0:
                edges = {move: edge for edge, move in board_edges(game, board).items()}
                table[board.ply()] = edges[uci]
            board.push_uci(uci)
    return table


def script_of(puzzles: list[Puzzle], wrong: dict[tuple[int, int], str]) -> Player:
    """The same as an engine; `wrong`: (puzzle, place in its moves) -> another move."""
    by_fen = {puzzle.start_fen: number for number, puzzle in enumerate(puzzles)}

    def move(start_fen: str, moves) -> str:
        number = by_fen[start_fen]
        return wrong.get((number, len(moves)), puzzles[number].moves[len(moves)])

    return Player("script", move=move, num_workers=2)


def test_a_file_is_read(puzzles):
    assert [puzzle.rating for puzzle in puzzles] == [1000, 1300, 1600, 801]
    assert puzzles[3].themes == ("mate", "mateIn1") and puzzles[3].first == 1
    assert all(len(puzzle.moves) == 6 for puzzle in puzzles[:3])


def test_a_network_must_find_the_whole_line(gardner, puzzles):
    """Of the second puzzle the second move is another one; its line then counts one move found."""
    table, heard = table_of(gardner, puzzles), []
    solved = solve(gardner, Player("script", scripted, {"edges": jnp.asarray(table)}), puzzles, 0, heard.append)
    assert [one.is_solved for one in solved] == [True] * 4 and [one.found for one in solved] == [3, 3, 3, 1]
    assert solved[0].answer == puzzles[0].moves[-1] and heard[-1] == 4
    ply = 2 * (int(puzzles[1].start_fen.split()[-1]) - 1)
    at = ply + puzzles[1].first + 2
    table[at] = other_move(gardner, puzzles[1], puzzles[1].first + 2)
    solved = solve(gardner, Player("script", scripted, {"edges": jnp.asarray(table)}), puzzles, 0, heard.append)
    assert [one.is_solved for one in solved] == [True, False, True, True] and solved[1].found == 1


def other_move(game: Game, puzzle: Puzzle, at: int) -> int:
    """A legal move at a place in the line that is not the line's and does not mate."""
    board = game.board_class(puzzle.start_fen)
    for uci in puzzle.moves[:at]:
        board.push_uci(uci)
    for edge, uci in board_edges(game, board).items():
        after = board.copy()
        after.push_uci(uci)
        if uci != puzzle.moves[at] and not after.is_checkmate():
            return edge
    raise AssertionError("no other move")


def test_an_engine_is_judged_alike(gardner, puzzles):
    assert [one.found for one in solve(gardner, script_of(puzzles, {}), puzzles, 0, abs)] == [3, 3, 3, 1]
    wrong = {(1, 3): "a1a1", (3, 1): "d4d5r"}
    board = gardner.board_class(puzzles[1].start_fen)
    for uci in puzzles[1].moves[:3]:
        board.push_uci(uci)
    wrong[1, 3] = next(m.uci() for m in board.legal_moves if m.uci() != puzzles[1].moves[3])
    solved = solve(gardner, script_of(puzzles, wrong), puzzles, 0, abs)
    assert [one.is_solved for one in solved] == [True, False, True, True]
    assert (solved[1].found, solved[1].answer) == (1, wrong[1, 3]) and solved[3] == (True, 0, "d4d5r")


def test_any_mate_at_once_solves(gardner, puzzles):
    """The line's mate is with a queen; a rook mates too."""
    table, other = table_of(gardner, puzzles), other_mate(gardner, puzzles[3])
    table[2 * 18 + 2] = other
    (solved,) = solve(gardner, Player("s", scripted, {"edges": jnp.asarray(table)}), puzzles[3:], 0, abs)
    assert solved == (True, 0, "d4d5r")


def other_mate(game: Game, puzzle: Puzzle) -> int:
    board = game.board_class(puzzle.start_fen)
    board.push_uci("a5b5")
    return next(edge for edge, uci in board_edges(game, board).items() if uci == "d4d5r")


def test_positions_have_the_past_that_is_known(gardner, puzzles):
    later = puzzles[0]._replace(first=3)
    found = find_states(gardner, [later, puzzles[1]])
    for row, puzzle in enumerate((later, puzzles[1])):
        board = gardner.board_class(puzzle.start_fen)
        for uci in puzzle.moves[: puzzle.first]:
            board.push_uci(uci)
        for turn, at in enumerate(range(puzzle.first, len(puzzle.moves), 2)):
            state = one_state(found[row], turn)
            assert to_fen(gardner, state) == board.fen(en_passant="legal")
            assert (state.keys != 0).any(axis=-1).sum() == at + 1
            for uci in puzzle.moves[at : at + 2]:
                board.push_uci(uci)


@pytest.mark.parametrize(
    ("header", "row", "name"),
    [
        ("PGN,Moves,Rating", '"1. f3 e5",g2g4 d8h4,400', "line 2"),
        ("PuzzleId,Rating,PGN,Solution,FEN,Moves", f'a,400,1. f3 e5,g4 Qh4#,"{AFTER}",g2g4 d8h4', "a"),
    ],
    ids=["alone", "beside a FEN"],
)
def test_a_game_gives_a_position_its_past(tmp_path, header, row, name):
    """Also beside the FEN of the position, as in ChessBench's file."""
    chess_game = get_game("chess")
    (puzzle,), left_out = read_puzzles(chess_game, write(tmp_path, row, header=header))
    assert puzzle.moves == ("f2f3", "e7e5", "g2g4", "d8h4") and puzzle.first == 3 and puzzle.name == name
    assert not left_out and puzzle.start_fen == chess_game.start_fen


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (f"x,{MATE},a5b5 d4d5q,high,", r"line 2: Rating is 'high', expected a whole number"),
        (f"x,{MATE},a5b5,800,", r"line 2: 1 moves, expected the opponent's"),
        (f"x,{MATE},a5b5 d4d6q,800,", r"line 2: move 2 of Moves is 'd4d6q', expected a legal one of 1k3/"),
        ("x,8/8 w - - 0 1,a5b5 d4d5q,800,", r"line 2: FEN '8/8 w - - 0 1' has a wrong board"),
        (f"x,{MATE},a5b5 d4d5q", r"line 2: 3 cells, expected 5"),
    ],
)
def test_a_bad_row_is_named(gardner, tmp_path, row, said):
    with pytest.raises(TextFileError, match=rf"puzzles.csv, {said}"):
        read_puzzles(gardner, write(tmp_path, row))


def test_a_file_that_holds_no_puzzles_is_named(gardner, tmp_path):
    with pytest.raises(
        TextFileError, match=r"puzzles.csv, line 1: expected the columns FEN \(or PGN\), Moves and Rating"
    ):
        read_puzzles(gardner, write(tmp_path, header="player,opponent"))
    with pytest.raises(TextFileError, match="expected the columns FEN"):
        read_puzzles(gardner, write(tmp_path, header="a, ,e2e4 e7e5,1500,80,90,10,mate"))
    with pytest.raises(TextFileError, match=r"puzzles.csv holds no puzzles"):
        read_puzzles(gardner, write(tmp_path))
    with pytest.raises(TextFileError, match=r"nothing.csv cannot be read: No such file"):
        read_puzzles(gardner, str(tmp_path / "nothing.csv"))


def test_a_line_that_our_rules_end_early_is_left_out(gardner, tmp_path):
    ended = "k4/p2P1/2K2/P4/5 b - - 99 19"
    file = write(tmp_path, f"x,{ended},a5b5 d4d5q,800,", f"y,{MATE},a5b5 d4d5q,800,")
    found, left_out = read_puzzles(gardner, file)
    assert [puzzle.name for puzzle in found] == ["y"]
    assert "line 2: the game is over by fifty moves before the end of the line" in left_out[0]


def test_lichess_files_may_lack_a_header_and_have_empty_lines_and_upper_case(tmp_path):
    game, fen = get_game("chess"), "8/P6k/8/8/8/8/8/K7 b - - 0 1"
    row = f"one,{fen},h7h6 a7a8Q,1500,80,90,100,promotion,https://x,"
    (tmp_path / "a.csv").write_text(f"\n{row}\n\n,,,,,,,,,\n{row}\n")
    (tmp_path / "b.csv").write_text(f"\ufeffpuzzleid,fen,moves,rating\n\none,{fen},h7h6 a7a8Q,1500\n", encoding="utf-8")
    (headless, _), _ = read_puzzles(game, str(tmp_path / "a.csv"))
    (named,), _ = read_puzzles(game, str(tmp_path / "b.csv"))
    assert headless.themes == ("promotion",) and headless._replace(themes=()) == named
    assert named.moves == ("h7h6", "a7a8q") and named.rating == 1500
