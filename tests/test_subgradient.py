"""The stochastic family: step for step as the papers write it, with its dual and its average."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import LOSSES, every_kind, every_loss, random_problem, sample_problem

from pegasos.core.rng import shuffle, stream, uniform
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import Hinge, Perceptron, Pinball, slope, value
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.iterate import empty_state
from pegasos.solvers.schedules import Constant, InverseRoot
from pegasos.solvers.subgradient import Subgradient

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar multiply")

METHODS = {
    "pegasos": Subgradient(offset="none"),
    "pegasos, random draws": Subgradient(offset="none", sampling="replacement"),
    "pegasos in order": Subgradient(offset="none", sampling="order", power=None),
    "mini-batch": Subgradient(batch=4, offset="none", schedule=InverseRoot(0.5)),
    "random mini-batch": Subgradient(batch=7, offset="none", sampling="replacement"),
    "batch": Subgradient(batch=0, offset="none", sampling="order", schedule=Constant(0.05)),
    "free offset": Subgradient(batch=3, offset="free", schedule=Constant(0.1), projection=False),
    "damped offset": Subgradient(offset="damped"),
    "tail": Subgradient(offset="none", tail=True, power=0.0, epochs=3),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def dense(rows) -> np.ndarray:
    """The rows as a matrix, the virtual column included."""
    from pegasos.core.matrix import products

    width = rows.values.shape[1] if rows.values.ndim == 2 else rows.width
    return np.column_stack([products(rows, e) for e in np.eye(width + 1)])


def reference(problem, method, steps, seed=0):
    """The method as it is written: every w in full, every average as a sum."""
    X, y, n = dense(problem.rows), problem.y, len(problem.y)
    free = method.offset != "none"
    if free:
        X = np.column_stack([X[:, :-1], np.zeros(n)])
    lam, r = 1.0 / problem.c.sum(), n * problem.c / problem.c.sum()
    k = min(method.batch or n, n)
    base, order, rng = dense(problem.rows) @ problem.center, np.arange(n), stream(seed)
    u, b, total, b_total, mass, lengths = np.zeros(X.shape[1]), 0.0, 0.0, 0.0, 0.0, []
    at_center = [value(problem.loss, float(z)) for z in y * base]
    reach = (1.0 if isinstance(problem.loss, Pinball) else 2.0) * np.mean(r * at_center)
    at = 0
    for t in range(1, steps + 1):
        if at == 0 and method.sampling == "permuted" and k < n:
            shuffle(order, n, rng)
        if method.sampling == "replacement":
            for s in range(k if k < n else 0):
                j = s + int(uniform(rng) * (n - s))
                order[s], order[j] = order[j], order[s]
            rows = order[:k]
        else:
            rows = order[at : at + k]
        at = 0 if at + k >= n else at + k
        eta = float(method.schedule(np.array([float(t)]), lam)[0])
        if method.offset == "residual":
            b = np.mean(y[rows] - base[rows] - X[rows] @ u)
        z = y[rows] * (base[rows] + X[rows] @ u + b)
        pull = -r[rows] * np.array([slope(problem.loss, float(zi)) for zi in z]) * y[rows]
        old = u
        u = (1.0 - eta * lam) * u + eta * (X[rows].T @ pull) / k
        if method.offset in ("free", "damped"):
            length = eta if method.offset == "free" else min(eta, 1.0 / np.sqrt(t))
            b += length * pull.sum() / k
        if method.projection and np.linalg.norm(u) > np.sqrt(reach / lam):
            u = u * np.sqrt(reach / lam) / np.linalg.norm(u)
        lengths.append(np.linalg.norm(u - old))
        late = not method.tail or 2 * t * k >= method.epochs * n
        rho = float(t) ** method.power if method.power is not None and late else 0.0
        total, b_total, mass = total + rho * u, b_total + rho * b, mass + rho
    w = problem.center + (total / mass if mass else u)
    if free:
        w[-1] += (b_total / mass if mass else b) / problem.rows.bias
    return w, lengths


def after(method, problem, steps, seed=0):
    """The state after so many steps, epoch by epoch as the solver takes them."""
    state = method.init(problem, seed)
    k, n = method.rule(problem).k, len(problem.y)
    while state.t < steps:
        if state.cursor == 0 and method.sampling == "permuted" and k < n:
            shuffle(state.vectors.order, n, state.vectors.rng)
        left = -(-(n - state.cursor) // k)
        state = method.advance(problem, state, min(left, steps - state.t))
    return state


@every_kind
@every_method
def test_steps_are_those_of_the_algorithm(method, kind):
    problem = random_problem(3, Hinge(), kind, "none" if method.offset == "none" else "free")
    state = after(method, problem, 75)
    w, lengths = reference(problem, method, 75)
    assert np.allclose(method.candidate(problem, state)[1], w, rtol=1e-10, atol=1e-12)
    assert np.allclose(state.vectors.lengths[:75], lengths, rtol=1e-9, atol=1e-12)


@every_method
@pytest.mark.parametrize("tiny", [1e-6, 1e-10])
def test_short_steps_of_a_long_w_are_measured(method, tiny):
    """Where ||w||^2 before and after a step agree to sixteen digits."""
    problem = random_problem(3, intercept="none" if method.offset == "none" else "free")

    def schedule(t, lam):
        return np.where(t <= 30, 1.0 / (lam * np.sqrt(t)), tiny)

    method = replace(method, schedule=schedule)
    _, lengths = reference(problem, method, 75)
    found = after(method, problem, 75).vectors.lengths[30:75]
    assert np.allclose(found, lengths[30:], rtol=1e-3, atol=0.0)
    assert max(lengths[:30]) > 0.1 and max(found) < 1e3 * tiny


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("excess", [1.0 + 1e-15, 1.1, 2.0])
def test_a_first_step_that_turns_the_sign_of_the_scale(power, excess):
    method = Subgradient(offset="none", power=power, schedule=InverseRoot(1.0), projection=False)
    problem = random_problem(3, Hinge())
    problem = problem._replace(c=problem.c / (excess * problem.c.sum()))
    w, _ = reference(problem, method, 1500)
    found = method.candidate(problem, after(method, problem, 1500))[1]
    assert np.allclose(found, w, rtol=1e-8, atol=1e-10)


@every_loss
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_steps_of_every_loss_around_a_centre(loss, intercept):
    problem = random_problem(4, loss, "dense-float64", intercept, centered=True)
    method = METHODS["pegasos"]
    w, _ = reference(problem, method, 90)
    assert np.allclose(method.candidate(problem, after(method, problem, 90))[1], w, rtol=1e-10)


def test_pinball_with_its_offset_is_algorithm_1_of_the_paper():
    method = Subgradient(batch=10, sampling="replacement", power=None, offset="residual")
    problem = random_problem(5, Pinball(0.5), "dense-float64", "free")
    w, _ = reference(problem, method, 40)
    state = after(method, problem, 40)
    assert np.allclose(method.candidate(problem, state)[1], w, rtol=1e-10)


@pytest.mark.slow
def test_the_perceptron_makes_no_more_errors_on_separable_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X @ [1.0, -2.0, 0.5, 3.0] > 0, 1.0, -1.0)
    X += 0.5 * y[:, None] * np.array([1.0, -2.0, 0.5, 3.0]) / 3.8
    from conftest import make_rows

    from pegasos.objective.problem import make_problem

    problem = make_problem(make_rows("dense-float64", X), y, np.ones(60), Perceptron())
    method = Subgradient(
        schedule=Constant(1.0),
        sampling="order",
        projection=False,
        power=None,
        offset="none",
        shrink=False,
    )
    state = after(method, problem, 60 * 50)
    w = method.candidate(problem, state)[1]
    assert np.all(y * (X @ w[:-1]) > 0)
    assert state.vectors.lengths[-1] == 0.0


@every_method
def test_w_is_the_sum_of_its_dual_variables(method):
    problem = random_problem(6, Hinge(), intercept="none" if method.offset == "none" else "free")
    state = after(method, problem, 100)
    s, x = state.scalars, state.vectors
    X = dense(problem.rows)[:, :-1]
    assert np.allclose(s.scale * x.v[:-1], X.T @ (problem.y * s.scale * x.alpha), atol=1e-10)


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("method", [METHODS["pegasos"], METHODS["random mini-batch"]])
def test_the_certificate_closes(loss, method):
    problem = random_problem(7, loss)
    few, many = (
        evaluate(problem, *method.candidate(problem, after(method, problem, t))).certificate
        for t in (60, 60_000)
    )
    assert 0.0 <= many.gap < 0.2 * few.gap
    assert many.relative_gap < 0.05


@pytest.mark.slow
def test_pegasos_stops_by_its_certificate():
    problem = sample_problem("pima", Hinge(), "dense-float32", 0.1, "none")
    result = run(METHODS["pegasos"], problem, Stop(tol=0.05, max_epochs=500))
    assert result.stop_reason == "gap" and result.certificate.relative_gap <= 0.05


@pytest.mark.slow
def test_the_averaged_iterate_obeys_the_bound_of_the_theory():
    problem = sample_problem("pima", Hinge(), "dense-float32", 0.1, "none")
    lam = 1.0 / problem.c.sum()
    best = run(replace(METHODS["pegasos"]), problem, Stop(tol=1e-3, max_epochs=3000))
    method = Subgradient(offset="none", sampling="replacement", power=0.0)
    c = np.sqrt(lam) + np.sqrt(problem.q.max())
    for T in (1000, 10_000):
        seen = evaluate(problem, *method.candidate(problem, after(method, problem, T)))
        excess = lam * (seen.certificate.primal - best.certificate.dual)
        assert excess <= c**2 * (1 + np.log(T)) / (2 * lam * T)


@pytest.mark.parametrize("sizes", [(30,), (7, 7, 16), (1,) * 30])
def test_a_stream_does_not_depend_on_its_batches(sizes):
    problem = random_problem(8, LOSSES[0])
    solver = Subgradient(offset="none", lam=0.05)
    state, at = empty_state(6, 0), 0
    for size in sizes:
        rows = problem.rows._replace(values=problem.rows.values[at : at + size])
        part = slice(at, at + size)
        batch = problem._replace(rows=rows, y=problem.y[part], c=problem.c[part], q=problem.q[part])
        state, _ = solver.on_stream(batch, state)
        at += size
    whole, _ = solver.on_stream(problem, empty_state(6, 0))

    def weights(state):
        return solver.point(state, state.vectors.past, 1.0)

    assert np.array_equal(weights(state), weights(whole))
    assert state.t == 30
