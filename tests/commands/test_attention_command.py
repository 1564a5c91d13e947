"""`alphagateau attention`: the page of a Chessformer's heads, and what is refused."""

import json
from pathlib import Path

import pytest
from markup import Outline
from tiny_checkpoints import save_tiny

from alphagateau.commands.main import main
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.gateau.config import GateauConfig


def test_what_cannot_be_shown_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    squares, edges = (str(save_tiny(tmp_path / kind.__name__, "gardner_chess", kind).path)
                      for kind in (ChessformerConfig, GateauConfig))  # fmt: skip
    for words, expected in (
        ([squares, "--square", "f1"], "--square must be a1 to e5, got 'f1'"),
        ([squares, "--fen", "8/8 w"], "--fen: "),
        ([squares, "--game", "go"], "--game: "),
        ([squares, "--positions", "0"], '--positions must be a whole number, from 1 to 1024, got "0"'),
        ([edges], "holds no Chessformer"),
    ):
        assert main(["attention", *words]) == 2
        said = capsys.readouterr().err
        assert expected in said and len(said.splitlines()) == 1, said


@pytest.mark.whole
def test_the_page_of_another_board_than_it_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Black to move on 6x6: a map of 36 squares for each of four heads, and the querying square where it is named."""
    found = save_tiny(tmp_path / "net", "gardner_chess", ChessformerConfig)
    page, table = tmp_path / "page.html", tmp_path / "table.json"
    fen = "rnqknr/pppppp/6/2P3/PP1PPP/RNQKNR b - - 0 1"
    words = [str(found.path), "--game", "los_alamos_chess", "--fen", fen, "--square", "c6", "--positions", "4"]
    assert main(["attention", *words, "--output", str(page), "--json", str(table)]) == 0
    assert f"{page}: " in capsys.readouterr().out
    text = page.read_text()
    outline = Outline(text)
    assert outline.tags.count("figure") == 4 and text.count('class="warm"') == 4 * 36
    assert 'class="query" x="204" y="4"' in text
    told = json.loads(table.read_text())
    assert len(told["follows"][0]) == 4 and len(told["correlations"]["knight"][0]) == 4
