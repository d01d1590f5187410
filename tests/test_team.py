"""Several threads on one problem: the same optimum, the same bits each time, a dual that rises."""

import threading

import numpy as np
import pytest
from conftest import LOSSES, SEEDS, every_loss, make_rows, plain, random_problem
from hypothesis import given

from pegasos.core import threads as core_threads
from pegasos.core.barrier import close, gate, meet
from pegasos.core.jit import hot
from pegasos.core.threads import together, use_threads
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import Hinge, Logistic, SquaredHinge
from pegasos.objective.problem import make_problem
from pegasos.solvers import dual, team
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual

THREADS = (2, 3)


@pytest.fixture(autouse=True)
def _small_rounds(monkeypatch):
    """A team even for problems of a few rows, which meets several times an epoch."""
    monkeypatch.setattr(team, "_LENGTH", 5.0)
    monkeypatch.setattr(team, "_COLUMN", 3.0)
    monkeypatch.setattr(team, "_WORTH", 0.0)
    monkeypatch.setattr(team, "_PAYS", 0.0)
    monkeypatch.setattr(team, "_HEAVY", np.inf)
    monkeypatch.setattr(core_threads, "_PATIENCE", np.inf)


def problem_of(seed, kind="csr-float64-uint32", loss=LOSSES[0], intercept="none"):
    return random_problem(seed, loss, kind, n=60, intercept=intercept)


def alike(loss):
    """Rows of one word and a large one in common."""
    rng = np.random.default_rng(0)
    X = np.zeros((600, 40))
    X[np.arange(600), rng.integers(0, 40, 600)] = 1.0
    rows, y = make_rows("csr-float64-uint32", X, 3.0), rng.choice([-1.0, 1.0], 600)
    return make_problem(rows, y, np.full(600, 10.0), loss, np.zeros(41))


def shares(problem, threads, rows=60):
    """Whether an epoch of so many rows is shared."""
    with use_threads(threads):
        state = Dual().init(problem, 0)
    return team.is_worth(problem, dual.place_of(state), rows, threads)


@hot
def _rendezvous(gate, seen, k, n, rounds):
    for r in range(rounds):
        seen[k, r] = r + 1
        meet(gate, n)
        for p in range(n):
            if seen[p, r] != r + 1:
                return r
        meet(gate, n)
    return rounds


@pytest.mark.parametrize("n", THREADS)
def test_who_meets_sees_what_all_wrote(n):
    place, seen = gate(), np.zeros((n, 200), dtype=np.int64)
    assert together(lambda k: _rendezvous(place, seen, k, n, 200), n, lambda: None) == [200] * n


def test_a_closed_gate_holds_nobody():
    place = gate()
    place[1] = 1
    waiting = threading.Thread(target=_rendezvous, args=(place, np.zeros((2, 1)), 0, 2, 1))
    waiting.start()
    waiting.join(30)
    assert not waiting.is_alive()


def test_together_gives_the_answers_in_order_and_the_error():
    assert together(lambda k: k * k, 4, lambda: None) == [0, 1, 4, 9]
    with pytest.raises(ZeroDivisionError):
        together(lambda k: 1 // (k - 1), 3, lambda: None)


@pytest.mark.parametrize("failing", [0, 1])
def test_nobody_waits_for_who_failed(failing):
    place = gate()

    def work(k):
        if k == failing:
            raise KeyboardInterrupt
        return _rendezvous(place, np.zeros((2, 1), dtype=np.int64), k, 2, 1)

    with pytest.raises(KeyboardInterrupt):
        together(work, 2, lambda: close(place))


@every_loss
@pytest.mark.parametrize("kind, threads", [("dense-float64", 2), ("csr-float32-uint32", 3)])
def test_a_team_reaches_the_optimum(kind, loss, threads):
    problem = problem_of(threads, kind, loss)
    alone = run(Dual(), problem, Stop(tol=1e-6, max_epochs=3000))
    with use_threads(threads):
        assert shares(problem, threads) and team._between(problem) < 60 // threads
        found = run(Dual(), problem, Stop(tol=1e-6, max_epochs=3000))
    assert found.stop_reason == alone.stop_reason == "gap"
    assert found.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("kind", ["dense-float64", "csr-float64-uint32"])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
@given(seed=SEEDS)
def test_the_dual_rises_by_the_gain_that_is_told(kind, loss, seed):
    """Even where all rows pull in one direction, and threads that add up would overshoot.

    Where the dual is not quadratic nothing is told.
    """
    problem = problem_of(seed, kind, loss)
    rows = make_rows(kind, 1.0 + 0.1 * plain(problem.rows)[:, :-1])
    problem = make_problem(rows, problem.y, problem.c, loss, problem.center)
    solver = Dual(shrinking=False)
    with use_threads(2):
        state = solver.init(problem, seed)
        last = evaluate(problem, state.alpha).certificate.dual
        for _ in range(8):
            before = state.gain
            state = solver.step(problem, state)
            dual = evaluate(problem, state.alpha).certificate.dual
            assert dual >= last - 1e-9 * abs(dual)
            if loss != Logistic():
                assert state.gain - before == pytest.approx(dual - last, rel=1e-6, abs=1e-9 * dual)
            last = dual


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
def test_threads_that_work_against_each_other_retreat(monkeypatch, loss, threads):
    """What each makes up for, all make up for."""
    monkeypatch.setattr(team, "_LENGTH", 20.0)
    monkeypatch.setattr(team, "_COLUMN", 0.0)
    monkeypatch.setattr(team, "_ALIKE", 0.0)
    one, gap = after_thirty(alike(loss), 1)
    state, gap_of_all = after_thirty(alike(loss), threads)
    assert one.quarrels == 0 and state.quarrels == int(np.log2(threads))
    assert gap_of_all <= 3.0 * gap


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=repr)
def test_who_takes_the_others_to_do_the_like_needs_fewer_meetings(monkeypatch, loss):
    monkeypatch.setattr(team, "_LENGTH", 1e9)  # one in an epoch
    foreseen, gap = after_thirty(alike(loss), 2)
    assert foreseen.quarrels == 0 and foreseen.shared
    assert gap <= 1.5 * after_thirty(alike(loss), 1)[1]
    monkeypatch.setattr(team, "_ALIKE", 0.0)
    assert after_thirty(alike(loss), 2)[1] > 5.0 * gap


def after_thirty(problem, threads):
    """The state after thirty epochs and the gap there."""
    solver = Dual(shrinking=False, memory=0)
    with use_threads(threads):
        state = solver.init(problem, 0)
        while state.epoch < 30:
            state = solver.step(problem, state)
    found = evaluate(problem, state.alpha)
    np.testing.assert_allclose(state.w, found.w, atol=1e-9)
    return state, found.certificate.gap


def test_after_a_second_order_step_one_thread_begins(monkeypatch):
    """All rows have the same to correct, and each thread would."""
    monkeypatch.setattr(dual, "_HALVES", 1)
    monkeypatch.setattr(team, "_LENGTH", 1e9)
    problem, solver, alone = problem_of(1), Dual(patience=2), []
    with use_threads(2):
        state = solver.init(problem, 0)
        while state.epoch < 6:
            begins, state = state.cursor == 0, solver.step(problem, state)
            if begins and state.past is not None:
                alone.append(state.cursor == max(1, state.active // 16))
            else:
                assert state.cursor == 0  # the others together
    assert len(alone) > 2 and all(alone)


@pytest.mark.bounds
@pytest.mark.parametrize("intercept", ["none", "penalised"])
@given(seed=SEEDS)
def test_w_is_that_of_alpha(intercept, seed):
    problem = problem_of(seed, intercept=intercept)
    with use_threads(3):
        solver = Dual()
        state = solver.init(problem, seed)
        for _ in range(6):
            state = solver.step(problem, state)
            exact = evaluate(problem, state.alpha).w
            np.testing.assert_allclose(state.w, exact, rtol=1e-9, atol=1e-9)


def test_after_ctrl_c_w_is_that_of_alpha(monkeypatch):
    problem = problem_of(3)

    def broken(work, n, close):
        close()
        work(0)
        raise KeyboardInterrupt

    monkeypatch.setattr(core_threads, "together", broken)
    with use_threads(3):
        state = Dual().init(problem, 0)
        with pytest.raises(KeyboardInterrupt):
            Dual().step(problem, state)
    assert state.alpha.any()
    np.testing.assert_allclose(state.w, evaluate(problem, state.alpha).w, atol=1e-12)


def test_the_same_bits_each_time():
    problem = problem_of(5)
    with use_threads(2):
        first, again = (run(Dual(), problem, Stop(tol=1e-8), seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.best.alpha, again.best.alpha)
    np.testing.assert_array_equal(first.best.w, again.best.w)


def counted(monkeypatch):
    """A list that gets the number of threads of each call."""
    counts = []

    def count(work, n, close):
        counts.append(n)
        return together(work, n, close)

    monkeypatch.setattr(core_threads, "together", count)
    return counts


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("kind", ["dense-float64", "csr-float64-uint32", "alike"])
def test_one_thread_that_does_the_work_of_all_gives_the_same_bits(monkeypatch, kind, loss):
    if kind == "alike":
        monkeypatch.setattr(team, "_LENGTH", 20.0)
        monkeypatch.setattr(team, "_COLUMN", 0.0)
        monkeypatch.setattr(team, "_ALIKE", 0.0)
    problem, threads = (alike(loss), 4) if kind == "alike" else (problem_of(4, kind, loss), 2)
    counts, found, solver = counted(monkeypatch), [], Dual(shrinking=kind != "alike")
    for bad in (False, True):
        monkeypatch.setattr(core_threads._company, "is_bad", lambda bad=bad: bad)
        with use_threads(threads):
            state = solver.init(problem, 0)
            for _ in range(5):
                state = solver.step(problem, state)
            found.append(state)
    assert counts[0] == threads and counts[-1] == 1
    one, other = found
    assert one.quarrels == other.quarrels and (one.quarrels > 0 or kind != "alike")
    np.testing.assert_array_equal(one.alpha, other.alpha)
    np.testing.assert_array_equal(one.w, other.w)
    np.testing.assert_array_equal(one.stays, other.stays)
    assert (one.summed, one.objective) == (other.summed, other.objective)


def test_bad_company_is_avoided_for_some_calls():
    company = core_threads._Company()
    assert not company.is_bad()
    company.judge(True)
    calls = core_threads._CALLS
    assert [company.is_bad() for _ in range(calls + 1)] == [True] * calls + [False]
    company.judge(False)
    assert not company.is_bad()


def test_threads_that_take_too_long_are_done_without(monkeypatch):
    monkeypatch.setattr(core_threads, "_PATIENCE", 0.0)
    monkeypatch.setattr(team, "_LENGTH", 1e9)  # no quarrels
    monkeypatch.setattr(core_threads, "_company", core_threads._Company())
    problem, counts = problem_of(4), counted(monkeypatch)
    with use_threads(2):
        solver = Dual()
        state = solver.init(problem, 0)
        for _ in range(4):
            state = solver.step(problem, state)
    assert counts == [2, 1, 1, 1]


def test_small_problems_are_left_to_one_thread(monkeypatch):
    monkeypatch.undo()
    assert not shares(problem_of(0), 2)


def test_rows_of_much_weight_need_several_meetings(monkeypatch):
    problem = problem_of(0)
    monkeypatch.setattr(team, "_LENGTH", 1e9)
    assert shares(problem, 2)
    monkeypatch.setattr(team, "_HEAVY", 0.0)
    assert not shares(problem, 2)
    monkeypatch.setattr(team, "_LENGTH", 1.0)
    monkeypatch.setattr(team, "_COLUMN", 0.0)
    assert shares(problem, 2)


@pytest.mark.parametrize("quarrels", [0, 1])
def test_the_parts_of_an_epoch_are_shared_as_it_is_and_have_each_row_once(monkeypatch, quarrels):
    """Also where half of the rows would not be worth it, and after a quarrel in mid-epoch."""
    problem, spans = problem_of(1, loss=SquaredHinge()), []
    monkeypatch.setattr(team, "_WORTH", 0.9 * 60 * max(1.0, team.row_work(problem.rows)))
    monkeypatch.setattr(dual, "_PART", 0.0)
    monkeypatch.setattr(dual, "falls_fast", lambda state: True)
    advance = dual.advance

    def seen(problem, place, span, threads):
        done, tally = advance(problem, place, span, threads)
        spans.append((span[0], span[0] + done, threads))
        return done, tally._replace(quarrels=quarrels)

    monkeypatch.setattr(dual, "advance", seen)
    solver = Dual(shrinking=False, patience=1)
    with use_threads(4):
        state = solver.init(problem, 0)
        while state.epoch < 2:
            state = solver.step(problem, state)
    first = spans[: 1 + next(k for k, span in enumerate(spans) if span[1] == 60)]
    assert [span[2] for span in first] == ([4, 2] if quarrels else [4, 4])
    for epoch in (first, spans[len(first) :]):
        ends = [0, *(span[1] for span in epoch)]
        assert [span[0] for span in epoch] == ends[:-1] and ends[-1] == 60
