"""A loss, a head and a network of somebody else's, which only their declarations make known."""

import importlib
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal

import jax.numpy as jnp
import pytest

from alphagateau import config
from alphagateau.commands.main import main
from alphagateau.config import NETWORKS, ConfigError, NetworkConfig
from alphagateau.config.losses import HEADS, LOSSES, Head, Loss
from alphagateau.config.records import key, record
from alphagateau.config.registers import Architecture
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.network import Evaluation, Network
from alphagateau.reports.run import write_report
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.checks import check_experiment, check_heads
from alphagateau.training.labels.producer import check_target
from alphagateau.training.losses.auxiliary import auxiliary_terms
from alphagateau.training.losses.terms import LossTerms, join_terms, policy_terms

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


@record
class ToyConfig(NetworkConfig):
    """A network of three numbers."""

    architecture: Literal["toy"] = "toy"
    policy_head = True
    age_head: bool = key("a head that learns how many plies were played", default=False)


def make_toy(game, config: ToyConfig) -> Network:
    def init(random_key) -> dict[str, Any]:
        return {"params": {"logit": jnp.float32(0), "value": jnp.float32(0), "age": jnp.float32(0)}}

    def apply(variables, positions, train=False, axis_name=None):
        params, batch = variables["params"], positions.color.shape[0]
        logits = params["logit"] * jnp.arange(game.num_edges, dtype=jnp.float32) / game.num_edges
        extra = {"age": jnp.broadcast_to(params["age"], (batch,))} if config.age_head else {}
        evaluation = Evaluation(jnp.broadcast_to(logits, (batch, game.num_edges)), jnp.zeros(batch), extra)
        return evaluation, {}

    return Network(init, apply)


def age_terms(game, evaluation: Evaluation, frames) -> LossTerms:
    return LossTerms({"age_loss": jnp.square(evaluation.extra["age"] - frames.extra["age"])})


def toy_terms(game, evaluation: Evaluation, frames) -> LossTerms:
    return join_terms(policy_terms(game, evaluation, frames), auxiliary_terms(game, evaluation, frames))


TOY_LOSS = Loss("toy", toy_terms, ("policy",), {"age_head": (True,)}, labels=("best",), has_heads=True)
AGE = Head(
    name="age",
    key="age_head",
    output="age",
    terms=age_terms,
    target=lambda trajectory: trajectory.position.ply.astype(jnp.float32),
    meaning={"train/age_loss": "squared error of the plies played"},
)


@pytest.fixture
def toys(monkeypatch):
    """Declared for one test, after the package's own."""
    importlib.import_module("alphagateau.builtin")
    for register, entry in (NETWORKS, Architecture("toy", ToyConfig, make_toy)), (LOSSES, TOY_LOSS), (HEADS, AGE):
        monkeypatch.setitem(register._entries, entry.name, entry)


def toy_experiment(**changes: Any) -> config.Experiment:
    toy = {"network.architecture": "toy", "network.age_head": True, "training.loss": "toy"}
    small = {"num_iterations": 1, "evaluation.num_games": 0}
    return config.change(config.load(EXPERIMENTS / "smoke.toml"), toy | small | changes)


def test_a_declared_loss_is_in_help_and_in_errors(toys, capfd):
    assert main(["train", str(EXPERIMENTS / "smoke.toml"), "--help", "training"]) == 0
    shown = re.search(r"--training\.loss\s+\{([^}]*)\}", capfd.readouterr().out)
    assert shown and "toy" in re.sub(r"\s", "", shown[1]).split(",")
    with pytest.raises(
        ConfigError, match=r'loss must be one of "policy_value", .*"toy", got "toi"; did you mean toy\?'
    ):
        check_experiment(toy_experiment(**{"training.loss": "toi"}))


def test_what_a_declared_loss_needs_is_checked(toys, tmp_path):
    check_experiment(toy_experiment())
    for network, shown in (ToyConfig(), "false"), (GateauConfig(), "nothing"):
        with pytest.raises(ConfigError, match=f'age_head must be true for training.loss "toy", got {shown}'):
            check_heads("toy", network)
    with pytest.raises(ConfigError, match=r'network\.age_head must be false for training\.loss "behavioral_cloning"'):
        check_heads("behavioral_cloning", ToyConfig(age_head=True))
    check_target(tmp_path, {"target": "best"}, "toy")
    with pytest.raises(ConfigError, match="holds labels of 'states', expected 'best' for "):
        check_target(tmp_path, {"target": "states"}, "toy")


def test_what_is_declared_for_one_test_is_gone_in_the_next():
    assert "toy" not in LOSSES and "toy" not in NETWORKS and "age" not in HEADS


@pytest.mark.whole
def test_a_declared_loss_trains_a_declared_head_of_a_declared_network(toys, tmp_path):
    """The head learns the mean number of plies played, 3.5, of games of 8 plies."""
    experiment = toy_experiment(**{"training.learning_rate": 0.5, "training.num_epochs": 16})
    assert loop.train(experiment, tmp_path / "toy", StopRequest())
    row = read_metrics(tmp_path / "toy" / "metrics.jsonl")[-1]
    assert row["train/age_loss"] > 0 and "train/value_loss" not in row
    assert row["train/loss"] == pytest.approx(row["train/policy_loss"] + row["train/age_loss"], rel=1e-5)
    assert newest_checkpoint(tmp_path / "toy").manifest["network"] == {"architecture": "toy", "age_head": True}
    assert "squared error of the plies played" in write_report(tmp_path / "toy").read_text()


def test_every_declared_function_is_where_its_declaration_looks():
    """Each is imported by its first call; a wrong name would be found in a run."""
    deferred: list[Any] = [entry.terms for register in (LOSSES, HEADS) for entry in register.values()]
    for function in [*deferred, *(head.target for head in HEADS.values() if head.target)]:
        assert callable(resolve_name(function.args[0]))
