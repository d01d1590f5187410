"""FixedSizeSVC: the mapped problem is solved and proven, in memory or block by block."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from pegasos import SVC, FixedSizeSVC, LinearSVC, NystroemMap, PegasosClassifier
from pegasos.core.deadline import is_over, until
from pegasos.data.samples import load_sample
from pegasos.estimators import growth
from pegasos.kernels import Gaussian
from pegasos.maps import mapped_rows
from pegasos.solvers import k_means
from pegasos.stopping import Validation

NO_ROOM = 1e-6  # megabytes


@pytest.fixture(scope="module", name="data")
def spambase():
    X, y = load_sample("spambase")
    some = np.random.default_rng(0).permutation(len(y))[:500]
    return np.log1p(X[some]).astype(np.float64), y[some]


def test_float32_blocks_prove_what_they_find(data):
    """The bound is of the same rows as the objective, bit for bit: it is never above it."""
    X, y = data[0].astype(np.float32), data[1]
    for seed in range(3):
        model = FixedSizeSVC(m=30, cache_size=NO_ROOM, tol=1e-4, random_state=seed).fit(X, y)
        proof = model.certificate_
        assert model.stop_reason_ == "gap" and not model.in_memory_
        assert proof.dual <= proof.primal * (1.0 + 1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_blocks_reach_the_objective_of_the_whole(data, loss, monkeypatch):
    monkeypatch.setattr(mapped_rows, "_VALUES", 1)
    known = {"m": 40, "loss": loss, "C": 3.0, "tol": 1e-5, "random_state": 0}
    whole, blocks = FixedSizeSVC(**known).fit(*data), FixedSizeSVC(cache_size=NO_ROOM, **known)
    blocks.fit(*data)
    assert whole.in_memory_ and not blocks.in_memory_
    a, b = whole.certificate_, blocks.certificate_
    assert max(a.relative_gap, b.relative_gap) <= 1e-5
    assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1.0 + 1e-9)
    np.testing.assert_allclose(
        whole.decision_function(data[0]), blocks.decision_function(data[0]), atol=0.05
    )


def test_the_certificate_is_that_of_the_mapped_problem(data):
    X, y = data
    model = FixedSizeSVC(m=40, C=2.0, loss="hinge", random_state=0, cache_size=NO_ROOM).fit(X, y)
    Z, w = model.map_.transform(X), model.coef_[0]
    margins = np.where(y == model.classes_[1], 1.0, -1.0) * (Z @ w + model.intercept_[0])
    primal = 0.5 * w @ w + 2.0 * np.maximum(0.0, 1.0 - margins).sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    exact = LinearSVC(C=2.0, loss="hinge", tol=1e-7).fit(Z, y).certificate_
    assert model.certificate_.dual <= exact.primal and exact.dual <= model.certificate_.primal


def test_with_all_rows_as_prototypes_it_is_the_kernel_machine(data):
    X, y = data[0][:150], data[1][:150]
    known = {"kernel": Gaussian(0.05), "C": 2.0, "loss": "hinge", "tol": 1e-7}
    fixed, exact = FixedSizeSVC(m=150, threshold=1e-12, **known).fit(X, y), SVC(**known).fit(X, y)
    np.testing.assert_allclose(fixed.decision_function(X), exact.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("solver", ["dual", "newton", "interior", "pegasos"])
def test_every_solver_finds_the_same(data, solver):
    model = FixedSizeSVC(m=20, loss="hinge", C=0.1, solver=solver, tol=0.03, random_state=0)
    best = FixedSizeSVC(m=20, loss="hinge", C=0.1, tol=1e-6, random_state=0).fit(*data)
    model.fit(*data)
    found, optimum = model.certificate_, best.certificate_.primal
    assert found.dual <= optimum * (1.0 + 1e-6) and found.primal <= optimum * 1.031


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
def test_solvers_of_single_rows_ask_for_memory(data, solver):
    with pytest.raises(ValueError, match="raise cache_size, or use solver='auto'"):
        FixedSizeSVC(m=20, solver=solver, cache_size=NO_ROOM).fit(*data)


@pytest.mark.slow
def test_several_classes_sparse_rows_and_validation(data):
    X = sp.csr_matrix(np.where(data[0] > 0.5, data[0], 0.0))
    y = np.array(["a", "b", "c"])[data[1] + (X[:, -1].toarray()[:, 0] > np.median(X[:, -1].data))]
    rule = Validation(X, y)
    for room in (1000, NO_ROOM):
        model = FixedSizeSVC(m=60, random_state=0, cache_size=room, stop=rule).fit(X, y)
        assert model.decision_function(X).shape == (X.shape[0], 3)
        assert model.score(X, y) > 0.75
        np.testing.assert_allclose(
            model.decision_function(X), model.decision_function(X.toarray()), atol=1e-6
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_m_grows_while_it_helps_and_time_allows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000, 2)).astype(np.float32)
    y = (np.sin(9.0 * X[:, 0]) * np.sin(9.0 * X[:, 1]) > 0).astype(int)  # a chequerboard
    known = {"m": "auto", "kernel": Gaussian(20.0), "C": 10.0, "random_state": 0}
    model = FixedSizeSVC(**known).fit(X, y)
    tried = [m for m, _, _ in model.growth_]
    assert tried == [64 * 2**k for k in range(len(tried))] and len(tried) > 1
    assert model.m_ in tried and model.score(X, y) > 0.95
    assert len(FixedSizeSVC(**known, max_time=1e-3).fit(X, y).growth_) == 1


@pytest.mark.slow
def test_the_last_fit_has_time_for_what_a_trial_found(data, monkeypatch):
    limits, score = [], growth._score

    def seen(model, *rest):
        limits.append(model.max_time)
        return score(model, *rest)

    monkeypatch.setattr(growth, "_score", seen)
    model = FixedSizeSVC(m="auto", max_time=1000.0, random_state=0).fit(*data)
    assert len(limits) == len(model.growth_) and max(limits) < 0.5 * 1000.0
    assert model.score(*data) >= max(tried.score for tried in model.growth_)


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
def test_m_grows_no_further_than_the_image_has_room(data, solver):
    known = {"m": "auto", "loss": "hinge", "solver": solver, "tol": 0.5, "max_iter": 3}
    room = 1e-6 * 8 * 500 * 70
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert FixedSizeSVC(**known, cache_size=room).fit(*data).m_ == 64
        assert FixedSizeSVC(**known, cache_size=room / 7).fit(*data).m_ == 10


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix])
def test_k_means_ends_with_its_time(data, made, monkeypatch):
    X, rng = made(np.repeat(data[0][:100], 2, axis=0)), np.random.default_rng(0)
    passes, nearest = [], k_means.nearest
    monkeypatch.setattr(k_means, "nearest", lambda *known: passes.append(1) or nearest(*known))
    with until(0.0):
        centres = k_means.k_means(X, 60, rng)
    assert len(passes) <= 2 and centres.shape[0] > 30
    centres = centres.toarray() if sp.issparse(centres) else centres
    assert len(np.unique(centres, axis=0)) == len(centres)


def test_time_for_the_map_is_time_of_the_fit(data, monkeypatch):
    """A map that takes all of it leaves none to the solver."""
    fit = NystroemMap.fit

    def slow(made, X):
        found = fit(made, X)
        while not is_over():
            pass
        return found

    monkeypatch.setattr(NystroemMap, "fit", slow)
    with pytest.warns(ConvergenceWarning, match="stopped .max_time.*raise max_time"):
        model = FixedSizeSVC(m=30, tol=1e-12, max_time=0.5, random_state=0).fit(*data)
    assert model.stop_reason_ == "max_time" and len(model.history_) <= 2


def test_a_class_of_one_row_is_learnt_from(data):
    X, y = data
    for rare in (0, 7, 11):  # wherever it is
        label = (np.arange(60) == rare).astype(int)
        model = FixedSizeSVC(m="auto", tol=0.1).fit(X[:60], label)
        assert model.growth_ and list(model.classes_) == [0, 1]
    few = FixedSizeSVC(m="auto", tol=0.1).fit(X[:3], [0, 1, 2])
    assert few.growth_ == [] and few.m_ == 3


def test_gamma_knows_weights_of_rows_but_not_of_classes(data):
    X, y = data
    weight = np.where(y == 1, 3.0, 1.0)

    def gamma(weight=None, **settings):
        return FixedSizeSVC(m=5, tol=0.1, **settings).fit(X, y, weight).map_.kernel_.gamma

    assert gamma(class_weight={1: 3.0}, C=5.0) == gamma() != gamma(weight)
    assert gamma(weight, class_weight="balanced") == gamma(weight)


def test_a_map_and_a_stream_learn_in_constant_memory(data):
    X, y = data
    chosen = NystroemMap(m=50, random_state=0).fit(X[:600])
    blocks, whole = (PegasosClassifier(lam=1e-3, sampling="order") for _ in range(2))
    for s in range(0, len(y), 100):
        blocks.partial_fit(chosen.transform(X[s : s + 100]), y[s : s + 100], classes=[0, 1])
    whole.partial_fit(chosen.transform(X), y, classes=[0, 1])
    np.testing.assert_allclose(blocks.coef_, whole.coef_, atol=1e-6)
    assert make_pipeline(chosen, whole).score(X, y) > 0.8


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_many_rows_without_room_for_their_image_may_begin_on_a_sample(loss):
    """Rows that are mapped block by block have no verbs for one row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    y = np.where((X**2).sum(axis=1) > 3.0, 1, -1)
    settings = {"m": 20, "loss": loss, "random_state": 0, "tol": 1e-6}
    small, large = (FixedSizeSVC(cache_size=size, **settings).fit(X, y) for size in (0.01, 100.0))
    assert small.stop_reason_ == large.stop_reason_ == "gap"
    assert small.certificate_.primal == pytest.approx(large.certificate_.primal, rel=1e-5)
