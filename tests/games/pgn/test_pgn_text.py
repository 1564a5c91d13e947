"""PGN as others write it, and as nobody should: every game found, at its line, with the moves of its main line."""

import io

import chess.pgn
import pytest

from alphagateau.games.pgn.pgn import read_pgn, replay
from alphagateau.games.pgn.text import read_games
from alphagateau.games.pgn.text_files import Bounds

LICHESS = """[Event "Rated Blitz game"]
[Site "https://lichess.org/abcdefgh"]
[Date "2024.01.01"]
[White "Ann"]
[Black "Bob"]
[Result "0-1"]
[UTCTime "00:00:01"]
[WhiteElo "1500"]
[TimeControl "180+2"]
[Termination "Time forfeit"]

1. e4 { [%eval 0.17] [%clk 0:03:00] } 1... c5 { [%eval 0.19] [%clk 0:03:00] } \
2. Qh5?? { (0.19 → -1.30) Blunder. Nf3 was best. } { [%eval -1.3] [%clk 0:02:57] } \
(2. Nf3 { [%eval 0.25] } 2... d6 (2... Nc6 3. d4) 3. d4) 2... Nf6 0-1

"""
CHESS_COM = """[Event "Live Chess"]
[Site "Chess.com"]
[White "A \\"b\\" c"]
[Black "back\\\\slash"]
[Result "1-0"]
[CurrentPosition "rnbqkbnr/ppppp2p/8/5ppQ/4PP2/8/PPPP2PP/RNB1KBNR b KQkq - 1 3"]
[EndTime "0:00:00 PST"]

1. e4 {[%clk 0:02:59.9]} 1... f5 {[%clk 0:02:58.2]} 2. f4 {[%clk 0:02:58]} 2... g5 {[%clk 0:02:55.1]} \
3. Qh5# {[%clk 0:02:57.3]} 1-0

"""
FISHTEST = """[Event "Batch 1"]
[Round "1.1"]
[White "New-0123456789"]
[Black "Base"]
[Result "1/2-1/2"]
[FEN "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2"]
[SetUp "1"]
[GameDuration "00:00:40"]
[PlyCount "3"]
[Termination "adjudication"]

2. Nf3 {+0.34/14 0.42s} Nc6 {-0.31/15 0.40s} 3. Bb5 {+0.35/16 0.51s, Draw by adjudication} 1/2-1/2
"""
FAIRY = """[Variant "gardner"]
[White "x"]
[Black "y"]
[Result "*"]

1. Nc3 dxc3 2. bxc3 *

[Variant "losalamos"]

1. Nd3 Nd4 *

[Variant "From Position"]
[FEN "4k3/8/8/8/8/8/4P3/4K3 w - -"]

1. e4 *
"""


def moves_of(text: str) -> list[list[str]]:
    return [[move.text for move in game.moves] for game in read_games(text.splitlines(keepends=True))]


@pytest.mark.parametrize("text", [LICHESS, CHESS_COM, FISHTEST, LICHESS + CHESS_COM + FISHTEST])
def test_what_well_known_programs_write(text):
    handle, expected = io.StringIO(text), []
    while (game := chess.pgn.read_game(handle)) is not None:
        expected.append((tuple(move.uci() for move in game.mainline_moves()), game.headers["Result"]))
    assert [(record.moves, record.result) for record in read_pgn(text)] == expected


def test_notes_and_tags_of_well_known_programs():
    record, other, _ = read_pgn(LICHESS + CHESS_COM + FISHTEST)
    assert [note.score and note.score.score() for note in record.notes] == [17, 19, -130]
    assert record.notes[2].nag == chess.pgn.NAG_BLUNDER
    assert record.notes[2].comment.startswith("(0.19 → -1.30) Blunder. Nf3 was best.")
    assert "[%clk 0:02:57]" in record.notes[2].comment
    assert (other.headers["White"], other.headers["Black"]) == ('A "b" c', "back\\slash")


@pytest.mark.parametrize("sign", ["-+", "-/+", "+-", "+/-", "=", "\u2212+", "+="])
def test_signs_of_who_is_better_are_no_moves(sign):
    (record,) = read_pgn(f'[Event "?"]\n\n1. e4 e5 {sign} 2. d4 {sign} *\n')
    assert record.moves == ("e2e4", "e7e5", "d2d4")


def test_variants_by_the_names_of_other_programs():
    assert [record.game for record in read_pgn(FAIRY)] == ["gardner_chess", "los_alamos_chess", "chess"]


@pytest.mark.parametrize("change", ["\ufeff{}", "{}\n\n\n", "\n\n{}", "% an escape\n{}"])
def test_what_stands_around_games_changes_nothing(change):
    text = LICHESS + FAIRY
    assert read_pgn(change.format(text)) == read_pgn(text)
    assert [record.moves for record in read_pgn(text.replace("\n", "\r\n"))] == [x.moves for x in read_pgn(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.e4 e5 2.Nf3 Nc6 1-0", ["e4 e5 Nf3 Nc6"]),
        ("1. e4 1... e5 2 . Nf3 2. ... Nc6 3… a3", ["e4 e5 Nf3 Nc6 a3"]),
        ("e4 e5 Nf3", ["e4 e5 Nf3"]),
        ("1. e4 e5 1/2", ["e4 e5"]),
        ("1. e4 (1. d4 {a ) in it} (1. c4 (1. b4)) 1... d5) e5", ["e4 e5"]),
        ("1. e4 ; 1. d4 { not open\n1... e5 {over\n\nempty lines} 2. Nf3", ["e4 e5 Nf3"]),
        ('1. e4 {[Event "a"]\n[White "b"]} e5', ["e4 e5"]),
        ("1. e4\n% 1... a5 { escaped\ne5", ["e4 e5"]),
        ("1. e4 $1 $16 e5 !? +- 2. Nf3 ! = Nc6", ["e4 e5 Nf3 Nc6"]),
        ("1. e4 d5 2. e5 f5 3. exf6 e.p. *", ["e4 d5 e5 f5 exf6"]),
        ("1. e4 e5 1-0 1. d4 0-1", ["e4 e5", "d4"]),
        ("1. e4 e5\n\n1. d4 d5\n\n2. c4", ["e4 e5", "d4 d5 c4"]),
        ('[White "a"]\n1. e4\n[White "b"]\n1. d4', ["e4", "d4"]),
        ('[White "a"] [Black "b"]\n1. e4', ["e4"]),
        ('[White "a"]\n[White "b"]\n1. e4', ["", "e4"]),
        ('[White "a"]\n\n\n[White "b"]\n\n*', ["", ""]),
        ('[Event "a"]\n[WhiteElo "1"]\n[WhiteElo "2"]\n\n1. e4 e5', ["e4 e5"]),
        ("1. e4\n\n1 ... e5", ["e4 e5"]),
        ("1. e4 (1. d4\n% a ) in it\nd5) e5", ["e4 e5"]),
        ('[White "the "greatest" of all"]\n1. e4', ["e4"]),
        ('[Event "x"] [White "A"] [Result "1-0"] 1. e4 e5 1-0 [Event "y"] 1. d4', ["e4 e5", "d4"]),
        ("[White Ann Lee]\n[Round]\n1. e4", ["e4"]),
        ("1. e4 e5 1\u20130\n1. d4 \u00bd\u2013\u00bd", ["e4 e5", "d4"]),
        ("1. c4 Nf6 2. Nf3 c5 N (2... e6 D 3. g3) 3. Nc3 D", ["c4 Nf6 Nf3 c5 Nc3"]),
        ("1. e4 (1. d4 1-0) e5 (1... c5 * ) *", ["e4 e5"]),
        ("1. e4 <reserved> e5 < 2. Nf3", ["e4 e5 Nf3"]),
        ("1. e4 [%clk 0:01:00] e5", ["e4 e5"]),
        ("", []),
        ("\n \n% nothing\n", []),
    ],
)
def test_nasty_games(text, expected):
    assert [" ".join(moves) for moves in moves_of(text)] == expected


def test_castling_and_promotions_however_they_are_written():
    text = '[FEN "r3k2r/1P6/8/8/8/8/8/R3K2R w KQkq - 0 1"]\n\n1. {} *'
    for uci, castling in {"e1g1": ("0-0", "e1g1", "0–0", "o-o", "00"), "e1c1": ("O-O-O+", "OOO", "000")}.items():
        for written in castling:
            assert read_pgn(text.format(written))[0].moves == (uci,)
    for written in ("bxa8=Q+", "bxa8Q", "b7xa8=Q", "b7a8q", "b7-a8=Q!!", "b:a8=Q++", "bxa8(Q)", "bxa8/Q", "b7a8Q"):
        assert read_pgn(text.format(written))[0].moves == ("b7a8q",)


@pytest.mark.parametrize("written", ["B2b4", "Bb2b4", "Bb4"])
def test_a_bishops_move_is_no_pawns(written):
    text = '[FEN "4k3/8/8/8/8/8/1P6/4K3 w - - 0 1"]\n\n1. {} *'
    with pytest.raises(ValueError, match=f"illegal san: '{written}'"):
        read_pgn(text.format(written))
    assert read_pgn(text.format("B2B4"))[0].moves == ("b2b4",)


@pytest.mark.parametrize(
    ("text", "line", "ply", "sentence"),
    [
        ('[White "a"]\n\n1. e4 e5\n2. Ke3', 4, 3, "illegal san: 'Ke3'"),
        ('[White "a"]\n\n1. e4 e5\n2. Nonsense', 4, 3, "invalid san: 'Nonsense'"),
        ('[FEN "8/8/8/8/8/8/8/N1K1k1N1 w - - 0 1"]\n\n1. Nd9', 3, 1, "invalid san: 'Nd9'"),
        ('[FEN "4k3/8/8/8/8/8/8/N1K3N1 w - - 0 1"]\n\n1. Ne2 Kd8 2. N1', 3, 3, "invalid san"),
        ('[FEN "4k3/8/8/8/8/8/8/2N1K1N1 w - - 0 1"]\n\n1. Ne2', 3, 1, "ambiguous san: 'Ne2'"),
        ("1. e4 -- 2. d4 *", 1, 2, "'--' is a null move"),
        ('[Result "1-0"]\n\n1. e4 0-1', 1, 0, "result '1-0' in its tag and '0-1' after its moves"),
        ("1. f3 e5 2. g4 Qh4# 1-0", 1, 4, "result '1-0' after checkmate: expected '0-1'"),
        ("1. e4 {without an end", 1, 0, "the comment of line 1 does not end: expected a }"),
        ("1. e4 (1. d4", 1, 0, "a variation does not end: expected a )"),
        ('[White "a"\n\n1. e4', 1, 0, "line 1, '[White \"a\"', is no tag: expected one such as"),
    ],
)
def test_what_is_wrong_and_where(text, line, ply, sentence):
    (written,) = read_games(text.splitlines())
    replayed = replay(written)
    assert sentence in replayed.fault and "\n" not in replayed.fault
    assert replayed.ply == ply
    assert (written.moves[ply - 1].line if ply else written.line) == line


def test_a_comment_without_an_end_does_not_swallow_the_games_after_it():
    games = list(read_games(('[Event "x"]\n\n1. e4 {oh\n\n' + LICHESS).splitlines()))
    assert [game.line for game in games] == [1, 5] and games[0].fault and not games[1].fault
    _, after = read_games(["1. e4 { [%eval 9.99] oh", "", '[Event "y"]', "", "1. d4 { plain } d5 1-0"])
    assert replay(after).record.notes[0].comment == "plain" and replay(after).record.notes[0].score is None


def test_a_million_moves_are_no_game():
    (game,) = read_games(["Nf3 Nf6 Ng1 Ng8 " * 50_000])
    assert "more than 10000 moves" in game.fault and len(game.moves) == 10_000


def test_games_are_given_out_before_the_file_ends():
    def lines():
        yield from LICHESS.splitlines()
        yield '[Event "next"]'
        raise AssertionError("read on")

    assert next(read_games(lines())).tags["White"] == "Ann"


@pytest.mark.parametrize("tag", ["FEN", "Fen", "fen"])
def test_tags_are_known_in_any_case(tag):
    fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    (record,) = read_pgn(f'  [{tag} "{fen}"]\n[white "A"]\n[RESULT "1/2"]\n\n2. Nf3 Nc6 1/2\n')
    assert (record.start_fen, record.headers["White"], record.result) == (fen, "A", "1/2-1/2")
    (small,) = read_pgn('[variant "Gardner"]\n\n1. Nc3 *\n')
    assert small.game == "gardner_chess"


MANY = 2**17


@pytest.mark.parametrize(
    "lines",
    [
        ["1. e4 " + "{ab} " * MANY],
        ["1. e4 {", *["ab"] * MANY, "}"],
        ["1. e4 " + "<" * MANY],
        ["1. e4 " + "[" * MANY],
        ["1. e4 " + '[a "\\' * MANY],
        ['[a "' + '" ' * MANY],
        ["1. e4 " + "(" * MANY],
        ["1. e4 " + "{" * MANY],
        ["1. " + "#" * MANY + "x"],
        ["1 " * MANY],
    ],
)
def test_time_grows_as_the_text_does(lines):
    """Of a reader that looks back at what it has read, these take minutes."""
    games = list(read_games(lines))
    assert len(games) <= 2 and all(replay(game).fault or game.moves[0].comment != "x" for game in games)


def test_a_game_without_an_end_is_cut_and_said():
    bounds = Bounds(file=10**6, line=1000, game=2000)
    long, after = read_games(['[White "a"]', "1. e4 {", *["long"] * 999, "} e5 *", *LICHESS.splitlines()], bounds)
    assert "more than 2,000 letters" in long.fault and after.tags["White"] == "Ann" and not after.fault


def test_the_text_of_games_is_kept_as_it_was():
    text = "{Intro} " + LICHESS + "% escaped\n" + CHESS_COM + "1. e4 1-0 1. d4 0-1\n"
    games = list(read_games(text.splitlines(), keep_text=True))
    assert len(games) == 4 and "".join(game.text for game in games) == text
    for game in games:
        assert all(game.text[: move.end].endswith((move.text, "?")) for move in game.moves)
