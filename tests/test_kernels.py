"""Kernels: blocks equal their definition in every storage, the algebra is that of matrices."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import SEEDS, random_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

import pegasos.kernels as public
from pegasos.core.elementary import MAX_POWER, exponential, power, tangent
from pegasos.core.jit import hot
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.core.threads import use_threads
from pegasos.kernels import (
    Exp,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    check_kernel,
    exp,
)
from pegasos.objective import kernel_blocks, kernel_points
from pegasos.objective.kernel_blocks import block, diagonal, precise
from pegasos.objective.kernel_names import kernel_of
from pegasos.objective.kernel_points import (
    in_precision_of,
    n_points,
    points,
    take,
    without_matrix,
)
from pegasos.objective.kernels import in_precision, parts, resolved

TRUE = {  # kernels, and their definition
    Linear(): lambda x, z: x @ z,
    Polynomial(1, 0.5, 0.0): lambda x, z: 0.5 * (x @ z),
    Polynomial(2, 0.5, 1.0): lambda x, z: (0.5 * (x @ z) + 1.0) ** 2,
    Polynomial(3, 0.2, 0.5): lambda x, z: (0.2 * (x @ z) + 0.5) ** 3,
    Polynomial(6, 0.1, 1.0): lambda x, z: (0.1 * (x @ z) + 1.0) ** 6,
    Gaussian(0.3): lambda x, z: math.exp(-0.3 * ((x - z) ** 2).sum()),
    Laplacian(0.3): lambda x, z: math.exp(-0.3 * np.abs(x - z).sum()),
}
ANY = {**TRUE, Sigmoid(0.3, -0.2): lambda x, z: math.tanh(0.3 * (x @ z) - 0.2)}
every_kernel = pytest.mark.parametrize("kernel", ANY, ids=repr)
every_storage = pytest.mark.parametrize("storage", ["array", "csr", "csr-filled"])
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def stored(X, storage):
    """X in a storage; "csr-filled" is a CSR matrix that `points` writes out."""
    if storage == "array":
        return X
    return sp.csr_array(X)


@pytest.fixture(autouse=True)
def _keep_csr(request, monkeypatch):
    """Small random matrices are too full to stay CSR: for "csr" they are told to."""
    if "csr" in request.node.callspec.params.values() if hasattr(request.node, "callspec") else ():
        monkeypatch.setattr(kernel_points, "_FILLED", 1.0)


def by_definition(f, A, B):
    return np.array([[f(x, z) for z in B] for x in A])


def close(K, expected, dtype):
    tolerance = {np.float32: 2e-5, np.float64: 1e-11}[dtype]
    return np.allclose(K, expected, rtol=tolerance, atol=tolerance)


@every_kernel
@every_storage
@every_dtype
@given(seed=SEEDS, n=st.integers(1, 11), m=st.integers(1, 9), d=st.integers(1, 7))
@pytest.mark.bounds
def test_a_block_is_its_definition(kernel, storage, dtype, seed, n, m, d):
    rng = np.random.default_rng(seed)
    X, Z = (random_matrix(rng, k, d).astype(dtype) for k in (n, m))
    train = points(kernel, stored(X, storage))
    asked = points(kernel, stored(Z, rng.choice(["array", "csr"])), like=train)
    expected = by_definition(ANY[kernel], *(M.astype(np.float64) for M in (Z, X)))
    K = block(kernel, asked, train)
    assert K.dtype == dtype and K.shape == (m, n) and close(K, expected, dtype)
    out = np.full((m, n), np.nan, dtype)
    assert block(kernel, asked, train, out) is out and np.array_equal(out, K)
    turned = np.empty((n, m), dtype).T
    assert np.array_equal(block(kernel, asked, train, turned), K) and np.array_equal(turned, K)
    exact = precise(kernel, asked, train)
    scale = 1.0 + np.abs(expected).max()
    assert exact.dtype == np.float64
    assert np.allclose(exact, expected, atol=(1e-6 if dtype is np.float32 else 1e-13) * scale)
    drawn = rng.integers(0, n, 5)
    assert close(block(kernel, asked, take(train, drawn)), K[:, drawn], dtype)
    assert close(diagonal(kernel, train), np.diag(by_definition(ANY[kernel], X, X)), dtype)


@every_storage
@every_dtype
def test_storage_and_dtype_are_kept(storage, dtype):
    X = random_matrix(np.random.default_rng(0), 20, 6).astype(dtype)
    rows = points(Linear(), stored(X, storage)).rows
    assert isinstance(rows, CsrRows if storage == "csr" else DenseRows)
    assert rows.values.dtype == dtype
    if storage == "array":
        assert np.shares_memory(rows.values, X)
    single = in_precision_of(points(Linear(), stored(X, storage)), np.float32)
    assert single.rows.values.dtype == np.float32
    assert (
        points(Gaussian(1.0), X).center.size and not points(Gaussian(1.0) + Linear(), X).center.size
    )


def test_centring_saves_digits():
    """Far from 0, ||x||^2 + ||z||^2 - 2 x.z of rows as they are has none left."""
    X = (1e4 + np.random.default_rng(0).normal(size=(30, 3))).astype(np.float32)
    expected = by_definition(TRUE[Gaussian(0.3)], *(X.astype(np.float64),) * 2)
    P = points(Gaussian(0.3), X)
    assert np.abs(block(Gaussian(0.3), P, P) - expected).max() < 1e-5


@st.composite
def formulas(draw, depth=2):
    """A kernel built by the algebra, and the same formula of matrices."""
    if depth == 0 or draw(st.booleans()):
        leaf = draw(
            st.sampled_from([Linear(), Gaussian(0.2), Laplacian(0.1), Polynomial(2, 0.1, 1.0)])
        )
        return leaf, lambda K: K[leaf]
    kind = draw(st.sampled_from(["+", "*", "2*", "+1", "exp"]))
    k, value = draw(formulas(depth=depth - 1))
    if kind == "2*":
        return draw(st.sampled_from([2 * k, k * 2])), lambda K: 2.0 * value(K)
    if kind == "+1":
        return draw(st.sampled_from([k + 1, 1 + k])), lambda K: value(K) + 1.0
    if kind == "exp":
        return exp(0.01 * k), lambda K: np.exp(0.01 * value(K))
    other, another = draw(formulas(depth=depth - 1))
    if kind == "+":
        return k + other, lambda K: value(K) + another(K)
    return k * other, lambda K: value(K) * another(K)


@settings(max_examples=8)  # each formula is compiled
@given(formula=formulas(), seed=SEEDS, use_csr=st.booleans())
@pytest.mark.slow
def test_the_algebra_is_that_of_matrices(formula, seed, use_csr):
    kernel, of_matrices = formula
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, 8, 3)
    K = {leaf: by_definition(f, X, X) for leaf, f in TRUE.items() if leaf != Gaussian(0.3)}
    K[Gaussian(0.2)] = by_definition(lambda x, z: math.exp(-0.2 * ((x - z) ** 2).sum()), X, X)
    K[Laplacian(0.1)] = by_definition(lambda x, z: math.exp(-0.1 * np.abs(x - z).sum()), X, X)
    K[Polynomial(2, 0.1, 1.0)] = (0.1 * X @ X.T + 1.0) ** 2
    P = points(kernel, sp.csr_array(X) if use_csr else X)
    found = block(kernel, P, P)
    assert np.allclose(found, of_matrices(K), rtol=1e-10, atol=1e-10)
    assert np.allclose(diagonal(kernel, P), np.diag(found), rtol=1e-10)
    assert repr(eval(repr(kernel), vars(public))) == repr(kernel)


def test_repr_and_equality():
    k = 2 * (Gaussian(0.5) + 1) * exp(Linear()) + Polynomial(2, 1.0, 0.0)
    assert repr(Gaussian(gamma=0.5) + 1) == "Gaussian(gamma=0.5) + 1"
    assert repr(k) == (
        "2 * (Gaussian(gamma=0.5) + 1) * exp(Linear()) + Polynomial(degree=2, gamma=1.0, coef0=0.0)"
    )
    assert Gaussian(0.5) != Laplacian(0.5) and Linear() != Precomputed()
    assert Gaussian(0.5) == Gaussian(0.5) and hash(Gaussian(0.5)) == hash(Gaussian(0.5))
    assert len(parts(Linear() + Gaussian(1.0))) == 2 and isinstance(exp(Linear()), Exp)


@pytest.mark.parametrize("kernel", TRUE, ids=repr)
@given(seed=SEEDS)
def test_kernels_are_kernels(kernel, seed):
    X = random_matrix(np.random.default_rng(seed), 15, 3)
    seen = check_kernel(kernel, X)
    assert seen.is_kernel and seen.is_symmetric and seen.rows == 15
    assert check_kernel(exp(0.1 * kernel) * (kernel + 2), X).is_kernel


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row = row, [i]
        for j, z in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != z)))
    return row[-1]


def test_the_three_questions():
    """Of the lecture: none of the three functions is a kernel."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert check_kernel(lambda x, z: np.tanh(1.0 + x @ z), X).smallest < -1.0
    assert check_kernel(Sigmoid(1.0, 1.0), X).smallest < -1.0
    assert check_kernel(lambda x, z: 1.0 - ((x - z) ** 2).sum(), X).smallest < -1.0
    words = [""]
    for word in words:  # it grows: all words of up to four letters
        if len(word) < 4:
            words += [word + "a", word + "b"]
    assert len(words) == 31
    seen = check_kernel(lambda a, b: math.exp(-edit_distance(a, b)), words)
    assert (
        not seen.is_kernel
        and seen.is_symmetric
        and seen.smallest == pytest.approx(-0.0429, abs=1e-3)
    )
    assert str(seen).startswith("no kernel: eigenvalues on 31 points from -0.0429")


def test_a_check_sees_asymmetry_and_draws_a_sample():
    X = np.random.default_rng(0).normal(size=(40, 2))
    lopsided = check_kernel(lambda x, z: x[0] * z[1], X)
    assert not lopsided.is_kernel and "differ" in repr(lopsided)
    assert check_kernel("rbf", X, sample=7).rows == 7
    assert "nothing speaks against" in str(check_kernel(Linear(), X))
    assert check_kernel(Precomputed(), X @ X.T).is_kernel
    with pytest.raises(ValueError, match="at least one point"):
        check_kernel("linear", X[:0])
    with pytest.raises(ValueError, match="finite"):
        check_kernel(exp(Linear()), 100.0 * X)


def test_rounding_to_float32_refutes_nothing():
    X = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    K = X @ X.T  # of rank 3: all other eigenvalues are rounding
    for matrix in (K, K.astype(np.float64)):
        assert check_kernel(Precomputed(), matrix).is_kernel
    assert check_kernel(0.3 * Precomputed(), K).is_kernel
    assert check_kernel(lambda A, B: (A @ B.T).astype(np.float32), X).is_kernel
    off = K - np.float32(1e-3 * np.trace(K)) * np.eye(len(K), dtype=np.float32)
    assert not check_kernel(Precomputed(), off).is_kernel
    exact = X.astype(np.float64)
    exact = exact @ exact.T - 1e-7 * np.trace(K) * np.eye(len(K))
    assert not check_kernel(Precomputed(), exact).is_kernel  # float64 has no such excuse


@pytest.mark.parametrize("storage", ["array", "csr"])
def test_functions_of_rows_and_of_two_points(storage):
    X = stored(random_matrix(np.random.default_rng(1), 9, 4), storage)
    matrix = np.asarray((X @ X.T).todense() if sp.issparse(X) else X @ X.T)
    whole = Function(lambda A, B: A @ B.T if storage == "array" else (A @ B.T).toarray())
    P = points(whole, X)
    assert np.allclose(block(whole, P, P), matrix)
    assert np.allclose(block(whole + Gaussian(1.0), P, P) - block(Gaussian(1.0), P, P), matrix)
    assert np.allclose(diagonal(2 * whole, P), 2 * np.diag(matrix))
    if storage == "array":
        pairs = Function(lambda x, z: float(x @ z))
        assert np.allclose(block(pairs, P, take(P, np.arange(3))), matrix[:, :3])
    wrong = Function(lambda A, B: np.zeros((2, 3)), pairs=False)
    with pytest.raises(ValueError, match=r"gave \(2, 3\) values for 9 and 9 points"):
        block(wrong, P, P)


@every_dtype
def test_precomputed(dtype):
    X = random_matrix(np.random.default_rng(2), 9, 4)
    K = (X @ X.T).astype(dtype)
    P = points(Precomputed(), K)
    few = np.array([4, 1, 7])
    assert n_points(take(P, few)) == 3
    assert np.array_equal(block(Precomputed(), P, take(P, few)), K[:, few])
    assert np.array_equal(precise(2 * Precomputed(), take(P, few), P), 2.0 * K[few].astype(float))
    kept = without_matrix(take(P, few))
    asked = points(Precomputed(), K[:2], like=kept)
    assert kept.rows.matrix.size == 0
    assert np.array_equal(block(Precomputed(), asked, kept), K[:2, few])
    assert np.array_equal(diagonal(Precomputed(), P), np.diag(K).astype(float))
    with pytest.raises(ValueError, match="square"):
        points(Precomputed(), K[:3])
    with pytest.raises(ValueError, match="9 columns"):
        points(Precomputed(), K[:, :3], like=P)
    with pytest.raises(ValueError, match="stands alone"):
        points(Precomputed() + Linear(), K)
    with pytest.raises(TypeError, match="sparse"):
        points(Precomputed(), sp.csr_array(K))


@given(seed=SEEDS, use_csr=st.booleans())
def test_gamma_is_that_of_scikit_learn(seed, use_csr):
    X = random_matrix(np.random.default_rng(seed), 12, 3) + 0.1
    X = sp.csr_matrix(X) if use_csr else X
    y = np.arange(12) % 2
    for gamma in ("scale", "auto"):
        found = resolved(2 * Gaussian(gamma) + 1, X)
        assert found.kernel.kernel.gamma == pytest.approx(SVC(gamma=gamma).fit(X, y)._gamma)


def test_names_and_what_is_refused():
    assert kernel_of("rbf", 0.5) == Gaussian(0.5) and kernel_of("linear") == Linear()
    assert kernel_of("poly", 0.5, 2, 1.0) == Polynomial(2, 0.5, 1.0)
    assert kernel_of("sigmoid", 0.5, 2, 1.0) == Sigmoid(0.5, 1.0)
    assert kernel_of("laplacian", "auto") == Laplacian("auto")
    assert kernel_of("precomputed") == Precomputed() and kernel_of(Linear()) == Linear()
    assert kernel_of(max) == Function(max) and repr(Function(max)) == "Function(max)"
    X = np.ones((3, 2))
    for wrong, message in (
        (Gaussian(0.0), "gamma must be finite and > 0"),
        (Gaussian("best"), "gamma must be 'scale'"),
        (Polynomial(-1), "degree must be an integer from 0"),
        (Polynomial(2, 1.0, math.nan), "coef0 must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            resolved(wrong, X)
    assert resolved(Gaussian(), X) == Gaussian(1.0)  # no variance
    for make, error in (
        (lambda: kernel_of("gauss"), ValueError),
        (lambda: resolved("rbf", X), TypeError),
        (lambda: resolved(Gaussian(True), X), TypeError),
        (lambda: -1 * Linear(), ValueError),
        (lambda: Linear() + math.inf, ValueError),
        (lambda: Linear() + "1", TypeError),
        (lambda: Linear() * "1", TypeError),
        (lambda: exp(1.0), TypeError),
        (lambda: points(Gaussian(1.0), ["ab", "c"]), ValueError),
    ):
        with pytest.raises(error):
            make()


@hot
def _all_of(x, out, degree):
    for i in range(x.shape[0]):
        out[0, i] = exponential(x[i])
        out[1, i] = tangent(x[i])
        out[2, i] = power(x[i], degree)


@every_dtype
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_are_accurate(dtype):
    high, tolerance = (87.0, 4e-7) if dtype is np.float32 else (707.0, 2e-15)
    x = np.concatenate([np.linspace(-high, high, 20_001), np.linspace(-1.0, 1.0, 2001)])
    x = x.astype(dtype)
    exact = x.astype(np.longdouble)
    out = np.empty((3, x.size), dtype)
    for degree in (0, 1, 2, 3, 7, MAX_POWER):
        small = (x / dtype(high)).astype(dtype)
        _all_of(small, out, degree)
        assert np.allclose(out[2], small.astype(np.longdouble) ** degree, rtol=20 * tolerance)
    _all_of(x, out, 1)
    assert np.all(np.abs(out[0] / np.exp(exact) - 1.0) <= tolerance)
    assert np.all(np.abs(out[1] - np.tanh(exact)) <= tolerance)
    edge = np.array([np.nan, np.inf, -np.inf, 0.0, 1e9, -1e9], dtype)
    out = np.empty((3, 6), dtype)
    _all_of(edge, out, 1)
    assert np.isnan(out[0, 0]) and np.isinf(out[0, 1]) and np.isinf(out[0, 4])
    assert out[0, 2] < 1e-37 and out[0, 5] < 1e-37 and out[0, 3] == 1.0


@pytest.mark.parametrize("storage", ["array", "csr"])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Laplacian(0.1)], ids=repr)
def test_threads_and_tiles_change_nothing(kernel, storage, monkeypatch):
    X = random_matrix(np.random.default_rng(3), 150, 20).astype(np.float32)
    P = points(kernel, stored(X, storage))
    K = block(kernel, P, P)
    assert np.allclose(K, K.T, atol=1e-6)
    monkeypatch.setattr(kernel_blocks, "_SHARE", 1)
    with use_threads(2):
        assert np.allclose(block(kernel, P, P), K, atol=1e-6)
    one = block(kernel, P, P)
    with use_threads(3):
        assert np.array_equal(block(kernel, P, P), one)


def test_numbers_take_the_precision_of_the_pass():
    k = in_precision(2 * Polynomial(3, 0.5, 1.0) + 1, np.float32)
    assert k.constant.dtype == np.float32 and k.kernel.kernel.gamma.dtype == np.float32
    assert k.kernel.kernel.degree == 3


def test_numbers_of_numpy_on_the_left_make_kernels_too():
    for number in (np.float64(2.0), np.float32(2.0), np.int64(2)):
        assert number * Gaussian(0.5) == 2 * Gaussian(0.5)
        assert number + Linear() == Linear() + 2


def test_a_type_is_no_kernel_and_the_message_says_so():
    with pytest.raises(ValueError, match=r"Gaussian\(\.\.\.\)"):
        kernel_of(Gaussian)
