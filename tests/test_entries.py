"""The entries of a row against one weight vector: compiled vector instructions equal plain sums."""

import numpy as np
import pytest
from conftest import SEEDS
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core.entries import axpy, dot
from pegasos.core.jit import hot


def both(values, columns, a, w):
    axpy(values, columns, a, w)
    return dot(values, columns, w)


compiled = hot(both)
NUMBERS = st.sampled_from((np.float32, np.float64))
COLUMNS = st.sampled_from((np.uint32, np.uint64))


@given(seed=SEEDS, n=st.integers(0, 40), numbers=NUMBERS, weights=NUMBERS, columns=COLUMNS)
def test_compiled_entries_equal_plain_sums(seed, n, numbers, weights, columns):
    """In float64, and rounded to what w holds: no product is rounded before it is added."""
    rng = np.random.default_rng(seed)
    values, at = rng.normal(size=n).astype(numbers), rng.permutation(50)[:n].astype(columns)
    w, a = rng.normal(size=50).astype(weights), rng.normal()
    moved = w.astype(np.float64)
    moved[at] += a * values.astype(np.float64)
    found = compiled(values, at, a, w)
    assert w.dtype == weights
    np.testing.assert_allclose(w, moved.astype(weights), rtol=2 * np.finfo(weights).eps)
    assert found == pytest.approx(values.astype(np.float64) @ w[at], rel=1e-12, abs=1e-12)


def test_a_product_may_exceed_what_its_weight_holds_of_each_factor():
    w = np.zeros(1, dtype=np.float32)
    compiled(np.array([1e39]), np.zeros(1, dtype=np.uint32), 1e-5, w)
    assert w[0] == np.float32(1e34)


def test_a_column_that_comes_twice_is_added_twice():
    values, at = np.arange(1.0, 12.0), np.zeros(11, dtype=np.uint32)
    w = np.zeros(3)
    assert compiled(values, at, 2.0, w) == 132.0 * 66.0
    assert w.tolist() == [132.0, 0.0, 0.0]


@pytest.mark.parametrize("place", range(15))
def test_what_is_not_a_number_stays(place):
    w = np.ones(15)
    values, at = np.ones(15, dtype=np.float32), np.arange(15, dtype=np.uint32)
    for bad in (np.nan, np.inf):
        values[place] = bad
        assert not np.isfinite(compiled(values, at, 1.0, w.copy()))


def test_numbers_may_lie_apart():
    values, at = np.arange(1.0, 5.0, dtype=np.float32), np.arange(4, dtype=np.uint32)
    w = np.ones(8)
    assert compiled(values, at, 1.0, w[::2]) == 1 * 2 + 2 * 3 + 3 * 4 + 4 * 5
    assert w.tolist() == [2, 1, 3, 1, 4, 1, 5, 1]
