"""An iteration's metrics, of losses that the package does not know."""

import jax
import jax.numpy as jnp

from alphagateau.training.iteration_metrics import as_summed, training_metrics
from alphagateau.training.learner import Learner
from alphagateau.training.losses.policy_value import reduce_terms
from alphagateau.training.losses.terms import LossTerms
from alphagateau.training.selfplay.several_boards import BoardBatch, make_boards_learner


def test_a_policy_without_an_entropy_of_its_targets_has_no_divergence():
    assert training_metrics({"policy_loss": 8.0}, 4) == {"train/policy_loss": 2.0}
    found = training_metrics({"policy_loss": 8.0, "target_entropy": 2.0}, 4)
    assert found["train/policy_kl"] == 1.5


def test_without_a_step_there_is_no_mean():
    """It was 0, and so was each board's that had no batch: a value known of no frame is a symptom of `[health]`."""
    nothing = {"policy_loss": 0.0, "target_entropy": 0.0, "value_known": 0.0, "policy_loss/a": 0.0, "steps/a": 0.0}
    assert training_metrics(nothing, 0) == {"train/board_steps/a": 0}
    found = training_metrics(nothing | {"policy_loss": 3.0, "target_entropy": 1.0}, 1)
    assert found.keys() == {"train/board_steps/a", *(f"train/{x}" for x in ("policy_loss", "target_entropy"))} | {
        "train/value_known",
        "train/policy_kl",
    }


def test_a_value_without_known_results_is_not_calibrated():
    nothing = jnp.zeros((3, 2))
    assert training_metrics({"calibration": nothing}, 1) == {}
    found = training_metrics({"calibration": nothing.at[:, 1].set(jnp.array([4.0, 2.0, 1.0]))}, 1)
    assert found == {"train/calibration_error": 0.25, "train/calibration": [[4, 0.5, 0.25]]}


def test_a_sum_of_several_numbers_stays_a_list():
    """It ended the run after the iteration."""
    terms = LossTerms({"value_loss": jnp.zeros(4)}, sums={"of_kinds": jnp.array([2.0, 4.0, 6.0])})
    assert training_metrics(reduce_terms(terms)[1], 2) == {"train/value_loss": 0, "train/of_kinds": [1, 2, 3]}


def a_step(num_known: int) -> dict:
    """A step's metrics, of four frames whose value errs by as much as their results are known."""
    error, known = jnp.full(4, float(num_known)), jnp.arange(4) < num_known
    terms = LossTerms({"value_loss": error}, {"value_known": known}, {"value_error": (error, known)})
    return reduce_terms(terms)[1]


def test_a_mean_among_some_frames_is_over_those_of_all_steps():
    """A step without a known result counted 0, so the error was too small while few games had ended."""
    totals = jax.tree.map(lambda *x: sum(x), *(as_summed(a_step(num)) for num in (0, 1, 3)))
    found = training_metrics(totals, 3)
    assert found["train/value_error"] == (1 * 1 + 3 * 3) / 4
    assert found["train/value_loss"] == 4 / 3 and abs(found["train/value_known"] - 1 / 3) < 1e-6
    assert found.keys() == {"train/value_error", "train/value_loss", "train/value_known"}
    assert training_metrics(as_summed(a_step(0)), 1) == {"train/value_loss": 0, "train/value_known": 0}


def test_and_so_it_is_of_each_board():
    learner = Learner(lambda x: x, lambda train, num_known: (train, a_step(num_known)))
    both = make_boards_learner({"small": learner, "large": learner})
    steps = [(0, (1, 1)), (1, (2, 2)), (0, (3, 3)), (0, (0, 0))]  # board, known frames
    batches = [BoardBatch(jnp.int32(board), tuple(lambda n=n: n for n in nums)) for board, nums in steps]
    totals = jax.tree.map(lambda *x: sum(x), *(as_summed(both.step(0, batch)[1]) for batch in batches))
    found = training_metrics(totals, len(steps))
    assert found["train/value_error/small"] == (1 * 1 + 3 * 3) / 4 and found["train/value_error/large"] == 2
    assert abs(found["train/value_error"] - (1 + 9 + 4) / 6) < 1e-6
    assert found["train/value_loss/small"] == 4 / 3 and found["train/board_steps/small"] == 3
