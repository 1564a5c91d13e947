"""The study of a Chessformer's heads: which moves a head follows, the page, and what is refused."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from markup import Outline
from tiny_checkpoints import save_tiny

from alphagateau.games.actions import random_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.gateau.config import GateauConfig

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from attention import best_patterns, main, piece_patterns, position_patterns, study_heads


def test_patterns_are_moves_on_an_empty_board():
    """From d4: 8 knight's and king's moves, 13 of the bishop, 14 of the rook, 4 captures, 31 squares of its color."""
    patterns, d4 = piece_patterns(get_game("chess")), 3 * 8 + 3
    counts = {name: int(mask[d4].sum()) for name, mask in patterns.items()}
    assert counts == {"pawn": 4, "knight": 8, "bishop": 13, "rook": 14, "queen": 27, "king": 8, "color": 31}
    assert all((mask == mask.T).all() and not mask.diagonal().any() for mask in patterns.values())


def test_patterns_of_a_position_are_what_stands_there(gardner):
    """The start of 5x5: the knight of b1 can move to a3 and c3; ten own pieces, ten of theirs, one queen."""
    position = jax.tree.map(lambda x: x[None], gardner.position(gardner.init()))
    found = {name: mask[0] for name, mask in position_patterns(gardner, position).items()}
    b1, a3, c3, c2 = 5, 2, 12, 11
    assert found["arrivals"][a3, b1] and found["arrivals"][c3, b1] and not found["arrivals"][c2, b1]
    counts = [int(found[name][0].sum()) for name in ("own pieces", "their pieces", "their queen")]
    assert counts == [10, 10, 1]


def test_a_head_follows_the_pattern_that_it_was_made_of(gardner):
    """Three heads made by hand: knight's moves always, the opponent's pieces, and all squares alike."""
    positions = random_positions(gardner, 6, 8)
    knight = piece_patterns(gardner)["knight"][None].repeat(6, axis=0)
    theirs = position_patterns(gardner, positions)["their pieces"]
    heads = [mask / mask.sum(axis=-1, keepdims=True) for mask in (knight, theirs, np.ones_like(knight))]
    study = study_heads(gardner, positions, np.stack(heads, axis=1)[:, None])
    assert best_patterns(study, 0.5) == [["knight", "their pieces", ""]]
    assert study.correlations["knight"][0, 0] > 0.9
    np.testing.assert_allclose(study.correlations["their pieces"][0, 1], 1, atol=1e-6)
    assert study.stillness[0, 0] == pytest.approx(1) and study.stillness[0, 1] < 0.8
    np.testing.assert_allclose(study.on_itself[0, [0, 2]], [0, 1 / 25], atol=1e-7)


def test_what_cannot_be_shown_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    squares, edges = (str(save_tiny(tmp_path / kind.__name__, "gardner_chess", kind).path)
                      for kind in (ChessformerConfig, GateauConfig))  # fmt: skip
    for words, expected in (
        ([squares, "--square", "f1"], "--square must be a1 to e5, got 'f1'"),
        ([squares, "--fen", "8/8 w"], "8/8 w"),
        ([squares, "--game", "go"], "unknown game 'go'"),
        ([squares, "--positions", "0"], "--positions must be a whole number, from 1 to 1024, got 0"),
        ([squares, "--least", "7"], "--least must be a number, from 0 to 1, got 7.0"),
        ([edges], "holds no Chessformer"),
        (["nowhere"], "no such run or checkpoint"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        said = capsys.readouterr().err.partition("error: ")[2]
        assert stopped.value.code == 2 and expected in said and len(said.splitlines()) == 1, said


@pytest.mark.whole
def test_the_page_of_another_board_than_it_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Black to move on 6x6: a map of 36 squares for each of four heads, and the querying square where it is named."""
    found = save_tiny(tmp_path / "net", "gardner_chess", ChessformerConfig)
    page, table = tmp_path / "page.html", tmp_path / "table.json"
    fen = "rnqknr/pppppp/6/2P3/PP1PPP/RNQKNR b - - 0 1"
    words = [str(found.path), "--game", "los_alamos_chess", "--fen", fen, "--square", "c6", "--positions", "4"]
    main([*words, "--output", str(page), "--json", str(table)])
    assert f"{page}: " in capsys.readouterr().out
    text = page.read_text()
    outline = Outline(text)
    assert outline.tags.count("figure") == 4 and text.count('class="warm"') == 4 * 36
    assert 'class="query" x="204" y="4"' in text
    told = json.loads(table.read_text())
    assert len(told["follows"][0]) == 4 and len(told["correlations"]["knight"][0]) == 4
