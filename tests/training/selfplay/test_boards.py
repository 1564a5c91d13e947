"""Every board of the package, through the commands: trained on, and played by weights that never saw it."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_checkpoints import save_tiny

from alphagateau.commands.main import main
from alphagateau.games.pgn.pgn import read_pgn
from alphagateau.games.variants import get_game
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.training.resume import load_weights

SMALL = ["--num-iterations", "1", "--evaluation.num-games", "0", "--search.num-simulations", "2"]


@pytest.mark.whole
def test_los_alamos_is_learnt_and_played_zero_shot_from_5x5(tmp_path: Path, monkeypatch) -> None:
    """The 6x6 board, which pgx lacks: an iteration of training on it, and a ladder on it of a 5x5 checkpoint."""
    monkeypatch.chdir(tmp_path)
    assert main(["train", "smoke", "--run", "6x6", "--game", "los_alamos_chess", *SMALL]) == 0
    (row,) = [json.loads(line) for line in Path("checkpoints/6x6/metrics.jsonl").read_text().splitlines()]
    assert row["window/frames"] == 64 and row["train/steps"] == 2
    assert main(["train", "smoke", "--run", "5x5", *SMALL]) == 0
    players = ["checkpoints/5x5/checkpoints/1?search=policy", "checkpoints/6x6/checkpoints/1?search=policy", "random"]
    options = ["--boards", "los_alamos_chess", "--matching", "all", "--games-per-pair", "4", "--out", "ladder"]
    assert main(["ladder", *players, *options]) == 0
    with open("ladder/ratings.csv", encoding="utf-8") as file:
        assert {row["player"]: row["games"] for row in csv.DictReader(file)} == {
            "5x5/1": "8",
            "6x6/1": "8",
            "random": "8",
        }
    games = read_pgn(Path("ladder/games.pgn").read_text(encoding="utf-8"))
    assert len(games) == 12 and {game.game for game in games} == {"los_alamos_chess"}


@pytest.mark.whole
def test_weights_that_fit_one_board_do_not_begin_a_run_on_another(tmp_path: Path) -> None:
    saved = save_tiny(tmp_path, "gardner_chess", TokenTransformerConfig)
    trainer: Any = SimpleNamespace(plan=SimpleNamespace(game=get_game("los_alamos_chess")))
    expected = "does not play los_alamos_chess: the weights of its token_transformer have the size of gardner_chess"
    with pytest.raises(CheckpointError, match=expected):
        load_weights(trainer, saved)


@pytest.mark.whole
def test_weights_of_5x5_begin_a_run_on_6x6(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "smoke", "--run", "5x5", *SMALL]) == 0
    words = ["train", "smoke", "--run", "6x6", "--game", "los_alamos_chess", "--init-from", "checkpoints/5x5"]
    assert main([*words, *SMALL]) == 0
    first, trained = (
        checkpoint.open_checkpoint(Path(f"checkpoints/{name}")) for name in ("6x6/checkpoints/0", "5x5/checkpoints/1")
    )
    assert first.manifest["weights_hash"] == trained.manifest["weights_hash"]
