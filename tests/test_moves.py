"""Second-order steps of descent: what they save, that the dual never falls, that runs repeat."""

import numpy as np
import pytest
from conftest import make_rows, plain, random_labels
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from pegasos.core.threads import use_threads
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import (
    Hinge,
    Logistic,
    Perceptron,
    Pinball,
    SquaredHinge,
    conjugate,
    parabola,
    rise,
)
from pegasos.objective.problem import make_problem
from pegasos.solvers import curved_moves, moves
from pegasos.solvers.curved_moves import is_curved
from pegasos.solvers.driver import Driver, Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import FreeIntercept

pytestmark = pytest.mark.filterwarnings("error")
CLOSE = Stop(tol=1e-6, max_epochs=20_000)


def stiff_problem(intercept="none", loss=None, C=100.0, n=60):
    """Sparse rows that share two columns, more columns than rows, a large C: descent is slow."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, n + 20)) * (rng.random((n, n + 20)) < 0.1)
    X[:, :2] += 3.0 * rng.normal(size=2)
    y = random_labels(rng, X + rng.normal(size=X.shape))
    rows = make_rows("csr-float32-uint32", X, 0.0 if intercept == "none" else 1.0)
    return make_problem(
        rows, y, np.full(n, C), Hinge() if loss is None else loss, free=intercept == "free"
    )


def solver_of(problem, **settings):
    return FreeIntercept(Dual(**settings)) if problem.free else Dual(**settings)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("intercept", ["none", "penalised", "free"])
def test_they_save_most_epochs_where_descent_is_slow(intercept, loss):
    problem = stiff_problem(intercept, loss, C=1e4 if loss == Logistic() else 100.0)
    plain = run(solver_of(problem, memory=0), problem, CLOSE)
    quick = run(solver_of(problem, patience=5), problem, CLOSE)
    assert plain.stop_reason == quick.stop_reason == "gap"
    assert quick.state.epoch < plain.state.epoch / (2.5 if loss == Hinge() else 2)
    assert quick.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("memory", [0, 3])
def test_a_free_intercept_may_move_its_centre_within_a_move(memory):
    """Of few active rows a move takes several epochs, and each of them moves the centre."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = make_rows("dense-float64", StandardScaler().fit_transform(X), 1.0)
    problem = make_problem(rows, 2.0 * y - 1.0, np.ones(len(y)), Hinge(), free=True)
    found = run(FreeIntercept(Dual(memory=memory)), problem, Stop(tol=1e-6, max_epochs=3000))
    assert found.stop_reason == "gap"
    assert memory == 0 or found.state.epoch < 700


@pytest.mark.parametrize("loss", [Hinge(), Pinball(0.3), SquaredHinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("C", [1.0, 100.0, 1e5])
def test_the_dual_never_falls_and_w_follows_alpha(loss, C):
    problem, solver = stiff_problem(loss=loss, C=C), Dual(patience=2)
    state, last = solver.init(problem, 0), -np.inf
    for _ in range(60):
        state = solver.step(problem, state)
        seen = evaluate(problem, state.alpha)
        assert seen.certificate.dual >= last - 1e-12 * abs(last)
        assert np.allclose(state.w, seen.w, rtol=0, atol=1e-10 * np.abs(seen.w).max())
        assert np.array_equal(seen.alpha, state.alpha)  # inside its box
        last = seen.certificate.dual


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=repr)
def test_slopes_and_curvatures_are_those_of_the_dual(loss):
    problem, solver = stiff_problem("penalised", loss), Dual(patience=2)
    k, r = parabola(loss)
    state = solver.init(problem, 0)
    while state.epoch < 8:
        state = solver.step(problem, state)
    where = state.alpha, state.w, state.order, state.stays
    place = moves.Place(*where, np.inf, k, r, 1.0)
    past = moves.combined(problem, place, state.past, state.gain, state.visits)
    gradient = k - r * place.alpha / problem.c - evaluate(problem, place.alpha).margins
    assert np.allclose(past.g, past.S.T @ gradient, atol=1e-9 * np.abs(past.S).sum())
    assert np.allclose(past.G, past.U @ past.U.T + (past.S.T * r / problem.c) @ past.S)


def test_a_curved_step_is_newtons_in_the_span_of_the_moves():
    problem, solver = stiff_problem("penalised", Logistic(), C=3.0), Dual(patience=2)
    state = solver.init(problem, 0)
    while state.epoch < 8:
        state = solver.step(problem, state)
    alpha, (k, r) = state.alpha.copy(), parabola(Logistic())
    place = moves.Place(state.alpha, state.w, state.order, state.stays, np.inf, k, r, 1.0)
    margins = evaluate(problem, alpha).margins
    past = curved_moves.combined(problem, place, state.past, state.gain, state.visits)
    newest = (past.oldest - 1) % len(past.g)
    step = state.alpha - alpha
    S = past.S.copy()
    S[:, newest] -= step  # as they were before it
    a, X = alpha / problem.c, plain(problem.rows)
    gradient = -margins - np.log(a / (1.0 - a))
    H = (X * problem.y[:, None]) @ (X * problem.y[:, None]).T + np.diag(
        1.0 / (problem.c * a * (1.0 - a))
    )
    theta = np.linalg.solve(S.T @ H @ S, S.T @ gradient)
    assert np.allclose(step, S @ theta, rtol=1e-6, atol=1e-9 * np.abs(step).max())


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=repr)
def test_rows_in_pieces_give_the_same_step(loss, monkeypatch):
    """Up to rounding; the same bits whatever the number of threads."""
    problem, found = stiff_problem("penalised", loss), []
    for many, threads in ((np.inf, 1), (0, 1), (0, 2)):
        monkeypatch.setattr(moves, "_MANY", many)
        monkeypatch.setattr(moves, "_OUTWEIGH", 0)
        with use_threads(threads):
            state = Dual(patience=2).init(problem, 0)
            while state.epoch < 8:
                state = Dual(patience=2).step(problem, state)
        found.append(state)
    at_once, alone, shared = found
    assert state.past is not None and np.allclose(at_once.w, alone.w, rtol=1e-6)
    assert np.array_equal(alone.w, shared.w) and np.array_equal(alone.alpha, shared.alpha)


@given(a=st.floats(0.01, 0.99))
def test_rise_has_the_derivatives_of_the_conjugate(a):
    tilt, bend = rise(Logistic(), a)
    h = 1e-4 * min(a, 1.0 - a)
    low, here, high = (conjugate(Logistic(), a + k * h) for k in (-1, 0, 1))
    assert tilt == pytest.approx((high - low) / (2.0 * h), rel=1e-5, abs=1e-6)
    assert bend == pytest.approx((high - 2.0 * here + low) / h**2, rel=1e-3)


def test_losses_without_derivatives_of_their_conjugate_go_without():
    assert not is_curved(stiff_problem(loss=Perceptron()))
    assert np.isnan(rise(Hinge(), 0.5)).all()
    assert is_curved(stiff_problem(loss=Logistic()))


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_same_bits_twice_and_after_a_snapshot(intercept, loss, tmp_path):
    from pegasos.model import checkpoint

    problem = stiff_problem(intercept, loss, C=1e6 if loss == Logistic() else 100.0)
    stop = Stop(tol=1e-9, max_epochs=60)
    once, again = (run(solver_of(problem), problem, stop) for _ in range(2))
    middle = 9 if loss == Logistic() else 31
    half = Driver(solver_of(problem), problem, Stop(tol=1e-9, max_epochs=middle + 2))
    for _ in half:
        if half.state.epoch == middle:
            checkpoint.save(tmp_path / "run", {}, [], half.snapshot())
    resumed = Driver(solver_of(problem), problem, stop)
    resumed.restore(checkpoint.Saved(tmp_path / "run", {}).current(problem))
    for _ in resumed:
        pass
    for other in (again, resumed.result()):
        assert np.array_equal(once.best.w, other.best.w)
        assert once.certificate == other.certificate


def test_easy_problems_never_see_them():
    problem = stiff_problem(C=0.01)
    one, other = (run(Dual(memory=m), problem, Stop(tol=1e-3)) for m in (0, 3))
    assert one.state.epoch <= Dual().patience
    assert other.state.past is None and np.array_equal(one.best.w, other.best.w)


def test_lines_and_parabolas():
    lines = [parabola(loss) for loss in (Hinge(), Pinball(0.5), Perceptron())]
    assert lines == [(1.0, 0.0), (1.0, 0.0), (0.0, 0.0)]
    assert parabola(SquaredHinge()) == (1.0, 0.5)
    assert np.isnan(parabola(Logistic())).all()
