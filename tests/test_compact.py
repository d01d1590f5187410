"""Some rows on the columns that they hold: the same products, bit for bit."""

import numpy as np
from conftest import SEEDS, make_rows
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core.compact import compact, is_scattered
from pegasos.core.matrix import combine, products
from pegasos.core.rows import n_columns, n_rows

CSR = st.sampled_from(
    ("csr-float32-uint32", "csr-float32-uint64", "csr-float64-uint32", "csr-float64-uint64")
)


@given(
    seed=SEEDS, kind=CSR, n=st.integers(1, 30), d=st.integers(1, 40), bias=st.sampled_from((0, 2))
)
def test_products_and_sums_are_those_of_the_chosen_rows(seed, kind, n, d, bias):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.uniform(0.0, 0.5))
    rows, chosen = make_rows(kind, X, float(bias)), np.flatnonzero(rng.random(n) < 0.6)
    chosen = chosen if chosen.size else np.array([0])
    part, columns = compact(rows, chosen)
    assert n_rows(part) == chosen.size and n_columns(part) == columns.size - 1
    assert columns[-1] == d and len(set(columns.tolist())) == columns.size
    w, a = rng.normal(size=d + 1), rng.normal(size=chosen.size)
    assert np.array_equal(products(part, w[columns]), products(rows, w)[chosen])
    weights, sums = np.zeros(n), np.zeros(d + 1)
    weights[chosen], sums[columns] = a, combine(part, a)
    assert np.array_equal(sums, combine(rows, weights))


def test_arrays_are_like_those_of_all_rows():
    """So that one compiled loop serves both."""
    rows = make_rows("csr-float32-uint32", np.eye(5), 1.0)
    part, _ = compact(rows, np.array([1, 3]))
    for mine, other in zip(part[:3], rows[:3], strict=True):
        assert mine.dtype == other.dtype and mine.flags.writeable == other.flags.writeable
    assert type(part) is type(rows) and part.bias == rows.bias


def test_columns_are_numbered_as_they_come():
    rows = make_rows("csr-float64-uint32", np.array([[0, 0, 1, 2], [3, 0, 4, 0], [0, 5, 0, 0]]))
    part, columns = compact(rows, np.array([0, 1]))
    assert columns.tolist() == [2, 3, 0, 4]
    assert part.columns.tolist() == [0, 1, 2, 0] and part.values.tolist() == [1, 2, 3, 4]


def test_an_array_stays_as_it_is():
    assert not is_scattered(make_rows("dense-float32", np.eye(3)))
