"""Cheap searches, random openings and resignation together, in whole runs; and what a forced move teaches."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from command_lines import read_experiment
from stopping import StopAfter, share_trainer

from alphagateau.games.notation import from_fen, legal_moves
from alphagateau.games.pgn.pgn import read_pgn
from alphagateau.games.rules import Game
from alphagateau.networks.network import Evaluation
from alphagateau.runs import checkpoint
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.frames import Frame
from alphagateau.training.losses.policy_value import policy_value_loss

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"
OPTIONS = ["--selfplay.full-search-share", "0.5", "--selfplay.cheap-simulations", "2", "--selfplay.num-plies", "32"]
OPTIONS += ["--selfplay.random-openings", "0.5", "--selfplay.resign-plies", "4", "--selfplay.resign-value", "0"]
OPTIONS += ["--selfplay.resign-played-out", "0.5", "--selfplay.num-games", "16", "--num-iterations", "3"]


def lasting(folder: Path) -> list[dict]:
    """metrics.jsonl without what depends on the clock."""
    rows = read_metrics(folder / "metrics.jsonl")
    return [
        {k: v for k, v in row.items() if not any(x in k for x in ("per_second", "time/", "energy/"))} for row in rows
    ]


@pytest.mark.whole
@pytest.mark.parametrize("more", [[], ["--selfplay.continue-games"]], ids=["games begin anew", "games go on"])
def test_a_run_that_saves_searches_goes_on_bit_for_bit(tmp_path, more, monkeypatch):
    """Stopped in self-play and in training, with players who count the plies until they resign."""
    experiment, folders = read_experiment(SMOKE, OPTIONS + more), [tmp_path / "whole", tmp_path / "stopped"]
    share_trainer(monkeypatch, experiment)
    assert loop.train(experiment, folders[0], StopRequest())
    for looks in (2, 4):
        assert not loop.train(experiment, folders[1], StopAfter(looks))
    assert loop.train(experiment, folders[1], StopRequest())
    rows, again = map(lasting, folders)
    assert rows == again and len(rows) == 3
    hashes = [checkpoint.find(folder / "checkpoints")[0][0].manifest["weights_hash"] for folder in folders]
    assert hashes[0] == hashes[1]
    assert all(row["selfplay/full_search_rate"] * 32 in range(33) for row in rows)
    assert sum(row["selfplay/resignation_rate"] for row in rows) > 0
    games = read_pgn("".join(path.read_text() for path in sorted((folders[0] / "games").iterdir())))
    assert games and all(game.result != "*" for game in games)


def test_a_forced_move_trains_no_policy(gardner: Game) -> None:
    """The one legal move has probability 1 whatever the network says: no loss and no gradient, so it needs no mask."""
    state = from_fen(gardner, "k4/5/1R3/5/4K b - - 0 20")
    assert len(legal_moves(gardner, state)) == 1
    position = jax.tree.map(lambda x: x[None], gardner.position(state))
    target = np.eye(1, gardner.max_legal_moves, dtype=np.float16)
    frame = Frame(position, jnp.asarray(target), jnp.float32([1.0]), jnp.array([True]))

    def policy_loss(logits):
        return policy_value_loss(gardner, Evaluation(logits, jnp.zeros(1)), frame).minimized["policy_loss"].sum()

    logits = jax.random.normal(jax.random.key(0), (1, gardner.num_edges))
    loss, gradient = jax.value_and_grad(policy_loss)(logits)
    assert loss == 0 and not gradient.any()
