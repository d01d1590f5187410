"""Laws of the estimators: what users rely on beyond scikit-learn's checks."""

import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import pegasos
from pegasos import LinearSVC, LogisticRegression
from pegasos.data.check import _finite
from pegasos.data.samples import load_sample
from pegasos.estimators.classifier import encoded
from pegasos.losses import Hinge, Pinball
from pegasos.objective.problem import check_weight


@pytest.fixture(scope="module")
def pima():
    X, y = load_sample("pima")
    X = X.astype(np.float64)
    return (X - X.mean(0)) / X.std(0), y


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(5)
    centres = np.array([[2.0, 0, 0, 1], [0, 2.0, 0, -1], [0, 0, 2.0, 0]])
    y = rng.integers(0, 3, 240)
    return centres[y] + rng.normal(size=(240, 4)), np.array(["ash", "beech", "cedar"])[y]


def primal(model, X, y, C, loss):
    """The objective of a fitted binary model, by plain NumPy."""
    z = np.where(y == model.classes_[1], 1, -1) * (X @ model.coef_[0] + model.intercept_[0])
    slack = np.maximum(0.0, 1.0 - z)
    total = {"hinge": slack.sum(), "squared_hinge": slack @ slack}[loss]
    return 0.5 * model.coef_[0] @ model.coef_[0] + C * total


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "dual", "newton"])
def test_certificate_speaks_of_the_returned_weights(pima, loss, solver):
    X, y = pima
    model = LinearSVC(C=0.1, loss=loss, solver=solver, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "gap"
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.primal == pytest.approx(primal(model, X, y, 0.1, loss), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
def test_all_solvers_agree(pima, intercept):
    X, y = pima
    values = [
        LinearSVC(loss="hinge", C=0.2, solver=s, intercept=intercept, tol=1e-7, max_iter=20_000)
        .fit(X, y)
        .certificate_.primal
        for s in ("dual", "newton", "interior", "auto")
    ]
    np.testing.assert_allclose(values, values[0], rtol=2e-7)


def test_agrees_with_liblinear_where_it_solves_the_same_problem(pima):
    from sklearn.svm import LinearSVC as Liblinear

    X, y = pima
    theirs = Liblinear(C=0.1, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    ours = LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=2e-4)


def test_dense_equals_csr_and_float32_is_close(pima):
    X, y = pima
    dense = LinearSVC(tol=1e-9).fit(X, y)
    sparse = LinearSVC(tol=1e-9).fit(sp.csr_array(X), y)
    single = LinearSVC(tol=1e-9).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-6)
    np.testing.assert_allclose(dense.coef_, single.coef_, rtol=1e-4)


def test_weight_k_is_k_copies(pima):
    X, y = pima
    k = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LinearSVC(loss="hinge", tol=1e-10).fit(X, y, sample_weight=k)
    repeated = LinearSVC(loss="hinge", tol=1e-10).fit(np.repeat(X, k, axis=0), np.repeat(y, k))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_c_and_lam_are_one_parameter(pima):
    X, y = pima
    by_C = LinearSVC(C=0.5, tol=1e-9).fit(X, y)
    by_lam = LinearSVC(lam=1.0 / (0.5 * len(y)), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(by_C.coef_, by_lam.coef_, rtol=1e-6)


def test_label_flip_flips_the_sign(pima):
    X, y = pima
    a, b = LinearSVC(tol=1e-9).fit(X, y), LinearSVC(tol=1e-9).fit(X, 1 - y)
    np.testing.assert_allclose(a.coef_, -b.coef_, rtol=1e-6)
    np.testing.assert_allclose(a.intercept_, -b.intercept_, rtol=1e-6)


def test_balanced_is_the_documented_factor(pima):
    X, y = pima
    counts = np.bincount(y)
    factors = {k: len(y) / (2 * counts[k]) for k in (0, 1)}
    a = LinearSVC(class_weight="balanced", tol=1e-9).fit(X, y)
    b = LinearSVC(class_weight=factors, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)


def test_dual_coefficients_rebuild_the_weights(pima):
    X, y = pima
    model = LinearSVC(loss="hinge", C=0.05, solver="dual", tol=1e-8, max_iter=20_000).fit(X, y)
    distance = np.linalg.norm(model.dual_coef_ @ X[model.support_] - model.coef_)
    assert distance**2 <= 8.0 * model.certificate_.gap  # both lie within sqrt(2 gap) of w*
    assert abs(model.dual_coef_.sum()) < 1e-9  # free intercept: the classes balance


def test_one_vs_all_is_one_problem_per_class(three):
    X, y = three
    model = LinearSVC(tol=1e-8).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert len(model.certificate_) == len(model.solver_) == len(model.history_) == 3
    for k, name in enumerate(model.classes_):
        single = LinearSVC(tol=1e-8).fit(X, y == name)
        np.testing.assert_allclose(model.coef_[k], single.coef_[0], rtol=1e-5)
    assert model.score(X, y) > 0.85


def test_probabilities(three):
    X, y = three
    p = LogisticRegression().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    binary = LogisticRegression().fit(X, y == "ash")
    p = binary.predict_proba(X)
    np.testing.assert_array_equal(p[:, 1] > 0.5, binary.predict(X))
    np.testing.assert_allclose(binary.predict_log_proba(X), np.log(p))


def test_transfer_limits(pima):
    X, y = pima
    source = LinearSVC().fit(X[:300], y[:300])
    near = LinearSVC(C=1e-9, center=source, tol=1e-6).fit(X[300:], y[300:])
    np.testing.assert_allclose(near.coef_, source.coef_, atol=1e-4)
    plain = LinearSVC(tol=1e-9).fit(X, y)
    zero = LinearSVC(tol=1e-9, center=np.zeros(X.shape[1])).fit(X, y)
    np.testing.assert_allclose(zero.coef_, plain.coef_, rtol=1e-6)
    with pytest.raises(ValueError, match="1 x 8"):
        LinearSVC(center=np.zeros(3)).fit(X, y)


def test_warm_start_goes_on_where_it_stopped(pima):
    X, y = pima
    model = LinearSVC(loss="hinge", C=0.05, solver="dual", tol=1e-6, warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert model.certificate_.relative_gap <= 1e-6


def test_same_bits_for_any_number_of_threads_and_in_threads(pima):
    X, y = pima
    reference = LinearSVC(loss="hinge", n_threads=1, random_state=3).fit(X, y).coef_
    again = LinearSVC(loss="hinge", n_threads=2, random_state=3).fit(X, y).coef_
    np.testing.assert_array_equal(reference, again)
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(LinearSVC(loss="hinge", random_state=3).fit(X, y).coef_)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for coef in found:
        np.testing.assert_array_equal(reference, coef)


def test_unfinished_fit_warns_with_the_gap_and_an_action(pima):
    X, y = pima
    with pytest.warns(ConvergenceWarning, match=r"proven relative gap of .*raise max_iter \(now 1"):
        model = LinearSVC(loss="hinge", C=100, solver="dual", max_iter=1).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.relative_gap > 1e-3


def test_an_interrupt_in_the_last_step_is_raised_too(three, monkeypatch):
    from pegasos.estimators import one_vs_all

    original = one_vs_all.side_by_side
    monkeypatch.setattr(one_vs_all, "side_by_side", lambda *a: (original(*a)[0], True))
    model = LinearSVC(n_threads=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*three)
    assert "interrupted" in model.stop_reason_ and model.coef_.shape[0] == 3


def test_interrupt_leaves_a_usable_model_and_is_raised(three, monkeypatch):
    from pegasos.solvers.dual import Dual

    X, y = three
    original, calls = Dual.step, []

    def step(self, problem, state):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, problem, state)

    monkeypatch.setattr(Dual, "step", step)
    model = LinearSVC(loss="hinge", solver="dual", tol=0.0)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the
    try:  # background may have been started with SIGINT ignored
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert "interrupted" in model.stop_reason_
    assert model.predict(X).shape == y.shape
    assert all(np.isfinite(c.relative_gap) for c in model.certificate_)


def test_scikit_learn_callbacks_see_epochs_and_can_stop(pima):
    X, y = pima

    class Watch:
        def __init__(self):
            self.ends, self.models = 0, []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name == "epoch":
                self.ends += 1
                self.models.append(fitted_estimator)
                return self.ends >= 3
            return False

        def teardown(self, estimator, context):
            pass

    watch = Watch()
    model = LinearSVC(loss="hinge", solver="dual", tol=0.0).set_callbacks(watch).fit(X, y)
    assert watch.ends == 3
    assert model.stop_reason_ == "callback"
    assert watch.models[-1].score(X, y) > 0.6


def test_progress_bar_of_scikit_learn_works(three):
    from sklearn.callback import ProgressBar

    X, y = three
    model = LinearSVC().set_callbacks(ProgressBar()).fit(X, y)
    assert model.score(X, y) > 0.85


def test_models_pickle_and_clone(pima):
    from sklearn.base import clone

    X, y = pima
    model = LinearSVC(loss=Pinball(0.3)).fit(X, y)
    same = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))
    assert clone(model).loss == Pinball(0.3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be finite and a number > 0"),
        ({"C": float("nan")}, "C must be"),
        ({"C": "big"}, "C must be a number"),
        ({"lam": -1.0}, "lam must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"max_time": 0}, "max_time must be"),
        ({"loss": "huber"}, "'hinge', 'squared_hinge', 'pinball'"),
        ({"loss": Pinball(2.0)}, "0 <= tau <= 1"),
        ({"loss": 3}, "has no 'value'"),
        ({"solver": "lbfgs"}, "'auto', 'dual', 'newton', 'newton_cg', 'interior'"),
        ({"intercept": "yes"}, "'free', 'penalised', 'none'"),
        ({"intercept": "penalised", "fit_intercept": False}, "contradicts"),
        ({"multi_class": "all"}, "'ovr', 'ovo'"),
        ({"n_threads": 0}, "n_threads must be"),
        ({"loss": "squared_hinge", "solver": "interior"}, "solver='newton'"),
    ],
)
def test_bad_parameters_say_what_would_work(pima, parameters, message):
    X, y = pima
    with pytest.raises((ValueError, TypeError), match=message):
        LinearSVC(**parameters).fit(X, y)


def corrupt(X, **parts):
    broken = sp.csr_matrix(X)
    for name, array in parts.items():
        setattr(broken, name, array)
    return broken


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_plain_arrays_are_judged_as_scikit_learn_would(storage):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)).astype(np.float32), np.arange(30) % 2
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    model = LinearSVC().fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abc")
    again = model.fit(storage(X), y)
    assert not hasattr(again, "feature_names_in_") and again.n_features_in_ == 3
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[7, 1] = bad
        with pytest.raises(ValueError, match="Input X contains"):
            LinearSVC().fit(storage(spoilt), y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        LinearSVC().fit(storage(X), np.where(y == 1, np.nan, 0.0))
    with pytest.raises(ValueError, match="Unknown label type"):
        LinearSVC().fit(storage(X), y + 0.5)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearSVC().fit(storage(X), y[:-1])
    large = np.full((30, 3), 3e38, dtype=np.float32)  # finite, but their sum is not
    with pytest.raises(ValueError, match="squared size of the data"):
        LinearSVC().fit(storage(large), y)


def test_corrupt_csr_is_refused_not_read():
    X = sp.csr_matrix(np.eye(4))
    y = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="corrupt CSR"):
        LinearSVC().fit(corrupt(X, indices=np.array([0, 1, 2, 99], dtype=np.int32)), y)
    with pytest.raises(ValueError, match="corrupt CSR"):
        LinearSVC().fit(corrupt(X, indptr=np.array([0, 3, 1, 3, 4], dtype=np.int32)), y)


def test_unsorted_and_repeated_entries_mean_the_same_matrix(pima):
    X, y = pima
    clean = sp.csr_matrix(X)
    flipped = clean.copy()
    for i in range(flipped.shape[0]):
        row = slice(flipped.indptr[i], flipped.indptr[i + 1])
        flipped.indices[row] = flipped.indices[row][::-1]
        flipped.data[row] = flipped.data[row][::-1]
    flipped.has_sorted_indices = False
    before = flipped.indices.copy()
    a, b = LinearSVC(tol=1e-9).fit(clean, y), LinearSVC(tol=1e-9).fit(flipped, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(flipped.indices, before)


def test_64_bit_indices_and_small_integers(pima):
    X, y = pima
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(LinearSVC().fit(wide, y).coef_, LinearSVC().fit(X, y).coef_)
    bytes_ = np.clip(X * 20, -100, 100).astype(np.int8)
    a, b = LinearSVC(tol=1e-9).fit(bytes_, y), LinearSVC(tol=1e-9).fit(bytes_ * 1.0, y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)


TORTURE = {
    "huge": lambda X, y: (X * 1e100, y, 1.0),
    "tiny": lambda X, y: (X * 1e-200, y, 1.0),
    "large": lambda X, y: (X * 1e10, y, 1.0),
    "C huge": lambda X, y: (X, y, 1e300),
    "C large": lambda X, y: (X, y, 1e12),
    "C tiny": lambda X, y: (X, y, 1e-300),
    "zero rows": lambda X, y: (np.where(np.arange(len(y))[:, None] % 3, X, 0.0), y, 1.0),
    "all zero": lambda X, y: (X * 0.0, y, 1.0),
    "constant columns": lambda X, y: (
        np.c_[X, np.ones((len(y), 3)), np.zeros((len(y), 2))],
        y,
        1.0,
    ),
    "opposite duplicates": lambda X, y: (np.r_[X, X], np.r_[y, 1 - y], 1.0),
    "mixed scales": lambda X, y: (X * np.logspace(-12, 12, X.shape[1]), y, 1.0),
    "separable": lambda X, y: (np.c_[X, 10.0 * y], y, 1e6),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TORTURE)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_torture_gives_a_finite_model_or_one_clear_error(pima, case, loss):
    X, y, C = TORTURE[case](*pima)
    model = LogisticRegression(C=C) if loss == "logistic" else LinearSVC(C=C, loss=loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case in ("huge", "C huge"):
            with pytest.raises(ValueError, match="Scale the features"):
                model.fit(X, y)
            return
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.relative_gap <= 1e-3


def test_public_names():
    assert set(pegasos.__all__) <= set(dir(pegasos))
    assert all(getattr(pegasos, name) is not None for name in pegasos.__all__)
    assert Hinge() == Pinball(0.0)
    with pytest.raises(AttributeError, match="no attribute 'SVM'"):
        _ = pegasos.SVM


def test_one_time_limit_for_all_classes(three):
    X, y = three
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        model = LinearSVC(solver="dual", loss="hinge", C=1e4, tol=0.0, max_time=1e-9).fit(X, y)
    assert model.stop_reason_ == ["max_time"] * 3
    assert model.n_iter_ == 1


def test_a_class_that_fell_short_is_not_hidden_by_another(three):
    X, y = three

    class StopFirst:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def teardown(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            return context.task_name == "epoch" and context.parent.task_name == "class ash"

    model = LinearSVC(solver="dual", loss="hinge", C=1e4, max_iter=2).set_callbacks(StopFirst())
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
    assert model.stop_reason_[0] == "callback"


def test_auto_stays_with_descent_where_a_square_matrix_would_not_fit():
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.normal(size=40), (np.arange(40) % 4, rng.permutation(10_001)[:40])))
    X.resize((4, 10_001))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(loss="hinge", tol=0.0).fit(X, [0, 1, 0, 1])
    assert model.solver_.name == "dual"
    with pytest.raises(ValueError, match="use solver='dual' or 'auto'"):
        LinearSVC(solver="newton").fit(X, [0, 1, 0, 1])


def test_a_fit_that_warns_is_kept_where_warnings_are_errors():
    X, y = load_sample("pima")
    model = LinearSVC(loss="hinge", solver="dual", max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            model.fit(X, y)
    assert model.certificate_.relative_gap > model.tol


def test_a_refused_fit_leaves_the_model_as_it_was():
    X, y = load_sample("pima")
    model = LinearSVC().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(len(y)))
    assert np.array_equal(model.predict(X), before)


LABELS = {
    "signs": np.array([1.0, -1.0, -1.0]),
    "falling": np.array([7, 3, 7], dtype=np.uint8),
    "bool": np.array([False, True, True]),
    "three": np.array([2, 0, 1, 0]),
    "one": np.array([4, 4]),
    "missing": np.array([1.0, np.nan, 2.0]),
    "missing first": np.array([np.nan, 1.0, 1.0]),
    "words": np.array(["b", "a", "b"]),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_classes_and_numbers_of_labels_are_numpys(y):
    for found, wanted in zip(encoded(y), np.unique(y, return_inverse=True), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_what_is_finite_is_told_or_left_to_others():
    assert _finite(np.ones(5, np.float32)) and _finite(np.zeros(0)) and _finite(np.arange(3))
    for bad in (np.nan, np.inf, 1e30):  # the last one overflows: others look closer
        values = np.ones(1000, np.float32)
        values[-1] = bad
        assert not _finite(values)


def test_weights_are_refused_one_by_one():
    check_weight(np.full(1000, 1e28), np.ones(1000))  # each is below, their sum is not
    with pytest.raises(ValueError, match="Scale the features"):
        check_weight(np.array([1.0, 1e31]), np.ones(2))
