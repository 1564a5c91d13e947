"""An iteration's metrics, of losses that the package does not know."""

from alphagateau.training.iteration_metrics import training_metrics


def test_a_policy_without_an_entropy_of_its_targets_has_no_divergence():
    assert training_metrics({"policy_loss": 8.0}, 4) == {"train/policy_loss": 2.0}
    found = training_metrics({"policy_loss": 8.0, "target_entropy": 2.0}, 4)
    assert found["train/policy_kl"] == 1.5
