"""The best multiple of w: as good as a search, a proof like any other, and worth it."""

import numpy as np
import pytest
from conftest import (
    SEEDS,
    any_problem,
    every_intercept,
    every_loss,
    frozen,
    make_rows,
    random_problem,
    sample_problem,
)
from hypothesis import given
from scipy.optimize import minimize_scalar

from pegasos import PegasosClassifier
from pegasos.core.matrix import products
from pegasos.data.samples import load_sample
from pegasos.objective.certificate import Certificate, Evaluation, evaluate, loss_sum
from pegasos.objective.losses import Hinge, Logistic, Pinball, SquaredHinge
from pegasos.objective.problem import make_problem
from pegasos.objective.stretch import ENOUGH, stretched
from pegasos.solvers import dual_verbs, lanes
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.dual_state import place_of
from pegasos.solvers.dual_verbs import gap_at, recall
from pegasos.solvers.lanes import Goal, Lane, Many
from pegasos.solvers.stops import Validation


def objective_along(problem, seen):
    """P(s w), plain."""
    R = np.ones_like(seen.w)
    R[-1] = 0.0 if problem.free else 1.0

    def value(s):
        away = s * seen.w - problem.center
        return 0.5 * float(away @ (R * away)) + loss_sum(problem, s * seen.margins)

    return value


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_no_multiple_is_better_by_much(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    rng = np.random.default_rng(seed)
    seen = evaluate(problem, problem.c * rng.uniform(size=problem.c.size))
    found = stretched(problem, seen)
    best = minimize_scalar(objective_along(problem, seen), (0.0, 2.0)).fun
    assert found.certificate.primal <= seen.certificate.primal
    assert found.certificate.primal <= best + 1.01 * ENOUGH * seen.certificate.gap + 1e-9 * best


@every_loss
@every_intercept
def test_the_stretched_point_is_certified_by_its_own_values(loss, intercept):
    problem = random_problem(5, loss, "dense-float64", intercept, centered=True)
    seen = evaluate(problem, 0.3 * problem.c)
    found = stretched(problem, seen)
    assert found.certificate.primal < seen.certificate.primal
    again = evaluate(problem, found.alpha, found.w)
    assert again.certificate.dual == pytest.approx(seen.certificate.dual, rel=1e-12)
    assert again.certificate.primal <= found.certificate.primal * (1.0 + 1e-12)
    if intercept != "free":  # of which `evaluate` takes the best
        assert np.allclose(again.margins, found.margins)
        assert again.certificate.primal == pytest.approx(found.certificate.primal, rel=1e-12)


@pytest.mark.parametrize("w", [0.0, 1e-200, np.nan, np.inf])
def test_what_has_no_best_multiple_stays_as_it_is(w):
    problem = random_problem(5, Hinge(), "dense-float64", "none")
    point = np.full(problem.center.size, w)
    margins = np.full(problem.y.size, w)
    seen = Evaluation(point, 0.0 * problem.c, margins, Certificate(1.0, 0.0))
    with np.errstate(all="ignore"):
        assert stretched(problem, seen) is seen


def few_rows(C):
    """Some rows of real mail, nearly separable."""
    X, labels = load_sample("spambase")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    chosen = np.random.default_rng(0).permutation(len(X))[:150]
    y = frozen(np.where(labels[chosen] == 1, 1.0, -1.0))
    rows = make_rows("csr-float32-uint32", X[chosen], 1.0)
    return make_problem(rows, y, np.full(y.size, C), Hinge())


def after_epochs(solver, problem, epochs):
    state = solver.init(problem, 0)
    while state.epoch < epochs:
        state = solver.step(problem, state)
    return state


@pytest.mark.parametrize("C, least", [(1.0, 1.01), (10.0, 1.1), (100.0, 2.0)])
def test_before_the_end_of_descent_a_longer_w_is_nearer(C, least):
    """At large C by far."""
    problem = few_rows(C)
    state = after_epochs(Dual(memory=0), problem, 60)
    seen = evaluate(problem, state.alpha)
    assert seen.certificate.gap > least * stretched(problem, seen).certificate.gap


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=str)
@pytest.mark.parametrize("caution", [1.0, 0.1])
def test_the_gap_of_descent_is_that_of_a_certificate(loss, caution):
    """From the rows that stay: those aside have no share in it, if none is wrongly."""
    problem = sample_problem("spambase", loss, "csr-float32-uint32", 0.01)
    state = after_epochs(Dual(caution=caution), problem, 12)
    assert state.stays.all() == isinstance(loss, Logistic)
    seen = stretched(problem, evaluate(problem, state.alpha))
    assert gap_at(problem, place_of(state)) == pytest.approx(seen.certificate.gap, rel=1e-9)


@pytest.mark.parametrize("loss", [Hinge(), Pinball(0.3), SquaredHinge()], ids=str)
def test_so_it_is_around_a_centre(loss):
    problem = sample_problem("spambase", loss, "csr-float32-uint32", 0.01)
    center = np.random.default_rng(0).normal(scale=0.3, size=problem.center.size)
    problem = problem._replace(center=center)
    state = after_epochs(Dual(caution=0.2), problem, 12)
    assert not state.stays.all()
    seen = evaluate(problem, state.alpha)
    longer = stretched(problem, seen)
    assert loss == SquaredHinge() or longer.certificate.gap < 0.999 * seen.certificate.gap
    assert gap_at(problem, place_of(state)) == pytest.approx(longer.certificate.gap, rel=1e-9)


def test_rows_that_their_margins_do_not_set_aside_are_called_back():
    problem = sample_problem("spambase", Hinge(), "csr-float32-uint32", 0.01)
    state = after_epochs(Dual(caution=1.0), problem, 12)
    state.stays[::3] = False
    before = state.stays.copy()
    loss = recall(problem, place_of(state))
    margins = problem.y * products(problem.rows, state.w)
    slack, alpha = state.radius * np.sqrt(problem.q), state.alpha
    settled = (alpha == 0.0) & (margins > 1.0 + slack)
    settled |= (alpha == problem.c) & (margins < 1.0 - slack)
    assert np.array_equal(state.stays, before | ~settled)
    aside = ~state.stays
    assert aside.sum() > 1000 and state.stays.sum() > before.sum() + 100
    assert loss == pytest.approx(float(problem.c[aside] @ np.maximum(0.0, 1.0 - margins[aside])))


def test_the_gap_is_told_where_few_rows_tell_it():
    problem = sample_problem("spambase", Hinge(), "csr-float32-uint32", 0.01)
    solver = Dual()
    few, all_rows = after_epochs(solver, problem, 12), after_epochs(solver, problem, 1)
    assert few.active < all_rows.active == problem.y.size
    assert solver.gap_now(problem, few) < np.inf
    assert solver.gap_now(problem, all_rows) == np.inf


class Untold(Dual):
    """Descent that never tells its gap."""

    gap_now = property()


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_run_that_is_told_its_gap_ends_no_later_and_as_near(C):
    problem = few_rows(C)
    told, untold = (run(solver, problem, Stop(tol=1e-3)) for solver in (Dual(), Untold()))
    for found in (told, untold):
        assert found.certificate.relative_gap <= 1e-3
    assert told.state.epoch <= untold.state.epoch - (C == 100.0)


def test_within_a_sliced_epoch_the_gap_is_asked_for_once(monkeypatch):
    """The estimate stays as it is from slice to slice."""
    problem, tol = few_rows(100.0), 1e-3
    monkeypatch.setattr(dual_verbs, "SLICE", 500)
    asked, steps = [], []

    class Telling(Dual):
        def gap_now(self, problem, state):
            asked.append(state.estimate)
            return 1.1 * tol * state.objective

    found = run(Telling(), problem, Stop(tol, callback=lambda _: steps.append(0)))
    assert len(steps) > 2 * found.state.epoch and 1 <= len(asked) == len(set(asked))


@pytest.mark.filterwarnings("ignore:.*stopped")
def test_a_point_that_a_solver_proposes_stays_as_it_is():
    """Multiples of the w of a perceptron are the better the shorter they are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    margin = X @ [1.0, -2.0, 0.5, 0.0, 1.0]
    X, y = X[np.abs(margin) > 0.5], margin[np.abs(margin) > 0.5] > 0.0
    model = PegasosClassifier.preset(
        "perceptron", lam=1.0, max_iter=50, intercept="none", random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.9
    assert np.linalg.norm(model.coef_) > 1.0


@pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
def test_what_scores_best_is_the_point_that_is_proven(C):
    problem = few_rows(C)
    rule = Validation(problem.rows, problem.y > 0.0, patience=10**6, score=lambda *_: 0.0)
    found = run(Dual(), problem, Stop(tol=1e-3, max_epochs=5000, rules=(rule,)))
    assert found.stop_reason == "gap" and found.certificate.relative_gap <= 1e-3


def test_a_lane_may_end_by_a_multiple():
    """With a goal between the gap of its w and that of the best multiple."""
    problem = few_rows(100.0)
    many = Many(problem, problem.y > 0.0, [Lane(1, 1.0, problem.center, problem.c)])
    seen = evaluate(problem, after_epochs(Dual(memory=0), problem, 60).alpha)
    gap, least = (found.certificate.relative_gap for found in (seen, stretched(problem, seen)))
    for goal, near in ((2.0 * gap, True), (0.5 * (gap + least), True), (0.5 * least, False)):
        group = lanes._Group(many, [0], Goal(goal, 100), 0)
        group.problems = [problem]
        found = group._near_enough(0, seen)
        assert (found.certificate.relative_gap <= goal) == near
        assert (found is seen) == (goal != 0.5 * (gap + least))
