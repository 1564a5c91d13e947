"""The frame window: all new frames, a uniform sample of the old, epochs, shares, sizes."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau import config
from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.training.frames import Frame
from alphagateau.training.selfplay import window_phase
from alphagateau.training.selfplay.replay import Window, add_frames, epoch_order, init_window, take_batch
from alphagateau.training.trainer import make_trainer

ADD, ORDER = jax.jit(add_frames), jax.jit(epoch_order)  # compiled once for each size
TAKE = jax.jit(take_batch, static_argnums=3)
CAPACITY, NEW = 12, 4


@cache
def shapes_of(name: str) -> Frame:
    return jax.eval_shape(partial(init_window, frame_of(get_game(name)), 1, 1)).frames


def frame_of(game: Game) -> Frame:
    """Shapes and types of one frame."""
    return Frame(game.position(game.init()), np.zeros(game.max_legal_moves, np.float16), np.float32(0), np.bool_(False))


def frames_with(game: Game, numbers) -> Frame:
    """Frames [R, n] that carry `numbers` [R, n] in several of their arrays."""
    numbers = np.asarray(numbers)
    frames = jax.tree.map(lambda x: np.zeros(numbers.shape + x.shape[2:], x.dtype), shapes_of(game.name))
    frames.value_target[:] = numbers
    frames.position.ply[:] = numbers
    frames.policy_target[:] = numbers[..., None]
    frames.position.boards[:] = numbers[..., None, None] % 100
    return frames


def held(window: Window, share: int = 0) -> list[int]:
    """The numbers of a share's frames, in order; every array of a frame tells the same."""
    count = int(window.count[share])
    frames = jax.tree.map(lambda x: np.asarray(x)[share, :count], window.frames)
    numbers = frames.value_target
    assert (frames.position.ply == numbers).all()
    assert (frames.policy_target == numbers[:, None]).all()
    assert (frames.position.boards == numbers[:, None, None] % 100).all()
    return sorted(int(x) for x in numbers)


def add(window: Window, seed: int, numbers, share: int = 0) -> Window:
    """Frames `numbers` [n] added to each share, the first of which is called `share`."""
    num_shares = window.count.shape[0]
    new = frames_with(get_game("gardner_chess"), np.tile(np.array(numbers), (num_shares, 1)))
    return ADD(window, jax.random.key(seed), share + np.arange(num_shares), new)


def times_held(numbers: np.ndarray, of: range) -> np.ndarray:
    """[R, len(of)] bool: which of the numbers each row of `numbers` holds."""
    return (numbers[:, :, None] == np.array(of)).any(axis=1)


def check_uniform(kept: np.ndarray, num_kept: int) -> None:
    """Each row of `kept` [R, n] is a uniform sample of `num_kept` of n without replacement.

    A frame's indicator has variance p (1 - p) and any two have covariance -p (1 - p) / (n - 1), p = num_kept / n, so
    sum (count - R p)^2 / (R p (1 - p)) * (n - 1) / n has a chi-square distribution of n - 1 degrees of freedom. Its
    1 - 1e-6 quantile is below (n - 1) + 7 sqrt(n - 1) + 18 for n from 10 to 20. A pair is kept together with
    probability q = num_kept (num_kept - 1) / (n (n - 1)): 5.5 standard deviations are allowed.
    """
    rows, n = kept.shape
    p, q = num_kept / n, num_kept * (num_kept - 1) / (n * (n - 1))
    assert (kept.sum(axis=1) == num_kept).all()
    statistic = ((kept.sum(axis=0) - rows * p) ** 2).sum() / (rows * p * (1 - p)) * (n - 1) / n
    assert statistic < (n - 1) + 7 * math.sqrt(n - 1) + 18
    together = kept.T.astype(float) @ kept
    deviation = np.abs(together - rows * q)[~np.eye(n, dtype=bool)].max()
    assert deviation < 5.5 * math.sqrt(rows * q * (1 - q))


SHARES = 2000


@pytest.fixture(scope="module")
def full(gardner) -> Window:
    """SHARES shares, each with the frames 0 .. 11 of its 12: as many independent trials."""
    numbers = np.tile(np.arange(CAPACITY), (SHARES, 1))
    return Window(frames_with(gardner, numbers), np.full(SHARES, CAPACITY, np.int32))


def with_count(full: Window, count: int) -> Window:
    """Only the first `count` places hold frames."""
    return full._replace(count=np.full(SHARES, count, np.int32))


def test_a_new_window_is_empty(gardner):
    window = jax.jit(partial(init_window, frame_of(gardner), 3, 36))()
    assert window.count.tolist() == [0, 0, 0] and held(window) == []
    assert window.frames.value_target.shape == (3, CAPACITY)


def test_places_fill_up_before_anything_is_dropped(full):
    window = with_count(full, 0)
    for first in (100, 104, 108):
        window = add(window, first, range(first, first + NEW))
        assert (window.count == first + NEW - 100).all()
        assert held(window, 1) == list(range(100, first + NEW))
    window = add(window, 112, range(112, 116))
    numbers = held(window, 1)
    assert window.count[1] == len(set(numbers)) == 12
    assert numbers[-4:] == [112, 113, 114, 115] and set(numbers[:8]) < set(range(100, 112))


def test_a_window_that_keeps_the_newest_drops_the_oldest(gardner):
    """In each share by itself; frames that stay out drop nothing, and of more than fit all places are new."""
    slide = jax.jit(partial(add_frames, keeps_newest=True))
    window = jax.jit(partial(init_window, frame_of(gardner), 2, 2 * CAPACITY))()
    for first in range(0, 16, 4):
        numbers = np.tile(np.arange(first, first + 4), (2, 1))
        enters = np.array([[True] * 4, [True, False, True, False]])
        window = slide(window, jax.random.key(first), np.arange(2), frames_with(gardner, numbers), enters)
    assert held(window, 0) == [*range(4, 16)]
    assert held(window, 1) == [0, 2, 4, 6, 8, 10, 12, 14]
    many = frames_with(gardner, np.tile(np.arange(100, 120), (2, 1)))
    window = slide(window, jax.random.key(9), np.arange(2), many, np.array([[True] * 20, [True] * 2 + [False] * 18]))
    assert min(held(window, 0)) >= 100 and len(set(held(window, 0))) == CAPACITY
    assert held(window, 1) == [0, 2, 4, 6, 8, 10, 12, 14, 100, 101]


@pytest.mark.parametrize("keep", ["sample", "newest"])
def test_a_run_fills_its_window_as_its_experiment_names(keep, monkeypatch):
    seen = []

    def add_and_tell(*given):
        seen.append(given[-1])
        return add_frames(*given)

    monkeypatch.setattr(window_phase, "add_frames", add_and_tell)
    experiment = config.change(config.load(config.find_file("smoke", "experiment")), {"window.keep": keep})
    trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
    next(phase for phase in trainer.phases if phase.name == "window").compile(trainer.abstract_state)
    assert seen == [keep == "newest"]


def test_a_window_that_is_nearly_full_drops_no_more_than_it_must(full):
    """10 frames in 12 places and 4 new ones: both empty places are filled, and two old frames go."""
    window = add(with_count(full, 10), 1, range(20, 24))
    assert (window.count == CAPACITY).all()
    numbers = np.asarray(window.frames.value_target)
    assert times_held(numbers, range(20, 24)).all()
    check_uniform(times_held(numbers, range(10)), 8)


def test_the_old_frames_that_stay_are_a_uniform_sample(full):
    window = add(full, 5, range(CAPACITY, CAPACITY + NEW))
    assert (window.count == CAPACITY).all()
    numbers = np.asarray(window.frames.value_target)
    assert times_held(numbers, range(CAPACITY, CAPACITY + NEW)).all()
    check_uniform(times_held(numbers, range(CAPACITY)), CAPACITY - NEW)


def test_of_more_new_frames_than_places_a_uniform_sample_stays(full):
    window = add(full, 6, range(100, 120))
    assert (window.count == CAPACITY).all()
    check_uniform(times_held(np.asarray(window.frames.value_target), range(100, 120)), CAPACITY)


@pytest.mark.parametrize("count", [0, 11, CAPACITY])
def test_of_frames_that_wait_only_the_new_ones_enter(full, count):
    """Each share has another number of new ones among 20, more than its 12 places; some have none."""
    rng = np.random.default_rng(0)
    is_new = rng.random((SHARES, 20)) < rng.random((SHARES, 1)) / 2
    new = frames_with(get_game("gardner_chess"), np.tile(np.arange(100, 120), (SHARES, 1)))
    window = ADD(with_count(full, count), jax.random.key(0), np.arange(SHARES), new, is_new)
    num_new = is_new.sum(axis=1)
    assert {0, 1, CAPACITY - 1} <= set(num_new.tolist()) and num_new.max() > CAPACITY
    assert (window.count == np.minimum(count + num_new, CAPACITY)).all()
    numbers = np.where(np.arange(CAPACITY) < window.count[:, None], window.frames.value_target, -1)
    entered = times_held(numbers, range(100, 120))
    assert not (entered & ~is_new).any()
    assert (entered.sum(axis=1) == np.minimum(num_new, CAPACITY)).all()
    stayed = times_held(numbers, range(CAPACITY)).sum(axis=1)
    assert (stayed == np.minimum(count, CAPACITY - np.minimum(num_new, CAPACITY))).all()


def test_the_new_ones_that_find_no_place_are_a_uniform_choice(full):
    """16 of 20 enter, for 12 places."""
    is_new = np.tile(np.arange(20) % 5 > 0, (SHARES, 1))
    new = frames_with(get_game("gardner_chess"), np.tile(np.arange(100, 120), (SHARES, 1)))
    window = ADD(full, jax.random.key(7), np.arange(SHARES), new, is_new)
    kept = times_held(np.asarray(window.frames.value_target), range(100, 120))
    check_uniform(kept[:, is_new[0]], CAPACITY)


def test_if_all_frames_are_new_it_is_as_without_a_mask(full):
    new = frames_with(get_game("gardner_chess"), np.tile(np.arange(100, 120), (SHARES, 1)))
    words = full, jax.random.key(3), np.arange(SHARES), new
    jax.tree.map(np.testing.assert_array_equal, ADD(*words), ADD(*words, np.ones((SHARES, 20), bool)))


def test_as_many_new_frames_as_places_replace_all(full):
    window = add(full, 1, range(20, 20 + CAPACITY))
    assert held(window, 0) == held(window, SHARES - 1) == list(range(20, 20 + CAPACITY))


def test_the_same_key_gives_the_same_window_and_another_does_not(full):
    one, same, other = (add(full, seed, range(20, 24)).frames.value_target for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()


def test_an_epoch_visits_every_frame_once(gardner):
    """6 frames in 12 places, or 12; batches of 3 a share."""
    numbers = np.arange(SHARES * CAPACITY).reshape(SHARES, CAPACITY)
    full = Window(frames_with(gardner, numbers), np.full(SHARES, CAPACITY, np.int32))
    for count in (6, CAPACITY):
        order = ORDER(full._replace(count=np.full(SHARES, count, np.int32)), jax.random.key(1), np.arange(SHARES))
        assert order.shape == (SHARES, CAPACITY) and order.dtype == jnp.int32
        assert (np.sort(order[:, :count], axis=1) == np.arange(count)).all()
        batches = [TAKE(full, order, np.int32(i), 3) for i in range(count // 3)]
        for batch in batches:
            assert batch.value_target.shape == (SHARES * 3,)
            assert (batch.position.ply == batch.value_target).all()
        visited = np.concatenate([batch.value_target for batch in batches])
        assert sorted(visited.tolist()) == numbers[:, :count].reshape(-1).tolist()
    again = ORDER(full, jax.random.key(2), np.arange(SHARES))
    assert (again != order).any()  # another epoch, another order
    assert (order[0] != order[1]).any()  # and each share its own


def test_every_frame_is_as_likely_as_any_other_to_come_first(full):
    """2000 shares, 12 places: a count has mean 166.7 and standard deviation 12.4; 5 of those are allowed."""
    first = np.asarray(ORDER(full, jax.random.key(3), np.arange(SHARES)))[:, 0]
    assert abs(np.bincount(first, minlength=CAPACITY) - SHARES / CAPACITY).max() < 5 * 12.4


def test_how_shares_are_grouped_into_devices_does_not_matter(full):
    """All shares on one device, or each on its own: the same frames in the same places, the same batches."""

    def run(window, shares):
        for step in range(3):
            window = add(window, step, range(20 * step + 20, 20 * step + 20 + NEW), shares[0])
        order = ORDER(window, jax.random.key(9), np.array(shares))
        return jax.device_get((window, order, TAKE(window, order, np.int32(1), 3)))

    window, order, batch = run(full, range(SHARES))
    for share in (0, 1, SHARES - 1):
        one, batch_part = slice(share, share + 1), slice(3 * share, 3 * share + 3)
        alone = run(jax.tree.map(lambda x, one=one: x[one], full), [share])
        together = jax.tree.map(lambda x, one=one: x[one], (window, order))
        jax.tree.map(np.testing.assert_array_equal, alone[:2], together)
        together = jax.tree.map(lambda x, part=batch_part: x[part], batch)
        jax.tree.map(np.testing.assert_array_equal, alone[2], together)
    assert held(window, 0) != held(window, 1)  # shares differ in what they keep


@pytest.mark.parametrize("name, limit, measured", [("chess", 2048, 1194), ("gardner_chess", 600, 506)])
def test_bytes_of_a_frame(name, limit, measured):
    """Policy target and all; a million 8x8 frames take less than 2.5 GB, and nothing but frames takes room."""
    window = jax.eval_shape(partial(init_window, frame_of(get_game(name)), 8, 1_000_000))
    assert window.frames.value_target.size == 1_000_000
    assert size_of(window.frames) / 1_000_000 == measured <= limit
    assert size_of(window) < 2.5e9


def size_of(tree) -> int:
    """Bytes of all arrays."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))
