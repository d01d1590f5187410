"""Rows and whole-matrix operations equal plain NumPy in every storage."""

import numpy as np
import pytest
from conftest import SEEDS, every_kind, make_rows, plain, random_matrix
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core import gram as core_gram
from pegasos.core import matrix
from pegasos.core.cross import gathered, packed
from pegasos.core.gram import gram, occupied
from pegasos.core.matrix import all_products, bent, combine, products, sqnorms, squares
from pegasos.core.rows import (
    n_columns,
    n_entries,
    n_rows,
    row_axpy,
    row_dot,
    row_outer,
    row_prefetch,
    row_sqnorm,
    row_write,
)
from pegasos.core.threads import use_threads

SHAPES = st.tuples(st.integers(1, 20), st.integers(1, 12))
BIASES = st.sampled_from((0.0, 1.0, 0.7))


def close(actual, expected):
    """Equal up to the rounding of float64 sums."""
    return np.allclose(actual, expected, rtol=1e-12, atol=1e-12)


@every_kind
@given(seed=SEEDS, shape=SHAPES, bias=BIASES)
def test_one_row(kind, seed, shape, bias):
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, *shape)
    rows = make_rows(kind, X, bias)
    X1 = plain(rows)
    assert np.array_equal(X1, np.column_stack([X, np.full(len(X), bias)]))
    i, a, w = rng.integers(len(X)), np.float64(rng.normal()), rng.normal(size=shape[1] + 1)
    assert close(row_dot(rows, i, w), X1[i] @ w)
    assert close(row_sqnorm(rows, i), X1[i] @ X1[i])
    moved = w.copy()
    row_axpy(rows, i, a, moved)
    assert close(moved, w + a * X1[i])
    row_write(rows, i, a, moved)
    assert close(moved, a * X1[i])
    outer = np.zeros((w.size, w.size))
    row_outer(rows, i, a, outer)
    assert close(outer, np.tril(a * np.outer(X1[i], X1[i])))
    row_prefetch(rows, i)


@every_kind
@given(seed=SEEDS, shape=SHAPES, bias=BIASES)
@pytest.mark.bounds
def test_the_whole_matrix(kind, seed, shape, bias):
    rng = np.random.default_rng(seed)
    rows = make_rows(kind, random_matrix(rng, *shape), bias)
    X1 = plain(rows)
    w, a = rng.normal(size=shape[1] + 1), rng.normal(size=shape[0]) * rng.integers(0, 2, shape[0])
    assert (n_rows(rows), n_columns(rows)) == shape
    assert n_entries(rows) == (X1[:, :-1].size if kind.startswith("dense") else rows.starts[-1])
    assert close(products(rows, w), X1 @ w)
    assert close(combine(rows, a), X1.T @ a)
    assert close(sqnorms(rows), (X1**2).sum(axis=1))


@every_kind
@given(seed=SEEDS, shape=SHAPES, bias=BIASES)
@pytest.mark.bounds
def test_curvature_by_products_and_chosen_rows(kind, seed, shape, bias):
    rng = np.random.default_rng(seed)
    rows = make_rows(kind, random_matrix(rng, *shape), bias)
    X, w = plain(rows), rng.normal(size=shape[1] + 1)
    h = rng.uniform(size=shape[0]) * (rng.random(shape[0]) < 0.7)
    assert close(bent(rows, h, w), X.T @ (h * (X @ w)))
    assert close(squares(rows, h), h @ X**2)
    chosen = rng.integers(0, shape[0], rng.integers(1, 6))
    part = gathered(rows, chosen)
    assert np.array_equal(plain(part), X[chosen])
    assert [a.dtype for a in part if isinstance(a, np.ndarray)] == [
        a.dtype for a in rows if isinstance(a, np.ndarray)
    ]


@every_kind
@given(seed=SEEDS, n=st.integers(1, 20), few=st.booleans())
@pytest.mark.bounds
def test_gram_by_either_way(kind, seed, n, few):
    """X' diag(h) X of some columns: outer products for rows of few entries, BLAS and tiles."""
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, n, 12)
    if few:
        X *= np.arange(12) == rng.integers(12, size=(n, 1))  # at most one entry in each row
    rows = make_rows(kind, X, 0.7)
    X1, h = plain(rows), rng.random(n) * rng.integers(-1, 2, n)
    whole = X1.T @ (h[:, None] * X1)
    columns = np.flatnonzero(rng.random(13) < rng.choice((0.5, 1.0)))
    expected = whole[np.ix_(columns, columns)]
    assert close(gram(rows, h, np.float64, columns), expected)
    single = gram(rows, h, np.float32, columns)
    assert single.dtype == np.float64
    assert np.allclose(single, expected, rtol=1e-4, atol=1e-4)
    chosen = np.flatnonzero(h)
    assert close(core_gram._outer_gram(rows, h, chosen, columns), expected)
    size = np.abs(h)
    whole = (X1.T @ (size[:, None] * X1))[np.ix_(columns, columns)]
    for way in (core_gram._blas_gram, core_gram._tile_gram):
        assert close(way(rows, size, chosen, np.float64, columns), whole)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 300])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 63, 255])
@pytest.mark.bounds
def test_tiles_of_any_size(n, d):
    rng = np.random.default_rng(n + d)
    rows, h = make_rows("dense-float64", rng.normal(size=(n, d)), 0.7), rng.random(n)
    X, chosen = plain(rows), np.arange(n)
    whole = X.T @ (h[:, None] * X)
    for columns in (np.arange(d + 1), np.array([d]), np.array([0]), np.arange(0)):
        expected = whole[np.ix_(columns, columns)]
        found = core_gram._tile_gram(rows, h, chosen, np.float64, columns)
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-11)
        single = core_gram._tile_gram(rows, h, chosen, np.float32, columns)
        assert np.allclose(single, expected, rtol=1e-4, atol=1e-3)


@every_kind
@given(seed=SEEDS, shape=SHAPES, bias=BIASES)
def test_occupied_columns_are_those_with_entries(kind, seed, shape, bias):
    X = random_matrix(np.random.default_rng(seed), *shape)
    rows = make_rows(kind, X, bias)
    assert occupied(rows).tolist() == np.flatnonzero(plain(rows).any(axis=0)).tolist()


@every_kind
@pytest.mark.parametrize("density", [0.02, 0.6])
def test_all_products_are_the_products_one_by_one(kind, density):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 40)) * (rng.random((70, 40)) < density)
    rows, W = make_rows(kind, X, 1.5), rng.normal(size=(41, 5))
    one_by_one = np.column_stack([products(rows, w) for w in W.T.copy()])
    assert np.allclose(all_products(rows, W), one_by_one, rtol=1e-12, atol=1e-12)
    with use_threads(2):
        assert np.array_equal(all_products(rows, W), all_products(rows, W))


@every_kind
@pytest.mark.parametrize(("density", "is_array"), [(0.35, False), (0.45, True)])
def test_packed_rows_are_an_array_where_most_of_it_is_filled(kind, density, is_array):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 12))
    X.flat[rng.permutation(600)[int(600 * density) :]] = 0.0
    rows = make_rows(kind, X, 0.7)
    found = packed(rows)
    assert np.array_equal(plain(found), plain(rows))
    assert type(found).__name__ == "DenseRows" if is_array else type(found) is type(rows)


def test_sums_of_a_wide_gram_matrix_are_few():
    """Each is as large as the matrix."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2000)) * (rng.random((600, 2000)) < 0.05)
    rows = make_rows("csr-float32-uint32", X)
    assert core_gram.gram_work(rows) > 4 * core_gram._BLOCK
    assert core_gram._gram_block(rows, 600) == 600


@every_kind
def test_rows_without_entries_are_zero(kind):
    rows = make_rows(kind, np.zeros((4, 3)), 0.0)
    assert not products(rows, np.ones(4)).any()
    assert not combine(rows, np.ones(4)).any()
    assert not sqnorms(rows).any()
    assert not gram(rows, np.ones(4), np.float64, np.arange(4)).any()


@every_kind
def test_rows_chosen_by_h_alone_are_read(kind):
    """A NaN in a row of weight 0 costs nothing and harms nothing; elsewhere it stays a NaN."""
    X = np.ones((3, 2))
    X[1, 0] = np.nan
    rows = make_rows(kind, X, 1.0)
    assert np.isfinite(gram(rows, np.array([1.0, 0.0, 1.0]), np.float64, np.arange(3))).all()
    assert np.isfinite(combine(rows, np.array([1.0, 0.0, 1.0]))).all()
    assert np.isnan(products(rows, np.ones(3))).tolist() == [False, True, False]
    assert np.isnan(sqnorms(rows)).tolist() == [False, True, False]
    assert np.isnan(gram(rows, np.ones(3), np.float64, np.arange(3))[0]).all()


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_float32_data_are_summed_in_float64(storage):
    kind = "dense-float32" if storage == "dense" else "csr-float32-uint32"
    rows = make_rows(kind, np.array([[1.0, 2.0**-20, -1.0]]), 0.0)
    w = np.array([1.0, 2.0**-20, 1.0, 0.0])
    assert products(rows, w)[0] == 2.0**-40
    assert sqnorms(rows)[0] == 2.0 + 2.0**-40


@every_kind
def test_same_bits_for_any_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr(matrix, "_ALONE", 0.0)
    monkeypatch.setattr(matrix, "_BLOCK", 16)
    monkeypatch.setattr(core_gram, "_BLOCK", 16)
    rng = np.random.default_rng(0)
    rows = make_rows(kind, random_matrix(rng, 400, 4), 1.0)
    w, a = rng.normal(size=5), rng.normal(size=400)
    assert n_rows(rows) > 10 * matrix.row_block(rows), "many blocks, or the law is empty"
    assert n_rows(rows) > 4 * core_gram._gram_block(rows, 400)

    def everything():
        h = np.abs(a)
        chosen, columns = np.arange(400), np.arange(5)
        outer = core_gram._outer_gram(rows, h, chosen, columns)
        tiles = core_gram._tile_gram(rows, h, chosen, np.float32, columns)
        return products(rows, w), combine(rows, a), sqnorms(rows), outer, tiles

    with use_threads(1):
        alone = everything()
    with use_threads(3):
        together = everything()
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)
    assert close(alone[1], plain(rows).T @ a)


@pytest.mark.slow
def test_gram_by_blas_has_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    rows = make_rows("dense-float32", rng.normal(size=(3000, 300)), 1.0)
    h = rng.random(3000)
    with use_threads(1):
        alone = gram(rows, h, np.float32, np.arange(301))
    with use_threads(2):
        together = gram(rows, h, np.float32, np.arange(301))
    assert np.array_equal(alone, together)
