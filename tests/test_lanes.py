"""Many problems in one sweep: each lane as good as a run of its own, and certified."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import LOSSES, every_kind, random_problem
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from pegasos import LinearSVC, LogisticRegression
from pegasos.core.lanes import LANES, add_line, add_product, axpys, dots, lines, put_line
from pegasos.core.matrix import combine
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.core.threads import use_threads
from pegasos.core.zeros import without_zeros
from pegasos.data.check import as_rows
from pegasos.estimators.sweeps import WIDE, _groups
from pegasos.objective.certificate import evaluate, evaluate_all
from pegasos.objective.losses import Hinge
from pegasos.objective.problem import make_problem
from pegasos.solvers.lane_moves import PATIENCE, combined
from pegasos.solvers.lane_steps import CAUTION, caution_after, epochs
from pegasos.solvers.lanes import Goal, Lane, Many, _Group, descend


def many(problem, factors, c=None):
    """The problem with several weights on its losses."""
    c = problem.c if c is None else c
    label = (problem.y > 0).astype(int)
    lanes = [Lane(1, factor, problem.center, c) for factor in factors]
    return Many(problem, label, lanes)


@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.parametrize("n", [400, 5000])
def test_epochs_in_one_loop_are_those_of_a_loop_each(n, count):
    """Each draws an order of the rows that are left, wherever the loop was entered."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 60))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1, 0)
    shared = make_problem(DenseRows(X, 0.0), np.where(y == 1, 1.0, -1.0), np.ones(n), Hinge())
    answers = []
    for at_once in (1, 6):
        factors = np.linspace(0.01, 1.0, count)
        group = _Group(many(shared, factors), list(range(count)), Goal(1e-9, 6), 0)
        group._begin()
        place = (0, group.active, 1 << 40, 0)
        for last in range(at_once, 7, at_once):
            goal = (1e-12, last, 0)
            place = epochs(group.problem, group.turns, group.states, place, goal, group.rng)
        assert place[3] == 6 and place[1] < n
        answers.append(group.state[:-2])  # without room for the numbers of a row
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("columns, least", [(17, 0.01), (101, 0.005), (785, 0.002), (10**6, 0.002)])
def test_caution_falls_with_the_epochs_where_w_has_many_directions(columns, least):
    falling = [caution_after(done, columns) for done in range(1, 1000)]
    assert falling[:10] == [CAUTION] * 10 and falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(least, rel=0.01)


def test_the_radius_of_shrinking_follows_the_caution():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    shared = make_problem(DenseRows(X, 0.0), y, np.ones(300), Hinge())
    group = _Group(many(shared, [0.1, 1.0]), [0, 1], Goal(1e-9, 40), 0)
    group._begin()
    place, rng = (0, group.active, 1 << 40, 0), group.rng
    for last in (5, 30):
        place = epochs(group.problem, group.turns, group.states, place, (1e-12, last, 0), rng)
        radius, gap = group.state.radius[:2], group.state.summed[:2]
        caution = caution_after(last, 61)
        np.testing.assert_allclose(radius, caution * np.sqrt(2.0 * gap))
    assert caution < CAUTION


@pytest.mark.parametrize("each", [1, 2])
def test_lines_begin_where_cache_lines_do(each):
    for n in (1, 7, 1000):
        for dtype in (np.float32, np.float64):
            W = lines(n, dtype, each)
            assert W.shape == (n, each * LANES) and W.dtype == dtype
            assert W.ctypes.data % 64 == 0 and not W.any()


def second_of_two(n, dtype):
    """Lines as loops see them where two share a line of the cache."""
    return lines(n, dtype, 2)[:, LANES:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("n", [0, 1, 8, 9])
@pytest.mark.parametrize("made", [lines, second_of_two])
def test_dots_and_axpys_are_products(dtype, weights, sparse, n, made):
    from pegasos.core.jit import hot

    rng = np.random.default_rng(0)
    values = rng.normal(size=n).astype(dtype)
    columns = rng.permutation(20)[:n].astype(np.uint32) if sparse else None
    places = columns if sparse else np.arange(n)
    W, out, a = made(20, weights), lines(1, weights)[0], lines(1, weights)[0]
    W[:], a[:] = rng.normal(size=W.shape), rng.normal(size=LANES)
    out[:] = 1.0
    hot(_dots)(values, columns, W, out)
    assert np.allclose(out, 1.0 + values @ W[places], rtol=1e-5, atol=1e-6)
    expected = W.copy()
    expected[places] += np.outer(values, a)
    hot(_axpys)(values, columns, a, W)
    assert np.allclose(W, expected, rtol=1e-5, atol=1e-6)


def _dots(values, columns, W, out):
    dots(values, columns, W, out)


def _axpys(values, columns, a, W):
    axpys(values, columns, a, W)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("other", [np.float32, np.float64])
@pytest.mark.parametrize("made", [lines, second_of_two])
def test_lines_are_put_and_added(dtype, other, made):
    from pegasos.core.jit import hot

    rng = np.random.default_rng(1)
    X, out = made(3, dtype), made(2, other)
    X[:], out[:] = rng.normal(size=X.shape), rng.normal(size=out.shape)
    expected = np.array([-0.5 * X[2], out[1] + 3.0 * X[0]])
    hot(_put_and_add)(X, out)
    assert np.allclose(out, expected, rtol=1e-6)


def _put_and_add(X, out):
    put_line(X, 2, -0.5, out, 0)
    add_line(X, 0, 3.0, out, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("other", [np.float32, np.float64])
@pytest.mark.parametrize("made", [lines, second_of_two])
def test_products_of_lines_are_added(dtype, other, made):
    from pegasos.core.jit import hot

    rng = np.random.default_rng(1)
    X, Z, out = made(3, dtype), made(2, other), made(2, np.float64)
    for array in (X, Z, out):
        array[:] = rng.normal(size=array.shape)
    expected = np.array([out[0], out[1] + X[2].astype(float) * Z[1]])
    hot(_add_a_product)(X, Z, out)
    assert np.allclose(out, expected, rtol=1e-12)


def _add_a_product(X, Z, out):
    add_product(X, 2, Z, 1, out, 1)


@pytest.mark.parametrize("filled", [0.1, 0.6])
def test_rows_without_zeros_are_the_same_rows(monkeypatch, filled):
    monkeypatch.setattr("pegasos.core.zeros._BLOCK", 500)  # several blocks, the last one short
    rng = np.random.default_rng(2)
    X = rng.normal(size=(70, 30)).astype(np.float32) * (rng.random((70, 30)) < filled)
    X[3] = 0.0
    with use_threads(2):
        rows = without_zeros(DenseRows(X, 0.5))
    assert isinstance(rows, CsrRows if filled < 0.3 else DenseRows)
    if filled < 0.3:
        dense = sp.csr_matrix((rows.values, rows.columns, rows.starts), (70, rows.width)).toarray()
        assert np.array_equal(dense, X)
        assert rows.bias == 0.5


@pytest.mark.parametrize("kind", ["dense-float64", "csr-float32-uint32"])
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("seed", [5, 9])
def test_second_order_steps_raise_the_dual_and_save_epochs(monkeypatch, seed, kind, intercept):
    problem = random_problem(seed, LOSSES[0], kind, intercept, n=200, d=60, C=10.0)
    factors, gains = [0.3, 1.0, 3.0], []

    def watched(shared, state, moves, oldest):
        def duals():
            alphas = [state.alpha[:, p].astype(float) for p in range(len(factors))]
            problems = [problem._replace(c=f * problem.c, free=False) for f in factors]
            return [evaluate(*pair).certificate for pair in zip(problems, alphas, strict=True)]

        before = duals()
        looks = combined(shared, state, moves, oldest)
        after = duals()
        assert _drift(shared, state) < 5e-4  # of float32
        if intercept == "none":
            gains.append([b.dual - a.dual for a, b in zip(before, after, strict=True)])
            assert np.min(gains[-1]) >= -1e-5 * abs(after[-1].dual)
        return looks

    monkeypatch.setattr("pegasos.solvers.lanes.combined", watched)
    goal = Goal(1e-3, 3000)
    found, _ = descend(many(problem, factors), [[2, 1, 0]], goal, 0)
    gaps = [answer.best.certificate.relative_gap for answer in found]
    assert max(gaps) <= 4e-3  # what is left is for runs of their own
    assert intercept == "free" or np.max(gains) > 0.0
    monkeypatch.setattr("pegasos.solvers.lanes.has_moves", lambda loss: False)
    plain, _ = descend(many(problem, factors), [[2, 1, 0]], goal, 0)
    assert sum(answer.epochs for answer in found) < 0.7 * sum(answer.epochs for answer in plain)


def _drift(shared, state):
    """How far W is from w0 + sum_i alpha_i y_i x_i, of its length."""
    signs = np.where(shared.y[:, None] == state.targets, 1.0, -1.0)
    V = np.array([combine(shared.rows, a) for a in (signs * state.alpha).T.astype(float)]).T
    W = state.centers + V
    return np.max(np.linalg.norm(state.W - W, axis=0) / (1e-9 + np.linalg.norm(W, axis=0)))


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", ["none", "penalised", "free"])
def test_every_lane_comes_near_its_optimum(kind, loss, intercept):
    problem = random_problem(2, loss, kind, intercept)
    factors = [0.01, 0.1, 0.3, 1.0, 3.0]
    found, _ = descend(many(problem, factors), [[4, 3], [2, 1, 0]], Goal(1e-3, 3000), 0)
    for answer, factor in zip(found, factors, strict=True):
        assert answer.epochs > 0
        assert answer.best.certificate.relative_gap < 0.1
        best, own = answer.best, problem._replace(c=factor * problem.c)
        alone = evaluate(own, best.alpha, best.w).certificate
        assert best.certificate.dual == pytest.approx(alone.dual, rel=1e-12)
        if intercept == "free":  # of which `evaluate` takes the best
            assert alone.primal <= best.certificate.primal * (1.0 + 1e-12)
        else:
            assert best.certificate.primal == pytest.approx(alone.primal, rel=1e-12)


@every_kind
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", ["none", "penalised", "free"])
def test_problems_certified_together_are_those_certified_alone(kind, loss, intercept):
    problem = random_problem(3, loss, kind, intercept)
    rng = np.random.default_rng(0)
    problems = [
        problem._replace(c=C * problem.c, y=rng.permutation(problem.y))
        for C in np.logspace(-2, 1, LANES + 3)
    ]
    alphas = [rng.uniform(-0.1, 1.1, p.c.size) * p.c for p in problems]
    for p, alpha, seen in zip(problems, alphas, evaluate_all(problems, alphas), strict=True):
        alone = evaluate(p, alpha)
        assert seen.certificate == pytest.approx(alone.certificate, rel=1e-12, abs=1e-12)
        assert np.allclose(seen.w, alone.w, rtol=1e-9, atol=1e-12)
        assert np.allclose(seen.margins, alone.margins, rtol=1e-9, atol=1e-9)
        assert np.array_equal(seen.alpha, alone.alpha)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", ["none", "penalised", "free"])
def test_a_row_of_weight_zero_is_not_in_the_problem(loss, intercept):
    problem = random_problem(5, loss, intercept=intercept)
    kept = np.r_[0:10, 20 : len(problem.y)]
    c = np.zeros_like(problem.c)
    c[kept] = problem.c[kept]
    (answer,), _ = descend(many(problem, [1.0], c), [[0]], Goal(1e-4, 3000), 0)
    assert not answer.best.alpha[10:20].any()
    part = problem._replace(
        rows=problem.rows._replace(values=problem.rows.values[kept]),
        y=problem.y[kept],
        c=problem.c[kept],
        q=problem.q[kept],
    )
    alone = evaluate(part, answer.best.alpha[kept]).certificate
    assert alone.relative_gap < 0.01
    assert answer.best.certificate == pytest.approx(alone, rel=1e-9)


def test_the_same_whatever_the_number_of_threads():
    problem = random_problem(6, LOSSES[0], "csr-float32-uint32")
    values = np.logspace(-2, 1, 20)
    groups = [list(range(start, start + 5)) for start in range(0, 20, 5)]
    found = []
    for threads in (1, 2):
        with use_threads(threads):
            answers, _ = descend(many(problem, values), groups, Goal(1e-3, 100), 0)
            found.append([answer.best.w for answer in answers])
    assert np.array_equal(*found)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_is_the_fits_one_by_one(n_classes, loss):
    X, y = make_classification(
        150, 12, n_informative=6, n_classes=n_classes, random_state=0, flip_y=0.1
    )
    Cs = np.logspace(-3, 2, 7)
    models = LinearSVC(loss=loss, tol=1e-4, random_state=0).path(X, y, Cs)
    assert [model.C for model in models] == Cs.tolist()
    for model, C in zip(models, Cs, strict=True):
        alone = LinearSVC(loss=loss, C=C, tol=1e-4, random_state=0).fit(X, y)
        proofs = [model.certificate_] if n_classes == 2 else model.certificate_
        alones = [alone.certificate_] if n_classes == 2 else alone.certificate_
        for ours, other in zip(proofs, alones, strict=True):
            assert ours.relative_gap <= 1e-4
            assert ours.primal == pytest.approx(other.primal, rel=2e-4)
        assert model.coef_.shape == alone.coef_.shape
        assert np.array_equal(model.classes_, alone.classes_)
        assert model.n_features_in_ == 12 and model.n_iter_ > 0
        assert np.mean(model.predict(X) == alone.predict(X)) > 0.97


def wide(n_classes=2):
    """Rows with more columns than a d x d matrix is made for, so that descent is the method."""
    rng = np.random.default_rng(0)
    X = sp.random(120, 3000, density=0.02, random_state=0, format="csr", dtype=np.float32)
    return X, rng.integers(0, n_classes, 120)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [LinearSVC(loss="hinge"), LogisticRegression()], ids=repr)
def test_values_are_swept_together_and_certified_one_by_one(model, n_classes):
    X, y = wide(n_classes)
    model.set_params(tol=1e-3, random_state=0)
    models = model.path(X, y, np.logspace(-2, 2, 9))
    for found in models:
        choices = [found.solver_] if n_classes == 2 else found.solver_
        proofs = [found.certificate_] if n_classes == 2 else found.certificate_
        assert all("together with other problems" in choice.reason for choice in choices)
        assert all(proof.relative_gap <= 1e-3 for proof in proofs)
    if isinstance(model, LinearSVC):  # with the logistic loss five epochs do for every C
        assert len({found.n_iter_ for found in models}) > 1  # each its own


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_newton_goes_along_a_path(intercept):
    X, y = make_classification(120, 5, random_state=0, flip_y=0.2)
    Cs = [300.0, 10.0, 100.0, 30.0]
    model = LinearSVC(loss="hinge", intercept=intercept, tol=1e-3)
    models = model.path(X, y, Cs)
    cold = [LinearSVC(loss="hinge", intercept=intercept, C=C).fit(X, y) for C in Cs]
    assert {one.solver_.name for one in models + cold} == {"newton"}
    begun = ["begun at the answer for C" in one.solver_.reason for one in models]
    assert begun == [True, False, True, True]
    assert sum(one.n_iter_ for one in models) < sum(one.n_iter_ for one in cold)
    for one, C in zip(models, Cs, strict=True):
        margins = np.where(y == 1, 1.0, -1.0) * one.decision_function(X)
        primal = 0.5 * np.sum(one.coef_**2) + C * np.maximum(0.0, 1.0 - margins).sum()
        assert one.certificate_.primal == pytest.approx(primal, rel=1e-9)
        assert one.certificate_.relative_gap <= 1e-3


def test_a_path_keeps_its_limits():
    X, y = wide()
    Cs = np.logspace(0, 3, 8)
    with pytest.warns(ConvergenceWarning):
        models = LinearSVC(loss="hinge", tol=1e-9, max_iter=4).path(X, y, Cs)
    assert all(model.n_iter_ <= 4 for model in models)
    with pytest.warns(ConvergenceWarning):
        models = LinearSVC(loss="hinge", tol=0.0, max_time=1e-3).path(X, y, Cs)
    assert {model.stop_reason_ for model in models} == {"max_time"}


def test_a_path_around_a_fitted_centre():
    X, y = make_classification(60, 5, random_state=3)
    center = LinearSVC().fit(X[:30], y[:30])
    models = LinearSVC(center=center, tol=1e-5).path(X, y, [1e-9, 1.0])
    assert np.allclose(models[0].coef_, center.coef_, atol=1e-5)
    alone = LinearSVC(center=center, tol=1e-5).fit(X, y)
    assert models[1].certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-4)


def test_a_path_with_weights_and_names():
    import pandas as pd

    X, y = make_classification(80, 5, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    weight = np.where(np.arange(80) < 10, 0.0, 2.0)
    models = LinearSVC(tol=1e-5).path(frame, y, [0.1, 1.0], sample_weight=weight)
    alone = LinearSVC(C=1.0, tol=1e-5).fit(frame, y, sample_weight=weight)
    assert models[1].feature_names_in_.tolist() == list("abcde")
    assert np.allclose(models[1].coef_, alone.coef_, atol=1e-2)
    assert models[1].support_.min() >= 10


def test_a_path_of_logistic_regressions_has_probabilities():
    X, y = make_classification(90, 6, random_state=2)
    models = LogisticRegression(tol=1e-4).path(X, y, [0.01, 1.0])
    for model, C in zip(models, [0.01, 1.0], strict=True):
        alone = LogisticRegression(C=C, tol=1e-4).fit(X, y)
        assert np.allclose(model.predict_proba(X), alone.predict_proba(X), atol=0.02)


def test_a_path_asks_for_values_that_can_be():
    X, y = make_classification(30, 5, random_state=1)
    with pytest.raises(ValueError, match="Cs is empty"):
        LinearSVC().path(X, y, [])
    with pytest.raises(ValueError, match="C"):
        LinearSVC().path(X, y, [1.0, -1.0])


def slow_and_quick():
    """Wide rows that share twenty columns: large values of C take many epochs."""
    rng = np.random.default_rng(1)
    X = sp.random_array((400, 2500), density=0.05, format="csr", rng=rng, dtype=np.float32)
    often = np.where(np.arange(2500) < 20, rng.random((400, 2500)) < 0.7, False)
    X = sp.csr_array(X + (3.0 * rng.random((400, 2500)) * often).astype(np.float32))
    return X, np.where(X @ rng.normal(size=2500) + 0.3 * rng.normal(size=400) > 0, 1, 0)


def test_the_last_few_lanes_are_left_to_runs_of_their_own():
    X, y = slow_and_quick()
    problem = make_problem(as_rows(X), np.where(y == 1, 1.0, -1.0), np.ones(400), Hinge())
    factors, ends = [30.0, 10.0, 3.0, 1.0, 1e-3, 1e-3], {}
    for few in (0, 1, 2, 6):
        goal = Goal(1e-4, 500, few=few)
        found, _ = descend(many(problem, factors), [list(range(6))], goal, 0)
        ends[few] = [answer.epochs for answer in found]
        if few < 6:
            left = found[few:]
            assert max(answer.best.certificate.relative_gap for answer in left) <= 1e-4
    slowest, second, third = ends[0][:3]
    assert PATIENCE < third < second < slowest
    assert max(ends[1]) == second and max(ends[2]) == third  # when the others are done
    assert max(ends[6]) == PATIENCE  # nobody is left alone before


def test_what_is_left_alone_is_solved_and_says_where_it_began():
    X, y = slow_and_quick()
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    found = model.path(X, y, [1e-3, 2e-3, 1.0, 10.0])
    assert max(model.certificate_.relative_gap for model in found) <= 1e-3
    told = f"; first {PATIENCE} epochs together with other problems"
    assert [told in model.solver_.reason for model in found] == [False, False, True, True]


def test_groups_of_a_path_and_of_folds():
    path, folds = list(np.logspace(-1, 0.9, 20)), [1.0, 0.5, 0.2, 0.1] * 5
    assert [len(group) for group in _groups(path, WIDE)] == [6, 7, 7]  # the slowest has fewer
    assert [len(group) for group in _groups(folds, WIDE)] == [7, 7, 6]
    for values in (path, folds, [1.0] * 20, list(np.logspace(-5, 5, 20)), [1.0, 2.0, 3.0]):
        groups = _groups(values, WIDE)
        assert sorted(p for group in groups for p in group) == list(range(len(values)))
        assert max(map(len, groups)) <= LANES
        tops = [max(values[p] for p in group) for group in groups]
        assert tops == sorted(tops, reverse=True)


@pytest.mark.parametrize(
    ("classes", "narrow", "wide"),
    [
        (8, [8], [8]),
        (10, [5, 5], [5, 5]),
        (20, [5, 5, 5, 5], [10, 10]),
        (32, [8, 8, 8, 8], [16, 16]),
        (33, [6, 6, 6, 5, 5, 5], [9, 8, 8, 8]),
    ],
)
def test_classes_of_wide_data_are_swept_in_two_lines(classes, narrow, wide):
    assert [len(group) for group in _groups([1.0] * classes, WIDE)] == narrow
    assert [len(group) for group in _groups([1.0] * classes, WIDE + 1)] == wide


@pytest.mark.parametrize("kind", ["dense-float64", "csr-float32-uint32"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_lanes_of_two_lines_come_as_near_as_those_of_one(kind, loss, intercept):
    problem = random_problem(2, loss, kind, intercept)
    factors = np.logspace(-2, -0.5, 11)
    lanes = list(range(11))
    wide, _ = descend(many(problem, factors), [lanes], Goal(1e-3, 3000), 0)
    narrow, _ = descend(many(problem, factors), [lanes[:6], lanes[6:]], Goal(1e-3, 3000), 0)
    for answers in zip(wide, narrow, strict=True):
        (one, other) = (answer.best.certificate for answer in answers)
        assert one.relative_gap <= max(1e-3, 2.0 * other.relative_gap)
        assert one.dual <= other.primal and other.dual <= one.primal


def test_rows_that_are_in_the_problems_of_one_line_only():
    problem = random_problem(4, LOSSES[0], "csr-float32-uint32", "none")
    half = np.where(np.arange(problem.c.size) % 2, problem.c, 0.0)
    label, lanes = (problem.y > 0).astype(int), []
    for c in [problem.c] * LANES + [half] * LANES:
        lanes.append(Lane(1, 1.0, problem.center, c))
    task = Many(problem, label, lanes)
    found, _ = descend(task, [list(range(2 * LANES))], Goal(1e-3, 3000), 0)
    for answer, lane in zip(found, lanes, strict=True):
        assert answer.best.certificate.relative_gap <= 1e-3
        assert not np.any(answer.best.alpha[lane.c == 0.0])


def test_second_order_steps_of_two_lines(monkeypatch):
    problem = random_problem(5, LOSSES[0], "dense-float64", "none", n=200, d=60, C=10.0)
    factors = np.repeat([0.3, 1.0, 3.0], 4)
    seen = []

    def watched(shared, state, moves, oldest):
        looks = combined(shared, state, moves, oldest)
        seen.append(_drift(shared, state))
        return looks

    monkeypatch.setattr("pegasos.solvers.lanes.combined", watched)
    task, lanes = many(problem, factors), [list(range(12))]
    found, _ = descend(task, lanes, Goal(1e-3, 3000), 0)
    assert len(seen) > 2 and len(seen) % 2 == 0 and max(seen) < 5e-4
    assert max(answer.best.certificate.relative_gap for answer in found) <= 4e-3
    monkeypatch.setattr("pegasos.solvers.lanes.has_moves", lambda loss: False)
    plain, _ = descend(task, lanes, Goal(1e-3, 3000), 0)
    assert sum(answer.epochs for answer in found) < 0.7 * sum(answer.epochs for answer in plain)


def test_a_group_of_more_lanes_than_two_lines_is_refused():
    problem = random_problem(4, LOSSES[0])
    with pytest.raises(ValueError, match="up to 16 lanes, got 17"):
        descend(many(problem, np.ones(17)), [list(range(17))], Goal(1e-3, 30), 0)


def test_twenty_classes_of_wide_data_are_certified(monkeypatch):
    sizes = []

    def watched(task, groups, goal, seed):
        sizes.extend(map(len, groups))
        return descend(task, groups, goal, seed)

    monkeypatch.setattr("pegasos.estimators.sweeps.descend", watched)
    rng = np.random.default_rng(0)
    X = sp.random_array((400, WIDE + 5), density=0.001, format="csr", rng=rng, dtype=np.float32)
    y = rng.integers(0, 20, 400)
    model = LinearSVC(loss="hinge", random_state=0).fit(X, y)
    assert sizes == [10, 10]
    assert max(proof.relative_gap for proof in model.certificate_) <= 1e-3
    assert all("together with other problems" in choice.reason for choice in model.solver_)
    for k in (0, 13):
        alone = LinearSVC(loss="hinge", random_state=0, tol=1e-5).fit(X, y == model.classes_[k])
        assert model.certificate_[k].primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
