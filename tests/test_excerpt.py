"""Late epochs on an excerpt: state and answer are those of all rows."""

import numpy as np
import pytest
from conftest import every_intercept, make_rows

from pegasos.model.checkpoint import _Reader, _Writer
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import Hinge, Logistic, SquaredHinge
from pegasos.objective.multiclass import multiclass_problem
from pegasos.objective.problem import make_problem
from pegasos.solvers import auto, dual, dual_verbs
from pegasos.solvers.driver import Driver, Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.excerpt import (
    Excerpt,
    has_excerpts,
    kept,
    moved_to,
    of_all,
    recalled,
    resumed,
    taken,
    whole,
)
from pegasos.solvers.intercept import FreeIntercept


@pytest.fixture
def soon(monkeypatch):
    """Excerpts however few entries they have, and of most rows."""
    monkeypatch.setattr(dual, "_SMALL", 0)
    monkeypatch.setattr(dual, "_AT_WORK", 0.9)


def problem_of(intercept="none", loss=None, C=1.0, n=300, d=300):
    """Like text, few columns are frequent and many rare; one label in five is wrong."""
    rng = np.random.default_rng(3)
    X = rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.6 / np.arange(1, d + 1) ** 0.5)
    X /= np.maximum(1e-9, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(X @ rng.normal(size=d) > 0.0, 1.0, -1.0)
    y[rng.random(n) < 0.2] *= -1.0
    rows = make_rows("csr-float32-uint32", X, 0.0 if intercept == "none" else 1.0)
    loss = Hinge() if loss is None else loss
    return make_problem(rows, y, np.full(n, C), loss, free=intercept == "free")


def solver_of(problem, **settings):
    return FreeIntercept(Dual(**settings)) if problem.free else Dual(**settings)


def inner_of(state):
    return getattr(state, "inner", state)


def states(problem, steps=60, **settings):
    solver = solver_of(problem, patience=2, **settings)
    state = solver.init(problem, 0)
    for _ in range(steps):
        state = solver.step(problem, state)
        yield solver, state


@every_intercept
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=repr)
def test_w_follows_alpha_on_excerpts_and_between_them(soon, intercept, loss):
    """Rows that go aside within a move have a part in it: without them w would be another."""
    problem = problem_of(intercept, loss, C=1.0 if loss == Hinge() else 30.0)
    seen, several = 0, set()
    for _, state in states(problem):
        inner = inner_of(state)
        seen += isinstance(inner.excerpt, Excerpt)
        several.add(inner.excerpt.rows.size if inner.excerpt else 0)
        hand, all_of = getattr(state, "problem", problem), whole(inner)
        _, w = dual.start(hand, all_of.alpha)
        assert np.allclose(all_of.w, w, rtol=0, atol=1e-10 * np.abs(w).max())
    assert seen > 20 and len(several) > 2  # several of them, one after the other


def test_rows_that_go_aside_within_a_move_keep_their_part_in_it(soon):
    problem, solver = problem_of(C=10.0), Dual(patience=3)
    state = solver.init(problem, 0)
    while state.past is None:
        state = solver.step(problem, state)
    state = whole(state)
    moved = np.flatnonzero(state.alpha != state.past.alpha)
    state.stays[moved[::2]] = False  # as a certificate might
    state = solver.step(problem, state)
    assert state.excerpt is not None and set(moved) <= set(state.excerpt.rows)
    all_of = whole(state)
    _, w = dual.start(problem, all_of.alpha)
    assert np.allclose(all_of.w, w, rtol=0, atol=1e-10 * np.abs(w).max())


@every_intercept
def test_answers_are_those_without_excerpts(soon, intercept, monkeypatch):
    problem, stop = problem_of(intercept), Stop(tol=1e-7, max_epochs=5000)
    found = run(solver_of(problem, patience=2), problem, stop)
    monkeypatch.setattr(dual, "_AT_WORK", 0.0)
    other = run(solver_of(problem, patience=2), problem, stop)
    assert found.stop_reason == other.stop_reason == "gap"
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-7)
    assert found.state.epoch < 1.3 * other.state.epoch + 10


def test_what_is_known_of_the_columns_left_out(soon):
    problem, told = problem_of(), 0
    for solver, state in states(problem):
        if state.excerpt is None or state.cursor:
            continue
        all_of = whole(state._replace(alpha=state.alpha.copy(), w=state.w.copy()))
        w = all_of.w
        size, away = state.left_out
        assert size + state.w @ state.w == pytest.approx(w @ w, rel=1e-12)
        center = problem.center[state.excerpt.columns]
        near = np.sum((state.w - center) ** 2)
        assert away + near == pytest.approx(np.sum((w - problem.center) ** 2), rel=1e-12)
        gap, other = solver.gap_now(problem, state), solver.gap_now(problem, all_of)
        assert gap == pytest.approx(other, rel=1e-9)
        assert state.passes == all_of.passes
        told += gap < np.inf and size > 1e-3 * (w @ w)
    assert told > 5


def test_there_and_back(soon):
    """An excerpt of a state and the state of that excerpt, moves and the rows of the epoch too."""
    *_, (_, state) = states(problem_of(), 40)
    assert state.excerpt is not None and state.past is not None
    all_of = whole(state)
    rows = np.flatnonzero(all_of.stays | all_of.past.S.any(1) | (all_of.alpha != all_of.past.alpha))
    again = whole(taken(problem_of(), all_of._replace(cursor=1), rows))
    active = all_of.active
    for name in ("alpha", "w", "stays"):
        assert np.array_equal(getattr(again, name), getattr(all_of, name)), name
    assert again.active == active
    assert np.array_equal(again.order[:active], all_of.order[:active])
    assert np.array_equal(again.listed[:active], all_of.listed[:active])
    for mine, other in zip(again.past, all_of.past, strict=True):
        assert np.allclose(mine, other, rtol=0, atol=1e-12)


@every_intercept
@pytest.mark.parametrize("within", [False, True])
def test_a_run_goes_on_from_what_is_kept_bit_for_bit(soon, intercept, within, monkeypatch):
    """Also from the middle of an epoch, of which a part of the order is left."""
    if within:
        monkeypatch.setattr(dual_verbs, "SLICE", 400)
    problem, stop = problem_of(intercept), Stop(tol=1e-9, max_epochs=60)
    alone = Driver(solver_of(problem, patience=2), problem, stop)
    for _ in alone:
        pass
    stopped = Driver(solver_of(problem, patience=2), problem, stop)
    for _ in stopped:
        inner = inner_of(stopped.state)
        if inner.epoch > 10 and inner.excerpt is not None and (inner.cursor > 0) == within:
            break
    else:
        pytest.fail("there was no such moment")
    writer = _Writer()
    tree = writer.encode(stopped.snapshot())
    snapshot = _Reader(writer.arrays, problem).decode(tree)
    assert isinstance(inner_of(snapshot.state).excerpt, np.ndarray)
    resumed = Driver(solver_of(problem, patience=2), problem, stop)
    resumed.restore(snapshot)
    for _ in resumed:
        pass
    assert np.array_equal(resumed.result().best.w, alone.result().best.w)
    assert resumed.state.epoch == alone.state.epoch


def test_what_is_kept_says_which_rows_and_leaves_the_run_alone(soon):
    seen = 0
    for _, state in states(problem_of(), 30):
        if isinstance(state.excerpt, Excerpt):
            before = state.alpha.copy(), state.w.copy()
            stored = kept(state)
            assert np.array_equal(stored.excerpt, state.excerpt.rows)
            assert stored.alpha.size == state.n and len(stored.order) == state.n
            assert np.array_equal(state.alpha, before[0]) and np.array_equal(state.w, before[1])
            seen += 1
    assert seen


def read_back(problem, state):
    writer = _Writer()
    return _Reader(writer.arrays, problem).decode(writer.encode(state))


@pytest.mark.parametrize("rows", [[5, 3], [3, 3], [0, 300], [-1, 4], [], [0.5]], ids=str)
@pytest.mark.parametrize("kind", [None, np.uint64])
def test_a_file_with_other_rows_is_refused(soon, rows, kind):
    problem = problem_of()
    *_, (_, state) = states(problem, 30)
    rows = np.array(rows).astype(kind) if kind else np.array(rows)
    with pytest.raises(ValueError, match="excerpt"):
        read_back(problem, whole(state)._replace(excerpt=rows))


def test_a_file_with_an_excerpt_of_an_array_or_with_other_places_is_refused(soon):
    problem = problem_of()
    *_, (_, state) = states(problem, 30)
    good = whole(state)._replace(excerpt=np.arange(3))
    assert np.array_equal(read_back(problem, good).excerpt, [0, 1, 2])
    dense = problem._replace(rows=make_rows("dense-float32", np.zeros((300, 300))))
    with pytest.raises(ValueError, match="none of such a problem"):
        read_back(dense, good)
    with pytest.raises(ValueError, match="listed"):
        read_back(problem, good._replace(listed=np.zeros(300, dtype=np.int64), active=300))
    for cursor, active in ((0, 301), (5, 4), (-1, 4)):
        with pytest.raises(ValueError, match="active"):
            read_back(problem, good._replace(cursor=cursor, active=active))


def test_none_from_one_certificate_to_the_next(soon):
    """A copy would be used once."""
    problem, seen = problem_of(), []
    solver = Dual(patience=2)
    driver = Driver(solver, problem, Stop(tol=1e-7, max_epochs=40, every=1))
    for _ in driver:
        seen.append(driver.state.excerpt)
    assert len(seen) > 10 and not any(seen)


def test_an_interrupted_run_on_an_excerpt_has_its_answer(soon):
    problem = problem_of()
    driver = Driver(Dual(patience=2), problem, Stop(tol=1e-9))
    for _ in driver:
        if driver.state.epoch > 10 and driver.state.excerpt is not None:
            break
    assert isinstance(driver.state.excerpt, Excerpt)
    found = driver.interrupt()
    assert found.stop_reason == "interrupted" and found.best.alpha.size == 300
    again = evaluate(problem, found.best.alpha, found.best.w).certificate
    assert found.certificate.gap == pytest.approx(again.gap, rel=1e-9)


def test_another_solver_takes_over_from_an_excerpt(soon, monkeypatch):
    """From the alpha of all rows."""
    monkeypatch.setattr(auto, "_plan", lambda problem, goal: ("dual", 1e9, ""))
    monkeypatch.setattr(auto, "MANY_EPOCHS", {"newton": 15, "interior": 300})
    problem, taken_from = problem_of(), []
    hand_over = auto._hand_over

    def watched(problem, state, name):
        taken_from.append(state.inner.excerpt)
        return hand_over(problem, state, name)

    monkeypatch.setattr(auto, "_review", watched)
    monkeypatch.setattr(auto, "solver_named", named_with(auto.solver_named, patience=2))
    found = run(auto.Auto(), problem, Stop(tol=1e-8, max_epochs=300))
    assert found.stop_reason == "gap" and found.state.choice.name == "newton"
    assert isinstance(taken_from[0], Excerpt)


def named_with(named, **settings):
    return lambda name, problem: Dual(**settings) if name == "dual" else named(name, problem)


def test_a_certificate_of_a_run_on_an_excerpt_is_of_all_rows(soon):
    problem = problem_of()
    for solver, state in states(problem, 30):
        if state.excerpt is not None:
            alpha, _ = solver.candidate(problem, state)
            assert np.array_equal(alpha, whole(state).alpha) and alpha.size == state.n
            seen = evaluate(problem, alpha)
            refreshed = solver.refresh(problem, state, seen)
            assert refreshed.excerpt is None and np.array_equal(refreshed.w, seen.w)
            return
    pytest.fail("there was none")


def test_none_where_rows_are_many_few_or_not_by_themselves():
    problem = problem_of()
    assert not any(state.excerpt for _, state in states(problem))  # few entries
    dense = problem._replace(rows=make_rows("dense-float32", np.eye(300)))
    assert not has_excerpts(dense)
    labels = np.arange(300) % 3
    several = multiclass_problem(problem.rows, labels, problem.c, np.zeros((301, 3)))
    assert not has_excerpts(several)


def test_a_loss_that_sets_nobody_aside_has_none(soon):
    assert not any(state.excerpt for _, state in states(problem_of(loss=Logistic()), 30))


def test_a_look_or_a_certificate_that_brings_nobody_back_leaves_the_excerpt(soon, monkeypatch):
    """Moves would be copied back and forth; the answer is the same."""
    problem, counts, answers = problem_of(C=10.0), [], []
    for keep in (True, False):
        with monkeypatch.context() as patch:
            copies = []

            def counted(*args, copies=copies):
                copies.append(args[2].size)
                return taken(*args)

            def all_back(state, stays):
                return whole(state)._replace(stays=stays)

            patch.setattr(dual, "taken", counted)
            if not keep:
                patch.setattr(dual, "recalled", all_back)
            found = run(Dual(patience=2), problem, Stop(tol=1e-9))
        assert found.stop_reason == "gap"
        counts.append(len(copies))
        answers.append(found.best.w)
    assert 0 < counts[0] < counts[1]
    assert np.allclose(*answers, rtol=0, atol=1e-4 * np.abs(answers[0]).max())


def test_descent_goes_on_from_a_certificate_on_its_excerpt(soon):
    """w is that of alpha, and so are the sums over columns left out."""
    problem, kept_by = problem_of(), 0
    for solver, state in states(problem):
        if isinstance(state.excerpt, Excerpt):
            seen = evaluate(problem, solver.candidate(problem, state)[0])
            after = solver.refresh(problem, state, seen)
            _, w = dual.start(problem, whole(after).alpha)
            assert np.allclose(whole(after).w, w, rtol=0, atol=1e-12 * np.abs(w).max())
            if after.excerpt is not None:
                size = after.left_out[0]
                assert size + after.w @ after.w == pytest.approx(w @ w, rel=1e-12)
                again = resumed(problem, read_back(problem, after))
                assert isinstance(again.excerpt, Excerpt) and again.left_out == after.left_out
                kept_by += size > 1e-3 * (w @ w)
    assert kept_by > 5


def test_who_is_recalled_from_outside_brings_all_rows_back(soon):
    problem = problem_of()
    state = next(s for _, s in states(problem) if isinstance(s.excerpt, Excerpt))
    alpha, w, stays = of_all(state)
    same = recalled(state, stays.copy())
    assert same.excerpt is state.excerpt and np.array_equal(same.stays, state.stays)
    outside = np.setdiff1d(np.arange(alpha.size), state.excerpt.rows)[0]
    stays[outside] = True
    back = recalled(state, stays)
    assert back.excerpt is None and back.stays[outside] and np.array_equal(back.w, w)
    assert np.array_equal(back.alpha, alpha)


def test_an_exact_w_is_taken_over_on_an_excerpt(soon):
    problem = problem_of()
    solver, state = next(p for p in states(problem) if isinstance(p[1].excerpt, Excerpt))
    w = whole(state).w + 1e-9 * np.arange(problem.center.size)
    state = moved_to(state, w)
    assert np.array_equal(whole(state).w, w)
    size, away = state.left_out
    assert size == pytest.approx(w @ w - state.w @ state.w, abs=1e-12) and away == size
    center = np.random.default_rng(0).normal(size=w.size)
    moved = moved_to(state._replace(excerpt=state.excerpt._replace(center=center)), w)
    far = w - center
    left = far @ far - far[state.excerpt.columns] @ far[state.excerpt.columns]
    assert size > 0.0 and left > 0.0
    assert moved.left_out == pytest.approx((size, left), rel=1e-9)
