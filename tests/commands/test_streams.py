"""Standard input of the commands that converse."""

import io
import sys

import pytest

from alphagateau.cli.streams import open_input
from alphagateau.commands.main import main


@pytest.mark.parametrize("command", ["play", "uci"])
def test_a_closed_standard_input_is_one_sentence(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "__stdin__", None)
    assert main([command, "checkpoints/none"]) == 2
    assert capsys.readouterr().err.startswith(
        f"alphagateau: {command} has a closed standard input: expected a terminal"
    )


def test_bytes_that_are_no_text_are_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe e2e4\n"), encoding="utf-8"))
    assert open_input("play").readline() == "\ufffd\ufffd e2e4\n"
