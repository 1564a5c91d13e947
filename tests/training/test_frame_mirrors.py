"""Mirrored frames: the loss of an image is that of the frame, and who is mirrored is drawn by share and step."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.notation import from_fen, to_fen
from alphagateau.games.rules import Game
from alphagateau.games.symmetry import mirror_edges
from alphagateau.games.variants import get_game
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import ACTION_KNOWN, ACTION_SLOT, ACTION_VALUE, Frame
from alphagateau.training.losses.policy_value import policy_value_loss, reduce_terms
from alphagateau.training.mirrors import mirror_frames, sample_mirrors

FENS = {
    "gardner_chess": ["rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1", "n1k1r/P3P/5/p3p/R1K1N b - - 3 9"],
    "chess": ["r3k2r/8/8/3pP3/8/8/8/R3K2R w - d6 0 2", "r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 0 2"],
}
IMAGES = {
    "gardner_chess": ["kqbnr/ppppp/5/PPPPP/KQBNR w - - 0 1", "r1k1n/P3P/5/p3p/N1K1R b - - 3 9"],
    "chess": ["r2k3r/8/8/3Pp3/8/8/8/R2K3R w - e6 0 2", "r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 0 2"],
}


def frames_of(game: Game, fens: list[str]) -> Frame:
    """Frames with a policy that puts more weight on each later slot."""
    states = jax.tree.map(lambda *x: np.stack(x), *[jax.device_get(from_fen(game, fen)) for fen in fens])
    policy = np.where(states.legal_edges >= 0, np.arange(1, game.max_legal_moves + 1), 0)
    policy = (policy / policy.sum(axis=1, keepdims=True)).astype(np.float16)
    known = np.ones(len(fens), bool)
    replies = {"reply_edge": states.legal_edges[:, 0], "moves_left": np.int16([7, 8])}
    position = jax.device_get(jax.jit(jax.vmap(game.position))(states))
    return Frame(position, policy, np.float32([1, -1]), known, extra=replies)


@pytest.mark.parametrize("name", FENS)
def test_an_image_has_the_loss_of_its_frame(name):
    game = get_game(name)
    frames, edges = frames_of(game, FENS[name]), mirror_edges(game)
    mirror = jax.jit(partial(mirror_frames, game))
    images = jax.device_get(mirror(frames, np.array([True, True])))
    rows = [jax.tree.map(lambda x, row=row: x[row], images.position) for row in range(2)]
    assert [to_fen(game, row) for row in rows] == IMAGES[name]
    logits = np.random.default_rng(0).normal(size=(2, game.num_edges)).astype(np.float32)
    has_image = np.array([fen != image for fen, image in zip(FENS[name], IMAGES[name], strict=True)])
    there = np.where(has_image[:, None], logits[:, edges], logits)
    loss = jax.jit(lambda evaluation, frames: reduce_terms(policy_value_loss(game, evaluation, frames))[1])
    value = np.float32([0.3, 0.4])
    one, other = loss(Evaluation(logits, value), frames), loss(Evaluation(there, value), images)
    for name, figure in one.items():
        np.testing.assert_allclose(other[name], figure, rtol=1e-5, err_msg=name)
    first = frames.extra["reply_edge"]
    assert (images.extra["reply_edge"] == np.where(has_image, edges[first], first)).all()
    assert legal_edge_mask(game, images.position)[np.arange(2), images.extra["reply_edge"]].all()
    assert images.extra["moves_left"].tolist() == [7, 8]


def test_only_frames_that_are_drawn_are_mirrored(gardner):
    frames = frames_of(gardner, FENS["gardner_chess"])
    some = jax.device_get(jax.jit(partial(mirror_frames, gardner))(frames, np.array([False, True])))
    assert (some.position.boards[0] == frames.position.boards[0]).all()
    assert (some.policy_target[0] == frames.policy_target[0]).all()
    assert (some.position.boards[1] != frames.position.boards[1]).any()


@pytest.mark.parametrize("name", FENS)
def test_values_of_moves_go_with_their_moves(name):
    game = get_game(name)
    frames, mirror = frames_of(game, FENS[name]), jax.jit(partial(mirror_frames, game))
    values = np.asarray(frames.policy_target, np.float32)
    labelled = frames._replace(extra={ACTION_VALUE: values, ACTION_KNOWN: values > 0.1})
    images = jax.device_get(mirror(labelled, np.array([True, True])))
    assert (images.extra[ACTION_VALUE] == images.policy_target.astype(np.float32)).all()
    assert (images.extra[ACTION_KNOWN] == (images.extra[ACTION_VALUE] > 0.1)).all()
    for slot in range(int((values[0] > 0).sum())):
        value = values[:, [slot]]
        extra = {ACTION_VALUE: value, ACTION_KNOWN: value > 0, ACTION_SLOT: np.int32([[slot]] * 2)}
        of_move = jax.device_get(mirror(frames._replace(extra=extra), np.array([True, True])))
        there = of_move.extra[ACTION_SLOT]
        assert of_move.extra[ACTION_VALUE][0] == images.extra[ACTION_VALUE][0, there[0]]


def test_draws_depend_on_share_and_step_and_are_heads_half_the_time():
    draw = jax.jit(sample_mirrors, static_argnums=3)
    key, steps = jax.random.key(1), jnp.arange(50)
    whole = np.array([draw(key, np.arange(8), step, 32) for step in steps])
    apart = np.array([[draw(key, np.array([share]), step, 32) for share in range(8)] for step in steps])
    assert (whole == apart.reshape(50, -1)).all()
    assert abs(whole.mean() - 0.5) < 5 * 0.5 / np.sqrt(whole.size)
    assert len({row.tobytes() for row in whole}) == 50 and len({row.tobytes() for row in apart[0]}) == 8
