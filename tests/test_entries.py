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
    rng = np.random.default_rng(seed)
    values, at = rng.normal(size=n).astype(numbers), rng.permutation(50)[:n].astype(columns)
    w, a = rng.normal(size=50).astype(weights), rng.normal()
    expected = w.astype(np.float64)
    expected[at] += a * values.astype(np.float64)
    found = compiled(values, at, a, w)
    assert w.dtype == weights
    exact = numbers == weights == np.float64
    near = {"rtol": 1e-13, "atol": 1e-13} if exact or weights == np.float64 else {"atol": 1e-5}
    np.testing.assert_allclose(w, expected, **near)
    np.testing.assert_allclose(found, values.astype(np.float64) @ w[at], **near)


def test_a_column_that_comes_twice_is_added_twice():
    values, at = np.arange(1.0, 12.0), np.zeros(11, dtype=np.uint32)
    w = np.zeros(3)
    assert compiled(values, at, 2.0, w) == 132.0 * 66.0
    assert w.tolist() == [132.0, 0.0, 0.0]


def test_what_is_not_a_number_stays():
    w = np.ones(9)
    values, at = np.ones(9, dtype=np.float32), np.arange(9, dtype=np.uint32)
    for bad in (np.nan, np.inf):
        values[4] = bad
        assert not np.isfinite(compiled(values, at, 1.0, w.copy()))


@pytest.mark.jit
def test_numbers_that_lie_apart_are_refused():
    values, at = np.ones(4, dtype=np.float32), np.arange(4, dtype=np.uint32)
    with pytest.raises(Exception, match="dot|axpy"):
        compiled(values, at, 1.0, np.ones(8)[::2])
