"""Players on labelled boards: what they play and rank, judged by labels written by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.data.packed import labels_of_row, pack_labels
from alphagateau.games.notation import board_edges, board_from_fen, to_fen
from alphagateau.matches.openings import one_state
from alphagateau.matches.players import Player, random_player
from alphagateau.networks.network import Evaluation, Network
from alphagateau.ratings.intervals import share
from alphagateau.search.config import ActionValueConfig
from alphagateau.search.make_search import make_search
from alphagateau.suites.labelled_moves import LabelledBoards, in_top, measure, predict, read_boards
from alphagateau.training.labels.measures import measure_bins
from alphagateau.training.losses.terms import SIGMA_BINS

BINS = 8


@pytest.fixture(scope="module")
def fens(gardner) -> list[str]:
    return [gardner.start_fen, "rnbqk/1pppp/pP3/P1PPP/RNBQK b - - 0 2"]


def row_of(gardner, fen: str, **changes) -> dict:
    """Labels that rise by 50 cp from move to move."""
    edges = list(board_edges(gardner, board_from_fen(gardner, fen)))
    row = {"fen": fen, "game": 1, "ply": 0, "count": 1, "state_score": 0, "edges": edges}
    return row | {"scores": [50 * k for k in range(len(edges))], "depths": [1] * len(edges), "failed": ""} | changes


@pytest.fixture(scope="module")
def boards(gardner, fens) -> LabelledBoards:
    return read_boards(gardner, pack_labels(gardner, [labels_of_row(fen, row_of(gardner, fen)) for fen in fens]))


def ranking(game) -> Network:
    """Values its moves by slot, `variables["rise"]` more each; its policy, values and bins are uniform."""

    def apply(variables, positions, train=False):
        batch, slots = len(positions.color), game.max_legal_moves
        q = 0.1 + variables["rise"] * jnp.arange(slots) / slots
        if variables["bins"].shape[0] > 1:
            logits = jnp.zeros((batch, slots, BINS))
        else:
            logits = jnp.broadcast_to(q[:, None], (batch, slots, 1))
        extra = {"action_value_logits": logits, "value_logits": jnp.zeros((batch, BINS))}
        return Evaluation(jnp.zeros((batch, game.num_edges)), jnp.zeros(batch), extra), {}

    return Network(lambda key: {}, apply)


@pytest.fixture(scope="module")
def search(gardner):
    return make_search(gardner, ranking(gardner), ActionValueConfig(endings="none"))


@pytest.mark.parametrize(("rise", "accuracy", "tau"), [(0.5, 1.0, 1.0), (-0.05, 0.0, -1.0)])
def test_a_ranking_is_right_or_the_wrong_way_round(boards, search, rise, accuracy, tau):
    player = Player("ranking", search, {"rise": jnp.float32(rise), "bins": jnp.zeros(1)})
    found = measure(boards, predict(boards, player, 0, abs), is_best_only=False)
    assert found["action_accuracy"].value == accuracy and found["action_accuracy"].count == 2
    assert found["tau_b"].value == pytest.approx(tau)
    assert (found["tau_published"].value == pytest.approx(1)) == (rise > 0)
    moves = [int((slots >= 0).sum()) for slots in boards.states.legal_edges]
    assert found["policy_log_loss"].value == pytest.approx(np.mean(np.log2(moves)))
    alike = share(float(np.sum(3 / np.array(moves))), 2)  # all moves to its policy; Wilson's interval
    assert found["policy_top_3"] == pytest.approx(alike, abs=1e-5)
    assert found["state_value_error"].value == pytest.approx(0, abs=1e-4)


def test_the_first_three_by_the_prior_are_the_best_and_those_like_it():
    """The best is second; third of two alike with one place left; alone behind three; one of four alike."""
    logits = jnp.array([[2.0, 3, 1, 0], [3, 2, 1, 1], [3, 2, 1, 0], [0, 0, 0, 0]])
    found = in_top(logits, jnp.array([0, 3, 3, 1]))
    np.testing.assert_allclose(found, [[0, 1], [0, 0.5], [0, 0], [0.25, 0.75]])


def test_the_random_mover_ranks_nothing_and_values_nothing(boards):
    found = measure(boards, predict(boards, random_player(), 0, abs), is_best_only=False)
    assert found["tau_b"].value == 0 and "state_value_error" not in found
    assert found["policy_log_loss"].value > 2
    assert "tau_b" not in measure(boards, predict(boards, random_player(), 0, abs), is_best_only=True)


def test_an_engine_is_asked_for_its_move_alone(gardner, fens, boards):
    best = {}
    for fen in fens:
        moves = board_edges(gardner, board_from_fen(gardner, fen))
        best[fen.rsplit(" ", 2)[0]] = moves[max(moves)]
    heard: list[int] = []
    player = Player("engine", move=lambda fen, moves: best[fen.rsplit(" ", 2)[0]], num_workers=2)
    found = measure(boards, predict(boards, player, 0, heard.append), is_best_only=False)
    assert set(found) == {"action_accuracy"} and found["action_accuracy"].value == 1 and sorted(heard) == [1, 2]


def test_boards_are_entered_as_they_were(gardner, fens, boards):
    assert [to_fen(gardner, one_state(boards.states, row)) for row in range(2)] == fens


def test_boards_of_which_a_move_has_no_label_are_not_counted(gardner, fens, search):
    whole, part = row_of(gardner, fens[0]), row_of(gardner, fens[1])
    part |= {"edges": part["edges"][:1], "scores": [0]}
    boards = read_boards(gardner, pack_labels(gardner, [labels_of_row("", row) for row in (whole, part)]))
    player = Player("ranking", search, {"rise": jnp.float32(-0.05), "bins": jnp.zeros(1)})
    predictions = predict(boards, player, 0, abs)
    assert measure(boards, predictions, is_best_only=False)["action_accuracy"].count == 1
    of_best = measure(boards, predictions, is_best_only=True)[
        "action_accuracy"
    ]  # the first move is the second board's best
    assert of_best.count == 2 and of_best.value == 0.5


def test_bins_that_are_all_alike_cost_what_they_should(gardner, boards):
    """Uniform over 8 bins: 3 bits a label, and log 8 less the entropy of the target from it."""
    found = measure_bins(ranking(gardner), {"rise": jnp.float32(0), "bins": jnp.zeros(2)}, boards.rows)
    np.testing.assert_allclose(found["action_value_log_loss"], 3, rtol=1e-5)
    np.testing.assert_allclose(found["state_value_log_loss"], 3, rtol=1e-5)
    edges = (np.arange(BINS + 1) / BINS - 0.5) * BINS / SIGMA_BINS
    target = np.diff(jax.scipy.stats.norm.cdf(edges))
    target /= target.sum()
    np.testing.assert_allclose(found["state_value_kl"], math.log(BINS) + (target * np.log(target)).sum(), rtol=1e-3)
    assert set(found) == {f"action_value_{x}" for x in ("log_loss", "kl", "error")} | {
        "state_value_log_loss",
        "state_value_kl",
    }
    q = 1 / (1 + np.exp(-0.00368208 * 50 * np.arange(int((boards.states.legal_edges[0] >= 0).sum()))))
    assert found["action_value_error"][0] == pytest.approx(np.abs(q - 0.5).mean(), abs=1e-4)
