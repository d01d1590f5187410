"""The interior point method: its optimum whatever C, weights, units and defects of the data."""

import pickle

import numpy as np
import pytest
from conftest import (
    KINDS,
    SEEDS,
    any_problem,
    every_intercept,
    every_kind,
    frozen,
    make_rows,
    plain,
    random_labels,
    random_problem,
    sample_problem,
    turned,
)
from hypothesis import given

from pegasos.data.samples import load_sample
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import Hinge, Logistic, Pinball, SquaredHinge
from pegasos.objective.problem import make_problem
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.interior import Interior
from pegasos.solvers.newton import Newton

pytestmark = pytest.mark.filterwarnings("error")
CLOSE = Stop(tol=1e-6, max_epochs=60)
VERY_CLOSE = Stop(tol=1e-8, max_epochs=60)
TINY_TO_HUGE = (1e-6, 1e-3, 1.0, 1e3, 1e6)

every_tau = pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
every_scale = pytest.mark.parametrize("C", TINY_TO_HUGE)


def reference(problem, mu=1.0, steps=200):
    """Newton's method on the path's equations as they stand, mu shrunk slowly; no elimination."""
    X, y, c, tau = plain(problem.rows), problem.y, problem.c, problem.loss.tau
    R = np.diag(np.r_[np.ones(X.shape[1] - 1), 0.0 if problem.free else 1.0])
    Z, (n, d) = X * y[:, None], X.shape
    w, b, eye = problem.center.copy(), np.full(n, (1.0 - tau) / 2.0), np.eye(n)
    over, under = np.ones(n), np.ones(n)
    for _ in range(steps):
        lo, up = b + tau, 1.0 - b
        J = np.block(
            [
                [R, -Z.T * c, np.zeros((d, 2 * n))],
                [Z, np.zeros((n, n)), -eye, eye],
                [np.zeros((n, d)), np.diag(over), np.diag(lo), 0.0 * eye],
                [np.zeros((n, d)), -np.diag(under), 0.0 * eye, np.diag(up)],
            ]
        )
        stationary = R @ (w - problem.center) - Z.T @ (c * b)
        F = np.r_[stationary, Z @ w - 1.0 - over + under, lo * over - mu, up * under - mu]
        dw, db, dover, dunder = np.split(np.linalg.solve(J, -F), [d, d + n, d + 2 * n])
        shrink = np.r_[-db / lo, db / up, -dover / over, -dunder / under]
        t = min(1.0, 0.9 / shrink.max())
        w, b, over, under = w + t * dw, b + t * db, over + t * dover, under + t * dunder
        mu = max(1e-11, mu * (0.5 if t > 0.5 else 1.0))
    return w, evaluate(problem, c * b, w).certificate.primal


def messy_problem(seed, n=120, d=6, C=1.0, tau=0.0, intercept="none", spread=0.0):
    """Noisy labels of Gaussian rows; `spread`: powers of ten between the lightest row and C."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    rows = make_rows("dense-float64", X, 0.0 if intercept == "none" else 1.0)
    c = C * 10.0 ** -rng.uniform(0.0, spread, n)
    return make_problem(rows, random_labels(rng, X), c, Pinball(tau), free=intercept == "free")


@every_tau
@every_intercept
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.bounds
def test_the_optimum_is_that_of_the_reference(tau, intercept, centered):
    problem = random_problem(1, Pinball(tau), intercept=intercept, n=20, d=3, centered=centered)
    result = run(Interior(), problem, VERY_CLOSE)
    w, least = reference(problem)
    assert result.certificate.primal == pytest.approx(least, rel=1e-7)
    assert np.allclose(result.best.w[:-1], w[:-1], atol=1e-3)


@every_scale
@every_tau
@every_intercept
def test_it_reaches_a_tiny_gap_whatever_the_scale(C, tau, intercept):
    result = run(Interior(), messy_problem(2, C=C, tau=tau, intercept=intercept), VERY_CLOSE)
    assert result.stop_reason == "gap" and result.state.epoch <= 40


@every_tau
@every_intercept
def test_it_reaches_a_tiny_gap_whatever_the_weights(tau, intercept):
    problem = messy_problem(3, n=300, C=1e3, tau=tau, intercept=intercept, spread=6.0)
    assert run(Interior(), problem, VERY_CLOSE).stop_reason == "gap"


@every_kind
@every_intercept
def test_it_reaches_the_gap_in_every_storage(kind, intercept):
    problem = random_problem(4, Pinball(0.3), kind, intercept, n=40, centered=True)
    assert run(Interior(), problem, CLOSE).stop_reason == "gap"


@every_tau
@every_intercept
@given(seed=SEEDS)
def test_it_reaches_the_gap_on_any_small_problem(tau, intercept, seed):
    problem = any_problem(seed, Pinball(tau), intercept)
    assert run(Interior(), problem, CLOSE).stop_reason == "gap"


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", [Hinge(), Pinball(0.5)], ids=repr)
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("name", ["pima", "spambase"])
def test_it_reaches_the_gap_on_the_samples(name, loss, intercept, C):
    problem = sample_problem(name, loss, "dense-float32", C, intercept)
    result = run(Interior(), problem, CLOSE)
    assert result.stop_reason == "gap" and result.state.epoch <= 40


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("name", ["pima", "spambase"])
def test_raw_units_are_no_trouble(name, intercept):
    X, labels = load_sample(name)
    rows = make_rows("dense-float32", X, 0.0 if intercept == "none" else 1.0)
    y = frozen(np.where(labels == 1, 1.0, -1.0))
    problem = make_problem(rows, y, np.ones(y.size), Hinge(), free=intercept == "free")
    assert run(Interior(), problem, CLOSE).stop_reason == "gap"


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@every_intercept
def test_columns_of_very_different_scale(C, intercept):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 7))
    y = random_labels(rng, X)
    rows = make_rows("dense-float64", X * 10.0 ** np.arange(-3, 4), float(intercept != "none"))
    problem = make_problem(rows, y, np.full(200, C), Hinge(), free=intercept == "free")
    assert run(Interior(), problem, CLOSE).stop_reason == "gap"


@every_scale
@every_tau
@every_intercept
def test_equal_rows_of_opposite_labels(C, tau, intercept):
    X = np.tile(np.random.default_rng(6).normal(size=(30, 4)), (2, 1))
    rows = make_rows("dense-float64", X, float(intercept != "none"))
    y = frozen(np.repeat([1.0, -1.0], 30))
    problem = make_problem(rows, y, np.full(60, C), Pinball(tau), free=intercept == "free")
    result = run(Interior(), problem, VERY_CLOSE)
    assert result.stop_reason == "gap"
    assert result.certificate.primal == pytest.approx(60 * C, rel=1e-6)


@every_scale
@every_tau
@every_intercept
def test_zero_rows_and_constant_or_equal_columns_harm_nothing(C, tau, intercept):
    rng = np.random.default_rng(7)
    X = np.zeros((50, 5))
    X[:40, :2] = rng.normal(size=(40, 2))
    X[:, 2] = X[:, 0]
    X[:, 3] = 3.0  # and column 4 is empty
    y = random_labels(rng, X)
    rows = make_rows("dense-float64", X, float(intercept != "none"))
    problem = make_problem(rows, y, np.full(50, C), Pinball(tau), free=intercept == "free")
    result = run(Interior(), problem, CLOSE)
    assert result.stop_reason == "gap"
    assert result.best.w[0] == pytest.approx(result.best.w[2], rel=1e-2, abs=1e-4)
    assert result.best.w[4] == 0.0


@pytest.mark.parametrize("X", [np.zeros((4, 1)), np.ones((4, 1))], ids=["zeros", "ones"])
@every_intercept
def test_data_that_say_nothing(X, intercept):
    y = frozen(np.array([1.0, -1.0, 1.0, -1.0]))
    rows = make_rows("dense-float64", X, float(intercept != "none"))
    problem = make_problem(rows, y, np.ones(4), Hinge(), free=intercept == "free")
    assert run(Interior(), problem, CLOSE).stop_reason == "gap"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hardly_any_rows(n):
    X, y = np.arange(1.0, n + 1.0)[:, None] * [1.0, -2.0, 0.5], np.array([1.0, -1.0, -1.0])
    problem = make_problem(make_rows("dense-float64", X), frozen(y[:n]), np.ones(n), Hinge())
    assert run(Interior(), problem, CLOSE).stop_reason == "gap"


def test_a_centre_whose_margins_are_huge():
    problem = random_problem(8, Hinge(), n=60)
    far = problem._replace(center=1e5 * np.random.default_rng(0).normal(size=6))
    assert run(Interior(), far, CLOSE).stop_reason == "gap"


@every_tau
@every_intercept
def test_newton_and_descent_agree(tau, intercept):
    problem = random_problem(9, Pinball(tau), intercept=intercept, n=60, centered=True)
    interior = run(Interior(), problem, VERY_CLOSE)
    others = [run(Newton(), problem, Stop(tol=1e-7, max_epochs=300))]
    if intercept != "free":
        others.append(run(Dual(), problem, Stop(tol=1e-7, max_epochs=20_000)))
    for other in others:
        assert interior.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-7)
        assert np.allclose(interior.best.w, other.best.w, atol=1e-2)


def test_storages_agree():
    found = [run(Interior(), random_problem(10, kind=k), VERY_CLOSE).best.w for k in KINDS]
    assert np.ptp(found, axis=0).max() <= 1e-4


def test_hinge_is_pinball_without_a_price():
    one, other = (random_problem(11, loss) for loss in (Hinge(), Pinball(0.0)))
    assert np.array_equal(run(Interior(), one, CLOSE).best.w, run(Interior(), other, CLOSE).best.w)


@every_tau
@every_intercept
def test_label_flip_flips_the_sign(tau, intercept):
    problem = random_problem(12, Pinball(tau), intercept=intercept, centered=True)
    one, other = (run(Interior(), p, VERY_CLOSE) for p in (problem, turned(problem)))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)
    assert np.allclose(one.best.w[:-1], -other.best.w[:-1], atol=1e-3)


@every_intercept
def test_weight_k_equals_k_copies(intercept):
    problem = random_problem(13, intercept=intercept, n=15)
    k = np.random.default_rng(0).integers(1, 4, 15)
    X, bias = np.repeat(plain(problem.rows)[:, :-1], k, axis=0), problem.rows.bias
    rows, y = make_rows("dense-float64", X, bias), frozen(np.repeat(problem.y, k))
    copies = make_problem(rows, y, np.ones(k.sum()), Hinge(), free=problem.free)
    weighted = problem._replace(c=frozen(k.astype(float)))
    one, other = (run(Interior(), p, VERY_CLOSE) for p in (weighted, copies))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-7)


@every_tau
@every_intercept
def test_a_warm_start_from_the_optimum_ends_soon(tau, intercept):
    problem = messy_problem(14, C=10.0, tau=tau, intercept=intercept)
    cold = run(Interior(), problem, VERY_CLOSE)
    start = cold.best.alpha.copy()
    warm = run(Interior(), problem, VERY_CLOSE, alpha=start)
    assert warm.stop_reason == "gap" and warm.state.epoch <= 5
    assert np.array_equal(start, cold.best.alpha)


def test_a_poor_warm_start_is_no_worse_than_none():
    problem = messy_problem(15, C=100.0)
    cold = run(Interior(), problem, VERY_CLOSE)
    poor = problem.c * np.random.default_rng(0).random(problem.c.size)
    warm = run(Interior(), problem, VERY_CLOSE, alpha=poor)
    assert warm.stop_reason == "gap" and warm.state.epoch == cold.state.epoch


@every_tau
@every_intercept
def test_the_estimate_is_the_gap_and_every_point_lies_inside(tau, intercept):
    solver, problem = Interior(), messy_problem(16, tau=tau, intercept=intercept)
    state = solver.init(problem, 0)
    for _ in range(12):
        alpha, w = solver.candidate(problem, state)
        gap = evaluate(problem, alpha, w).certificate.gap
        assert all((part > 0.0).all() for part in state.point)
        assert (-tau * problem.c <= alpha).all() and (alpha <= problem.c).all()
        if problem.free:  # the certificate moves the intercept and the balance
            assert gap <= 1.1 * state.estimate + 1e-9 * problem.c.sum()
        else:
            assert state.estimate == pytest.approx(gap, rel=1e-6, abs=1e-9)
        state = solver.step(problem, state)
    assert state.estimate <= 1e-3 * problem.c.sum()


def test_a_state_is_left_alone_and_survives_pickling():
    solver, problem = Interior(), messy_problem(17)
    state = solver.step(problem, solver.init(problem, 0))
    before = pickle.dumps(state)
    after = solver.step(problem, state)
    assert pickle.dumps(state) == before
    again = solver.step(problem, pickle.loads(before))
    assert np.array_equal(after.w, again.w) and after.epoch == again.epoch == 2


@every_scale
def test_it_stops_by_itself_where_rounding_begins(C):
    result = run(Interior(), messy_problem(18, C=C), Stop(tol=-1.0, max_epochs=500))
    assert result.stop_reason == "stalled" and result.state.epoch < 60
    assert result.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("C", [1e27, 1e120, 1e300])
def test_numbers_that_overflow_end_the_run_with_an_answer(C):
    solver, problem = Interior(), messy_problem(19)
    problem = problem._replace(c=frozen(np.full(problem.c.size, C)))
    with np.errstate(over="ignore", invalid="ignore"):
        state = solver.init(problem, 0)
    while not state.exhausted:
        state = solver.step(problem, state)
    assert np.isfinite(state.w).all() and state.epoch < 100


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
def test_a_smooth_loss_is_refused(loss):
    with pytest.raises(
        ValueError, match=f"hinge, pinball.*{type(loss).__name__} use solver='newton'"
    ):
        Interior().init(random_problem(20, loss), 0)
