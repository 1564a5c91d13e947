"""`alphagateau match` around its games: signals while an engine is thinking, and what is printed of searches."""

import math
import os
import re
import select
import shlex
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alphagateau.commands import match
from alphagateau.commands.main import main
from alphagateau.commands.match import Arguments, print_result
from alphagateau.games.pgn.pgn import read_pgn
from alphagateau.matches.match import MatchResult
from alphagateau.matches.match_games import Match, PlayedGame
from alphagateau.matches.scheduler import Statistics

MATE_IN_1 = "1k3/p2P1/2K2/P4/5 w - - 0 20"
ENGINE = """
import os, sys
searches = 0
for line in sys.stdin:
    word = line.split()[0]
    if word == "uci":
        print("option name UCI_Variant type combo default chess var chess var gardner\\nuciok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        searches += 1
        if searches == 1:
            print("bestmove d4d5q", flush=True)
        else:
            os.close(os.open(sys.argv[1], os.O_WRONLY))  # it has been asked, and never answers
"""


def test_games_are_written_if_nobody_reads_the_table(tmp_path: Path, monkeypatch):
    """`| head` lost them."""

    def gone(*told):
        raise SystemExit(1)

    monkeypatch.setattr(match, "print_result", gone)
    words = ["match", "random", "random", "--game", "gardner_chess", "--games", "2"]
    assert main([*words, "--pgn", str(tmp_path / "games.pgn")]) == 1
    assert len(read_pgn((tmp_path / "games.pgn").read_text())) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_match_is_stopped_while_an_engine_is_thinking(tmp_path: Path, capsys, number: signal.Signals):
    """It went on until the engine answered or its time was over."""
    engine, asked, openings, pgn = (tmp_path / name for name in ("engine.py", "asked", "openings.txt", "games.pgn"))
    engine.write_text(ENGINE)
    openings.write_text(f"{MATE_IN_1}\nb2b3\n")
    os.mkfifo(asked)

    def send_signal() -> None:
        with open(os.open(asked, os.O_RDONLY | os.O_NONBLOCK)) as file:
            if select.select([file], [], [], 300)[0]:  # or the engine's own time ends the match
                os.kill(os.getpid(), number)

    sender = threading.Thread(target=send_signal)
    sender.start()
    player = f"uci:{shlex.join([sys.executable, str(engine), str(asked)])}?timeout=300"
    words = ["match", player, "random", "--game", "gardner_chess", "--openings", str(openings), "--rows", "1"]
    assert main([*words, "--pgn", str(pgn)]) == 1
    sender.join()
    assert re.search(
        rf"^stopped \({number.name}\): [23] games without a result$", capsys.readouterr().out, re.MULTILINE
    )
    first = read_pgn(pgn.read_text())[0]
    assert (first.result, first.moves) == ("1-0", ("d4d5q",))


def test_nothing_is_printed_of_searches_that_nobody_made(capsys):
    """Two random movers were said to have searched rows, and 0.0 nodes a move."""
    assert main(["match", "random", "random", "--game", "gardner_chess", "--games", "2"]) == 0
    out = capsys.readouterr().out
    assert "openings by points of random" in out and "rows" not in out and "nodes" not in out


def test_the_score_with_each_color_and_the_draws_are_printed(capsys):
    """1 1/2 points of two games with white, a half of one with black; one game has no result."""
    record: Any = None
    points = [(True, 1.0), (False, 0.5), (True, 0.5), (False, None)]
    games = [PlayedGame(0, k // 2, is_white, score, record) for k, (is_white, score) in enumerate(points)]
    statistics = Statistics(moves=9, seconds=1.0)
    result = MatchResult(1, 2, 0, 1, (0, 0, 0, 1, 0), (0, 0, 0, 0, 0), games, (math.nan, math.nan), statistics)
    a, b, game = (SimpleNamespace(name=name, variables={}, move=None) for name in ("a", "b", "gardner_chess"))
    setup: Any = (game, Match(a, b, ()))
    print_result(Arguments("a", "b"), *setup, result)
    assert "score of a with white 0.750, with black 0.500; 67% drawn\n" in capsys.readouterr().out
