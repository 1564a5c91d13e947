"""UCI engines: specs, options, and what is said when one crashes, hangs or cheats."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import chess
import pytest
from chess.engine import Cp, Mate

from alphagateau.api.players import play_match as play_api_match
from alphagateau.engines.engine import Engine, ScoredLine
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder.players import load_players
from alphagateau.matches.match import play_match
from alphagateau.matches.match_games import Match
from alphagateau.matches.openings import Opening, make_openings
from alphagateau.matches.players import Player, Reply, random_player
from alphagateau.matches.specs import PlayerError, SpecError, parse_spec, read_spec
from alphagateau.matches.uci_player import engine_search, load_uci_player, score_after

STOCKFISH = shutil.which("stockfish", path="/usr/games:/usr/bin:/usr/local/bin")
FAIRY = shutil.which("fairy-stockfish", path="/usr/games:/usr/bin:/usr/local/bin")

FAKE = """
import os, pathlib, sys, time
import chess
pathlib.Path(__file__).with_suffix(".pid").write_text(str(os.getpid()))
sys.path.insert(0, {root!r})
from alphagateau.games.small_boards import board_class
manner, searches, board = sys.argv[1], 0, None
for line in sys.stdin:
    words = line.split()
    if words[0] == "uci":
        if manner == "deaf":
            time.sleep(60)
        print("id name Fake", manner)
        print("option name UCI_Variant type combo default chess var chess var gardner")
        print("option name Move Overhead type spin default 10 min 0 max 100")
        print("option name Style type combo default Solid var Solid var Very Risky")
        print("option name Quiet type check default false")
        print("uciok", flush=True)
    elif words[0] == "isready":
        print("readyok", flush=True)
    elif words[0] == "position":
        fen, _, moves = line.partition("fen ")[2].partition(" moves ")
        board = board_class("gardner_chess")(fen.strip())
        for move in moves.split():
            board.push_uci(move)
    elif words[0] == "go":
        searches += 1
        if searches > 3 and manner == "crash":
            sys.exit(3)
        if searches > 3 and manner == "hang":
            time.sleep(60)
        while searches > 3 and manner == "babble":
            print("info string hmm", flush=True)
            time.sleep(0.01)
        if searches > 3 and manner == "cheat":
            print("bestmove a1a5")
        elif searches > 3 and manner == "resign":
            print("bestmove (none)")
        else:
            print("bestmove", min(move.uci() for move in board.legal_moves))
        sys.stdout.flush()
    elif words[0] == "quit":
        break
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The fake engine; it leaves its process id beside it."""
    path = tmp_path / "fake.py"
    path.write_text(FAKE.format(root=str(Path(__file__).parents[2])))
    return path


@pytest.fixture
def fake(gardner: Game, script: Path) -> Iterator:
    """Starts a fake engine of the given manner."""
    players = []

    def start(manner: str, settings: str = "nodes=1") -> Player:
        players.append(load_uci_player(parse_spec(f"uci:{sys.executable} {script} {manner}?{settings}"), gardner))
        return players[-1]

    yield start
    for player in players:
        player.close()


@pytest.fixture(scope="module")
def openings(gardner: Game) -> list[Opening]:
    return make_openings(gardner, 2, 4, seed=1)


def test_spec() -> None:
    spec = engine_search(parse_spec("uci:/usr/games/stockfish -x?depth=3&Skill Level=2&timeout=1.5&processes=2"))
    assert spec == ("/usr/games/stockfish -x", ("depth", 3), {"Skill Level": "2"}, 1.5, 2)
    assert engine_search(parse_spec("uci:stockfish")) == ("stockfish", ("nodes", 1000), {}, 60.0, 1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("uci:", "names no program"),
        ("uci:x?nodes=0", "nodes is '0', expected a whole number above 0"),
        ("uci:x?nodes=many", "nodes is 'many'"),
        ("uci:x?nodes=1000000000", "expected a whole number above 0 and below 1,000,000,000"),
        ("uci:x?nodes=5&depth=2", "expected one of nodes, movetime and depth"),
        ("uci:x?nodes", "'nodes' was given, expected options such as nodes=50"),
        ("uci:x?Hash=1&Hash=2", "'Hash=2' was given, expected options such as nodes=50, each once"),
        ("uci:x?timeout=nan", "timeout is 'nan', expected seconds above 0"),
        ("uci:x?processes=-1", "processes is '-1'"),
    ],
)
def test_spec_that_is_wrong(spec: str, message: str) -> None:
    with pytest.raises(PlayerError) as error:
        engine_search(parse_spec(spec))
    assert message in str(error.value) and repr(spec) in str(error.value)


def test_engines_of_the_python_face_end_with_their_match(script: Path) -> None:
    spec = f"uci:{sys.executable} {script} well?nodes=1"
    assert play_api_match(spec, "random", num_games=2, game="gardner_chess").unfinished == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(script.with_suffix(".pid").read_text()), 0)


def test_fake_engine_plays_to_the_end(gardner: Game, fake, openings: list[Opening]) -> None:
    player = fake("well", "nodes=1&style=Very Risky&Move Overhead=5&processes=2")
    assert player.name == "Fake well fake.py well nodes=1 Move Overhead=5 Style=Very Risky"
    result = play_match(gardner, Match(player, random_player(), openings), rows_per_search=1)
    assert (result.unfinished, result.statistics.failures) == (0, {})
    itself = play_match(gardner, Match(player, player, openings), rows_per_search=1)
    assert itself.pentanomial == (0, 0, 2, 0, 0)


@pytest.mark.parametrize(
    ("manner", "message"),
    [
        ("crash", "fake.py crash' ended by itself (exit code 3)"),
        ("hang", "fake.py hang' did not answer 'go nodes 1' within 0.1 s"),
        ("babble", "fake.py babble' did not answer 'go nodes 1' within 0.1 s"),
        ("cheat", "fake.py cheat' broke the rules: illegal uci: 'a1a5' in "),
        ("resign", "fake.py resign' broke the rules: it gave no move in "),
    ],
)
def test_engine_that_fails_in_a_game(
    gardner: Game, fake, openings: list[Opening], monkeypatch, manner: str, message: str
) -> None:
    """What it answers it may answer slowly; one that never answers its fourth question has no time for it."""
    asking, asked = Engine._asking, Counter()

    def impatient(engine: Engine, question: str, seconds: float, text: str):
        asked[engine] += question.startswith("go")
        is_over = asked[engine] > 3 and manner in ("hang", "babble")
        return asking(engine, question, 0.1 if is_over else seconds, text)

    monkeypatch.setattr(Engine, "_asking", impatient)
    player = fake(manner, "nodes=1&timeout=600")
    result = play_match(gardner, Match(player, random_player(), openings), rows_per_search=1)
    assert message in result.statistics.failures[player.name]
    assert result.unfinished == 4 and len(result.records) == 4
    assert all(message in played.record.termination for played in result.records)
    assert any(len(played.record.moves) > 5 for played in result.records)


def test_engines_of_one_name_are_told_apart_by_their_arguments(script: Path) -> None:
    specs = [f"uci:{sys.executable} {script} {manner}" for manner in ("well", "resign")]
    players, notes = load_players(
        list(map(read_spec, [*specs, f"uci:{sys.executable}  {script} well"])), "gardner_chess"
    )
    assert [player.name.split()[-2] for player in players] == ["well", "resign"]
    (note,) = notes
    assert note.startswith("left out: uci:") and f" calls itself {players[0].name}, as {specs[0]} does" in note
    for player in players:
        player.close()


def test_engine_that_failed_says_its_first_failure_again(fake, openings: list[Opening]) -> None:
    player = fake("crash")
    for _ in range(3):
        player.move(openings[0].start_fen, openings[0].line)
    for _ in range(2):
        with pytest.raises(PlayerError, match=r"ended by itself \(exit code 3\)"):
            player.move(openings[0].start_fen, openings[0].line)


ENGINE_LEFT_OPEN = """
import os, signal, sys, types
from alphagateau.games.small_boards import board_class
from alphagateau.matches.specs import parse_spec
from alphagateau.matches.uci_player import load_uci_player
gardner = types.SimpleNamespace(
    uci_variant="gardner", is_fischer_random=False, board_class=board_class("gardner_chess")
)
player = load_uci_player(parse_spec(sys.argv[1]), gardner)
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have come ignored, as to what runs in the background
try:
    os.killpg(0, signal.SIGINT)  # as a terminal does, to all processes of the group
    signal.pause()
except KeyboardInterrupt:
    print(player.move("rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1", ()).move)
"""


def test_engine_hears_no_interrupt_and_ends_with_the_program(script: Path) -> None:
    command = [sys.executable, "-c", ENGINE_LEFT_OPEN, f"uci:{sys.executable} {script} well?nodes=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a2a3\n", "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(script.with_suffix(".pid").read_text()), 0)


def test_engine_that_does_not_greet(fake) -> None:
    with pytest.raises(SpecError, match=r"deaf' did not answer 'uci' within 0.3 s"):
        fake("deaf", "timeout=0.3")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/no/such/engine", "engine '/no/such/engine' cannot be started: No such file or directory"),
        ("'abc", "cannot be started: No closing quotation"),
        (f"{sys.executable} -c pass", "-c pass' ended by itself (exit code 0)"),
    ],
)
def test_program_that_is_no_engine(gardner: Game, command: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        load_uci_player(parse_spec(f"uci:{command}"), gardner)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("node=50", "has no option 'node'; did you mean 'nodes'?"),
        ("Move Overhaed=5", "has no option 'Move Overhaed'; did you mean 'Move Overhead'?"),
        ("Move Overhead=101", "option 'Move Overhead' is '101', expected a whole number from 0 to 100"),
        ("Move Overhead=some", "option 'Move Overhead' is 'some', expected a whole number from 0 to 100"),
        ("Style=Risky", "option 'Style' is 'Risky', expected one of Solid, Very Risky"),
        ("Quiet=yes", "option 'Quiet' is 'yes', expected true or false"),
        ("UCI_Variant=chess", "option 'UCI_Variant' is 'chess', expected none: what is searched decides it"),
    ],
)
def test_option_that_the_engine_would_ignore(fake, settings: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        fake("well", settings)
    assert message in str(error.value)


@pytest.mark.skipif(FAIRY is None, reason="Fairy-Stockfish is not installed (Debian: fairy-stockfish)")
def test_fairy_stockfish_beats_the_random_mover(gardner: Game, openings: list[Opening]) -> None:
    player = load_uci_player(parse_spec(f"uci:{FAIRY}?nodes=300&Skill Level=20"), gardner)
    assert "Fairy" in player.name and player.name.endswith(" nodes=300 Skill Level=20")
    result = play_match(gardner, Match(player, random_player(), openings), rows_per_search=1)
    player.close()
    assert result.statistics.failures == {} and result.unfinished == 0
    assert result.wins >= 3


@pytest.mark.skipif(STOCKFISH is None, reason="Stockfish is not installed (Debian: stockfish)")
def test_stockfish_scores_half_against_itself_and_plays_no_gardner(gardner: Game) -> None:
    game = get_game("chess")
    player = load_uci_player(parse_spec(f"uci:{STOCKFISH}?nodes=30"), game)
    result = play_match(game, Match(player, player, make_openings(game, 2, 4, 0)), rows_per_search=1)
    player.close()
    assert result.pentanomial == (0, 0, 2, 0, 0)
    with pytest.raises(SpecError, match="does not play gardner_chess"):
        load_uci_player(parse_spec(f"uci:{STOCKFISH}"), gardner)


def test_an_engines_score_and_time_are_whites_and_of_the_position_after_its_move():
    assert score_after(ScoredLine("cp", 30, 1, ""), chess.BLACK) == Cp(-30) and score_after(None, chess.WHITE) is None
    for mate, white in {3: Mate(2), 1: None, -2: Mate(-2), 0: Mate(0)}.items():
        assert score_after(ScoredLine("mate", mate, 1, ""), chess.WHITE) == white
    for mate, white in {3: Mate(-2), 1: None, -2: Mate(2)}.items():
        assert score_after(ScoredLine("mate", mate, 1, ""), chess.BLACK) == white


@pytest.mark.skipif(STOCKFISH is None, reason="stockfish is not installed")
def test_a_real_engine_says_what_it_thinks():
    player = load_uci_player(parse_spec(f"uci:{STOCKFISH}?nodes=2000"), get_game("chess"))
    reply = player.move("6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 1", ("a2a8", "b1b7", "h7h6"))
    player.close()
    assert isinstance(reply, Reply) and reply.note.score is not None and (reply.note.seconds or 0) > 0
