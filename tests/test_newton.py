"""Newton's method: its optimum for every loss, storage and intercept, and its symmetries."""

import numpy as np
import pytest
from conftest import (
    KINDS,
    LOSSES,
    SEEDS,
    any_problem,
    every_intercept,
    every_kind,
    every_loss,
    frozen,
    make_rows,
    plain,
    random_labels,
    random_matrix,
    random_problem,
    run_python,
    sample_problem,
    turned,
)
from hypothesis import assume, given

from pegasos import LinearSVC
from pegasos.core.matrix import combine
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import (
    Hinge,
    Logistic,
    Perceptron,
    Pinball,
    SquaredHinge,
    curvature,
    slope,
    value,
)
from pegasos.objective.problem import make_problem
from pegasos.solvers import newton
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.newton import Newton

pytestmark = pytest.mark.filterwarnings("error")
CLOSE = Stop(tol=1e-6, max_epochs=200)
VERY_CLOSE = Stop(tol=1e-10, max_epochs=200)


def reference(problem, steps=60):
    """Newton's method with halving steps for a loss with curvature, slow and readable."""
    X, y, c, loss = plain(problem.rows), problem.y, problem.c, problem.loss
    R = np.ones(X.shape[1])
    if problem.free:
        R[-1] = 0.0

    def objective(w):
        losses = [value(loss, float(z)) for z in y * (X @ w)]
        return R @ (w - problem.center) ** 2 / 2.0 + c @ losses

    w = problem.center.copy()
    for _ in range(steps):
        margins = y * (X @ w)
        slopes = np.array([slope(loss, float(z)) for z in margins])
        bends = np.array([curvature(loss, float(z)) for z in margins])
        gradient = R * (w - problem.center) + X.T @ (c * y * slopes)
        H = np.diag(R + 1e-12) + X.T @ ((c * bends)[:, None] * X)
        direction = -np.linalg.solve(H, gradient)
        t = 1.0
        while t > 1e-10 and objective(w + t * direction) > objective(w):
            t /= 2.0
        w = w + t * direction
    return w, objective(w)


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
@every_intercept
@pytest.mark.parametrize("kind", ["dense-float64", "csr-float32-uint32"])
@pytest.mark.bounds
def test_the_optimum_is_that_of_the_reference(loss, intercept, kind):
    problem = random_problem(1, loss, kind, intercept, centered=True)
    result = run(Newton(), problem, VERY_CLOSE)
    w, least = reference(problem)
    assert result.certificate.primal == pytest.approx(least, rel=1e-9)
    assert np.allclose(plain(problem.rows) @ result.best.w, plain(problem.rows) @ w, atol=1e-4)


@every_loss
@every_intercept
@pytest.mark.parametrize("kind", ["dense-float32", "csr-float64-uint32"])
def test_large_tables_take_the_same_steps(monkeypatch, loss, intercept, kind):
    """Piece by piece, for threads: as small ones in compiled loops."""
    problem, solver = random_problem(3, loss, kind, intercept, n=60, centered=True), Newton()
    found = []
    for small in (newton.is_small, lambda problem: False):
        monkeypatch.setattr(newton, "is_small", small)
        state = solver.init(problem, 0)
        for _ in range(5):
            state = solver.step(problem, state)
        found.append(state)
        assert run(Newton(), problem, CLOSE).stop_reason == "gap"
    for name in ("w", "scores", "response", "slopes", "v", "objective"):
        one, other = (getattr(state, name) for state in found)
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("C", [1e-3, 1e3])
def test_a_free_intercept_without_curvature_goes_by_its_gradient(monkeypatch, C):
    """All rows are far from the kink, so that nothing bends."""
    X, y = np.linspace(1.0, 2.0, 8)[:, None], frozen(np.where(np.arange(8) < 3, 1.0, -1.0))
    rows, center = make_rows("dense-float64", X, 1.0), np.array([0.0, 100.0])
    problem = make_problem(rows, y, np.full(8, C), Hinge(), center, free=True)
    found = []
    for small in (newton.is_small, lambda problem: False):
        monkeypatch.setattr(newton, "is_small", small)
        state = Newton().init(problem, 0)
        assert not state.slopes.any()
        found.append(Newton().step(problem, state).w)
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_a_matrix_of_another_shape_is_made_anew(monkeypatch):
    """As a checkpoint may hold, or another way to the same step may leave it."""
    problem = random_problem(3, Hinge(), "dense-float64", "penalised", n=60)
    for small in (newton.is_small, lambda problem: False):
        monkeypatch.setattr(newton, "is_small", small)
        state = Newton().init(problem, 0)
        for _ in range(2):
            state = Newton().step(problem, state)
        bend = state.curvature._replace(G=np.full((3, 3), np.nan))
        for other in (state._replace(curvature=bend), state._replace(curvature=None)):
            moved = Newton().step(problem, other)
            assert moved.objective == pytest.approx(
                Newton().step(problem, state).objective, rel=1e-9
            )


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=repr)
def test_rounding_of_early_steps_is_forgotten(loss):
    """At first v is the sum of all rows, in the end of hardly any."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(3000, 5))
    y = frozen(np.where(X[:, 0] > 0.0, 1.0, -1.0))
    X[:, 0] += 0.5 * y
    problem = make_problem(make_rows("dense-float64", X), y, np.full(3000, 1e6), loss)
    state = run(Newton(), problem, Stop(tol=1e-9, max_epochs=80)).state
    v = combine(problem.rows, problem.y * state.response)
    assert np.abs(state.v - v).max() <= 1e-12 * max(1.0, np.abs(v).max())


@every_loss
@every_kind
@every_intercept
def test_it_reaches_the_gap(loss, kind, intercept):
    problem = random_problem(2, loss, kind, intercept, n=40, centered=True)
    result = run(Newton(), problem, CLOSE)
    assert result.stop_reason == "gap"
    if problem.free:
        assert abs(result.best.alpha @ problem.y) <= 1e-12 * problem.c.sum()


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_it_reaches_the_gap_on_any_small_problem(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    assume(plain(problem.rows)[:, :-1].any())  # data that say nothing: see below
    assert run(Newton(), problem, CLOSE).stop_reason == "gap"


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("kind", ["dense-float32", "csr-float32-uint32"])
@pytest.mark.parametrize("intercept", ["penalised", "free"])
@pytest.mark.parametrize("name", ["pima", "spambase"])
def test_it_reaches_the_gap_on_the_samples(name, loss, kind, intercept):
    problem = sample_problem(name, loss, kind, C=1.0, intercept=intercept)
    assert run(Newton(), problem, CLOSE).stop_reason == "gap"


@every_loss
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_newton_and_dual_descent_agree(loss, intercept):
    problem = random_problem(3, loss, intercept=intercept, centered=True)
    newton = run(Newton(), problem, VERY_CLOSE)
    dual = run(Dual(), problem, Stop(tol=1e-9, max_epochs=20_000))
    assert newton.certificate.primal == pytest.approx(dual.certificate.primal, rel=1e-8)
    assert np.allclose(newton.best.w, dual.best.w, atol=1e-3)


@every_loss
def test_storages_agree(loss):
    found = [run(Newton(), random_problem(4, loss, kind), VERY_CLOSE).best.w for kind in KINDS]
    assert np.ptp(found, axis=0).max() <= 1e-4


@every_loss
@every_intercept
def test_a_centre_of_zero_is_the_ordinary_model(loss, intercept):
    problem = random_problem(5, loss, intercept=intercept)
    ordinary = make_problem(problem.rows, problem.y, problem.c, loss, free=problem.free)
    one, other = (run(Newton(), p, CLOSE) for p in (problem, ordinary))
    assert np.array_equal(one.best.w, other.best.w)


@every_loss
@every_intercept
def test_label_flip_flips_the_sign(loss, intercept):
    problem = random_problem(6, loss, intercept=intercept, centered=True)
    one, other = (run(Newton(), p, VERY_CLOSE) for p in (problem, turned(problem)))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)
    assert np.allclose(one.best.w[:-1], -other.best.w[:-1], atol=1e-4)


@every_loss
def test_a_free_intercept_ignores_where_the_origin_is(loss):
    rng = np.random.default_rng(7)
    X = random_matrix(rng, 40, 4)
    y, c = random_labels(rng, X), np.ones(40)
    results = [
        run(
            Newton(), make_problem(make_rows("dense-float64", Z, 1.0), y, c, loss, free=True), CLOSE
        )
        for Z in (X, X + np.array([5.0, -3.0, 20.0, 0.0]))
    ]
    assert [result.stop_reason for result in results] == ["gap", "gap"]
    here, there = (result.certificate.primal for result in results)
    assert here == pytest.approx(there, rel=2e-6)
    assert np.allclose(results[0].best.w[:-1], results[1].best.w[:-1], atol=0.02)


@every_loss
@every_intercept
def test_weight_k_equals_k_copies(loss, intercept):
    problem = random_problem(8, loss, intercept=intercept, n=15)
    k = np.random.default_rng(0).integers(1, 4, 15)
    X, bias = np.repeat(plain(problem.rows)[:, :-1], k, axis=0), problem.rows.bias
    rows, y = make_rows("dense-float64", X, bias), np.repeat(problem.y, k)
    copies = make_problem(rows, frozen(y), np.ones(k.sum()), loss, free=problem.free)
    weighted = problem._replace(c=frozen(k.astype(float)))
    one, other = run(Newton(), weighted, VERY_CLOSE), run(Newton(), copies, VERY_CLOSE)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)


@every_loss
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_nearly_equal_columns_of_float32_are_no_trouble(loss, scale):
    """Products in float32 are allowed only where their rounding does not matter."""
    rng = np.random.default_rng(14)
    X = np.tile(rng.normal(size=(60, 2)), 2) + 1e-3 * rng.normal(size=(60, 4))
    noise = 3e-4 * rng.normal(size=60)
    y = frozen(np.where(X[:, 0] - X[:, 2] + noise > 0.0, 1.0, -1.0))
    problem = make_problem(make_rows("dense-float32", scale * X, 1.0), y, np.full(60, 100.0), loss)
    assert run(Newton(), problem, Stop(tol=1e-6, max_epochs=60)).stop_reason == "gap"


@every_loss
@every_intercept
def test_zero_rows_and_constant_or_equal_columns_harm_nothing(loss, intercept):
    rng = np.random.default_rng(9)
    X = np.zeros((25, 5))
    X[:20, :2] = rng.normal(size=(20, 2))
    X[:, 2] = X[:, 0]
    X[:20, 3] = 1.0  # and column 4 is empty
    y = random_labels(rng, X)
    rows = make_rows("dense-float64", X, 0.0 if intercept == "none" else 1.0)
    problem = make_problem(rows, y, np.ones(25), loss, free=intercept == "free")
    result = run(Newton(), problem, CLOSE)
    assert result.stop_reason == "gap"
    assert result.best.w[0] == pytest.approx(result.best.w[2], abs=1e-4)
    assert result.best.w[4] == 0.0


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
def test_data_that_say_nothing(loss):
    rows, y = make_rows("dense-float64", np.zeros((4, 2))), frozen(np.array([1.0, -1.0, 1.0, -1.0]))
    problem = make_problem(rows, y, np.ones(4), loss)
    result = run(Newton(), problem, CLOSE)
    assert result.stop_reason == "gap" and not result.best.w.any()


@pytest.mark.parametrize("X", [np.zeros((4, 1)), np.ones((4, 1))], ids=["zeros", "ones"])
def test_data_that_say_nothing_under_the_hinge(X):
    rows, y = make_rows("dense-float64", X), frozen(np.array([1.0, -1.0, 1.0, -1.0]))
    result = run(Newton(), make_problem(rows, y, np.ones(4), Hinge()), CLOSE)
    assert result.stop_reason == "gap"


def test_a_free_intercept_is_found_from_where_the_loss_is_straight():
    X, y = np.array([[2.0], [1.0], [-1.0], [-3.0]]), frozen(np.array([1.0, -1.0, -1.0, -1.0]))
    rows, center = make_rows("dense-float64", X, 1.0), np.array([0.0, 2.0])
    problem = make_problem(rows, y, np.ones(4), Hinge(), center, free=True)
    assert run(Newton(), problem, CLOSE).stop_reason == "gap"


@every_loss
@every_intercept
def test_a_warm_start_from_the_optimum_ends_soon(loss, intercept):
    problem = random_problem(10, loss, intercept=intercept, centered=True)
    cold = run(Newton(), problem, CLOSE)
    start = cold.best.alpha.copy()
    warm = run(Newton(), problem, CLOSE, alpha=start)
    assert warm.stop_reason == "gap"
    at_once = 2 if intercept != "free" else cold.state.epoch  # alpha does not tell a free intercept
    assert warm.state.epoch <= min(at_once, cold.state.epoch)
    assert np.array_equal(start, cold.best.alpha)


@every_intercept
def test_a_smooth_loss_converges_quadratically(intercept):
    """Once close, the number of right digits doubles: a handful of steps to all of them."""
    problem = random_problem(11, Logistic(), intercept=intercept, n=60, C=10.0)
    result = run(Newton(), problem, Stop(tol=1e-13, max_epochs=12))
    assert result.stop_reason == "gap"


@every_loss
def test_the_estimate_is_the_gap_of_its_point(loss):
    problem = random_problem(12, loss, intercept="penalised", centered=True)
    state = Newton().init(problem, 0)
    for _ in range(6):
        state = Newton().step(problem, state)
        gap = evaluate(problem, *Newton().candidate(problem, state)).certificate.gap
        size = problem.c.sum()
        assert state.estimate == pytest.approx(gap, rel=1e-6, abs=1e-10 * size)


@pytest.mark.parametrize("loss", [Hinge(), Pinball(0.3), Perceptron()])
@every_intercept
def test_losses_without_curvature_begin_on_a_sample(loss, intercept, monkeypatch):
    monkeypatch.setattr(newton, "_MANY", 400)
    problem = random_problem(14, loss, intercept=intercept, n=800, d=4, centered=True)
    state = Newton().init(problem, 0)
    assert state.epoch == 0 and not state.response.any()
    first, plainly = Newton().step(problem, state), Newton(sampling=False)
    assert first.objective < plainly.step(problem, plainly.init(problem, 0)).objective
    result, other = run(Newton(), problem, CLOSE), run(plainly, problem, CLOSE)
    assert result.stop_reason == other.stop_reason == "gap"
    assert result.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-6)
    assert run(Newton(), problem, CLOSE).best.w.tolist() == result.best.w.tolist()


@pytest.mark.parametrize("rows", [{"n": 300}, {"n": 800, "d": 20}])
def test_few_rows_are_not_sampled(rows, monkeypatch):
    monkeypatch.setattr(newton, "_MANY", 400)
    problem = random_problem(15, Hinge(), **rows)
    assert np.isfinite(Newton().init(problem, 0).objective)


INTERPRETED = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from test_newton import LOSSES, CLOSE, Newton, random_problem, run
for k, loss in enumerate(LOSSES):
    for kind in ("dense-float32", "csr-float64-uint64"):
        result = run(Newton(), random_problem(13, loss, kind, "free"), CLOSE)
        np.save(f"{k}-{kind}.npy", [*result.best.w, *result.certificate])
"""


@pytest.mark.jit
def test_interpreted_equals_compiled(tmp_path, request):
    run_python(INTERPRETED, str(request.path.parent), cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    for k, loss in enumerate(LOSSES):
        for kind in ("dense-float32", "csr-float64-uint64"):
            result = run(Newton(), random_problem(13, loss, kind, "free"), CLOSE)
            interpreted = np.load(tmp_path / f"{k}-{kind}.npy")
            assert np.allclose([*result.best.w, *result.certificate], interpreted, atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "newton_cg", "interior"])
def test_many_columns_that_are_all_empty(solver):
    model = LinearSVC(loss="squared_hinge" if solver == "newton_cg" else "hinge", solver=solver)
    model.set_params(intercept="none").fit(np.zeros((300, 700)), np.arange(300) % 2)
    assert model.certificate_.relative_gap <= model.tol and not model.coef_.any()
