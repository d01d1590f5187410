"""SVC: scikit-learn's answers with a proof, its layouts, and laws of kernels and weights."""

import pickle
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from pegasos import SVC, KernelPegasosClassifier, LinearSVC
from pegasos.data.samples import load_sample
from pegasos.estimators.kernel_checks import foretell, is_doubtful
from pegasos.kernels import (
    Exp,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    kernel,
    of_products,
)
from pegasos.losses import Hinge, Pinball
from pegasos.objective.kernel_points import points

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def pima():
    X, y = load_sample("pima")
    X = X.astype(np.float64)
    return ((X - X.mean(0)) / X.std(0))[:200], y[:200]


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(5)
    centres = np.array([[2.0, 0, 0, 1], [0, 2.0, 0, -1], [0, 0, 2.0, 0]])
    y = rng.integers(0, 3, 90)
    return centres[y] + rng.normal(size=(90, 4)), np.array(["ash", "beech", "cedar"])[y]


def dual_value(model, K, y):
    """Of a binary model, by plain NumPy."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    return signs @ beta - 0.5 * beta @ K @ beta


def squares(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_dual_objective_is_libsvms(pima, C, gamma):
    X, y = pima
    K = np.exp(-gamma * squares(X))
    ours = SVC(C=C, gamma=gamma, kkt_tol=1e-6).fit(X, y)
    theirs = svm.SVC(C=C, gamma=gamma, tol=1e-6).fit(X, y)
    assert dual_value(ours, K, y) == pytest.approx(dual_value(theirs, K, y), rel=1e-6)
    assert ours.certificate_.dual == pytest.approx(dual_value(ours, K, y), rel=1e-9)
    assert ours.stop_reason_ == "kkt"
    assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-3)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_layout_of_several_classes_is_scikit_learns(three, kernel):
    X, y = three
    ours, theirs = (
        SVC(kernel=kernel, tol=1e-9).fit(X, y),
        svm.SVC(kernel=kernel, tol=1e-7).fit(X, y),
    )
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_ == pytest.approx(theirs.dual_coef_, abs=1e-3)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-4)
    assert np.array_equal(ours.support_vectors_, theirs.support_vectors_)
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == theirs.fit_status_
    for shape in ("ovr", "ovo"):
        ours.decision_function_shape = theirs.decision_function_shape = shape
        assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-3)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    if kernel == "linear":
        assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-4)
    assert len(ours.certificate_) == 3


def test_binary_signs_are_scikit_learns(pima):
    X, y = pima
    X, y = X[:60], y[:60]
    ours, theirs = SVC(tol=1e-8).fit(X, y), svm.SVC(tol=1e-7).fit(X, y)
    assert ours.dual_coef_ == pytest.approx(theirs.dual_coef_, abs=1e-4)
    assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-4)


def test_ties_are_broken_by_the_decision_function(three):
    X, y = three
    model = SVC(break_ties=True).fit(X, y)
    scores = model.decision_function(X)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    model.decision_function_shape = "ovo"
    with pytest.raises(ValueError, match="break_ties"):
        model.predict(X)


def test_one_against_the_rest(three):
    X, y = three
    model = SVC(multi_class="ovr").fit(X, y)
    alone = SVC(gamma=model.kernel_.gamma).fit(X, y == "beech")
    assert model.dual_coef_.shape == (3, model.support_.size)
    assert model.decision_function(X)[:, 1] == pytest.approx(alone.decision_function(X), abs=1e-6)
    chosen = model.classes_[model.decision_function(X).argmax(axis=1)]
    assert np.array_equal(model.predict(X), chosen)


def test_a_fitted_model_is_what_was_fitted(three):
    X, y = three
    for fitted, later in (("ovo", "ovr"), ("ovr", "ovo")):
        model = SVC(multi_class=fitted, kernel="linear").fit(X, y)
        before = model.predict(X), model.decision_function(X), model.coef_
        model.set_params(multi_class=later)
        after = model.predict(X), model.decision_function(X), model.coef_
        assert all(map(np.array_equal, before, after))


@pytest.mark.parametrize("class_weight", [None, "balanced", {"ash": 3.0}])
def test_class_weights_are_kept(three, class_weight):
    X, y = three
    models = [kind(class_weight=class_weight).fit(X, y) for kind in (SVC, svm.SVC)]
    assert models[0].class_weight_ == pytest.approx(models[1].class_weight_)


def test_degree_0_is_a_constant(three):
    X, y = three
    models = [kind(kernel="poly", degree=0).fit(X, y) for kind in (SVC, svm.SVC)]
    assert np.array_equal(*(model.predict(X) for model in models))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["working_set", "smo"])
def test_weights_are_copies(pima, solver):
    X, y = pima[0][:60], pima[1][:60]
    k = np.random.default_rng(0).integers(0, 4, 60)
    model = SVC(tol=1e-10, solver=solver)
    once = model.fit(X, y, sample_weight=k).decision_function(X)
    copies = model.fit(np.repeat(X, k, axis=0), np.repeat(y, k)).decision_function(X)
    assert once == pytest.approx(copies, abs=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_rows_are_rows_however_stored(three, kernel):
    X, y = three
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.9, 0.0, X)
    models = [SVC(kernel=kernel, tol=1e-8).fit(form(X), y) for form in (np.asarray, sp.csr_matrix)]
    assert sp.issparse(models[1].support_vectors_)
    scores = [
        model.decision_function(form(X)) for model in models for form in (np.asarray, sp.csr_array)
    ]
    for other in scores[1:]:
        assert other == pytest.approx(scores[0], abs=1e-4)


@pytest.mark.parametrize("several", [False, True])
def test_precomputed_is_the_kernel(three, several):
    X, y = three
    y = y if several else y == "ash"
    gamma = 0.3
    K = np.exp(-gamma * squares(X))
    given = SVC(kernel="precomputed", tol=1e-8).fit(K, y)
    computed = SVC(gamma=gamma, tol=1e-8).fit(X, y)
    function = SVC(kernel=lambda A, B: np.exp(-gamma * squares_of(A, B)), tol=1e-8).fit(X, y)
    scores = computed.decision_function(X)
    assert given.decision_function(K) == pytest.approx(scores, abs=1e-5)
    assert function.decision_function(X) == pytest.approx(scores, abs=1e-5)
    assert SVC(kernel=Gaussian(gamma), tol=1e-8).fit(X, y).decision_function(X) == pytest.approx(
        scores, abs=1e-5
    )


def squares_of(A, B):
    return ((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2).sum(axis=2)


def test_precomputed_with_rows_of_no_weight(three):
    X, y = three
    K = X @ X.T
    weight = np.ones(len(y))
    weight[::3] = 0.0
    whole = SVC(kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=weight)
    part = SVC(kernel=Linear(), tol=1e-8).fit(X[weight > 0], y[weight > 0])
    assert whole.decision_function(K) == pytest.approx(part.decision_function(X), abs=1e-4)
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(X, y)


def test_a_given_matrix_takes_part_in_the_algebra(three):
    X, y = three
    K = np.exp(-0.3 * squares(X))
    named = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(K, y)
    scaled = SVC(kernel=2 * Precomputed(), tol=1e-8).fit(K, y)
    assert scaled.decision_function(K) == pytest.approx(named.decision_function(K), abs=1e-5)
    folds = [cross_val_score(SVC(kernel=k), K, y, cv=3) for k in ("precomputed", Precomputed())]
    assert np.array_equal(*folds)
    with pytest.raises(ValueError, match="square"):
        SVC(kernel=Precomputed() + 1).fit(X, y)


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
def test_linear_kernel_is_the_linear_machine(pima, intercept):
    X, y = pima[0][:80], pima[1][:80]
    kernel = SVC(kernel="linear", intercept=intercept, tol=1e-7).fit(X, y)
    linear = LinearSVC(loss="hinge", intercept=intercept, tol=1e-7).fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-7)
    assert kernel.coef_ == pytest.approx(linear.coef_, abs=1e-3)
    assert kernel.intercept_ == pytest.approx(linear.intercept_, abs=1e-3)


def test_hinge_is_pinball_with_tau_0(pima):
    X, y = pima[0][:80], pima[1][:80]
    models = [
        SVC(loss=loss, tau=0.0, random_state=0).fit(X, y)
        for loss in ("hinge", "pinball", Hinge(), Pinball(0.0))
    ]
    for model in models[1:]:
        assert np.array_equal(model.dual_coef_, models[0].dual_coef_)
    steep = SVC(loss="pinball", tau=0.3).fit(X, y)
    assert steep.certificate_.relative_gap <= 1e-3
    assert steep.support_.size == len(y)  # every margin has a price


def test_balanced_classes_and_lam(pima):
    X, y = pima[0][:100], pima[1][:100]
    share = {k: len(y) / (2 * np.sum(y == k)) for k in (0, 1)}
    a = SVC(class_weight="balanced", tol=1e-8).fit(X, y).decision_function(X)
    b = SVC(class_weight=share, tol=1e-8).fit(X, y).decision_function(X)
    assert a == pytest.approx(b, abs=1e-6)
    c = SVC(lam=1.0 / (2.0 * len(y)), tol=1e-8).fit(X, y).decision_function(X)
    assert c == pytest.approx(SVC(C=2.0, tol=1e-8).fit(X, y).decision_function(X), abs=1e-6)


def test_warm_start_begins_where_it_ended(pima):
    X, y = pima[0][:100], pima[1][:100]
    model = SVC(warm_start=True, tol=1e-5).fit(X, y)
    first = model.n_iter_[0]
    again = model.fit(X, y)
    assert first > 0 and again.n_iter_[0] == 0
    assert again.certificate_.relative_gap <= 1e-5


def test_limits_are_told(pima):
    X, y = pima
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(tol=1e-12, max_iter=1).fit(X, y)
    assert (model.stop_reason_, model.fit_status_) == ("max_iter", 1)
    assert model.certificate_.relative_gap < 1.0


def test_a_long_fit_is_foretold():
    n = 60_000
    narrow, wide = sp.eye_array(n, 10, format="csr"), sp.eye_array(n, 10**6, format="csr")
    for rows, of in ((narrow, Linear()), (wide, Linear()), (np.ones((n, 1)), Gaussian(1.0))):
        train = points(of, rows)
        with pytest.warns(UserWarning, match="60000 rows may take"):
            foretell([10 * n], train, 10**9, np.inf)
        with pytest.warns(UserWarning, match="max_time: 2 s"):
            foretell([n], train, 10**9, 2.0)
        with pytest.warns(UserWarning, match="may take"):  # many that are short are long
            foretell([n // 10] * 10_000, train, 10**9, np.inf)
        foretell([n], train, 10**11, 60.0)


def test_columns_without_entries_take_no_time():
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.random(400), (np.repeat(np.arange(200), 2), rng.integers(0, 10**7, 400))))
    SVC(kernel="linear", max_time=5.0).fit(X, np.arange(200) % 2)


def test_a_function_that_is_no_kernel_is_survived(pima):
    X, y = pima[0][:60], pima[1][:60]
    with pytest.warns(UserWarning, match="is no kernel"):
        model = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@kernel
class Opposite(NamedTuple):
    """-x.z, no kernel"""


@of_products.register(Opposite)
def _(k, t, a, b):
    return -t


@pytest.mark.parametrize("learner", [SVC, KernelPegasosClassifier])
@pytest.mark.parametrize("no_kernel", [Polynomial(2, 1.0, -5.0), Opposite()], ids=repr)
def test_what_is_no_kernel_is_told(pima, learner, no_kernel):
    X, y = pima[0][:40], pima[1][:40]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        learner(kernel=no_kernel, max_iter=2).fit(X, y)
    assert [seen.filename for seen in told if "is no kernel" in str(seen.message)] == [__file__]


def test_only_what_is_known_is_not_doubted():
    sure = Linear() * Gaussian(1.0) + Exp(2 * Polynomial(3, 1.0, 1.0)) * Laplacian(1.0) + 1
    assert not is_doubtful(sure)
    for doubted in (Polynomial(3, 1.0, -1.0), Opposite(), Precomputed(), Sigmoid(1.0)):
        assert is_doubtful(doubted) and is_doubtful(sure + 2 * doubted)
        assert is_doubtful(Exp(doubted)) and is_doubtful(doubted * sure + 1)


def test_memory_and_threads_do_not_matter(pima):
    X, y = pima
    models = [SVC(random_state=0, n_threads=n).fit(X, y) for n in (1, 2)]
    assert np.array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert np.array_equal(*(m.decision_function(X) for m in models))
    tiny = SVC(cache_size=0.05, tol=1e-6).fit(X, y)
    roomy = SVC(cache_size=500, tol=1e-6).fit(X, y)
    assert tiny.certificate_.dual == pytest.approx(roomy.certificate_.dual, rel=2e-6)


def test_pickle(three):
    X, y = three
    model = SVC().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "newton"}, "solver must be one of"),
        ({"solver": "dual"}, "no free offset"),
        ({"solver": "smo", "intercept": "none"}, "solver='dual'"),
        ({"loss": "logistic"}, "loss must be one of"),
        ({"kernel": "cubic"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"C": 0.0}, "C must be"),
        ({"cache_size": -1}, "cache_size"),
        ({"cache_size": 1e12}, "more than this machine has"),
        ({"kkt_tol": 0.0}, "kkt_tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"decision_function_shape": "all"}, "decision_function_shape"),
        ({"multi_class": "crammer_singer"}, "multi_class"),
    ],
)
def test_parameters_are_checked(three, parameters, message):
    with pytest.raises(ValueError, match=message):
        SVC(**parameters).fit(*three)


def test_coef_is_for_linear_kernels(three):
    model = SVC().fit(*three)
    assert not hasattr(model, "coef_")
