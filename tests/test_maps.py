"""Feature maps: laws of their inner products, storages and blocks."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from pegasos import FourierMap, NystroemMap
from pegasos.core.gram import gram, occupied
from pegasos.core.matrix import all_products, bent, combine, products, squares
from pegasos.core.rows import DenseRows
from pegasos.core.threads import use_threads
from pegasos.data.check import as_rows, variance
from pegasos.data.samples import load_sample
from pegasos.kernels import Function, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from pegasos.maps import mapped_rows
from pegasos.maps.mapped_rows import MappedRows
from pegasos.maps.prototypes import SELECTIONS
from pegasos.maps.sample import sample_rows
from pegasos.objective.kernel_blocks import precise
from pegasos.objective.kernel_points import points


@pytest.fixture(scope="module", name="X")
def pima():
    X = load_sample("pima")[0].astype(np.float64)
    return (X - X.mean(0)) / X.std(0)


def kernel_matrix(kernel, X):
    made = points(kernel, X)
    return precise(kernel, made, made)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.1), Laplacian(0.1), Polynomial(2, 0.5, 1.0), Gaussian(0.5) * Linear() + 0.5],
)
def test_nystroem_with_all_rows_is_the_kernel(X, kernel):
    X = np.repeat(X[:60], 2, axis=0)  # twice: distinct rows are enough
    found = NystroemMap(kernel, m=120, threshold=1e-12).fit(X)
    Z = found.transform(X)
    K = kernel_matrix(kernel, X)
    assert found.n_components_ + found.dropped_ == len(found.component_indices_) == 60
    assert np.abs(Z @ Z.T - K).max() <= 1e-9 * K.max()


def test_a_function_is_a_kernel_too(X):
    own = Function(lambda A, B: (A @ B.T + 1.0) ** 2)
    both = (NystroemMap(k, m=50, random_state=0) for k in (own, Polynomial(2, 1.0, 1.0)))
    Z, same = (made.fit_transform(X) for made in both)
    np.testing.assert_allclose(Z @ Z.T, same @ same.T, atol=1e-6 * np.abs(Z @ Z.T).max())


def test_small_eigenvalues_are_dropped_and_counted(X):
    found = NystroemMap(Gaussian(1e-3), m=80, threshold=1e-4, random_state=0).fit(X)
    kept = found.eigenvalues_ > 1e-4 * found.eigenvalues_[-1]
    assert 0 < found.dropped_ == np.count_nonzero(~kept)
    assert found.transform(X).shape == (len(X), found.n_components_)
    assert len(found.get_feature_names_out()) == found.n_components_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entropy_of_the_chosen_is_never_below_that_of_the_start(X, dtype):
    X = X.astype(dtype)
    for seed, gamma in enumerate((0.01, 0.1, 1.0)):
        start, raised = (
            NystroemMap(Gaussian(gamma), m=30, prototypes=name, random_state=seed).fit(X)
            for name in ("random", "entropy")
        )
        assert raised.entropy_ > start.entropy_
        assert len(set(raised.component_indices_)) == 30
        np.testing.assert_allclose(raised.components_, X[raised.component_indices_], atol=1e-6)


@pytest.mark.parametrize("prototypes", SELECTIONS)
def test_arrays_and_sparse_matrices_have_the_same_image(X, prototypes):
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    settings = {"m": 40, "prototypes": prototypes, "random_state": 3}
    dense = NystroemMap(Gaussian(0.2), **settings).fit_transform(X)
    sparse = NystroemMap(Gaussian(0.2), **settings).fit_transform(sp.csr_matrix(X))
    np.testing.assert_allclose(dense @ dense.T, sparse @ sparse.T, atol=1e-5)


@pytest.mark.parametrize("made", [NystroemMap(m=40, random_state=0), FourierMap(random_state=0)])
def test_blocks_and_threads_make_no_difference(X, made, monkeypatch):
    whole = made.set_params(n_threads=1).fit_transform(X)
    monkeypatch.setattr(mapped_rows, "_VALUES", 1)  # blocks of 64 rows
    np.testing.assert_allclose(made.set_params(n_threads=2).transform(X), whole, atol=1e-9)
    np.testing.assert_allclose(made.transform(X[5:9]), whole[5:9], atol=1e-9)
    single = made.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ single.T, whole @ whole.T, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [Gaussian(0.05), Laplacian(0.05)])
def test_waves_approach_the_kernel(X, kernel):
    X = X[:80]
    K = kernel_matrix(kernel, X)

    def error(m, **settings):
        Z = [FourierMap(kernel, m=m, random_state=s, **settings).fit_transform(X) for s in range(8)]
        return np.sqrt(np.mean([(z @ z.T - K) ** 2 for z in Z]))

    assert error(4000) < 0.02
    assert error(4000) < 0.3 * error(100)
    if isinstance(kernel, Gaussian):
        assert error(200) < 0.9 * error(200, orthogonal=False)


@pytest.mark.parametrize("made", [NystroemMap(m=30, random_state=0), FourierMap(random_state=0)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_operations_on_mapped_rows_are_those_on_their_image(X, made, storage, monkeypatch):
    monkeypatch.setattr(mapped_rows, "_VALUES", 1)
    X = X[:300]
    Z = made.fit_transform(X)
    lazy, stored = MappedRows(made._image, as_rows(storage(X)), 0.5), DenseRows(Z, 0.5)
    rng = np.random.default_rng(0)
    w, a = rng.standard_normal(Z.shape[1] + 1), rng.standard_normal(len(Z))
    h = np.where(a > 0.0, a, 0.0)
    every = np.arange(Z.shape[1] + 1)
    with use_threads(2):
        for operation, given in (
            (products, (w,)),
            (all_products, (np.column_stack([w, 2.0 * w]),)),
            (combine, (a,)),
            (bent, (h, w)),
            (squares, (h,)),
            (gram, (h, np.float64, every)),
            (gram, (h, np.float64, every[3:])),
            (gram, (a, np.float64, every)),
            (occupied, ()),
        ):
            want = operation(stored, *given)
            np.testing.assert_allclose(operation(lazy, *given), want, atol=1e-6 * abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "most"),
    [
        (FourierMap(m=100, random_state=0), 150),
        (NystroemMap(m=200, random_state=0), 50),  # 200 x 47000 numbers are 75 MB
        (NystroemMap(m=10**6), 50),
    ],
)
def test_wide_sparse_rows_are_not_written_out(made, most):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 47_000), density=1e-3, format="csr", random_state=rng)
    X = sp.vstack([X, X[:100]], format="csr")  # rows that are equal
    made.fit_transform(X)  # compiled now
    tracemalloc.start()
    try:
        Z = made.fit_transform(X)
        assert tracemalloc.get_traced_memory()[1] < 1e6 * most
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(Z[:100], Z[300:], atol=1e-9)
    if isinstance(made, NystroemMap) and made.m == 10**6:
        assert np.array_equal(made.component_indices_, np.arange(300))


def test_the_variance_of_an_array_needs_no_copy_of_it():
    X = np.random.default_rng(0).normal(size=(40_000, 50)).astype(np.float32)
    weight = np.arange(40_000) % 3
    repeated = X.repeat(weight, axis=0).var(dtype=np.float64)
    variance(X[:9])
    tracemalloc.start()
    try:
        found = variance(X), variance(X, weight)
        assert tracemalloc.get_traced_memory()[1] < X.nbytes
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, (X.var(dtype=np.float64), repeated), rtol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_centres_are_in_all_of_forty_groups(storage, offset):
    rng = np.random.default_rng(1)
    groups = rng.normal(size=(40, 7)) * 3.0
    label = rng.integers(40, size=2000)
    X = offset + groups[label] + 0.01 * rng.normal(size=(2000, 7))
    made = NystroemMap(Linear(), m=40, random_state=0).fit(storage(X))
    apart = np.linalg.norm(made.components_[:, None] - (offset + groups), axis=2)
    assert made.components_.shape == (40, 7) and apart.min(axis=0).max() < 0.05


def test_leverage_of_what_is_no_kernel(X):
    for kernel in (Sigmoid(1.0, -1.0), Function(lambda A, B: -(A @ B.T))):
        Z = NystroemMap(kernel, m=50, prototypes="leverage", random_state=0).fit_transform(X)
        assert np.isfinite(Z).all()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (NystroemMap(m=0), "m must be an integer >= 1"),
        (NystroemMap(prototypes="best"), "prototypes must be one of 'entropy'"),
        (NystroemMap("precomputed"), "needs rows"),
        (FourierMap("poly"), "NystroemMap takes any kernel"),
    ],
)
def test_messages_say_what_would_work(X, made, message):
    with pytest.raises(ValueError, match=message):
        made.fit(X)


def test_a_sample_of_a_stream_is_a_sample_of_its_rows():
    X = np.arange(40.0, dtype=np.float32)[:, None]

    def sample(blocks, size, seed=0):
        return sample_rows(blocks, size, np.random.default_rng(seed))

    drawn = [sample(np.split(X, 8), 10, seed)[:, 0] for seed in range(400)]
    assert all(len(set(rows)) == 10 for rows in drawn) and drawn[0].dtype == np.float32
    counts = np.bincount(np.concatenate(drawn).astype(int), minlength=40)
    assert abs(counts - 100).max() < 6 * np.sqrt(100 * 0.75)  # six standard deviations
    assert np.array_equal(sample(np.split(X, 8), 99), X)
    blocks = [(sp.csr_matrix(part), None) for part in np.split(X, 4)]
    blocks[-1][0].resize((10, 3))  # LIBSVM text is as wide as its largest index
    found = sample(blocks, 10)
    assert found.shape == (10, 3)
    assert np.array_equal(found.toarray()[:, 0], sample([X], 10)[:, 0])
