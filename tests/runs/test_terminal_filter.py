"""No text of a stranger gives a terminal an order."""

import ast
import io
import sys
from pathlib import Path

import pytest

import alphagateau
from alphagateau.commands import main as command
from alphagateau.runs.logging.progress import Reporter, print_results, say, warn
from alphagateau.runs.terminal import printing_freely, printing_visibly, visible

ORDER = "\x1b]0;title\x07\x1b[2K\r\x9b1A\x08\u202egnp\u2028\ud800"
SHOWN = r"\x1b]0;title\x07\x1b[2K\r\x9b1A\x08\u202egnp\u2028\ud800"


def test_orders_become_escapes_and_all_else_stays():
    assert visible(ORDER) == SHOWN
    assert visible("Gaël 1½–½ ♔\t\n\u3000\xa0") == "Gaël 1½–½ ♔\t\n\u3000\xa0"


def test_whatever_is_printed_is_filtered_once(capsys):
    with printing_visibly():
        print(ORDER)
        print(ORDER, file=sys.stderr)
        sys.stdout.writelines([ORDER])
        print_results(ORDER, [ORDER], [[ORDER]])
        warn(ORDER)
        Reporter().say(ORDER)
        with printing_freely():
            print("\x1b[1mhelp")  # of a library
    out, err = capsys.readouterr()
    assert out.count(SHOWN) == 5 and err.count(SHOWN) == 3
    assert out.count("\x1b") == 1 and "\x1b" not in err and "\r" not in out + err


def test_the_bar_of_a_run_keeps_its_own_orders_and_no_others(monkeypatch):
    """They were shown as text: a terminal filled with them, from the first second of a run."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with printing_visibly():
        reporter = Reporter()
        with reporter.running(0, 2):
            print(ORDER, file=sys.stderr)
            reporter.phase("train", 1.0)
    printed = terminal.getvalue()
    assert printed.count(SHOWN) == 1 and "\r\x1b[2Ktrain" in printed
    assert r"\x1b" not in printed.replace(SHOWN, "")


def test_an_error_is_one_line_whatever_it_quotes(capsys, monkeypatch):
    def fail(name, words):
        raise OSError(2, "No such file", f"a\n{ORDER}")

    monkeypatch.setattr(command, "run_command", fail)
    assert command.main(["info"]) == 2
    assert capsys.readouterr().err == rf"alphagateau: a\n{SHOWN}: No such file" + "\n"


def test_standard_streams_that_are_closed_stay_so(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with printing_visibly():
        print("nobody reads this")
        assert sys.stdout is None


def test_no_module_makes_a_console_of_its_own_or_keeps_a_stream_past_the_filter():
    package = Path(alphagateau.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if path.relative_to(package).as_posix() != "runs/terminal.py":
                assert called != "Console" and not called.endswith((".Console", "__stdout__.write")), path


@pytest.mark.parametrize("words", [["--help"], ["info", "--help"]])
def test_help_is_coloured_where_a_terminal_shows_it(words, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert command.main(words) == 0
    assert r"\x1b" not in capsys.readouterr().out


def test_a_line_is_wrapped_between_words_on_a_terminal_and_a_path_stays_whole(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal)
    say("written to checkpoints/of_a_long_name/smoke in 3\xa0s")
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    say("written to checkpoints/of_a_long_name/smoke in 3\xa0s")
    lines = terminal.getvalue().splitlines()
    assert [line.rstrip() for line in lines] == [
        "written to",
        "checkpoints/of_a_long_name/smoke",
        "in 3 s",
        "written to checkpoints/of_a_long_name/smoke in 3 s",
    ]


def test_names_that_differ_at_their_end_stay_apart_in_a_narrow_table(monkeypatch, capsys):
    """The runs `gateau_parameters-0` and `gateau_parameters-1` were both `gateau_paramet…`."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "20")
    print_results("runs", ("run", "games"), [("gateau_parameters-0", 1), ("gateau_parameters-1", 2)])
    printed = capsys.readouterr().out
    assert "…" not in printed and "-0" in printed and "-1" in printed
