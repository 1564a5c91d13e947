"""The page of a book: the most played line, and moves with their games, shares and scores, counted by hand."""

import re

import pytest
from markup import HOSTILE, Outline

from alphagateau.games.entries import GAMES
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.reports.book_page import MAX_PLIES, book_page, most_played_line

START = GAMES["chess"].start_fen


def game(moves: str, result: str, white: str = "a", black: str = "b", name: str = "chess") -> GameRecord:
    headers = {"White": white, "Black": black}
    return GameRecord(name, GAMES[name].start_fen, tuple(moves.split()), result, headers=headers)


GAMES_PLAYED = [
    game("d2d4 d7d5 g1f3", "*"),
    game("e2e4 e7e5 g1f3", "1-0"),
    game("e2e4 e7e5 g1f3 b8c6", "1/2-1/2", "b", "a"),
    game("e2e4 c7c5", "0-1"),
    game("g1f3 d7d5 d2d4", "1-0"),
]


def moves_of(page: str) -> list[str]:
    """The texts of the tree, in order."""
    return [text for text in Outline(page).texts if re.match(r"\d+\.+ ", text)]


def test_each_move_has_its_games_share_and_score_of_its_side():
    assert moves_of(book_page("x", GAMES_PLAYED)) == [
        "1. e4: 3 games, 60%, White scored 0.500",
        "1... e5: 2 games, 67%, Black scored 0.250",
        "2. Nf3: 2 games, 100%, White scored 0.750",
    ]


def test_transpositions_are_two_lines_and_unfinished_games_have_no_score():
    texts = moves_of(book_page("x", GAMES_PLAYED, least=1))
    assert texts[-6:] == [
        "1. d4: 1 game, 20%",
        "1... d5: 1 game, 100%",
        "2. Nf3: 1 game, 100%",
        "1. Nf3: 1 game, 20%, White scored 1.000",
        "1... d5: 1 game, 100%, Black scored 0.000",
        "2. d4: 1 game, 100%, White scored 1.000",
    ]


def test_the_most_played_line_goes_on_to_its_end():
    line, last, num_shared = most_played_line(GAMES_PLAYED)
    assert (line, last, num_shared) == (["e2e4", "e7e5", "g1f3", "b8c6"], [GAMES_PLAYED[2]], 3)
    assert most_played_line(GAMES_PLAYED[::-1])[0] == line
    assert most_played_line(GAMES_PLAYED[:2])[0][0] == "d2d4"  # of equally many, the first game's


def test_a_players_games_with_white_and_with_black_are_apart():
    page = book_page("x", GAMES_PLAYED, "a", least=1)
    assert re.findall("<h3>(.*)</h3>", page) == ["a as White", "a as Black"]
    assert "1. e4: 2 games, 50%, White scored 0.500" in page and "1. e4: 1 game, 100%, White scored 0.500" in page
    with pytest.raises(ValueError, match="player 'c' is in none of 5 games: expected a name in them"):
        book_page("x", GAMES_PLAYED, "c")


def test_games_of_another_board_or_beginning_are_left_out():
    others = [
        game("b1c3", "1-0", name="gardner_chess"),
        GameRecord("chess", START.replace("KQkq", "-"), ("a2a3",), "*"),
    ]
    page = book_page("x", [*others, *GAMES_PLAYED])
    assert f"5 games of chess from {START}; 2 games that begin otherwise are left out" in page


def test_a_line_that_all_games_share_ends_in_the_tree():
    moves = "g1f3 g8f6 f3g1 f6g8 " * 10
    page = book_page("x", [game(moves, "1/2-1/2")] * 3)
    assert len(moves_of(page)) == MAX_PLIES and '"result":"1/2-1/2"' in page


def test_names_are_escaped():
    page = book_page(HOSTILE, [game("e2e4", "1-0", HOSTILE)] * 2, HOSTILE)
    assert HOSTILE not in page and Outline(page).tags.count("h3") == 1
