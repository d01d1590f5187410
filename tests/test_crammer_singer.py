"""One problem for all classes: certificate, descent, stochastic steps, estimators."""

import numpy as np
import pytest
from conftest import (
    INTERCEPTS,
    SEEDS,
    every_intercept,
    make_rows,
    plain,
    random_matrix,
)
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as Liblinear

from pegasos import LinearSVC, PegasosClassifier, load_model, save_model
from pegasos.core.rng import shuffle, stream
from pegasos.estimators.multiclass import MulticlassTask
from pegasos.losses import SquaredHinge
from pegasos.objective.certificate import evaluate
from pegasos.objective.multiclass import (
    best_shifts,
    feasible_shares,
    loss_sum,
    multiclass_problem,
    pulls,
)
from pegasos.solvers.auto import solver_named
from pegasos.solvers.driver import Driver, Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import FreeIntercept
from pegasos.solvers.multiclass_steps import MulticlassSteps
from pegasos.solvers.subgradient import Subgradient
from pegasos.stopping import Validation

pytestmark = pytest.mark.filterwarnings("error")
CLOSE = Stop(tol=1e-6, max_epochs=5000)
KINDS = ("dense-float64", "csr-float32-uint32")
CS = {"multi_class": "crammer_singer", "random_state": 0}
FAR = {"max_iter": 100_000, **CS}  # to gaps that take many epochs


def random_multiclass(seed, kind="dense-float64", intercept="none", n=40, K=4, centered=False):
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, n, 5)
    rows = make_rows(kind, X, 0.0 if intercept == "none" else rng.uniform(0.5, 2.0))
    y = np.argmax(X @ rng.normal(size=(5, K)) + rng.normal(size=(n, K)), axis=1)
    y[:K] = np.arange(K)
    center = rng.normal(size=(6, K)) if centered else np.zeros((6, K))
    c = 10.0 ** rng.integers(-2, 2) * rng.uniform(0.5, 1.5, n)
    return multiclass_problem(rows, y, c, center, intercept == "free")


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["setosa", "versi", "virginica"])[y]


def primal(X, y, W, b, C):
    """The objective, slow and readable."""
    total = 0.5 * np.sum(W**2)
    for x, own in zip(X, y, strict=True):
        scores = W @ x + b
        total += C * max(0.0, *(1 + scores[k] - scores[own] for k in range(len(b)) if k != own))
    return total


def test_shares_in_any_order_of_memory_are_a_start():
    """Second-order steps change alpha and w together."""
    problem = random_multiclass(3, n=60)
    solver = Dual(patience=0)
    pi = solver.init(problem, 0).alpha
    state = solver.init(problem, 0, np.asfortranarray(pi + 0.1))
    for _ in range(12):
        state = solver.step(problem, state)
    assert state.past is not None
    exact = evaluate(problem, state.alpha).w
    np.testing.assert_allclose(state.w, exact, rtol=1e-9, atol=1e-9)


# The certificate


@every_intercept
@given(seed=SEEDS)
def test_no_point_is_below_the_bound_of_any_shares(intercept, seed):
    problem = random_multiclass(seed, intercept=intercept, centered=True)
    rng = np.random.default_rng(seed)
    pi = rng.exponential(size=(40, 4)) * (rng.random((40, 4)) < 0.6)
    W = problem.center + rng.normal(size=problem.center.shape)
    primal, dual = evaluate(problem, pi, W).certificate
    assert dual <= primal


@given(seed=SEEDS)
def test_shares_of_free_intercepts_are_balanced(seed):
    problem = random_multiclass(seed, intercept="free")
    pi = feasible_shares(problem, np.random.default_rng(seed).exponential(size=(40, 4)))
    assert (pi >= 0.0).all()
    assert np.allclose(pi.sum(axis=1), problem.c)
    assert np.allclose(pulls(problem, pi).sum(axis=0), 0.0, atol=1e-9 * problem.c.sum())


@given(seed=SEEDS)
def test_no_shift_of_a_class_lowers_the_loss(seed):
    problem = random_multiclass(seed)
    scores = np.random.default_rng(seed).normal(size=(40, 4))
    moved = scores + best_shifts(problem, scores)
    assert loss_sum(problem, moved) <= loss_sum(problem, scores) * (1 + 1e-12)
    for shift in (-1.0, -1e-3, 1e-3, 1.0):  # of the class that moved last
        other = moved + shift * np.eye(4)[3]
        assert loss_sum(problem, moved) <= loss_sum(problem, other) * (1 + 1e-12)


# Descent


def best_share(D, c, q):
    """The projection of D / q onto the simplex of sum c, by trying every size of support."""
    order = np.sort(D / q)[::-1]
    for size in range(len(D), 0, -1):
        beta = (order[:size].sum() - c) / size
        if order[size - 1] > beta:
            return np.maximum(D / q - beta, 0.0)
    raise AssertionError


def reference(problem, epochs, seed):
    """Descent, slow and readable."""
    X, y, c = plain(problem.rows), problem.y, problem.c
    W, rng = problem.center.copy(), stream(seed)
    pi = np.zeros((len(y), W.shape[1]))
    pi[np.arange(len(y)), y] = c
    for _ in range(epochs):
        order = np.arange(len(y))
        shuffle(order, len(y), rng)
        for i in order:
            q = X[i] @ X[i]
            D = (np.arange(W.shape[1]) != y[i]) + X[i] @ W + q * pi[i]
            if q > 0.0:
                new = best_share(D, c[i], q)
                W += np.outer(X[i], pi[i] - new)
                pi[i] = new
    return pi, W


@pytest.mark.parametrize("kind", KINDS)
def test_iterates_are_those_of_the_reference(kind):
    problem = random_multiclass(3, kind, "penalised", centered=True)
    solver = Dual(shrinking=False, memory=0)
    state = solver.init(problem, 7)
    while state.epoch < 5:
        state = solver.step(problem, state)
    pi, W = reference(problem, 5, 7)
    assert np.allclose(state.alpha, pi, atol=1e-9 * problem.c.max())
    assert np.allclose(state.w, W, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@every_intercept
@given(seed=SEEDS, centered=st.booleans())
def test_it_reaches_the_gap_on_any_small_problem(kind, intercept, seed, centered):
    problem = random_multiclass(seed, kind, intercept, centered=centered)
    assert run(solver_named("dual", problem), problem, CLOSE).stop_reason == "gap"


@pytest.mark.slow
@every_intercept
def test_shrinking_and_moves_change_the_way_and_not_the_optimum(intercept):
    problem = random_multiclass(11, intercept=intercept, n=80)
    whole = Dual(shrinking=False, memory=0)
    plain_solver = FreeIntercept(whole) if intercept == "free" else whole
    quick = run(solver_named("dual", problem), problem, CLOSE)
    slow = run(plain_solver, problem, Stop(tol=1e-6, max_epochs=quick.state.epoch))
    assert quick.stop_reason == "gap"
    assert slow.stop_reason == "max_iter"
    assert slow.certificate.dual <= quick.certificate.primal <= slow.certificate.primal


@pytest.mark.slow
def test_the_estimate_is_about_the_gap_when_little_moves():
    problem = random_multiclass(5, intercept="penalised")
    driver = Driver(Dual(shrinking=False), problem, Stop(tol=1e-10, max_epochs=3000))
    for _ in driver:
        pass
    gap = driver.result().certificate.gap
    assert gap / 3.0 <= driver.state.estimate <= 3.0 * gap + 1e-12  # little moves: its sum lags


# The estimator


@pytest.mark.slow
def test_the_certificate_is_of_the_weights():
    X, names = iris()
    y = np.searchsorted(np.unique(names), names)
    model = LinearSVC(C=0.5, tol=1e-6, intercept="none", **FAR).fit(X, names)
    assert model.certificate_.primal == pytest.approx(primal(X, y, model.coef_, np.zeros(3), 0.5))
    assert model.coef_ == pytest.approx(model.dual_coef_ @ X[model.support_], abs=1e-9)
    assert model.stop_reason_ == "gap"


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_objective_is_at_most_that_of_liblinear(C):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = Liblinear(C=C, multi_class="crammer_singer", tol=1e-8, fit_intercept=False)
    theirs.set_params(max_iter=100_000, random_state=0).fit(X, y)
    model = LinearSVC(C=C, tol=1e-6, intercept="none", **FAR).fit(X, y)
    best = primal(X, y, theirs.coef_, np.zeros(3), C)
    assert model.certificate_.primal <= best * (1 + 1e-6)
    assert model.certificate_.dual <= best
    assert np.mean(model.predict(X) == theirs.predict(X)) > 0.98


@pytest.mark.slow
@every_intercept
def test_two_classes_are_the_hinge_problem_of_twice_the_weight(intercept):
    X, y = iris()
    X, y = X[50:], y[50:]
    both = {"tol": 1e-8, "intercept": intercept, "max_iter": 100_000}
    model = LinearSVC(C=0.5, **CS, **both).fit(X, y)
    other = LinearSVC(C=1.0, loss="hinge", **both).fit(X, y)
    # a penalised intercept is one of two, each of which pays for its half
    assert model.coef_.shape == (1, 4)
    assert model.coef_ == pytest.approx(other.coef_, abs=1e-3)
    assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-3)
    assert 2.0 * model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)


@pytest.mark.slow
@every_intercept
def test_a_weight_counts_as_copies(intercept):
    X, y = iris()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    settings = {"tol": 1e-8, "intercept": intercept, "max_iter": 100_000}
    weighted = LinearSVC(C=0.3, **CS, **settings).fit(X, y, sample_weight=weight)
    copied = LinearSVC(C=0.3, **CS, **settings).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert weighted.certificate_.primal == pytest.approx(copied.certificate_.primal, rel=1e-6)


@pytest.mark.slow
def test_classes_are_equal():
    """Other names, in another order, give the same weights."""
    X, y = iris()
    turned = np.array(["b", "c", "a"])[np.unique(y, return_inverse=True)[1]]
    first, second = (LinearSVC(C=1.0, tol=1e-7, **FAR).fit(X, names) for names in (y, turned))
    assert second.coef_[[1, 2, 0]] == pytest.approx(first.coef_, abs=1e-4)


def test_a_centre_is_where_it_stays_without_data():
    X, y = iris()
    source = LinearSVC(C=1.0, intercept="penalised", **CS).fit(X, y)
    near = LinearSVC(C=1e-9, intercept="penalised", center=source, **CS).fit(X[::2], y[::2])
    assert near.coef_ == pytest.approx(source.coef_, abs=1e-6)
    assert near.intercept_ == pytest.approx(source.intercept_, abs=1e-6)


@pytest.mark.parametrize("intercept", ["free", "penalised"])
def test_a_warm_start_is_at_the_goal_or_near(intercept):
    """Near it: the last proof may have taken W and shares from different epochs."""
    X, y = iris()
    model = LinearSVC(C=10.0, intercept=intercept, warm_start=True, **CS).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= 0.2 * first


@pytest.mark.slow
def test_a_path_and_its_folds():
    X, y = iris()
    models = LinearSVC(**CS).path(X, y, [0.1, 1.0])
    alone = LinearSVC(C=0.1, **CS).fit(X, y)
    assert all(model.certificate_.relative_gap <= 1e-3 for model in models)
    assert models[0].certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
    scores = LinearSVC(**CS).cross_validate_path(X, y, [0.1, 1.0], cv=3)
    assert scores.mean_test_score.min() > 0.9


@pytest.mark.slow
def test_files_and_validation(tmp_path):
    X, y = iris()
    stop = Validation(X[::3], y[::3], patience=2)
    model = LinearSVC(C=100.0, tol=1e-9, stop=stop, **CS).fit(X, y)
    assert model.stop_reason_ in ("validation", "gap")
    fitted = LinearSVC(**CS).fit(X, y)
    save_model(fitted.set_params(multi_class="ovr"), tmp_path / "m")  # what was fitted counts
    loaded = load_model(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.certificate_ == fitted.certificate_


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_weights_below_rounding_leave_the_centre(intercept):
    X, y = iris()
    model = LinearSVC(C=1e-20, intercept=intercept, **CS).fit(X, y)
    assert model.stop_reason_ == "gap"
    assert np.abs(model.coef_).max() < 1e-15


@pytest.mark.slow
def test_what_free_intercepts_have_in_common_is_not_there():
    X, y = iris()
    model = LinearSVC(C=3.0, **CS).fit(X, y)
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)
    assert model.coef_ == pytest.approx(model.dual_coef_ @ X[model.support_], abs=0.05)
    assert len(model.support_) < 60


@pytest.mark.slow
def test_probabilities_follow_all_classes():
    X, y = iris()
    model = LinearSVC(tol=1e-6, probability=True, **FAR).fit(X, y)
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))
    weight = np.random.default_rng(1).integers(1, 3, len(y))
    args = {"tol": 1e-8, "probability": True}
    weighted = LinearSVC(**args, **FAR).fit(X, y, sample_weight=weight)
    copied = LinearSVC(**args, **FAR).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert weighted.predict_proba(X) == pytest.approx(copied.predict_proba(X), abs=1e-3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"solver": "newton"}, "use solver='auto' or 'dual'"),
        ({"solver": "interior"}, "use solver='auto' or 'dual'"),
        ({"loss": "pinball"}, "not 'pinball': use loss='hinge'"),
        ({"loss": SquaredHinge()}, "use loss='hinge'"),
    ],
)
def test_other_solvers_and_losses_are_refused(settings, words):
    X, y = iris()
    with pytest.raises(ValueError, match=words):
        LinearSVC(**settings, **CS).fit(X, y)


def test_shares_beyond_memory_are_refused_before_they_are_made():
    label = np.broadcast_to(0, 10**11)  # of one number in memory
    task = MulticlassTask._make([None] * len(MulticlassTask._fields))
    with pytest.raises(
        MemoryError, match="100000000000 rows of 50 classes.*: use multi_class='ovr'"
    ):
        task._replace(label=label, targets=[range(50)]).driver(0, Stop())


# Stochastic steps


def slow_steps(problem, lam, epochs, seed, offset):
    """Pegasos on all classes, slow and readable; the average of W with weights t."""
    X, y = plain(problem.rows)[:, :-1], problem.y
    n, K = len(y), problem.n_classes
    ratio, rng = n / problem.c.sum(), stream(seed)
    W, b, order, t = np.zeros((5, K)), np.zeros(K), np.arange(n), 0
    total, offsets, mass = 0.0, 0.0, 0.0
    for _ in range(epochs):
        shuffle(order, n, rng)
        for i in order:
            t += 1
            eta = 1.0 / (lam * t)
            m = X[i] @ W + b + (np.arange(K) != y[i])
            k = int(np.argmax(m))
            W *= 1.0 - eta * lam
            if k != y[i] and m[k] > m[y[i]]:
                pull = eta * ratio * problem.c[i]
                W[:, y[i]] += pull * X[i]
                W[:, k] -= pull * X[i]
                damped = min(1.0, 1.0 / (eta * np.sqrt(t))) * pull if offset else 0.0
                b[y[i]] += damped
                b[k] -= damped
            W *= min(1.0, 1.0 / np.sqrt(lam) / max(1e-300, np.linalg.norm(W)))
            total, offsets, mass = total + t * W, offsets + t * b, mass + t
    return np.vstack([total / mass, (offsets / mass if offset else np.zeros(K))])


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_the_reference(kind, intercept):
    problem = random_multiclass(3, kind, intercept)
    offset = "damped" if intercept == "free" else "none"
    solver = MulticlassSteps(Subgradient(offset=offset))
    state = solver.init(problem, 5)
    while state.epoch < 4:
        state = solver.step(problem, state)
    found = solver.candidate(problem, state)[1]
    found[-1] *= problem.rows.bias
    wanted = slow_steps(problem, 1.0 / problem.c.sum(), 4, 5, intercept == "free")
    assert np.allclose(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_steps_come_near_and_prove_it(intercept):
    X, y = iris()
    model = PegasosClassifier(C=0.1, tol=0.05, max_iter=500, intercept=intercept, **CS)
    model.fit(X, y)
    assert model.stop_reason_ == "gap"
    exact = LinearSVC(C=0.1, intercept=intercept, **CS).fit(X, y).certificate_
    assert exact.dual <= model.certificate_.primal <= exact.primal / (1.0 - 0.05)


def learnt(model, X, y, sizes):
    for rows in np.split(np.arange(len(y)), np.cumsum(sizes)):
        if rows.size:
            model.partial_fit(X[rows], y[rows], classes=np.unique(y))
    return model


def test_a_stream_does_not_depend_on_its_batches(tmp_path):
    X, y = iris()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    make = lambda: PegasosClassifier(lam=1e-2, **CS)  # noqa: E731
    whole, parts = learnt(make(), X, y, [0]), learnt(make(), X, y, [30, 1, 60])
    assert np.allclose(whole.coef_, parts.coef_, rtol=1e-9)
    assert whole.progressive_.errors == parts.progressive_.errors < 60
    half = learnt(make(), X[:70], y[:70], [0])
    save_model(half, tmp_path / "m")
    resumed = load_model(tmp_path / "m")
    resumed.partial_fit(X[70:], y[70:])
    assert np.allclose(resumed.coef_, whole.coef_, rtol=1e-9)
    assert resumed.score(X, y) > 0.8


@pytest.mark.slow
def test_a_stream_may_go_on_with_all_classes_at_once():
    X, y = iris()
    model = learnt(PegasosClassifier(lam=1e-3, average="none"), X[::2], y[::2], [0])
    before = model.coef_
    model.set_params(**CS).partial_fit(X[:1], y[:1], sample_weight=[1e-200])
    assert np.ptp(model.coef_ / before) < 1e-9  # the ball of all classes shortens them alike


def test_a_stream_of_two_classes():
    X, y = iris()
    X, y = X[50:], y[50:]
    model = learnt(PegasosClassifier(lam=1e-2, **CS), X, y, [0])
    other = learnt(PegasosClassifier(lam=0.5e-2), X, y, [0])
    assert np.array_equal(model.coef_, other.coef_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"loss": "logistic"}, "hinge loss of its own"), ({"offset": "residual"}, "of two classes")],
)
def test_what_steps_of_all_classes_cannot_do(settings, words):
    X, y = iris()
    with pytest.raises(ValueError, match=words):
        PegasosClassifier(batch_size=4, **settings, **CS).fit(X, y)
