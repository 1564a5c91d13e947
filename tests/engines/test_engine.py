"""The client of UCI engines: what it reads is bounded in memory and time, whatever an engine writes."""

import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from alphagateau.engines.engine import Engine, EngineError, EngineFault, EngineSetup, ScoredLine, read_line
from alphagateau.engines.options import Option, fault_of_option, read_option
from alphagateau.games.variants import get_game

FAKE = r"""
import sys, time
manner, searches, out = sys.argv[1], 0, sys.stdout.buffer
for line in sys.stdin:
    if line == "uci\n":
        out.write(b"\xff\xfe\x1b[31m\nid name Bad\x1b]0;x\x07 \xe9ngine\n\noption name \xff type spin min 1\nuciok\n")
    elif line == "isready\n":
        out.write(b"readyok\n")
    elif line.startswith("go "):
        searches += 1
        if manner == "silent":
            time.sleep(600)
        if manner == "endless":
            while True:
                out.write(b"info string " + b"x" * 100_000)
        if manner == "flood":
            out.write(b"info depth 1 score cp 7 pv e2e4 e7e5 g1f3 b8c6 f1b5\n" * 40_000)
        if manner == "digits":
            out.write(b"info depth 2 score cp 5 nodes 9\ninfo depth 3 score cp " + b"9" * 5000 + b" nodes 8\n")
        out.write(b"info depth 1 \xff\xfe score cp 1 string score cp 2 upperbound\n" if manner == "garbage" else b"")
        out.write(b"bestmove a2a%d ponder \xff\n" % (searches + 2))
        if manner == "late":
            out.flush()
            out.write(b"info depth 9 score mate 1 pv a2a3\nbestmove h7h8q\n")
    elif line == "quit\n":
        break
    out.flush()
"""
CHESS = get_game("chess")
POSITION = f"fen {CHESS.start_fen}"


@pytest.fixture
def engine(tmp_path: Path):
    """Starts a fake engine of the given manner, with a deadline that no test waits for."""
    started = []

    def start(manner: str, should_stop=lambda: False, launcher: str = ""):
        path = tmp_path / "fake.py"
        path.write_text(FAKE)
        command = f"{sys.executable} {launcher} {path} {manner}"
        started.append(Engine(EngineSetup(command, timeout=600), CHESS, should_stop))
        return started[-1]

    yield start
    for one in started:
        one.close()
        assert one.process.returncode is not None


def test_an_engine_that_floods_takes_no_memory(engine):
    flooding = engine("flood")
    tracemalloc.start()
    answer = flooding.go(POSITION, "nodes 1")  # 2 MB
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.line == ScoredLine("cp", 7, 1, "e2e4") and answer.by_move == {"e2e4": answer.line}
    assert most < 2**20


def test_a_line_without_an_end_is_a_fault(engine):
    with pytest.raises(EngineFault, match="endless' wrote a line of more than 16384 bytes"):
        engine("endless").go(POSITION, "nodes 1")


def test_a_score_of_5000_digits_is_passed_over(engine):
    answer = engine("digits").go(POSITION, "nodes 1")
    assert (answer.move, answer.line, answer.nodes) == ("a2a3", ScoredLine("cp", 5, 2, ""), 8)


def test_bytes_that_are_no_text_do_no_harm(engine):
    """Nor do escape characters reach a terminal by the engine's name."""
    garbage = engine("garbage")
    assert garbage.name == "Bad?]0;x? \N{REPLACEMENT CHARACTER}ngine"
    answer = garbage.go(POSITION, "nodes 1")
    assert answer.move == "a2a3" and answer.line is None


def test_what_an_engine_writes_late_is_of_no_other_search(engine):
    late = engine("late")
    assert [late.go(POSITION, "nodes 1").move for _ in range(3)] == ["a2a3", "a2a4", "a2a5"]
    assert late.go(POSITION, "nodes 1").line is None


def test_an_answer_that_is_overdue_is_given_up(engine):
    silent = engine("silent")
    silent.timeout = -1.0  # the deadline is over as soon as it is asked
    with pytest.raises(EngineFault, match=r"silent' did not answer 'go nodes 1' within -1 s"):
        silent.go(POSITION, "nodes 1")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_an_engine_whose_launcher_has_ended_is_given_up_too(engine, tmp_path):
    """Its answer was waited for without an end: the launcher alone was killed, which was gone."""
    launcher = tmp_path / "launch.py"
    launcher.write_text("import subprocess, sys\nsubprocess.Popen([sys.executable, *sys.argv[1:]])")
    silent = engine("silent", launcher=str(launcher))
    assert silent.process.wait() == 0
    silent.timeout = -1.0
    with pytest.raises(EngineFault, match=r"silent' did not answer 'go nodes 1' within -1 s"):
        silent.go(POSITION, "nodes 1")


def test_a_stop_is_heard_while_an_engine_is_waited_for(engine):
    is_stopped = False
    silent = engine("silent", lambda: is_stopped)
    is_stopped = True
    with pytest.raises(EngineFault, match="silent' was stopped"):
        silent.go(POSITION, "nodes 1")


def test_an_engine_that_is_missing_can_be_installed():
    with pytest.raises(EngineError, match="engine 'stokfish' cannot be started: No such file or directory; install it"):
        Engine(EngineSetup("stokfish"), CHESS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"info depth 12 seldepth 20 multipv 2 score cp -31 nodes 9 pv e2e4 e7e5", ScoredLine("cp", -31, 12, "e2e4")),
        (b"info score mate -3 depth 5", ScoredLine("mate", -3, 0, "")),
        (b"info depth 5 score mate 0", ScoredLine("mate", 0, 5, "")),
        (b"info depth 5 score cp 12 lowerbound nodes 3 pv e2e4", None),
        (b"info depth 5 score cp 12 wdl 1 998 1 upperbound nodes 3", None),
        (b"info depth 5 score cp", None),
        (b"info depth 5 score cp 1.5 pv e2e4", None),
        (b"info depth 5 score cp " + b"1" * 5000, None),
        (b"info depth 5 score cp 1 pv \xff\x1b[2J", ScoredLine("cp", 1, 5, "")),
    ],
)
def test_the_exact_score_of_a_line(line, expected):
    assert read_line(line) == expected


def test_options_are_read_and_held_against_what_is_wanted():
    lines = [
        "option name Hash type spin default 16 min 1 max 33554432",
        "option name Skill Level type spin default 20 min 0 max " + "9" * 5000,
        "option name Style type combo default Solid var Solid var Very Risky",
        "option name nodestime type spin default 0 min 0 max 10000",
        "option name Bare type spin default 3",
    ]
    found = [read_option(line) for line in lines]
    assert found[:2] == [Option("Hash", "spin", 1, 33554432), Option("Skill Level", "spin", 0, None)]
    assert found[2] == Option("Style", "combo", values=("Solid", "Very Risky")) and read_option("id name x") is None
    offered = {option.name.lower(): option for option in found if option}
    assert fault_of_option(offered, "bare", "x", []) == ": option 'bare' is 'x', expected a whole number"
    assert fault_of_option(offered, "node", "50", ["nodes"]) == " has no option 'node'; did you mean 'nodes'?"
    assert (
        fault_of_option(offered, "hash", "0", [])
        == ": option 'hash' is '0', expected a whole number from 1 to 33554432"
    )
    assert fault_of_option(offered, "Style", "very risky", []) == "" == fault_of_option(offered, "Hash", "64", [])
