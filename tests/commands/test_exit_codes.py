"""Exit codes: 2 for what the user named or wrote, 1 for a failure at work; streams and signals of the command line."""

import errno
import importlib.metadata
import io
import subprocess
import sys
from unittest.mock import Mock

import jax
import pytest

from alphagateau.commands import main as command
from alphagateau.commands.main import explain, main
from alphagateau.matches.specs import PlayerError, SpecError
from alphagateau.runs.checkpoint import CheckpointError, NoCheckpointError
from alphagateau.runs.run_folder import RunError

NO_ENGINE = "cannot be started"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info nowhere", "no such run or checkpoint"),
        ("report nowhere", "is not a run"),
        ("publish nowhere x", "no such run or checkpoint"),
        ("play nowhere", "no such run or checkpoint"),
        ("play nowhere?simulations=x", "no such run or checkpoint"),
        ("board nowhere", "no such run or checkpoint"),
        ("uci nowhere", "no such run or checkpoint"),
        ("match nowhere random", "no such run or checkpoint"),
        ("match random random", "no player says which board"),
        ("match random random --game go", "unknown game 'go'"),
        ("match random random?x=1 --game chess", "the random mover has no options"),
        ("match random uci:no-such-engine --game chess", NO_ENGINE),
        ("match random uci: --game chess", "names no program"),
        ("match random uci:x?nodes=x --game chess", "nodes is 'x', expected a whole number"),
        ("match random random --game chess --openings nowhere", "nowhere"),
        ("match random random --game chess --opening-plies 0", "different openings of 0 plies"),
        ("puzzles random -", "puzzles names the hash of its file: expected a plain file, got -"),
        (
            "label x --player random --target best --nodes 4000 --output y",
            "--nodes is of an engine: --player takes its own",
        ),
        ("train smoke --until=", "must be a unit and a number"),
        ("match a b --alpha 1", "--alpha, --beta and --normalized are of a sequential test"),
        ("match a b --beta 0.1", "give its bounds, such as --sprt 0,10"),
        ("match a b --normalized", "give its bounds, such as --sprt 0,10"),
        (
            "match a b --normalized --sprt 0,300",
            "elo1 300.0, expected at most 200 normalized Elo either way",
        ),
        ("ladder nowhere random", "no such run or checkpoint"),
        ("ladder random uci:no-such-engine --boards chess", NO_ENGINE),
        ("ladder random nowhere --boards chess", "no such run or checkpoint"),
        ("ladder random --boards chess --merge nowhere", "expected two or more"),
        ("study nowhere", "no such study"),
        ("rate nowhere.csv", "cannot be read"),
        ("pgn nowhere", "cannot be read"),
        ("positions nowhere --output out", "cannot be read"),
        ("positions --players nowhere --output out", "no such run or checkpoint"),
        ("label nowhere", "does not exist"),
        ("evaluate random nowhere", "No such file"),
        ("puzzles random nowhere.csv", "cannot be read"),
        ("sts nowhere nowhere.epd", "no such run or checkpoint"),
        ("sts random nowhere.epd", "cannot be read"),
        ("doctor nowhere.toml", "no such experiment file"),
        ("--vrsion", "unknown option"),
    ],
)
def test_what_the_user_named_wrong_exits_2(words, said, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    out, error = capfd.readouterr()
    last = error.splitlines()[-1]
    assert said in last and last.startswith("alphagateau: ") and "Traceback" not in error and not out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpecError("x"), 2),
        (NoCheckpointError("x"), 2),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 2),
        (PlayerError("x"), 1),
        (CheckpointError("x"), 1),
        (RunError("x"), 1),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 1),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 1),
        (MemoryError(), 1),
        (jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 472000000000 bytes."), 1),
        (jax.errors.JaxRuntimeError("INTERNAL: a fault of XLA"), 0),
        (ValueError("a fault of ours"), 0),
        (RuntimeError("a library's"), 0),
    ],
)
def test_input_and_work_are_told_apart_by_one_rule(error, code):
    assert explain(error)[0] == code


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("match randm random", "random"),
        ("match quickstart random", "checkpoints/quickstart"),
        ("match quickstrt random", "checkpoints/quickstart"),
        ("info checkpoints/quikstart", "checkpoints/quickstart"),
        ("play quickstart/checkpoints/3", "checkpoints/quickstart/checkpoints/3"),
        ("ladder lader.toml", "ladder.toml"),
        ("train smke.toml", "smoke.toml"),
        ("train smoke.toml --network.architecture gatau", "gateau"),
        ("train smoke.toml --search.algorithm gumbl", "gumbel"),
        ("train smoke.toml --training.optimizer adm", "adam"),
        ("rate x --method bradly-terry", "bradley-terry"),
    ],
)
def test_a_word_that_is_nearly_right_gets_its_suggestion(words, near, capfd, tmp_path, monkeypatch):
    write_near(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert capfd.readouterr().err.endswith(f"; did you mean {near}?\n")


@pytest.mark.parametrize("words", ["ladder nofile.toml", "ladder smok.toml", "train lader.toml", "info xyz"])
def test_what_is_like_nothing_of_its_kind_gets_no_suggestion(words, capfd, tmp_path, monkeypatch):
    write_near(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert "did you mean" not in capfd.readouterr().err


def write_near(folder):
    """A run, an experiment and a ladder to be meant."""
    three = folder / "checkpoints" / "quickstart" / "checkpoints" / "3"
    three.mkdir(parents=True)
    (three / "manifest.json").write_text("{")
    (folder / "smoke.toml").write_text('game = "chess"\nnum_iterations = 1\n[selfplay]\nnum_games=8\nnum_plies=8\n')
    (folder / "ladder.toml").write_text('players = ["random"]\n')


def test_the_version(capsys, monkeypatch):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("alphagateau 0.")
    monkeypatch.setattr(importlib.metadata, "version", Mock(side_effect=importlib.metadata.PackageNotFoundError))
    assert main(["--version"]) == 0  # of a source tree that is only on the path
    assert capsys.readouterr().out == "alphagateau uninstalled\n"


def test_a_closed_stream_is_an_empty_one_and_no_character_is_an_error(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    command.open_streams()
    print("é ± \udcff", flush=True)
    print("lost", file=sys.stderr)
    assert written.getvalue() == b"\\xe9 \\xb1 \\udcff\n" and sys.stdin.read() == ""


def test_a_path_that_is_no_text_is_one_sentence(capfd):
    assert main(["match", "r\udce9seau", "random"]) == 2
    assert capfd.readouterr().err == 'alphagateau: "r\\udce9seau" is not UTF-8 text: expected a path by another name\n'


def test_a_path_is_read_under_a_locale_of_ascii(tmp_path):
    code = "from alphagateau.commands import main as command; command.run = lambda words: print(words[0].encode())\n"
    (tmp_path / "x.py").write_text(code + "command.main()")
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": ":".join(sys.path)}
    words = [sys.executable, str(tmp_path / "x.py"), "é"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "b'\\xc3\\xa9'\n"


LOSES_INTERRUPTS = """
import os, signal, sys
from alphagateau.commands import main as command
assert not {"alphagateau.config", "tyro", "pydantic", "typing"} & set(sys.modules) - BEFORE
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests begun in the background have it ignored

def import_library(name, words):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass

command.run_command = import_library
sys.exit(command.main(["match"]))
"""


def test_ctrl_c_while_libraries_are_imported_is_a_word_and_an_exit_code():
    code = "import sys; BEFORE = set(sys.modules)" + LOSES_INTERRUPTS
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "alphagateau: interrupted\n")
