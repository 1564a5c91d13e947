"""The UCI engine: a conversation in this process."""

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
import jax
import pytest
from boards import GardnerBoard
from tiny_checkpoints import save_tiny

from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.opponents import player_of
from alphagateau.play.signals import Signals
from alphagateau.play.uci.engine import serve
from alphagateau.runs.checkpoint import Checkpoint, CheckpointError
from alphagateau.search.growing.anytime import grow_once
from alphagateau.search.growing.tree import Tree

MATE_IN_TWO = "k4/5/2K2/5/4R w - - 0 1"
MATED_NEXT = "k4/5/KQ3/5/5 w - - 0 1"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_tiny(tmp_path_factory.mktemp("uci"), "gardner_chess", GateauConfig)


class Gui:
    """The other end of a conversation."""

    def __init__(self, found: Checkpoint) -> None:
        self.lines: queue.SimpleQueue = queue.SimpleQueue()
        self.heard: queue.SimpleQueue = queue.SimpleQueue()
        self.thread = threading.Thread(
            target=serve, args=(player_of(found), iter(self.lines.get, None), self.heard.put), daemon=True
        )
        self.thread.start()

    def say(self, *lines: str) -> None:
        for line in lines:
            self.lines.put(line + "\n")

    def until(self, start: str, timeout: float = 120) -> list[str]:
        """Lines up to one that begins with `start`."""
        heard: list[str] = []
        while not heard or not heard[-1].startswith(start):
            heard += self.heard.get(timeout=timeout).splitlines()
        return heard

    def ask(self, *lines: str) -> list[str]:
        """All that is said in answer."""
        self.say(*lines, "isready")
        return self.until("readyok")[:-1]

    def best(self, *lines: str) -> str:
        self.say(*lines)
        return self.until("bestmove")[-1].split()[1]


@pytest.fixture(scope="module")
def shared(found: Checkpoint) -> Iterator[Gui]:
    gui = Gui(found)
    gui.say("uci")
    gui.until("uciok")
    gui.ask("setoption name UCI_Variant value gardner")
    yield gui
    gui.say("quit")
    gui.thread.join(timeout=10)
    assert not gui.thread.is_alive()


@pytest.fixture
def gui(shared: Gui) -> Gui:
    """The one conversation of this module, at the start of a game and with the usual options."""
    for setting in ("MultiPV value 1", "Temperature value 0", "UCI_ShowWDL value false", "Move Overhead value 50"):
        shared.ask(f"setoption name {setting}")
    shared.ask("ucinewgame", "position startpos")
    return shared


def test_the_greeting(gui: Gui, found: Checkpoint):
    gui.say("uci")
    heard = gui.until("uciok")
    assert heard[0].endswith(found.manifest["weights_hash"]) and heard[1].startswith("id author")
    assert any("UCI_Variant type combo default chess" in line for line in heard)
    assert "info string this network learnt gardner_chess: choose it by UCI_Variant gardner" in heard


def test_lines_of_information_are_of_whole_numbers_and_have_a_score(gui: Gui):
    gui.ask("setoption name MultiPV value 3", "setoption name UCI_ShowWDL value true")
    gui.say("go nodes 200")
    *infos, best = gui.until("bestmove")
    assert infos and {info.split()[0] for info in infos} == {"info"}
    for info in infos[-3:]:
        words = info.split()
        before, moves = words[: words.index("pv")], words[words.index("pv") + 1 :]
        for name in ("depth", "seldepth", "multipv", "cp", "nodes", "nps", "hashfull", "time"):
            assert int(before[before.index(name) + 1]) is not None
        assert sum(map(int, before[before.index("wdl") + 1 :][:3])) == 1000
        board = GardnerBoard()
        for move in moves:
            board.push_uci(move)
    assert [int(info.split()[info.split().index("multipv") + 1]) for info in infos[-3:]] == [1, 2, 3]
    assert best.split()[1] == infos[-3].split()[infos[-3].split().index("pv") + 1]
    assert " nodes 200 " in infos[-1]


def test_the_same_simulations_find_the_same_whatever_went_before(gui: Gui):
    gui.say("go nodes 150")
    first = gui.until("bestmove")
    gui.ask("position startpos moves a2a3")
    gui.best("go movetime 200")
    gui.ask("position startpos")
    gui.best("go movetime 100")
    gui.say("go nodes 150")
    again = gui.until("bestmove")
    strip = [line.split(" nps ")[0] for line in first], [line.split(" nps ")[0] for line in again]
    assert strip[0][-1] == strip[1][-1] and strip[0][-2] == strip[1][-2]
    assert first[-2].partition(" pv ")[2] == again[-2].partition(" pv ")[2]


def test_a_proven_mate_is_said_in_moves(gui: Gui):
    gui.say(f"position fen {MATE_IN_TWO}", "go nodes 3000")
    *_, info, best = gui.until("bestmove")
    assert " score mate 2 " in info and best.startswith("bestmove c3b3 ponder ")


@pytest.mark.parametrize(
    "go", ["go wtime 100", "go wtime 1", "go wtime -20", "go movetime 1", "go wtime 0 btime 0 winc 0"]
)
def test_a_move_is_made_however_little_time_there_is(gui: Gui, go: str):
    assert chess.Move.from_uci(gui.best(go)) in GardnerBoard().legal_moves


def test_the_clock_of_the_player_to_move_counts(gui: Gui):
    gui.say("position startpos moves a2a3", "go btime 1 wtime 600000")
    *_, info, best = gui.until("bestmove")
    board = GardnerBoard()
    board.push_uci("a2a3")
    assert " nodes 0 " in info and chess.Move.from_uci(best.split()[1]) in board.legal_moves
    gui.say("go wtime 1000")  # nothing is said of black's time
    assert " nodes 800 " in gui.until("bestmove")[-2]


def test_an_infinite_search_waits_for_stop(gui: Gui):
    gui.say("go infinite")
    gui.until("info")
    assert gui.ask() is not None  # isready, in the middle
    assert gui.best("stop") != "(none)"
    gui.say(f"position fen {MATE_IN_TWO}", "go infinite")
    while " score mate 2 " not in gui.until("info")[-1]:  # proven, so that there is nothing more to search
        pass
    gui.say("isready")
    assert not any(line.startswith("bestmove") for line in gui.until("readyok"))
    assert gui.best("stop") == "c3b3"


def test_only_the_batch_in_progress_ends_after_stop(gui: Gui, monkeypatch: pytest.MonkeyPatch):
    """The batch that stops goes on once `stop` has been read."""
    begun, reached, is_read = [], threading.Event(), threading.Event()

    def counted(tree: Tree, num_leaves: int, total: int | None) -> int:
        begun.append(num_leaves)
        if len(begun) == 3:
            reached.set()
            assert is_read.wait(60)
        return grow_once(tree, num_leaves, total)

    monkeypatch.setattr("alphagateau.play.thinking.grow_once", counted)
    gui.say("go infinite")
    assert reached.wait(60)
    assert gui.ask("stop") is not None  # isready is answered after it has been read
    is_read.set()
    gui.until("bestmove")
    assert len(begun) == 3


def test_a_stop_that_comes_at_once_is_not_lost(gui: Gui):
    for _ in range(20):
        assert gui.best("go infinite", "stop") != "(none)"


def test_a_second_go_ends_an_endless_one(gui: Gui):
    gui.say("go infinite", "go infinite", "stop")
    assert len([gui.until("bestmove") for _ in range(2)]) == 2


def test_a_move_to_ponder_on_is_named(gui: Gui):
    gui.say("go nodes 200")
    *_, info, best = gui.until("bestmove")
    line = info.partition(" pv ")[2].split()
    assert best == f"bestmove {line[0]} ponder {line[1]}"
    gui.say(f"position fen {MATED_NEXT}", "go nodes 64")
    assert "ponder" not in gui.until("bestmove")[-1]  # nothing follows


def test_pondering_lasts_until_the_move_is_made_or_another(gui: Gui):
    gui.say("position startpos moves a2a3 b4a3", "go ponder wtime 1 btime 1 nodes 100")
    gui.until("info depth")
    assert gui.ask() is not None  # still no answer, although all time is over
    assert gui.best("stop") != "(none)"
    gui.say("go ponder nodes 100")
    gui.until("info depth")
    gui.say("ponderhit")
    assert " nodes 100 " in gui.until("bestmove")[-2]
    gui.say("go ponder wtime 600000", "ponderhit", "stop")  # its time begins with the hit
    assert gui.until("bestmove")[-1].split()[1] != "(none)"
    gui.say("go ponder wtime 1 btime 1")
    gui.until("info depth")
    gui.say("ponderhit")  # no time is left, but the tree is
    *_, info, _ = gui.until("bestmove")
    assert " nodes 1 " in info and len(info.partition(" pv ")[2].split()) > 1


def test_a_ponderhit_reaches_a_search_that_waits_for_its_turn():
    signals = Signals(is_endless=True, is_ponder=True)
    signals.hit()
    assert signals.hit_at and not signals.is_endless and signals.woken.is_set() and not signals.stopped.is_set()
    endless = Signals(is_endless=True, is_ponder=False)
    endless.hit()
    assert endless.is_endless and not endless.woken.is_set()


def test_the_network_is_moved_to_a_device_that_is_there(gui: Gui):
    missing = "gpu" if jax.default_backend() == "tpu" else "tpu"
    (said,) = gui.ask(f"setoption name Device value {missing}")
    assert said.startswith(f"info string device '{missing}' was asked for: expected one that JAX finds here, cpu")
    assert gui.best("go nodes 16") != "(none)"
    assert gui.ask("setoption name Device value cpu") == [
        "info string compiling for gardner_chess",
        "info string compiled",
    ]
    assert gui.best("go nodes 16") != "(none)"


def test_ready_is_said_after_what_came_before_it_once_the_move_is_heard(found: Checkpoint):
    lines: queue.SimpleQueue = queue.SimpleQueue()
    heard, are_read = [], threading.Event()

    def lines_in() -> Iterator[str]:
        yield from ("setoption name UCI_Variant value gardner", "go nodes 16")
        yield from iter(lines.get, None)
        are_read.set()

    def write(text: str) -> None:
        heard.append(text)
        if text.startswith("bestmove"):
            for line in ("setoption name Nonsense value 1", "isready", None):
                lines.put(line)
            assert are_read.wait(60)

    serve(player_of(found), lines_in(), write)
    assert heard[-3].startswith("bestmove") and "Nonsense" in heard[-2] and heard[-1] == "readyok"


def test_quit_is_heard_while_it_compiles(found: Checkpoint, monkeypatch: pytest.MonkeyPatch):
    is_asked, is_over = threading.Event(), threading.Event()

    def endless(*arguments):
        is_asked.set()
        is_over.wait()
        raise CheckpointError("compiled for too long")

    def lines_in() -> Iterator[str]:
        yield "isready"
        assert is_asked.wait(60)
        yield "quit"

    monkeypatch.setattr("alphagateau.play.thinking.make_thinker", endless)
    thread = serve(player_of(found), lines_in(), lambda text: None)
    assert thread.is_alive()
    is_over.set()
    thread.join(60)


def test_a_file_that_cannot_be_read_is_told_and_the_engine_goes_on(found: Checkpoint, monkeypatch: pytest.MonkeyPatch):
    def unreadable(*arguments):
        raise OSError(5, "Input/output error", "weights")

    monkeypatch.setattr("alphagateau.play.thinking.make_thinker", unreadable)
    heard: list[str] = []
    thread = serve(player_of(found), ["isready", "go nodes 1"], heard.append)
    assert not thread.is_alive()
    assert [line for line in heard if "compiling" not in line] == [
        *("readyok", "info string [Errno 5] Input/output error: 'weights'"),
        *("info string [Errno 5] Input/output error: 'weights'", "bestmove (none)"),
    ]


def test_the_thread_that_searches_ends_silently_where_nobody_reads(found: Checkpoint, monkeypatch: pytest.MonkeyPatch):
    def closed(text: str) -> None:
        raise BrokenPipeError

    fallen = []
    monkeypatch.setattr(threading, "excepthook", fallen.append)
    thread = serve(player_of(found), ["position startpos moves", "ucinewgame"], closed)
    assert not thread.is_alive() and fallen == []


def test_searchmoves(gui: Gui):
    gui.say("go nodes 50 searchmoves b2b3 e9e9")
    heard = gui.until("bestmove")
    assert heard[0] == "info string searchmoves 'e9e9' is no legal move: it is left out"
    assert heard[-1].split()[:2] == ["bestmove", "b2b3"]
    assert gui.best("go wtime 1 searchmoves b2b3") == "b2b3"


def test_temperature_draws_by_the_seed(gui: Gui):
    gui.ask("setoption name Temperature value 200")
    drawn = []
    for seed in (0, 1, 2, 3, 4, 5, 0):
        gui.ask(f"setoption name Seed value {seed}")
        drawn.append(gui.best("go nodes 40"))
    assert drawn[0] == drawn[-1] and len(set(drawn)) > 1


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("xyzzy", "info string unknown command 'xyzzy'"),
        ("x" * 2**20, f"info string unknown command '{'x' * 37}...'"),
        ("setoption name Contempt value 3", "info string there is no option 'Contempt': expected one of "),
        ("setoption", "info string setoption '' was given"),
        ("position", "info string position '' was given: expected startpos or fen"),
        ("position fen moves a2a3", "info string position fen was given without a FEN: expected one"),
        ("position fen what w - - 0 1", "info string FEN 'what w - - 0 1' has a wrong board: expected 5 rows"),
        ("position fen k4/5/2K2/5/4R w - - 0 1 2", "info string FEN 'k4/5/2K2/5/4R w - - 0 1 2' has 7 fields"),
        ("position startpos moves a2a3 b4a3 zzzz", "info string 'zzzz' is not a move: expected a legal one of "),
        ("position startpos moves 0000", "info string '0000' is not a move"),
        ("position startpos moves " + "a2a3 " * 200_000, "info string position has 200000 moves: expected at most"),
    ],
)
def test_what_cannot_be_understood_is_said_in_a_line(gui: Gui, line: str, answer: str):
    (heard,) = gui.ask(line)
    assert heard.startswith(answer) and len(heard) < 300
    is_refused = line.startswith("position") and "is not a move" not in heard  # then no move of another is made
    assert (gui.best("go nodes 16") == "(none)") == is_refused
    assert gui.best("position startpos", "go nodes 16") != "(none)"


def test_what_lichess_bot_usually_sets(gui: Gui):
    """The options of its own sample configuration; it would send only those that were declared."""
    gui.say("setoption name Move Overhead value 100", "setoption name Threads value 4", "setoption name Hash value 256")
    heard = gui.ask("setoption name SyzygyPath value ./syzygy/")
    assert [line.partition(": expected")[0] for line in heard] == ["info string there is no option 'SyzygyPath'"]
    assert gui.best("go nodes 16") != "(none)"


@pytest.mark.parametrize("clocks", ["0 0", "0", "", "- -", "3 0"])
def test_fens_that_every_engine_takes_are_searched(gui: Gui, clocks: str):
    """`kqKQ` and a move number of 0 gave bestmove (none)."""
    assert gui.ask(f"position fen {MATE_IN_TWO.removesuffix(' 0 1')} {clocks}") == []
    assert gui.best("go nodes 400") == "c3b3"


def test_a_promotion_in_upper_case_is_no_other_sides_move(gui: Gui):
    assert gui.ask("position fen 5/4P/k4/5/K4 w - - 0 1 moves e4e5Q") == []
    board = GardnerBoard("4Q/5/k4/5/K4 b - - 0 1")
    assert chess.Move.from_uci(gui.best("go nodes 16")) in board.legal_moves


def test_words_before_a_command_and_what_needs_no_answer(gui: Gui):
    assert gui.ask("", "   ", "debug on", "register later", "stop", "ponderhit", "\x00\ufffd joho debug off") == []
    assert gui.best("please go nodes 16") != "(none)"


def test_another_size_of_memory_keeps_the_position_and_another_board_does_not(gui: Gui):
    board = GardnerBoard()
    board.push_uci("b2b3")
    best = gui.best("position startpos moves b2b3", "setoption name Hash value 17", "go nodes 16")
    assert chess.Move.from_uci(best) in board.legal_moves
    gui.say("setoption name UCI_Variant value losalamos", "go nodes 16")
    assert gui.until("bestmove")[-2:] == ["info string the last position is of another board", "bestmove (none)"]
    gui.say("setoption name UCI_Variant value gardner", "setoption name Hash value 256")


def test_a_move_that_is_none_ends_the_game_before_it(gui: Gui):
    gui.ask("position startpos moves a2a3 a5a4")
    board = GardnerBoard()
    board.push_uci("a2a3")
    assert chess.Move.from_uci(gui.best("go nodes 16")) in board.legal_moves


@pytest.mark.parametrize(("fen", "score"), [("k4/1Q3/K4/4p/5 b - - 0 1", "mate 0"), ("k4/5/KQ3/5/5 b - - 0 1", "cp 0")])
def test_a_finished_game_has_no_move(gui: Gui, fen: str, score: str):
    gui.say(f"position fen {fen}", "go nodes 10")
    *_, info, best = gui.until("bestmove")
    assert f" score {score} " in info and best == "bestmove (none)"


def test_a_game_that_our_rules_have_ended_goes_on(gui: Gui):
    shuffle = "b1a3 b5c3 a3b1 c3b5 " * 30
    assert gui.ask(f"position startpos moves {shuffle}") == []
    assert chess.Move.from_uci(gui.best("go nodes 64")) in GardnerBoard().legal_moves


def test_positions_past_our_limit_of_plies_are_searched(gui: Gui):
    """Move 300 of a game that a GUI does not end: there is more than draws to be seen, here a mate in two."""
    gui.say(f"position fen {MATE_IN_TWO.rsplit(' ', 1)[0]} 300", "go nodes 400")
    *_, info, best = gui.until("bestmove")
    assert " score mate 2 " in info and best != "bestmove (none)"


@pytest.mark.parametrize(
    ("moves", "is_third"), [("c3c2 a5b5 c2c3 b5a5 c3c2 a5b5 c2c3", True), ("c3c2 a5b5 c2c3", False)]
)
def test_repetition_comes_from_the_moves_given(gui: Gui, moves: str, is_third: bool):
    gui.say(f"position fen {MATE_IN_TWO} moves {moves}", "go nodes 60 searchmoves b5a5")
    *_, info, best = gui.until("bestmove")
    assert best.startswith("bestmove b5a5") and info.startswith("info depth 1 score cp 0 ") == is_third


def test_end_of_input_finishes_what_ends_by_itself(found: Checkpoint):
    heard: list[str] = []
    lines_in = ["setoption name UCI_Variant value gardner\n", "position startpos\n", "go nodes 20\n", "go infinite\n"]
    thread = serve(player_of(found), iter(lines_in), heard.append)
    assert not thread.is_alive()
    assert [line.split()[0] for line in heard if line.startswith("bestmove")] == ["bestmove"] * 2


def test_a_network_tied_to_its_board_refuses_others(tmp_path: Path):
    heard: list[str] = []
    lines_in = ["uci\n", "isready\n", "setoption name UCI_Variant value chess\n", "isready\n", "go nodes 1\n"]
    serve(player_of(save_tiny(tmp_path, "gardner_chess", AlphaZeroConfig)), iter(lines_in), heard.append)
    said = "\n".join(heard)
    assert "UCI_Variant type combo default gardner var gardner\n" in said and said.count("readyok") == 2
    assert "have the size of gardner_chess (UCI_Variant gardner)" in said
    assert said.endswith("bestmove (none)")


@pytest.mark.slow
def test_on_eight_by_eight_as_a_tournament_program_asks(found: Checkpoint):
    """The cases of fastchess's compliance procedure: each is answered by a legal move, after lines with a score."""
    gui, start = Gui(found), chess.STARTING_FEN
    endgame = "3r2k1/p5n1/1pq1p2p/2p3p1/2P1P1n1/1P1P2pP/PN1Q2K1/5R2 w - - 0 27"
    cases = [
        (start, "", "wtime 100"),
        (start, "e2e4", "btime 100"),
        (start, "", "wtime 100 winc 100 btime 100 binc 100"),
        (start, "e2e4 e7e5", "wtime 100 winc 100 btime 100 binc 100"),
        (endgame, "", "wtime 1000 btime 1000 movestogo 5"),
        (endgame, "d2e1", "btime 100 binc 50 wtime 90 winc 50"),
        (start, "", "nodes 10"),
        (start, "", "movetime 100"),
        (start, "", "depth 1"),
    ]
    gui.ask("ucinewgame")
    for fen, moves, go in cases:
        board = chess.Board(fen)
        for move in moves.split():
            board.push_uci(move)
        assert gui.ask(f"position fen {fen} moves {moves}") == []
        gui.say(f"go {go}")
        *infos, best = gui.until("bestmove")
        assert chess.Move.from_uci(best.split()[1]) in board.legal_moves
        assert infos and all(" score " in info for info in infos)
        for info in infos:
            numbers = info.partition(" pv ")[0].replace("score cp", "cp").replace("score mate", "mate").split()[1:]
            assert all(text.lstrip("-").isdigit() for text in numbers[1::2])
    gui.say("quit")


@pytest.mark.slow
def test_memory_is_flat_over_a_thousand_searches(found: Checkpoint):
    psutil = pytest.importorskip("psutil")
    gui, process = Gui(found), psutil.Process()
    gui.ask("setoption name UCI_Variant value gardner")
    moves, used = "", []
    for number in range(1000):
        if number % 40 == 0:
            moves, board = "", GardnerBoard()
        move = gui.best(f"position startpos moves {moves}", "go movetime 70" if number % 2 else "go nodes 64")
        moves, _ = f"{moves} {move}", board.push_uci(move)
        if board.is_game_over(claim_draw=True):
            moves, board = "", GardnerBoard()
        used.append(process.memory_info().rss)
    gui.say("quit")
    assert max(used[800:]) - max(used[200:400]) < 16 * 2**20


def test_fischer_random_is_played_by_weights_of_usual_chess(tmp_path):
    """Also by those of a network that has the size of its board."""
    gui = Gui(save_tiny(tmp_path, "chess", AlphaZeroConfig))
    castling = "go nodes 1 searchmoves b1g1"
    gui.ask("setoption name UCI_Chess960 value true", "position fen 4k3/8/8/8/8/8/8/1K4R1 w G - 0 1")
    assert gui.best(castling) == "b1g1"
    gui.ask("position fen 4k3/8/8/8/8/8/8/1K4R1 w G - 0 1 moves b1g1 e8d7")
    assert gui.best("go nodes 1 searchmoves g1h1") == "g1h1"
    gui.say("quit")
