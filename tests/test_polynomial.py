"""Polynomial maps: the kernel, the columns, rows that are expanded while they are read."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import SEEDS, random_matrix
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pegasos import SVC, LinearSVC, PolynomialMap, PolynomialSVC
from pegasos.core.cross import gathered
from pegasos.core.gram import _blas_gram, _outer_gram, _tile_gram
from pegasos.core.lanes import lines
from pegasos.core.matrix import (
    all_products,
    combine,
    lane_combine,
    lane_products,
    products,
    sqnorms,
    squares,
)
from pegasos.core.rows import n_columns, n_entries, n_rows

DEGREES = st.sampled_from((2, 3))
COEFS0 = st.sampled_from((0.0, 1.0, 1.7))


def close(actual, expected):
    """Equal up to the rounding of float64 sums."""
    return np.allclose(actual, expected, rtol=1e-11, atol=1e-11)


@given(seed=SEEDS, degree=DEGREES, coef0=COEFS0, gamma=st.sampled_from((0.3, 2.0)))
def test_products_of_mapped_rows_are_the_kernel(seed, degree, coef0, gamma):
    X = random_matrix(np.random.default_rng(seed), 7, 5)
    phi = PolynomialMap(degree, gamma=gamma, coef0=coef0).fit_transform(X)
    assert close(phi @ phi.T, (gamma * X @ X.T + coef0) ** degree)


@given(seed=SEEDS, degree=DEGREES, coef0=COEFS0)
def test_without_powers_it_is_the_sum_over_sets_of_features(seed, degree, coef0):
    x, z = random_matrix(np.random.default_rng(seed), 2, 5)
    given_map = PolynomialMap(degree, gamma=0.6, coef0=coef0, interaction_only=True)
    phi = given_map.fit_transform(np.array([x, z]))
    expected = sum(
        math.perm(degree, k) * coef0 ** (degree - k) * 0.6**k * np.prod((x * z)[list(chosen)])
        for k in range(degree + 1)
        for chosen in itertools.combinations(range(5), k)
    )
    assert close(phi[0] @ phi[1], expected)


@given(seed=SEEDS, degree=DEGREES, strict=st.booleans(), n=st.integers(1, 6))
def test_plain_columns_are_those_of_scikit_learn(seed, degree, strict, n):
    X = random_matrix(np.random.default_rng(seed), 6, n)
    ours = PolynomialMap(degree, coefficients="plain", interaction_only=strict).fit(X)
    theirs = PolynomialFeatures(degree, interaction_only=strict).fit(X)
    assert close(ours.transform(X), theirs.transform(X))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    names = ours.get_feature_names_out([f"f{i}" for i in range(n)])
    assert names[:2].tolist() == ["1", "f0"] and len(names) == ours.n_columns_


@pytest.mark.parametrize("width", [10**6, 11])
@given(
    seed=SEEDS,
    degree=DEGREES,
    coef0=st.sampled_from((0.0, 1.5)),
    strict=st.booleans(),
    plain=st.booleans(),
)
@pytest.mark.bounds
@pytest.mark.filterwarnings("ignore:degree:UserWarning")
def test_rows_expanded_on_the_fly_equal_those_written_out(
    width, seed, degree, coef0, strict, plain
):
    """Every whole-matrix operation, hashed or not; arrays and CSR matrices are mapped alike."""
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, 9, 5)
    coefficients = "plain" if plain else "kernel"
    made = PolynomialMap(
        degree,
        gamma=0.4,
        coef0=coef0,
        coefficients=coefficients,
        interaction_only=strict,
        width=width,
    ).fit(X)
    rows, phi = made.rows(X, 0.7), made.transform(X)
    S = made.transform(sp.csr_array(X))
    assert close(S.toarray(), phi) and S.has_canonical_format
    assert (n_rows(rows), n_columns(rows)) == phi.shape
    assert n_entries(rows) == np.count_nonzero(phi) or width == 11
    P = np.column_stack([phi, np.full(9, 0.7)])
    d, h = P.shape[1], rng.random(9) * rng.integers(0, 2, 9)
    w, a, W = rng.normal(size=d), rng.normal(size=9), rng.normal(size=(d, 3))
    assert close(products(rows, w), P @ w) and close(combine(rows, a), P.T @ a)
    assert close(all_products(rows, W), P @ W)
    assert close(sqnorms(rows), (P**2).sum(axis=1)) and close(squares(rows, h), h @ P**2)
    chosen, G = np.flatnonzero(h), P.T @ (h[:, None] * P)
    assert close(_outer_gram(rows, h, chosen, np.arange(d)), G)
    for way in (_blas_gram, _tile_gram):
        assert close(way(rows, h, chosen, np.float64, np.arange(d)), G)
    B, A = lines(d, np.float64), lines(9, np.float64)
    B[:], A[:] = rng.normal(size=B.shape), rng.normal(size=A.shape)
    assert close(lane_products(rows, B), P @ B) and close(lane_combine(rows, A), P.T @ A)
    P[:, -1] = 2.0
    some = gathered(rows._replace(bias=2.0), np.array([4, 1]))
    assert close(products(some, w), P[[4, 1]] @ w)


def test_hashing_says_so_and_keeps_products_on_average():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 12)) / np.sqrt(12)
    with pytest.warns(UserWarning, match=r"degree 3 of 12 features makes 455 columns.*width=128"):
        made = PolynomialMap(3, gamma=1.0, width=128).fit(X)
    phi = made.transform(X)
    assert phi.shape == (20, 128) and made.get_feature_names_out()[1] == "polynomialmap1"
    error = phi @ phi.T - (X @ X.T + 1.0) ** 3
    scale = (1.0 + (X**2).sum(axis=1).mean()) ** 3
    assert abs(error.mean()) < 0.1 * scale and error.std() < 3.0 * scale / np.sqrt(128)


def test_hashing_is_told_at_the_line_of_the_user():
    """A centre of the wrong length ends a fit right after it: nothing is solved."""
    X, y = np.eye(4), [0, 0, 1, 1]
    machine = PolynomialSVC(width=4, center=np.zeros(3))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        PolynomialMap(width=4).fit(X)
        PolynomialMap(width=4).fit_transform(X)
        with pytest.raises(ValueError, match="center"):
            machine.fit(X, y)
        with pytest.raises(ValueError, match="center"):
            machine.path(X, y, [0.1, 1.0])
    assert ["hashed" in str(seen.message) for seen in told] == [True] * 4
    assert {seen.filename for seen in told} == {__file__}


def test_wide_arrays_become_csr_and_dtypes_stay():
    X = np.eye(3, 150, dtype=np.float32)
    mapped = PolynomialMap().fit_transform(X)
    assert sp.issparse(mapped) and mapped.shape == (3, 151 * 152 // 2)
    assert mapped.dtype == np.float32 and PolynomialMap().fit_transform(X[:, :9]).dtype == X.dtype


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 4}, "degree must be 2 or 3, got 4"),
        ({"coef0": -1.0}, "coef0 must be finite and a number >= 0"),
        ({"coefficients": "none"}, "coefficients must be one of 'kernel', 'plain'"),
        ({"width": 0}, "width must be an integer >= 1"),
        ({"gamma": 0.0}, "gamma must be finite and > 0"),
        ({"gamma": -1}, "gamma must be finite and > 0"),
        ({"gamma": np.nan}, "gamma must be finite and > 0"),
        ({"gamma": "foo"}, "gamma must be 'scale', 'auto' or a number > 0"),
        ({"coef0": 0.0, "interaction_only": True}, "no product of 2 different ones"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, message):
    X = np.ones((4, 1))
    for made in (PolynomialMap(**parameters), PolynomialSVC(**parameters)):
        with pytest.raises(ValueError, match=message):
            made.fit(X, [0, 0, 1, 1])


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :8], y


def same_optimum(one, other):
    """Each objective is above the lower bound of the other, and both are close to them."""
    a, b = one.certificate_, other.certificate_
    assert max(a.relative_gap, b.relative_gap) <= 1e-5
    assert a.primal >= b.dual * (1 - 1e-9) and b.primal >= a.dual * (1 - 1e-9)


def same_weights(one, other):
    """No further apart than ||w - w*|| <= sqrt(2 gap) and rounding allow."""
    gaps = [model.certificate_.gap for model in (one, other)]
    rounding = 1e-9 * np.linalg.norm(one.coef_)
    away = np.linalg.norm(one.coef_ - other.coef_)
    assert away <= np.sqrt(2.0 * np.array(gaps)).sum() + rounding


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize(("degree", "solver"), [(2, "auto"), (2, "dual"), (3, "auto")])
def test_machine_on_the_fly_is_the_linear_one_on_mapped_rows(cancer, degree, solver, intercept):
    X, y = cancer
    given = {"tol": 1e-5, "solver": solver, "intercept": intercept, "C": 0.1, "max_iter": 20_000}
    given["random_state"] = 0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = PolynomialSVC(degree=degree, gamma=0.1, **given).fit(X, y, weight)
    mapped = PolynomialMap(degree, gamma=0.1).fit_transform(X)
    linear = LinearSVC(**given).fit(mapped, y, weight)
    same_optimum(model, linear)
    same_weights(model, linear)
    assert np.allclose(model.decision_function(X), mapped @ model.coef_[0] + model.intercept_)
    sparse = PolynomialSVC(degree=degree, gamma=0.1, **given).fit(sp.csr_array(X), y, weight)
    assert np.array_equal(sparse.coef_, model.coef_)


@pytest.mark.slow
def test_machine_without_intercept_is_the_kernel_machine(cancer):
    X, y = cancer
    given = {"C": 0.5, "loss": "hinge", "intercept": "none", "tol": 1e-5, "solver": "dual"}
    explicit = PolynomialSVC(gamma=0.1, max_iter=20_000, **given).fit(X, y)
    kernel = SVC(kernel="poly", degree=2, gamma=0.1, coef0=1.0, **given).fit(X, y)
    same_optimum(explicit, kernel)


@pytest.mark.slow
def test_several_classes_a_path_and_folds():
    X, y = load_iris(return_X_y=True)
    model = PolynomialSVC(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.96 and model.coef_.shape == (3, 15)
    assert max(proof.relative_gap for proof in model.certificate_) <= 1e-3
    few, more = model.path(X, y, [0.1, 10.0])
    assert few.score(X, y) <= more.score(X, y) and more.map_.gamma_ == model.map_.gamma_
    found = model.cross_validate_path(X, y, [0.1, 10.0], cv=3)
    assert found.mean_test_score.min() > 0.9
