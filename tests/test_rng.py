"""The random generator: known numbers, resumable from its state, permutations, uniform."""

import numpy as np
import pytest
from conftest import SEEDS
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pegasos.core.jit import hot
from pegasos.core.rng import arrange, bits_of, shuffle, stream, uniform

# the first outputs of SplitMix64 as its users publish them (seed 0: xoshiro's authors; 1234567:
# Rosetta Code)
PUBLISHED = {
    0: (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F),
    1234567: (6457827717110365317, 3203168211198807973, 9817491932198370423),
}


@hot
def draw(rng, out):
    for k in range(out.shape[0]):
        out[k] = uniform(rng)


def draws(rng, n):
    out = np.empty(n)
    draw(rng, out)
    return out


@pytest.mark.parametrize("seed", PUBLISHED)
def test_it_is_splitmix64(seed):
    expected = [(x >> 11) * 2.0**-53 for x in PUBLISHED[seed]]
    assert draws(stream(seed), 3).tolist() == expected
    numbers = np.arange(1, 4, dtype=np.uint64)
    assert bits_of(np.uint64(seed), numbers).tolist() == list(PUBLISHED[seed])


@given(seed=SEEDS, before=st.integers(0, 50), after=st.integers(1, 50))
def test_a_stream_resumes_from_its_two_numbers(seed, before, after):
    whole = draws(stream(seed), before + after)
    rng = stream(seed)
    draws(rng, before)
    saved = [int(k) for k in rng]
    assert saved == [seed, before]
    assert np.array_equal(draws(np.array(saved, dtype=np.uint64), after), whole[before:])


@given(seed=SEEDS, n=st.integers(0, 60), spare=st.integers(0, 5))
@pytest.mark.bounds
def test_shuffle_permutes_the_first_n_and_leaves_the_rest(seed, n, spare):
    items = np.arange(100, 100 + n + spare)
    shuffle(items, n, stream(seed))
    assert sorted(items[:n]) == list(range(100, 100 + n))
    assert items[n:].tolist() == list(range(100 + n, 100 + n + spare))


@given(seed=SEEDS, n=st.integers(2, 40))
def test_shuffle_is_fisher_yates_on_the_same_stream(seed, n):
    items = np.arange(n)
    shuffle(items, n, stream(seed))
    numbers = draws(stream(seed), n - 1)
    expected = list(range(n))
    for s in range(n - 1):
        j = s + int(numbers[s] * (n - s))
        expected[s], expected[j] = expected[j], expected[s]
    assert items.tolist() == expected


def looks_uniform(counts):
    expected = counts.sum() / counts.size
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic < chi2.ppf(1.0 - 1e-6, counts.size - 1)


def test_numbers_of_a_stream_are_uniform():
    numbers = draws(stream(3), 20_000)
    assert 0.0 <= numbers.min() and numbers.max() < 1.0
    assert looks_uniform(np.histogram(numbers, bins=50, range=(0.0, 1.0))[0])


def test_first_numbers_of_neighbouring_seeds_are_uniform():
    firsts = np.array([draws(stream(seed), 1)[0] for seed in range(5000)])
    assert looks_uniform(np.histogram(firsts, bins=50, range=(0.0, 1.0))[0])


def test_every_permutation_is_as_likely():
    counts = np.zeros(256, dtype=np.int64)
    for seed in range(4800):
        items = np.arange(4)
        shuffle(items, 4, stream(seed))
        counts[items @ np.array([64, 16, 4, 1])] += 1
    possible = counts[counts > 0]
    assert possible.size == 24 and looks_uniform(possible)


HANDS = st.tuples(st.integers(1, 3), st.integers(1, 2))


@given(SEEDS, st.integers(1, 5000), st.floats(0.0, 1.0), st.integers(1, 20), HANDS)
@pytest.mark.bounds
def test_an_arrangement_holds_each_that_stays_once_in_four_streams(seed, n, left, near, hands):
    stays = np.random.default_rng(seed).random(n) <= left

    def arranged():
        rows, out = np.arange(n), np.full(n, -1)
        count = arrange(rows, n, stays, out, (near, stream(seed), hands))
        np.testing.assert_array_equal(rows[:count], np.flatnonzero(stays))
        return out[:count]

    out = arranged()
    np.testing.assert_array_equal(np.sort(out), np.flatnonzero(stays))
    size = max(1, min(near, len(out) // 512))
    groups = np.searchsorted(np.flatnonzero(stays), out) // size
    for group in set(groups):
        at = np.flatnonzero(groups == group)
        steps = np.diff(out[at])
        assert np.ptp(at) < 4 * size and ((steps > 0).all() or (steps < 0).all())
    assert size == 1 or (groups[1:] != groups[:-1])[: -4 * size].all()
    np.testing.assert_array_equal(out, arranged())


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("K", [2, 4])
def test_of_neighbouring_groups_each_thread_has_one(K, parts):
    n = 1 << 14  # groups of 16
    out, stays = np.empty(n, dtype=np.int64), np.ones(n, dtype=bool)
    arrange(np.arange(n), n, stays, out, (16, stream(1), (K, parts)))
    for part in out.reshape(parts, -1):
        first, *others = (np.unique(share // (16 * K)) for share in part.reshape(K, -1))
        assert len(first) == n // (16 * K * parts)
        assert all(np.array_equal(first, other) for other in others)
    first = np.unique(out[: n // (K * parts)] // 16 % K, return_counts=True)[1]
    assert len(first) == K and np.ptp(first) <= 1  # not always the same of them


def test_groups_of_one_are_any_permutation():
    out, order = np.empty(40, dtype=np.int64), np.arange(40)
    arrange(np.arange(40), 40, np.ones(40, dtype=bool), out, (1, stream(3), (1, 1)))
    shuffle(order, 40, stream(3))
    np.testing.assert_array_equal(out, order)
