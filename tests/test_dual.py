"""Dual coordinate descent: its iterates, its optimum, shrinking, symmetries."""

import numpy as np
import pytest
from conftest import (
    KINDS,
    LOSSES,
    SEEDS,
    any_problem,
    every_kind,
    every_loss,
    frozen,
    make_rows,
    plain,
    random_labels,
    random_problem,
    run_python,
    sample_problem,
    turned,
)
from hypothesis import given

from pegasos.core.rng import shuffle, stream
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import Hinge, Logistic, SquaredHinge, dual_step, visit
from pegasos.objective.problem import make_problem
from pegasos.solvers import dual, dual_verbs
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import FreeIntercept

pytestmark = [
    pytest.mark.filterwarnings("error"),
    pytest.mark.filterwarnings(
        "ignore:invalid value encountered in sqrt"
    ),  # expected to fail below
]
PLAIN = Dual(shrinking=False)
CLOSE = Stop(tol=1e-6, max_epochs=5000)
VERY_CLOSE = Stop(tol=1e-10, max_epochs=20_000)


def reference(problem, epochs, seed):
    """Dual coordinate descent, slow and readable."""
    X, y, c = plain(problem.rows), problem.y, problem.c
    n = y.size
    w, alpha = problem.center.copy(), np.zeros(n)
    rng = stream(seed)
    for _ in range(epochs):
        order = np.arange(n)
        shuffle(order, n, rng)
        for i in order:
            z = y[i] * (X[i] @ w)
            _, _, new = visit(problem.loss, alpha[i], z, X[i] @ X[i], c[i])
            w += (new - alpha[i]) * y[i] * X[i]
            alpha[i] = new
    return alpha, w


def after_epochs(solver, problem, epochs, seed=0):
    state = solver.init(problem, seed)
    while state.epoch < epochs:
        state = solver.step(problem, state)
    return state


@every_loss
@every_kind
def test_iterates_are_those_of_the_reference(loss, kind):
    problem = random_problem(3, loss, kind, "penalised", centered=True)
    state = after_epochs(PLAIN, problem, 5, seed=7)
    alpha, w = reference(problem, 5, seed=7)
    assert np.abs(alpha).max() > 0.1
    assert np.allclose(state.alpha, alpha, rtol=1e-12, atol=1e-12)
    assert np.allclose(state.w, w, rtol=1e-12, atol=1e-12)


@every_loss
@every_kind
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_it_reaches_the_gap(loss, kind, intercept):
    problem = random_problem(4, loss, kind, intercept)
    result = run(Dual(), problem, CLOSE)
    assert result.stop_reason == "gap"


@every_loss
@pytest.mark.parametrize("intercept", ["none", "penalised"])
@given(seed=SEEDS)
def test_it_reaches_the_gap_on_any_small_problem(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    problem = problem._replace(c=frozen(np.minimum(problem.c, 1.0)))
    assert run(Dual(), problem, CLOSE).stop_reason == "gap"


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("kind", ["dense-float32", "csr-float32-uint32"])
@pytest.mark.parametrize("name", ["pima", "spambase"])
def test_it_reaches_the_gap_on_the_samples(name, loss, kind):
    problem = sample_problem(name, loss, kind, C=0.01)
    assert run(Dual(), problem, CLOSE).stop_reason == "gap"


def _quick_problem(free):
    """One of which the gap falls fifteenfold in an epoch."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 60)) / 8.0
    y = np.sign(X[:, 0] + 0.1 * rng.normal(size=len(X)))
    rows = make_rows("csr-float64-uint32", X, float(free))
    problem = make_problem(rows, y, np.full(len(y), 0.1), Logistic(), free=free)
    return problem, FreeIntercept(Dual()) if free else Dual()


@pytest.mark.slow
@pytest.mark.parametrize("free", [False, True])
def test_the_gap_is_estimated_within_an_epoch(free):
    """Where it falls fast: after each quarter, as well as after an epoch."""
    problem, solver = _quick_problem(free)
    state, within = solver.init(problem, 0), 0
    most = 20.0 if free else 6.0  # of alpha that is not balanced the bound is loose
    while state.epoch < 4:
        before, state = state.epoch, solver.step(problem, state)
        exact = evaluate(problem, *solver.candidate(problem, state)).certificate.gap
        if state.epoch > 0:  # the first ones by a sample
            assert (exact if state.epoch > 1 else 0.7 * exact) <= state.estimate <= most * exact
        within += state.epoch == before
    assert within >= 6


@pytest.mark.slow
@pytest.mark.parametrize("free", [False, True])
def test_a_run_may_end_within_an_epoch(free):
    problem, solver = _quick_problem(free)
    ends, cursors = [], []
    for tol in np.logspace(-2, -4, 9):
        found = run(solver, problem, Stop(tol=tol))
        assert found.stop_reason == "gap" and found.certificate.relative_gap <= tol
        exact = evaluate(problem, found.best.alpha, found.best.w).certificate
        assert exact.relative_gap == pytest.approx(found.certificate.relative_gap, rel=1e-6)
        state = getattr(found.state, "inner", found.state)
        ends.append(state.visits / len(problem.y))
        cursors.append(state.epoch)
    assert any(end > epoch for end, epoch in zip(ends, cursors, strict=True))
    assert ends == sorted(ends)


@pytest.mark.slow
def test_who_stops_within_an_epoch_gets_the_point_that_is_there():
    problem, solver = _quick_problem(False)
    asked = []

    def enough(progress):
        asked.append(progress)
        return len(asked) == 4  # the third quarter of the second epoch

    found = run(solver, problem, Stop(tol=1e-9, callback=enough, every=1))
    assert found.stop_reason == "callback" and [p.epoch for p in asked] == [1, 1, 1, 1]
    exact = evaluate(problem, found.state.alpha).certificate
    assert found.certificate.gap <= exact.gap < 0.7 * asked[0].certificate.gap


@every_loss
def test_storages_agree(loss):
    found = [after_epochs(Dual(), random_problem(5, loss, kind), 6).alpha for kind in KINDS]
    assert np.ptp(found, axis=0).max() <= 1e-10


@every_loss
def test_shrinking_changes_the_way_and_not_the_optimum(loss):
    problem = random_problem(6, loss, intercept="penalised", n=40)
    with_it, without = run(Dual(), problem, VERY_CLOSE), run(PLAIN, problem, VERY_CLOSE)
    assert with_it.stop_reason == without.stop_reason == "gap"
    assert with_it.certificate.primal == pytest.approx(without.certificate.primal, rel=1e-9)
    assert np.allclose(with_it.best.w, without.best.w, atol=1e-4)


def test_shrinking_sets_rows_aside():
    problem = random_problem(6, n=40, intercept="penalised")
    state = after_epochs(Dual(), problem, 30)
    assert 0 < state.active < 40
    assert after_epochs(PLAIN, problem, 30).active == 40


@every_loss
def test_after_a_certificate_no_row_is_aside_that_would_move(loss):
    problem = random_problem(6, loss, n=40, intercept="penalised")
    rash, brought_back = Dual(caution=1e-9), 0
    state = rash.init(problem, 0)
    for _ in range(20):
        was_aside = ~state.stays
        seen = evaluate(problem, state.alpha)
        state = rash.refresh(problem, state, seen)
        brought_back += np.sum(was_aside & state.stays)
        for i in np.flatnonzero(~state.stays):
            a, z, q, c = state.alpha[i], seen.margins[i], problem.q[i], problem.c[i]
            assert dual_step(loss, a, z, q, c) == a
        state = rash.step(problem, rash.step(problem, state))
    assert brought_back > 0 or isinstance(loss, Logistic)  # which never sets a row aside


def test_full_caution_sets_aside_only_what_stays_at_its_bound():
    """The proof of the safe rule, tested: such an alpha has the same value in the optimum."""
    problem = random_problem(6, n=40, intercept="penalised")
    best = run(PLAIN, problem, VERY_CLOSE).best.alpha
    solver = Dual(caution=1.0)
    state, aside = solver.init(problem, 0), 0
    for _ in range(60):
        gap = evaluate(problem, state.alpha).certificate.gap
        state = solver.step(problem, state._replace(radius=np.sqrt(2.0 * gap)))
        dropped = np.flatnonzero(~state.stays)
        aside = max(aside, dropped.size)
        assert np.allclose(state.alpha[dropped], best[dropped], atol=1e-6)
    assert aside > 5


@every_loss
def test_the_estimate_of_an_epoch_in_which_w_stands_still_is_the_gap(loss):
    rng = np.random.default_rng(8)
    X, y = 1e-9 * rng.normal(size=(20, 3)), random_labels(rng, rng.normal(size=(20, 3)))
    center = 1e9 * rng.normal(size=4)  # margins of size 1, which no alpha can move
    problem = make_problem(make_rows("dense-float64", X), y, np.ones(20), loss, center)
    alpha = rng.random(20)
    state = PLAIN.init(problem, 0, alpha)
    state = PLAIN.step(problem, PLAIN.refresh(problem, state, evaluate(problem, alpha)))
    assert state.estimate == pytest.approx(evaluate(problem, alpha).certificate.gap, rel=1e-6)


def test_slices_of_an_epoch_change_nothing(monkeypatch):
    problem = random_problem(9, n=40)
    whole = after_epochs(Dual(), problem, 20)
    monkeypatch.setattr(dual_verbs, "SLICE", 35)  # of 200 entries
    first = Dual().step(problem, Dual().init(problem, 0))
    assert (first.epoch, first.cursor) == (0, 7)
    sliced = after_epochs(Dual(), problem, 20)
    assert np.array_equal(sliced.alpha, whole.alpha)
    assert np.array_equal(sliced.w, whole.w)
    assert sliced.estimate == pytest.approx(whole.estimate, rel=1e-12)


def _in_series(n, d):
    """Rows of a random walk: neighbours are alike."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(n, d)), axis=0)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) * np.sqrt(d))
    return X, np.sign(X @ rng.normal(size=d) + 0.1 * rng.normal(size=n))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sorted", "series"])
def test_neighbours_that_are_alike_need_few_more_epochs(monkeypatch, kind):
    X, y = _in_series(9000, 20)
    if kind == "sorted":
        X = np.random.default_rng(1).normal(size=X.shape) / 4.0
        y = np.sign(X[:, 0] + 0.05 * X[:, 1])
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    problem = make_problem(make_rows("dense-float64", X, 0.0), y, np.full(len(y), 0.1), Hinge())
    free = run(Dual(), problem, Stop(tol=1e-3))
    monkeypatch.setattr(dual, "near_rows", lambda rows: 16)
    near, again = run(Dual(), problem, Stop(tol=1e-3)), run(Dual(), problem, Stop(tol=1e-3))
    assert free.stop_reason == near.stop_reason == "gap"
    assert near.state.epoch <= (2.0 if kind == "series" else 1.5) * free.state.epoch
    assert not np.array_equal(near.best.alpha, free.best.alpha)
    np.testing.assert_array_equal(near.best.alpha, again.best.alpha)


def test_few_rows_come_in_any_order(monkeypatch):
    X, y = _in_series(300, 40)
    problem = make_problem(make_rows("dense-float64", X, 0.0), y, np.full(300, 10.0), Hinge())
    free = after_epochs(Dual(), problem, 5)
    monkeypatch.setattr(dual, "near_rows", lambda rows: 16)
    np.testing.assert_array_equal(after_epochs(Dual(), problem, 5).alpha, free.alpha)


def test_rows_left_out_wrongly_come_back_without_a_certificate():
    """A rash solver, of which nobody asks for a certificate, still finds the optimum."""
    problem = random_problem(6, n=60, intercept="penalised")
    best = run(PLAIN, problem, VERY_CLOSE).certificate.primal
    state = after_epochs(Dual(caution=1e-9, memory=0), problem, 400)
    blind = Dual(caution=1e-9, memory=0).init(problem, 0)
    for _ in range(400):
        blind = Dual(caution=1e-9, memory=0).step(problem, blind._replace(mark=0.0))
    gaps = [evaluate(problem, s.alpha).certificate.primal / best - 1.0 for s in (state, blind)]
    assert gaps[0] < 1e-6 < gaps[1]


@every_loss
def test_a_centre_of_zero_is_the_ordinary_model(loss):
    problem = random_problem(10, loss)
    explicit = problem._replace(center=np.zeros(6))
    implicit = make_problem(problem.rows, problem.y, problem.c, loss)
    one, other = (after_epochs(Dual(), p, 5) for p in (explicit, implicit))
    assert np.array_equal(one.w, other.w)


@every_loss
def test_a_centre_at_the_optimum_of_more_data_needs_less(loss):
    """With the solution as centre, w = w0 is worth no more than the solution's losses."""
    problem = random_problem(10, loss)
    w = run(Dual(), problem, CLOSE).best.w
    moved = run(Dual(), problem._replace(center=w), CLOSE)
    assert moved.stop_reason == "gap"
    losses_at_w = evaluate(problem._replace(center=w), np.zeros(30), w).certificate.primal
    assert moved.certificate.primal <= losses_at_w * (1.0 + 1e-9)


@every_loss
def test_label_flip_flips_the_sign(loss):
    problem = random_problem(11, loss, intercept="penalised", centered=True)
    one, other = (after_epochs(Dual(), p, 10) for p in (problem, turned(problem)))
    assert np.array_equal(one.alpha, other.alpha)
    assert np.array_equal(one.w, -other.w)


@every_loss
def test_weight_k_equals_k_copies(loss):
    problem = random_problem(12, loss, n=15)
    k = np.random.default_rng(0).integers(1, 4, 15)
    X = np.repeat(plain(problem.rows)[:, :-1], k, axis=0)
    copies = make_problem(
        make_rows("dense-float64", X), frozen(np.repeat(problem.y, k)), np.ones(k.sum()), loss
    )
    weighted = problem._replace(c=frozen(k.astype(float)))
    one, other = run(Dual(), weighted, VERY_CLOSE), run(Dual(), copies, VERY_CLOSE)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)
    assert np.allclose(one.best.w, other.best.w, atol=1e-4)


def with_zero_rows(kind, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)).astype(np.float32)
    X[[3, 8, 19]] = 0.0
    return make_problem(make_rows(kind, X), random_labels(rng, X), np.ones(20), loss)


@every_loss
@pytest.mark.parametrize("kind", ["dense-float64", "csr-float32-uint32"])
@pytest.mark.bounds
def test_zero_rows_cost_their_loss_and_harm_nothing(loss, kind):
    problem = with_zero_rows(kind, loss)
    assert run(Dual(), problem, CLOSE).stop_reason == "gap"
    nothing = make_rows(kind, np.zeros((20, 3)))
    result = run(Dual(), make_problem(nothing, problem.y, np.ones(20), loss), CLOSE)
    assert result.stop_reason == "gap" and not result.best.w.any()


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=repr)
def test_zero_rows_without_shrinking(loss):
    problem = with_zero_rows("dense-float64", loss)
    assert run(PLAIN, problem, Stop(tol=1e-6, max_epochs=500)).stop_reason == "gap"


@every_loss
def test_a_warm_start_from_the_optimum_ends_at_once(loss):
    problem = random_problem(13, loss, intercept="penalised", centered=True)
    cold = run(Dual(), problem, CLOSE)
    warm = run(Dual(), problem, CLOSE, alpha=cold.best.alpha)
    assert warm.stop_reason == "gap"
    assert warm.state.epoch == 0 < cold.state.epoch
    assert warm.certificate.gap <= cold.certificate.gap


@every_loss
def test_a_warm_start_from_another_box_reaches_the_gap(loss):
    problem = random_problem(13, loss)
    start = run(Dual(), problem, CLOSE).best.alpha
    for factor in (0.1, 3.0):
        other = problem._replace(c=frozen(factor * problem.c))
        given_start = start.copy()
        assert run(Dual(), other, CLOSE, alpha=given_start).stop_reason == "gap"
        assert np.array_equal(given_start, start), "the start is not written to"


def test_a_manual_loop_may_start_from_alpha():
    problem = random_problem(13)
    best = run(Dual(), problem, VERY_CLOSE).best
    state = Dual().step(problem, Dual().init(problem, 0, best.alpha))
    assert np.allclose(state.alpha, best.alpha, atol=1e-3)


def test_w_follows_alpha_after_a_start_outside_the_box():
    problem = random_problem(13)
    state = Dual().init(problem, 0, 3.0 * problem.c)
    state = Dual().refresh(problem, state, evaluate(problem, state.alpha))
    state = Dual().step(problem, state)
    v = plain(problem.rows).T @ (problem.y * state.alpha)
    assert np.allclose(state.w, v, atol=1e-9)


def test_the_last_digit_is_no_trouble():
    for seed in range(6):
        problem = random_problem(seed, SquaredHinge(), intercept="penalised", n=12, C=0.01)
        with np.errstate(invalid="raise"):
            result = run(Dual(), problem, Stop(tol=0.0, max_epochs=100))
        assert result.certificate.relative_gap <= 1e-12
        assert np.isfinite(result.state.radius)


def test_rounding_of_the_estimate_sets_no_row_aside():
    X, y = np.array([[-0.13733016, -0.21088523], [0.0, 0.0]]), np.array([1.0, -1.0])
    problem = make_problem(make_rows("dense-float64", X), y, np.ones(2), SquaredHinge())
    assert run(Dual(), problem, Stop(tol=1e-6, max_epochs=200)).stop_reason == "gap"


def test_another_seed_is_another_way_to_the_same_answer():
    problem = random_problem(14)
    ways = [after_epochs(Dual(), problem, 2, seed).alpha for seed in (0, 0, 1)]
    assert np.array_equal(ways[0], ways[1]) and not np.array_equal(ways[0], ways[2])
    ends = [run(Dual(), problem, VERY_CLOSE, seed).certificate.primal for seed in (0, 1)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


INTERPRETED = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from conftest import LOSSES, random_problem
from test_dual import after_epochs, Dual
for k, loss in enumerate(LOSSES):
    for kind in ("dense-float32", "csr-float64-uint64"):
        state = after_epochs(Dual(), random_problem(15, loss, kind, centered=True), 12)
        np.save(f"{k}-{kind}.npy", np.concatenate([state.alpha, state.w, [state.estimate]]))
"""


@pytest.mark.jit
def test_interpreted_equals_compiled(tmp_path, request):
    run_python(INTERPRETED, str(request.path.parent), cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    for k, loss in enumerate(LOSSES):
        for kind in ("dense-float32", "csr-float64-uint64"):
            state = after_epochs(Dual(), random_problem(15, loss, kind, centered=True), 12)
            compiled = np.concatenate([state.alpha, state.w, [state.estimate]])
            interpreted = np.load(tmp_path / f"{k}-{kind}.npy")
            assert np.allclose(compiled, interpreted, rtol=1e-9, atol=1e-9)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from scipy import sparse
from pegasos.data.check import as_rows
from pegasos.core.threads import use_threads
from pegasos.objective.losses import Hinge
from pegasos.objective.problem import make_problem
from pegasos.solvers import team
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual

team._WORTH = team._PAYS = 0.0
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = sparse.random(20_000, 300, 0.05, format="csr", random_state=0)
y = np.where(rng.random(20_000) < 0.5, 1.0, -1.0)
problem = make_problem(as_rows(X), y, np.full(20_000, 100.0), Hinge())
for threads in (1, 2):
    with use_threads(threads):
        run(Dual(), problem, Stop(tol=0.0, max_epochs=30))  # compiles, the moves of late epochs too
        for k in range(8):
            later = threading.Timer(0.05 + 0.007 * k, os.kill, (os.getpid(), signal.SIGINT))
            later.start()
            found = run(Dual(shrinking=False), problem, Stop(tol=0.0, max_epochs=10**9))
            print(found.stop_reason)
"""


@pytest.mark.jit
def test_ctrl_c_in_the_middle_of_a_sweep_ends_the_run(tmp_path):
    """Not the process: what a hot loop returns must not need the interpreter to be made."""
    done = run_python(INTERRUPTED, cwd=tmp_path)
    assert done.stdout.split() == ["interrupted"] * 16
