"""Stop rules: small steps and validation scores, at the very step, with any solver they fit."""

import numpy as np
import pytest
from conftest import random_matrix, random_problem
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from pegasos import LinearSVC, LogisticRegression, PegasosClassifier
from pegasos.solvers.driver import Driver, Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.schedules import Constant
from pegasos.solvers.subgradient import Subgradient
from pegasos.stopping import Displacement, Validation, Window

STEPS = Subgradient(batch=3, offset="none", sampling="replacement", power=None)
LIMIT = {"tol": 0.0, "max_epochs": 400}


def lengths_of(problem, solver, steps: int) -> np.ndarray:
    """How far each of the first steps moves w, taken one by one."""
    state, w, found = solver.init(problem, 7), np.zeros(problem.center.size), []
    for _ in range(steps):
        state = solver.advance(problem, state, 1)
        new = solver.point(state, state.vectors.past, problem.rows.bias)
        found.append(float(np.linalg.norm(new - w)))
        w = new
    return np.array(found)


def first(holds: np.ndarray) -> int:
    return int(np.argmax(holds)) + 1


@pytest.mark.parametrize("window", [1, 5, 40])
def test_a_window_stops_at_the_step_at_which_it_falls_quiet(window):
    problem = random_problem(3, n=60)
    lengths = lengths_of(problem, STEPS, 300)
    sums = np.convolve(lengths, np.ones(window))[window - 1 : 300]
    eps = 1.001 * float(np.sort(sums)[len(sums) // 4])
    expected = first(sums < eps) + window - 1
    assert expected < 290
    found = run(STEPS, problem, Stop(rules=(Window(window, eps),), **LIMIT), seed=7)
    assert (found.stop_reason, found.state.t) == ("window", expected)
    assert found.certificate.gap >= 0.0


def test_a_displacement_stops_at_the_first_small_step():
    problem = random_problem(4, n=60)
    lengths = lengths_of(problem, STEPS, 300)
    eps = float(np.sort(lengths)[40]) * (1.0 + 1e-9)
    found = run(STEPS, problem, Stop(rules=(Displacement(eps),), **LIMIT), seed=7)
    assert (found.stop_reason, found.state.t) == ("displacement", first(lengths <= eps))


def test_of_several_rules_the_first_to_hold_stops():
    problem = random_problem(5, n=60)
    lengths = lengths_of(problem, STEPS, 300)
    eps = float(np.sort(lengths)[60]) * (1.0 + 1e-9)
    never, soon = Window(1024, 1e-300), Displacement(eps)
    found = run(STEPS, problem, Stop(rules=(never, soon), **LIMIT), seed=7)
    assert (found.stop_reason, found.state.t) == ("displacement", first(lengths <= eps))


def test_a_rule_that_never_holds_changes_nothing():
    problem = random_problem(6, n=60)
    rules = (Window(1024, 1e-300), Displacement(0.0))
    solver = Subgradient(offset="none", schedule=Constant(0.01))
    plain = run(solver, problem, Stop(tol=0.0, max_epochs=5), seed=1)
    ruled = run(solver, problem, Stop(tol=0.0, max_epochs=5, rules=rules), seed=1)
    assert plain.stop_reason == ruled.stop_reason == "max_iter"
    assert np.array_equal(plain.best.w, ruled.best.w)


def rising_then_falling(calls: list[np.ndarray]):
    """A score that is best at the third evaluation."""

    def score(y, f):
        calls.append(f)
        return -abs(len(calls) - 3)

    return score


def by_rows(problem, **more) -> Validation:
    return Validation(problem.rows, problem.y, **more)


@pytest.mark.parametrize("solver", [Dual(), STEPS], ids=["dual", "steps"])
def test_validation_waits_and_returns_the_best_scoring_weights(solver):
    problem = random_problem(8, n=60, C=10.0)
    calls: list[np.ndarray] = []
    rule = by_rows(problem, patience=4, score=rising_then_falling(calls))
    found = run(solver, problem, Stop(tol=-1.0, max_epochs=400, rules=(rule,)), seed=7)
    assert (found.stop_reason, len(calls)) == ("validation", 7)
    assert np.allclose(problem.y * calls[2], found.best.margins, rtol=1e-12, atol=1e-12)
    primal, dual = found.certificate
    whole = run(Dual(), problem, Stop(tol=1e-9, max_epochs=5000)).certificate
    assert dual <= whole.primal and primal >= whole.dual * (1 - 1e-9)


def test_another_end_returns_the_best_scoring_weights_too():
    problem = random_problem(8, n=60, C=10.0)
    calls: list[np.ndarray] = []
    rule = by_rows(problem, patience=100, score=rising_then_falling(calls))
    found = run(STEPS, problem, Stop(tol=0.0, max_epochs=9, rules=(rule,)), seed=7)
    assert found.stop_reason == "max_iter"
    assert np.array_equal(problem.y * calls[2], found.best.margins)


def test_of_equal_scores_the_lowest_objective_is_returned_and_within_tol():
    problem = random_problem(8, n=60, C=10.0)
    rule = by_rows(problem, patience=1000, score=lambda y, f: 1.0)
    found = run(Dual(), problem, Stop(tol=1e-3, rules=(rule,)), seed=7)
    assert found.stop_reason == "gap" and found.certificate.relative_gap <= 1e-3
    rule = by_rows(problem, patience=4, score=lambda y, f: 1.0)
    waited = run(STEPS, problem, Stop(rules=(rule,), **LIMIT), seed=7)
    assert (waited.stop_reason, waited.state.epoch) == ("validation", 5)


def test_where_tol_ends_a_run_and_other_weights_score_best_it_is_validation_that_chose():
    problem = random_problem(8, n=60, C=10.0)
    calls: list[np.ndarray] = []
    rule = by_rows(problem, patience=1000, score=rising_then_falling(calls))
    stop = Stop(tol=1e-6, rules=(rule,))
    driver = Driver(Dual(), problem, stop, 7)
    *_, last = driver
    found = driver.result()
    assert last.certificate.relative_gap <= 1e-6 < found.certificate.relative_gap
    assert found.stop_reason == last.stop == "validation"
    assert np.allclose(problem.y * calls[2], found.best.margins, rtol=1e-12, atol=1e-12)
    again = Driver(Dual(), problem, stop, 7)
    again.restore(driver.snapshot())
    assert [progress.stop for progress in again] == ["validation"]


def test_a_score_that_is_no_number_is_the_lowest():
    problem = random_problem(8, n=60, C=10.0)
    calls: list[np.ndarray] = []

    def score(y, f):
        calls.append(f)
        return [np.nan, 1.0, np.nan, 2.0, np.nan, np.nan, np.nan][len(calls) - 1]

    rule = by_rows(problem, patience=3, score=score)
    found = run(STEPS, problem, Stop(rules=(rule,), **LIMIT), seed=7)
    assert (found.stop_reason, len(calls)) == ("validation", 7)
    assert np.array_equal(problem.y * calls[3], found.best.margins)


def test_a_run_that_goes_on_remembers_its_scores():
    problem = random_problem(9, n=60)
    stop = Stop(tol=0.0, max_epochs=30, rules=(by_rows(problem, patience=3),))
    whole, cut, later = (Driver(STEPS, problem, stop, 7) for _ in range(3))
    for _ in whole:
        pass
    for progress in cut:
        if progress.epoch == 2:
            break
    later.restore(cut.snapshot())
    for _ in later:
        pass
    assert whole.result().stop_reason == later.result().stop_reason
    assert np.array_equal(whole.result().best.w, later.result().best.w)


def data(n_classes: int = 2):
    rng = np.random.default_rng(0)
    X = random_matrix(rng, 90, 6)
    return X, np.array(["a", "b", "c"])[(np.argmax(X[:, :n_classes], axis=1))]


SLOW = {"lam": 0.1, "tol": 0.0, "max_iter": 40, "random_state": 0}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Window(steps=20, eps=5.0), "window"),
        (Displacement(eps=0.01), "displacement"),
        ([Displacement(eps=1e-12), Window(20, 5.0)], "window"),
    ],
)
def test_the_estimator_stops_by_its_rule(rule, reason):
    X, y = data()
    model = PegasosClassifier(stop=rule, average="none", batch_size=5, **SLOW).fit(X, y)
    assert model.stop_reason_ == reason
    again = clone(model)
    assert repr(again.stop) == repr(rule)
    assert np.array_equal(again.fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("estimator", [PegasosClassifier, LinearSVC, LogisticRegression])
def test_every_estimator_validates(estimator):
    X, y = data(3)
    rule = Validation(X[60:], y[60:], patience=2, score=roc_auc_score)
    model = clone(estimator(stop=rule, lam=0.1, tol=0.0, max_iter=300, random_state=0))
    model.fit(X[:60], y[:60])
    assert set(model.stop_reason_) <= {"validation", "stalled", "gap"}
    assert "validation" in model.stop_reason_
    assert model.stop.patience == 2


def test_the_share_that_is_right_is_the_score_by_default():
    X, y = data()
    seen: list[float] = []

    def right(signs, f):
        seen.append(float(np.mean(signs * f > 0)))
        return seen[-1]

    model = PegasosClassifier(stop=Validation(X[60:], y[60:], patience=3, score=right), **SLOW)
    default = clone(model).set_params(stop=Validation(X[60:], y[60:], patience=3))
    assert model.fit(X[:60], y[:60]).stop_reason_ == "validation"
    assert np.array_equal(default.fit(X[:60], y[:60]).coef_, model.coef_)
    assert model.score(X[60:], y[60:]) == max(seen)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: Window(0, 1.0), ValueError, "steps must be from 1 to 1024"),
        (lambda: Window(2000, 1.0), ValueError, "steps must be from 1 to 1024"),
        (lambda: Window(2.5, 1.0), TypeError, "steps must be a whole number"),
        (lambda: Window(3, 0.0), ValueError, "eps must be a finite number > 0"),
        (lambda: Displacement(-1.0), ValueError, "eps must be a finite number >= 0"),
        (lambda: Displacement("a"), TypeError, "eps must be a finite number"),
        (lambda: Validation([[1.0]], [1], patience=0), ValueError, "patience must be 1 or more"),
        (lambda: Validation([[1.0]], [1], score=3), TypeError, "score must be a function"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        (LinearSVC(stop=Window(3, 1.0)), ValueError, "looks at the single steps of a binary"),
        (PegasosClassifier(stop="soon"), TypeError, "stop must be None, one of Window, Displ"),
        (PegasosClassifier(stop=Validation([[1.0, 2.0]], ["a"])), ValueError, "features"),
        (PegasosClassifier(stop=Validation(np.ones((1, 6)), ["d"])), ValueError, "class 'd'|'d'"),
        (
            PegasosClassifier(stop=[Validation(np.ones((1, 6)), ["a"])] * 2),
            ValueError,
            "one Validation at most",
        ),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(model, kind, words):
    X, y = data()
    with pytest.raises(kind, match=words):
        model.fit(X, y)
