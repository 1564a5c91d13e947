"""Sets as words against the bool arrays that they were packed from."""

import jax
import numpy as np
import pytest

from alphagateau.games.bitsets import WORD, count, drop_lowest, is_empty, lowest, pack, weighted_members


@pytest.mark.parametrize("size", [1, 25, 32, 36, 64])
def test_packed_bits_are_the_numbers_chosen(size):
    masks = np.random.default_rng(size).random((6, size)) < 0.4
    masks[0], masks[1] = False, True
    words = np.asarray(pack(masks))
    assert words.shape == (6, -(-size // WORD)) and words.dtype == np.uint32
    for number in range(size):
        np.testing.assert_array_equal(words[:, number // WORD] >> (number % WORD) & 1, masks[:, number])
    np.testing.assert_array_equal(count(words.T), masks.sum(axis=1))
    np.testing.assert_array_equal(is_empty(words.T), ~masks.any(axis=1))


def written_out(masks: np.ndarray, heavy: np.ndarray, weight: int) -> list[tuple[int, int, int]]:
    """(set, member, how often before) in order, of masks [K, N]."""
    rows = zip(*np.nonzero(masks), strict=True)
    return [(row, member, n) for row, member in rows for n in range(weight if heavy[row, member] else 1)]


@pytest.mark.parametrize(("size", "share"), [(25, 0.1), (36, 0.06), (64, 0.0), (64, 0.04), (118, 0.01)])
@pytest.mark.parametrize("weight", [1, 3, 4])
def test_members_come_in_order_as_often_as_they_weigh(size, share, weight):
    rng, num_slots = np.random.default_rng(weight), 400
    members_of = jax.jit(weighted_members, static_argnums=(2, 3))
    for _ in range(5):
        masks = rng.random((size, size)) < share
        heavy = masks & (rng.random(masks.shape) < 0.3)
        expected = written_out(masks, heavy, weight)
        assert len(expected) <= num_slots
        found, member, n = map(np.asarray, members_of(pack(masks).T, pack(heavy).T, weight, num_slots))
        here = slice(len(expected))
        assert list(zip(found[here], member[here], n[here], strict=True)) == expected
        assert (found[len(expected) :] == size).all()


def test_a_full_set_gives_all_its_numbers():
    words = np.full((2, 1), 0xFFFFFFFF, np.uint32)
    found, member, n = map(np.asarray, weighted_members(words, words, 2, 130))
    np.testing.assert_array_equal(found, [0] * 128 + [1] * 2)
    np.testing.assert_array_equal(member[:128], np.arange(128) // 2)
    np.testing.assert_array_equal(n[:128], np.arange(128) % 2)


@pytest.mark.parametrize("size", [25, 64])
def test_the_lowest_number_is_found_and_taken_out(size):
    masks = np.random.default_rng(size).random((20, size)) < 0.1
    masks[0] = False
    words = pack(masks)
    first = np.where(masks.any(axis=1), masks.argmax(axis=1), -1)
    np.testing.assert_array_equal(lowest(words), first)
    masks[np.arange(20), first] = False
    np.testing.assert_array_equal(drop_lowest(words), pack(masks))
