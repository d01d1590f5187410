"""The truncated Newton method: its optimum by every way to a direction, from a sample or not."""

import numpy as np
import pytest
from conftest import (
    SEEDS,
    any_problem,
    every_intercept,
    every_kind,
    frozen,
    make_rows,
    plain,
    random_labels,
    random_problem,
    run_python,
    turned,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from test_newton import reference

from pegasos.core import matrix
from pegasos.core.matrix import products
from pegasos.core.rows import n_rows
from pegasos.core.threads import use_threads
from pegasos.objective.certificate import evaluate, loss_sum
from pegasos.objective.losses import Hinge, Logistic, SquaredHinge
from pegasos.objective.problem import make_problem
from pegasos.solvers import newton_cg
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.newton import penalties
from pegasos.solvers.newton_cg import NewtonCG
from pegasos.solvers.newton_start import started

pytestmark = pytest.mark.filterwarnings("error")
LOSSES = [SquaredHinge(), Logistic()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
CLOSE = Stop(tol=1e-6, max_epochs=200)
VERY_CLOSE = Stop(tol=1e-10, max_epochs=200)


@pytest.fixture(params=["one loop", "matrix", "old matrix", "diagonal"])
def way(request, monkeypatch):
    """The ways to a direction, each forced."""
    if request.param == "one loop":
        monkeypatch.setattr(newton_cg, "_is_small", lambda problem: True)
    elif request.param == "matrix":
        monkeypatch.setattr(newton_cg, "_is_small", lambda problem: False)
    elif request.param == "old matrix":
        monkeypatch.setattr(newton_cg, "gram_work", lambda rows: np.inf)
    elif request.param == "diagonal":
        monkeypatch.setattr(newton_cg, "MAX_COLUMNS", 1)
    return request.param


def tall_problem(loss, intercept="none", kind="csr-float32-uint32", n=800, C=1.0):
    """Enough rows for a sample; the last columns are rare, so that a sample may miss them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 6))
    X[:, 4] *= rng.random(n) < 0.01
    X[:, 5] = 0.0
    X[[7, n - 2], 5] = 2.0
    y = random_labels(rng, X + 0.5 * rng.normal(size=X.shape))
    rows = make_rows(kind, X, 0.0 if intercept == "none" else 1.0)
    return make_problem(rows, y, np.full(n, C), loss, free=intercept == "free")


@every_loss
@every_intercept
@pytest.mark.parametrize("kind", ["dense-float64", "csr-float32-uint32"])
@pytest.mark.bounds
def test_the_optimum_is_that_of_the_reference(loss, intercept, kind, way):
    problem = random_problem(1, loss, kind, intercept, centered=True)
    result = run(NewtonCG(), problem, VERY_CLOSE)
    w, least = reference(problem)
    assert result.certificate.primal == pytest.approx(least, rel=1e-9)
    assert np.allclose(plain(problem.rows) @ result.best.w, plain(problem.rows) @ w, atol=1e-4)


@every_loss
@every_intercept
def test_the_estimate_is_the_gap_of_the_candidate(loss, intercept, way):
    """Of a response, and of one that a step foretold."""
    problem, solver = tall_problem(loss, intercept, C=100.0), NewtonCG()
    state = solver.init(problem, 0)
    for _ in range(5):
        state = solver.step(problem, state)
        proven = evaluate(problem, *solver.candidate(problem, state)).certificate
        rel = 0.3 if intercept == "free" else 0.05  # balance is guessed, rounding of H left out
        assert state.estimate == pytest.approx(proven.gap, rel=rel, abs=1e-9 * proven.primal)


def test_a_good_answer_is_proven_by_the_step_that_finds_it():
    """The response at w would need a step more: it is worse by the condition of H."""
    problem, solver = tall_problem(Logistic(), C=100.0), NewtonCG()
    state, least = solver.init(problem, 0), run(solver, problem, VERY_CLOSE).certificate.primal
    while not state.objective < (1.0 + 1e-4) * least:
        state = solver.step(problem, state)
    assert state.estimate < 1e-3 * state.objective
    gradient = newton_cg._with_gradient(problem, state.at).gradient
    assert 0.5 * float(gradient @ gradient) > 10.0 * state.estimate


@every_loss
@every_kind
@every_intercept
def test_it_reaches_the_gap(loss, kind, intercept, way):
    problem = random_problem(2, loss, kind, intercept, n=40, centered=True)
    assert run(NewtonCG(), problem, CLOSE).stop_reason == "gap"


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_it_reaches_the_gap_on_any_small_problem(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    assume(plain(problem.rows)[:, :-1].any())
    assert run(NewtonCG(), problem, CLOSE).stop_reason == "gap"


@every_loss
@every_intercept
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_a_sample_is_only_where_it_starts(loss, intercept, way, C):
    problem = tall_problem(loss, intercept, C=C)
    one = run(NewtonCG(), problem, VERY_CLOSE)
    other = run(NewtonCG(sampling=False), problem, VERY_CLOSE)
    assert one.stop_reason == other.stop_reason == "gap"
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-10)
    assert np.allclose(one.best.w, other.best.w, atol=1e-3)
    assert one.best.w[5] != 0.0  # two rows know of this column, most samples do not


@every_loss
def test_a_sample_saves_steps_on_all_rows(loss):
    problem = tall_problem(loss, n=4000)
    epochs = [run(NewtonCG(s), problem, CLOSE).state.epoch for s in (True, False)]
    assert epochs[0] < epochs[1]


def value_at(problem, w):
    away = penalties(problem) * (w - problem.center)
    return 0.5 * float(away @ away) + loss_sum(problem, problem.y * products(problem.rows, w))


@every_loss
@every_intercept
@every_kind
@pytest.mark.bounds
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_a_small_sample_ends_where_steps_one_by_one_do(loss, intercept, kind, C):
    problem = tall_problem(loss, intercept, kind, C=C)
    w = started(problem, problem.center, penalties(problem), 1e-9)
    best = run(NewtonCG(sampling=False), problem, VERY_CLOSE).certificate.primal
    assert value_at(problem, w) == pytest.approx(best, rel=1e-6)


@every_loss
@pytest.mark.parametrize("kind", ["dense-float64", "csr-float32-uint32"])
@given(seed=SEEDS, scale=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_start_is_never_worse_than_the_centre(loss, kind, seed, scale):
    """Far from 0 all rows may lie beyond the kink, and the first steps of a search too far."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < rng.choice([0.1, 1.0]))
    u = rng.normal(size=13)
    y = np.where(X @ u[:12] > 0.0, 1.0, -1.0)
    center = scale * rng.normal(size=13)
    rows = make_rows(kind, X, 1.0)
    problem = make_problem(rows, y, np.full(40, 10.0 ** rng.integers(-2, 4)), loss, center)
    w = started(problem, center, penalties(problem), 3e-3)
    assert value_at(problem, w) <= value_at(problem, center) * (1.0 + 1e-12)


def test_a_start_that_cannot_be_factored_stays_where_it_is():
    problem = tall_problem(SquaredHinge())
    R = np.full_like(problem.center, -1e6)  # no ridge below 1 makes up for that
    assert np.array_equal(started(problem, problem.center, R, 1e-3), problem.center)


@every_loss
@every_intercept
def test_every_step_lowers_the_objective(loss, intercept, way):
    problem = tall_problem(loss, intercept, C=30.0)
    solver = NewtonCG()
    state = solver.step(problem, solver.init(problem, 0))
    for _ in range(8):
        before, state = state, solver.step(problem, state)
        assert state.objective <= before.objective * (1 + 1e-13)


@every_loss
def test_the_estimate_is_the_gap_of_its_point(loss):
    problem = random_problem(12, loss, intercept="penalised", centered=True)
    state = NewtonCG().init(problem, 0)
    for _ in range(6):
        state = NewtonCG().step(problem, state)
        gap = evaluate(problem, *NewtonCG().candidate(problem, state)).certificate.gap
        assert state.estimate == pytest.approx(gap, rel=1e-6, abs=1e-10 * problem.c.sum())


@every_loss
@every_intercept
def test_label_flip_flips_the_sign(loss, intercept):
    problem = random_problem(6, loss, intercept=intercept, centered=True)
    one, other = (run(NewtonCG(), p, VERY_CLOSE) for p in (problem, turned(problem)))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)
    assert np.allclose(one.best.w[:-1], -other.best.w[:-1], atol=1e-4)


@every_loss
@every_intercept
def test_weight_k_equals_k_copies(loss, intercept):
    problem = random_problem(8, loss, intercept=intercept, n=15)
    k = np.random.default_rng(0).integers(1, 4, 15)
    X, bias = np.repeat(plain(problem.rows)[:, :-1], k, axis=0), problem.rows.bias
    rows, y = make_rows("dense-float64", X, bias), np.repeat(problem.y, k)
    copies = make_problem(rows, frozen(y), np.ones(k.sum()), loss, free=problem.free)
    weighted = problem._replace(c=frozen(k.astype(float)))
    one, other = run(NewtonCG(), weighted, VERY_CLOSE), run(NewtonCG(), copies, VERY_CLOSE)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)


@every_loss
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_a_warm_start_from_the_optimum_ends_at_once(loss, intercept):
    problem = random_problem(10, loss, intercept=intercept, centered=True)
    cold = run(NewtonCG(), problem, CLOSE)
    warm = run(NewtonCG(), problem, CLOSE, alpha=cold.best.alpha.copy())
    assert warm.stop_reason == "gap" and warm.state.epoch <= 1


@every_loss
def test_data_that_say_nothing(loss, way):
    rows, y = make_rows("dense-float64", np.zeros((40, 2))), frozen(np.tile([1.0, -1.0], 20))
    result = run(NewtonCG(), make_problem(rows, y, np.ones(40), loss), CLOSE)
    assert result.stop_reason == "gap" and not result.best.w.any()


@every_loss
def test_threads_change_nothing(loss, way, monkeypatch):
    monkeypatch.setattr(matrix, "_ALONE", 0.0)
    monkeypatch.setattr(matrix, "_BLOCK", 500)
    problem, found = tall_problem(loss), []
    assert n_rows(problem.rows) > 4 * matrix.row_block(problem.rows), "many blocks"
    for n in (1, 2):
        with use_threads(n):
            found.append(run(NewtonCG(), problem, CLOSE).best.w)
    assert np.array_equal(*found)


def test_a_loss_without_curvature_is_refused():
    with pytest.raises(ValueError, match="curvature .* take 'dual', 'newton' or 'interior'"):
        NewtonCG().init(random_problem(1, Hinge()), 0)


INTERPRETED = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from test_newton_cg import LOSSES, CLOSE, NewtonCG, run, tall_problem
for k, loss in enumerate(LOSSES):
    result = run(NewtonCG(), tall_problem(loss, "free", n=100), CLOSE)
    np.save(f"{k}.npy", [*result.best.w, *result.certificate])
"""


@pytest.mark.jit
def test_interpreted_equals_compiled(tmp_path, request):
    run_python(INTERPRETED, str(request.path.parent), cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    for k, loss in enumerate(LOSSES):
        result = run(NewtonCG(), tall_problem(loss, "free", n=100), CLOSE)
        interpreted = np.load(tmp_path / f"{k}.npy")
        assert np.allclose([*result.best.w, *result.certificate], interpreted, rtol=1e-6, atol=1e-6)


def in_one_loop_and_in_pieces(monkeypatch, problem, steps, alpha=None):
    found = []
    for small in (True, False):
        monkeypatch.setattr(newton_cg, "_is_small", lambda problem, small=small: small)
        states = [NewtonCG().init(problem, 0, alpha)]
        for _ in range(steps):
            states.append(NewtonCG().step(problem, states[-1]))
        found.append(states[1:])
    return zip(*found, strict=True)


@every_loss
@every_intercept
@pytest.mark.parametrize("kind", ["dense-float32", "dense-float64", "csr-float32-uint32"])
@pytest.mark.parametrize("filled", [1.0, 0.3])
@pytest.mark.bounds
def test_a_step_in_one_loop_is_that_of_its_pieces(monkeypatch, loss, intercept, kind, filled):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 9)) * (rng.random((400, 9)) < filled)
    y = random_labels(rng, X + 0.5 * rng.normal(size=X.shape))
    rows = make_rows(kind, X, 0.0 if intercept == "none" else 1.0)
    center = 0.1 * rng.normal(size=10)
    problem = make_problem(rows, y, np.full(400, 3.0), loss, center, free=intercept == "free")
    for one, other in in_one_loop_and_in_pieces(monkeypatch, problem, 4):
        for name in ("w", "scores", "a", "h", "alpha"):
            pair = getattr(one.at, name), getattr(other.at, name)
            np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-5, err_msg=name)
        assert one.objective == pytest.approx(other.objective, rel=1e-9)
        assert one.estimate == pytest.approx(other.estimate, rel=1e-3, abs=1e-6 * one.objective)


@every_intercept
def test_one_loop_ends_where_its_pieces_do(monkeypatch, intercept):
    """From the optimum: by alpha, or since the centre is it. The gap of a is known then."""
    problem = random_problem(5, SquaredHinge(), intercept=intercept, C=3.0, centered=True)
    alpha = run(NewtonCG(), problem, VERY_CLOSE).best.alpha
    for one, other in in_one_loop_and_in_pieces(monkeypatch, problem, 1, alpha.copy()):
        assert one.estimate <= max(1e-9 * one.objective, 2.0 * other.estimate)
    X, y = np.array([[1.0, 0.5], [-2.0, 0.1]]), frozen(np.array([1.0, -1.0]))
    bias = 0.0 if intercept == "none" else 1.0
    rows, center = make_rows("dense-float64", X, bias), np.array([50.0, 0.0, 0.0])
    free = intercept == "free"
    problem = make_problem(rows, y, np.ones(2), SquaredHinge(), center, free=free)
    for one, other in in_one_loop_and_in_pieces(monkeypatch, problem, 1):
        assert one.exhausted and other.exhausted and one.estimate == other.estimate == 0.0
