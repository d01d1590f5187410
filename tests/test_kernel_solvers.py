"""Kernel solvers: one optimum, a certificate that proves it, whatever the memory and threads."""

import ast
from pathlib import Path

import numpy as np
import pytest
from conftest import SEEDS, random_labels, random_matrix
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core.threads import use_threads
from pegasos.estimators.pairs import share_of
from pegasos.objective.certificate import evaluate
from pegasos.objective.kernel_certificate import best_offset, violation
from pegasos.objective.kernel_points import points
from pegasos.objective.kernel_problem import make_kernel_problem
from pegasos.objective.kernels import Gaussian, Linear, Polynomial
from pegasos.objective.losses import Hinge, Pinball, SquaredHinge
from pegasos.solvers import kernel_cache, kernel_dual
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.kernel_cache import RowCache, empty_stock
from pegasos.solvers.kernel_dual import KernelDual
from pegasos.solvers.smo import Smo
from pegasos.solvers.stops import Optimality
from pegasos.solvers.working_set import WorkingSet

pytestmark = pytest.mark.filterwarnings("error")
KERNELS = (Gaussian(0.5), Linear(), Polynomial(2, 0.5, 1.0))
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
KERNEL_LOSS = Hinge()
TIGHT = Stop(tol=1e-8, max_epochs=20_000)


def any_kernel_problem(seed, kernel=KERNELS[0], loss=KERNEL_LOSS, free=True, n=24, C=1.0):
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, n, 3)
    y, c = random_labels(rng, X), C * rng.uniform(0.5, 1.5, n)
    return make_kernel_problem(kernel, points(kernel, X), y, c, loss, free)


def matrix_of(problem):
    """The kernel matrix by the definition of the kernels, in plain NumPy."""
    X = problem.points.rows.values.astype(np.float64)
    if isinstance(problem.kernel, Gaussian):
        return np.exp(-problem.kernel.gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    if isinstance(problem.kernel, Linear):
        return X @ X.T
    return (problem.kernel.gamma * X @ X.T + problem.kernel.coef0) ** problem.kernel.degree


def primal_of(problem, beta, b):
    s = matrix_of(problem) @ beta
    z = problem.y * (s + b)
    losses = np.maximum(1.0 - z, problem.loss.tau * (z - 1.0))
    return 0.5 * beta @ s + problem.c @ losses


def dual_of(problem, beta):
    return problem.y @ beta - 0.5 * beta @ matrix_of(problem) @ beta


def random_beta(problem, seed):
    rng = np.random.default_rng(seed)
    beta = rng.uniform(problem.low, problem.high) * (rng.random(len(problem.y)) < 0.7)
    beta[rng.random(len(beta)) < 0.2] = 0.0
    return beta


@given(SEEDS, st.booleans(), st.sampled_from([0.0, 0.3, 1.0]))
@every_kernel
def test_the_certificate_is_a_proof(kernel, seed, free, tau):
    problem = any_kernel_problem(seed, kernel, Pinball(tau), free)
    seen = evaluate(problem, random_beta(problem, seed))
    beta, b = seen.w[:-1], seen.w[-1]
    assert np.array_equal(beta, seen.alpha)
    assert seen.certificate.primal == pytest.approx(primal_of(problem, beta, b), rel=1e-9)
    assert seen.certificate.dual == pytest.approx(dual_of(problem, beta), rel=1e-9, abs=1e-9)
    assert seen.certificate.gap >= 0.0 and np.isfinite(seen.certificate.gap)
    assert np.all(beta >= problem.low) and np.all(beta <= problem.high)
    if free:
        assert abs(beta.sum()) <= 1e-10 * max(1.0, np.abs(beta).sum())
        others = b + np.linspace(-3.0, 3.0, 61)
        assert min(primal_of(problem, beta, t) for t in others) >= seen.certificate.primal - 1e-9


@given(SEEDS)
def test_scores_of_a_solver_save_work_and_change_nothing(seed):
    problem = any_kernel_problem(seed)
    beta = random_beta(problem, seed)
    whole = evaluate(problem, beta)
    known = matrix_of(problem) @ whole.alpha
    for error in (1e-6, 0.5):
        rough = known + error * np.random.default_rng(seed).uniform(-1.0, 1.0, len(beta))
        seen = evaluate(problem, whole.alpha, rough)
        assert seen.certificate == pytest.approx(whole.certificate, rel=1e-9)


@given(SEEDS, st.booleans())
def test_scores_of_long_rows_are_not_trusted_as_those_of_short_ones(seed, free):
    """Rounding grows with the length of a row: here all that are safely beyond the margin by the
    solver's scores are long, and none of them is."""
    rng = np.random.default_rng(seed)
    y, short = np.tile([1.0, -1.0], 12), 10
    X = rng.normal(size=(24, 4)) * 1e-2
    beta = np.repeat(rng.uniform(50.0, 100.0, 12), 2) * y
    beta[short:] = 0.0
    w = X.T @ beta
    aside = rng.normal(size=(24 - short, 4))
    aside -= np.outer(aside @ w, w) / (w @ w)
    along = np.outer(y[short:] * rng.uniform(0.2, 0.9, 24 - short), w) / (w @ w)
    X[short:] = 1e3 * aside / np.linalg.norm(aside, axis=1)[:, None] + along
    c = np.full(24, 100.0)
    problem = make_kernel_problem(Linear(), points(Linear(), X), y, c, Hinge(), free)
    whole = evaluate(problem, beta)
    assert np.array_equal(whole.alpha, beta)
    known = X @ w + 2e-3 * np.sqrt(problem.q) * y
    assert evaluate(problem, beta, known).certificate == pytest.approx(whole.certificate, rel=1e-9)


def test_the_offset_is_the_middle_where_the_losses_are_level():
    problem = any_kernel_problem(3)
    y = np.array([1.0, -1.0])
    two = problem._replace(y=y, c=np.ones(2))
    assert best_offset(two, np.array([3.0, -3.0])) == 0.0  # anything in [-2, 2] costs nothing


@given(SEEDS, st.sampled_from([0.0, 0.4]))
@every_kernel
def test_solvers_agree_with_a_free_offset(kernel, seed, tau):
    problem = any_kernel_problem(seed, kernel, Pinball(tau))
    answers = [run(s, problem, TIGHT) for s in (WorkingSet(share=1e-8), Smo())]
    for answer in answers:
        assert answer.certificate.relative_gap <= 1e-8
    first, second = (answer.certificate.dual for answer in answers)
    assert first == pytest.approx(second, rel=1e-7)


@given(SEEDS, st.sampled_from([0.0, 0.4]))
def test_solvers_agree_without_an_offset(seed, tau):
    problem = any_kernel_problem(seed, Gaussian(0.5), Pinball(tau), free=False)
    stop = Stop(tol=1e-6, max_epochs=20_000)
    answers = [run(s, problem, stop) for s in (WorkingSet(share=1e-6), KernelDual())]
    first, second = (answer.certificate for answer in answers)
    assert max(first.relative_gap, second.relative_gap) <= 1e-6
    assert first.dual == pytest.approx(second.dual, rel=2e-6)


def test_coordinate_descent_refuses_a_free_offset():
    with pytest.raises(ValueError, match="no free offset"):
        run(KernelDual(), any_kernel_problem(0), TIGHT)


def test_only_piecewise_linear_losses():
    with pytest.raises(ValueError, match="hinge and pinball"):
        any_kernel_problem(0, loss=SquaredHinge())


@pytest.fixture(scope="module")
def larger():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400) > 0.0, 1.0, -1.0)
    kernel = Gaussian(1.0)
    return make_kernel_problem(kernel, points(kernel, X), y, np.full(400, 10.0), Hinge(), True)


SMALL = {
    "whole": 64,
    "first": 64,
    "smallest": 64,
    "largest": 192,
}  # working sets of a part of 400 rows


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0, 100_000, 400_000, 1 << 30])
def test_a_small_cache_gives_the_same_answer(larger, budget):
    best = run(Smo(), larger, Stop(tol=1e-9, max_epochs=10_000)).certificate
    found = run(WorkingSet(budget, share=1e-6, **SMALL), larger, Stop(tol=1e-6)).certificate
    assert found.relative_gap <= 1e-6
    assert found.dual == pytest.approx(best.dual, rel=2e-6)


@pytest.mark.slow
def test_the_budget_is_honoured(larger):
    for budget in (100_000, 1_000_000, 10_000_000):
        solver = WorkingSet(budget, **SMALL)
        state = solver.init(larger, 0)
        for _ in range(5):
            state = solver.step(larger, state)
        held = state.rows.cache.rows.nbytes + state.matrix.K.nbytes
        assert held <= max(budget, 4 * (1.2 * 128 + 64) ** 2)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, unique=True), max_size=12), SEEDS)
def test_cache_holds_what_it_says(asks, seed):
    """Rows that are said to be here are here, however often places change hands."""
    cache = RowCache(10, 4 * 10 * 4, np.float32)  # four rows
    assert len(cache.rows) == 4
    for ask in asks:
        index = np.array(ask)
        here = cache.held(index)
        assert all(cache.rows[cache.slot[i], 0] == i for i in index[here])
        missing = index[~here]
        places = cache.admit(missing)
        for i, place in zip(missing, places, strict=True):
            if place >= 0:
                cache.rows[place] = i
                assert cache.slot[i] == place
        assert np.count_nonzero(cache.slot >= 0) == np.count_nonzero(cache.owner >= 0)
        if index.size <= 4:
            assert np.all(cache.slot[index] >= 0)


@pytest.mark.slow
def test_buffers_with_old_contents_change_nothing(larger):
    empty_stock()
    solver, stop = WorkingSet(share=1e-4, **SMALL), Stop(tol=1e-4)
    fresh = run(solver, larger, stop)
    stale = np.full(10_000_000, np.nan)
    cache = RowCache(2000, 16_000_000, np.float64)
    cache.rows[:] = stale[: cache.rows.size].reshape(cache.rows.shape)
    del cache  # its bytes, full of NaN, go back to the stock
    again = run(solver, larger, stop)
    assert np.array_equal(fresh.best.w, again.best.w)


@pytest.mark.slow
def test_same_bits_for_any_number_of_threads(larger):
    answers = []
    for n in (1, 2, 3):
        with use_threads(n):
            answers.append(run(WorkingSet(share=1e-4, **SMALL), larger, Stop(tol=1e-4)).best.w)
    assert all(np.array_equal(answers[0], w) for w in answers[1:])


@pytest.mark.slow
@pytest.mark.parametrize("solver", [WorkingSet(floor=1e-3, **SMALL), WorkingSet(floor=1e-3), Smo()])
def test_a_stop_by_optimality_holds_in_float64(larger, solver):
    stop = Stop(tol=0.0, rules=(Optimality(1e-3),))
    found = run(solver, larger, stop)
    assert found.stop_reason == "kkt"
    beta, b = found.best.w[:-1], found.best.w[-1]
    f = evaluate(larger, beta).margins * larger.y - b - larger.y
    assert violation(larger, beta, f) <= 1e-3


@given(SEEDS)
def test_labels_turned_turn_the_answer(seed):
    problem = any_kernel_problem(seed)
    turned = make_kernel_problem(
        problem.kernel, problem.points, -problem.y, problem.c, problem.loss, True
    )
    a, b = (run(WorkingSet(share=1e-8), p, TIGHT) for p in (problem, turned))
    scores = [matrix_of(problem) @ r.best.w[:-1] + r.best.w[-1] for r in (a, b)]
    assert scores[0] == pytest.approx(-scores[1], abs=1e-3)
    assert a.certificate.dual == pytest.approx(b.certificate.dual, rel=1e-7)


@given(SEEDS)
def test_a_start_from_the_answer_ends_at_once(seed):
    problem = any_kernel_problem(seed)
    found = run(WorkingSet(share=1e-8), problem, TIGHT)
    again = run(WorkingSet(share=1e-8), problem, TIGHT, alpha=found.best.alpha)
    assert (again.stop_reason, again.state.epoch) == ("gap", 0)


@pytest.mark.slow
def test_dual_value_never_falls(larger):
    solver = WorkingSet(**SMALL)
    state, last = solver.init(larger, 0), -np.inf
    for _ in range(12):
        state = solver.step(larger, state)
        value = dual_of(larger, state.beta)
        assert value >= last - 1e-6 * abs(value)
        last = value


@given(SEEDS, st.booleans())
def test_going_to_float64_forgets_what_float32_said(seed, free):
    problem, solver = any_kernel_problem(seed, free=free), WorkingSet(share=1e-3)
    state = solver.step(problem, solver.init(problem, 0))
    assert not state.wide
    state.f[:] += np.random.default_rng(seed).uniform(-1.0, 1.0, len(state.f))
    state = solver.step(problem, state._replace(waited=2, dual=1e9, lowest=0.0))
    assert state.wide and state.waited == 0
    assert state.f == pytest.approx(matrix_of(problem) @ state.beta - problem.p, abs=1e-9)
    assert state.dual == pytest.approx(dual_of(problem, state.beta), rel=1e-9)


@pytest.mark.slow
def test_features_of_very_different_size_do_not_stall():
    X, y = pytest.importorskip("sklearn.datasets").load_breast_cancer(return_X_y=True)
    y, c, kernel = np.where(y > 0, 1.0, -1.0), np.ones(len(y)), Linear()
    problem = make_kernel_problem(kernel, points(kernel, X), y, c, Hinge(), True)
    found = run(WorkingSet(share=1e-3), problem, Stop(tol=1e-3))
    assert found.stop_reason == "gap"
    assert found.state.iterations < 5_000_000


def test_hot_loops_return_plain_tuples():
    """Numba makes a NamedTuple by running Python, which a pending Ctrl-C turns into a crash."""
    root = Path(make_kernel_problem.__code__.co_filename).parents[1]
    loops = 0
    for path in sorted([*root.glob("solvers/*.py"), *root.glob("objective/*.py")]):
        for loop in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            marks = getattr(loop, "decorator_list", [])
            if not any(isinstance(mark, ast.Name) and mark.id == "hot" for mark in marks):
                continue
            loops += 1
            answers = [r.value for r in ast.walk(loop) if isinstance(r, ast.Return) and r.value]
            for call in (c for a in answers for c in ast.walk(a) if isinstance(c, ast.Call)):
                name = ast.unparse(call.func)
                assert not name.endswith("_replace") and not name[0].isupper(), (path.name, name)
    assert loops > 20


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_pairs_with_room_for_a_few_rows(rows):
    problem = any_kernel_problem(5)
    best = run(Smo(), problem, TIGHT).certificate
    found = run(Smo(rows * 8 * len(problem.y)), problem, Stop(tol=1e-8, max_epochs=500))
    assert found.certificate.relative_gap <= 1e-8
    assert found.certificate.dual == pytest.approx(best.dual, rel=1e-7)


@pytest.mark.parametrize("share", [0.0, 1e-3])
def test_a_start_where_nothing_is_violated(share):
    """All of beta at its bounds: no working set is left."""
    rng = np.random.default_rng(0)
    X, y, kernel = rng.normal(size=(200, 3)), np.repeat([-1.0, 1.0], 100), Gaussian(1.0)
    problem = make_kernel_problem(kernel, points(kernel, X), y, np.full(200, 1e-6), Hinge(), True)
    stop = Stop(tol=-1.0, rules=(Optimality(1e-3),))
    small = WorkingSet(floor=1e-3, share=share, **SMALL)
    found = run(small, problem, stop, alpha=1e-6 * y)
    assert found.stop_reason == "kkt"
    assert found.best.alpha == pytest.approx(1e-6 * y)


def test_a_buffer_may_come_back_while_another_is_taken():
    """The garbage collector runs where it likes, in the thread that has the lock as well."""
    with kernel_cache._lock:
        again = kernel_cache._lock.acquire(blocking=False)
        assert again
        kernel_cache._lock.release()


def test_an_epoch_in_slices_gives_the_same_bits(monkeypatch):
    problem = any_kernel_problem(4, free=False)
    stop = Stop(tol=1e-6, max_epochs=20_000)
    whole = run(KernelDual(), problem, stop)
    monkeypatch.setattr(kernel_dual, "_SLICE", 3 * len(problem.y))
    sliced = run(KernelDual(), problem, stop)
    assert np.array_equal(whole.best.w, sliced.best.w)
    assert (sliced.state.epoch, sliced.state.iterations) == (
        whole.state.epoch,
        whole.state.iterations,
    )
    cut = run(KernelDual(), problem, Stop(max_seconds=0.0))
    assert (cut.stop_reason, cut.state.epoch) == ("max_time", 0)
    assert np.count_nonzero(cut.best.alpha) == 3


@pytest.mark.parametrize("budget", [200_000, 1_000_000, 1 << 30])
def test_going_to_float64_stays_within_the_budget(larger, budget):
    empty_stock()
    solver = WorkingSet(budget, share=1e-3, **SMALL)
    before = solver.init(larger, 0)
    taken = np.arange(0, 400, 4)
    before.matrix.admit(before.rows, taken)
    assert not before.wide and before.matrix.K.nbytes > 0
    after = solver._widened(larger, before)
    stock = sum(raw.size for raw in kernel_cache._stock)
    old = before.rows.cache.rows.nbytes + before.matrix.K.nbytes
    assert old + stock + after.rows.cache.rows.nbytes <= budget
    before.rows.add(taken, np.ones(100), np.zeros(400))  # released, not broken


def test_a_large_stock_is_not_kept_for_a_small_budget():
    empty_stock()
    del [RowCache(1000, 4_000_000, np.float32)][:]
    assert sum(raw.size for raw in kernel_cache._stock) == 4_000_000
    RowCache(10, 1000, np.float32)
    assert sum(raw.size for raw in kernel_cache._stock) <= 1000


def test_problems_share_memory_as_they_run():
    assert share_of(100, 1) == 100
    for threads, share in ((1, 100), (4, 25), (50, 10)):
        with use_threads(threads):
            assert share_of(100, 10) == share
