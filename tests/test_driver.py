"""The driver: why a run stops, what it keeps, and that it adds nothing to the solver."""

import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from conftest import LOSSES, random_problem

from pegasos.objective.certificate import evaluate
from pegasos.objective.stretch import stretched
from pegasos.solvers import driver
from pegasos.solvers.auto import Auto
from pegasos.solvers.driver import Driver, Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.newton import Newton

SOLVERS = (Dual(), Newton())
both = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


@pytest.fixture
def problem():
    return random_problem(1, intercept="penalised", n=40)


def proven_again(problem, result):
    """The certificate of the returned w and alpha, computed anew."""
    return evaluate(problem, result.best.alpha, result.best.w).certificate


@both
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_a_run_stops_when_the_gap_is_proven(problem, solver, tol):
    result = run(solver, problem, Stop(tol=tol))
    assert result.stop_reason == "gap"
    assert result.certificate.relative_gap <= tol
    assert proven_again(problem, result) == pytest.approx(result.certificate, rel=1e-12)
    assert result.history[-1].certificate == result.certificate
    assert result.history[-1].stop == "gap"


@both
def test_tol_is_a_share_of_the_objective(solver):
    large = random_problem(1, intercept="penalised", n=40, C=100.0)
    result = run(solver, large, Stop(tol=1e-2, every=1))
    assert result.stop_reason == "gap"
    assert 1e-2 < result.certificate.gap <= 1e-2 * result.certificate.primal


@both
@pytest.mark.parametrize("max_epochs", [1, 3])
def test_a_run_stops_after_max_epochs(problem, solver, max_epochs):
    result = run(solver, problem, Stop(tol=0.0, max_epochs=max_epochs))
    assert (result.stop_reason, result.state.epoch) == ("max_iter", max_epochs)
    assert proven_again(problem, result) == pytest.approx(result.certificate, rel=1e-12)


@both
def test_a_run_out_of_time_still_has_an_answer(problem, solver):
    result = run(solver, problem, Stop(tol=0.0, max_seconds=0.0))
    assert (result.stop_reason, len(result.history)) == ("max_time", 1)
    assert result.certificate.primal < problem.c.sum()  # of w = 0


def test_time_is_counted_from_the_start(problem, monkeypatch):
    ticks = iter(range(1000))  # each look at the clock is a second
    monkeypatch.setattr(driver.time, "perf_counter", lambda: float(next(ticks)))
    result = run(Dual(), problem, Stop(tol=0.0, max_seconds=20.0))
    assert result.stop_reason == "max_time"
    assert result.history[-1].seconds >= 20.0
    assert 5 < result.state.epoch < 20


@both
def test_the_callback_sees_every_step_and_may_end_the_run(problem, solver):
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 4

    result = run(solver, problem, Stop(tol=0.0, callback=callback))
    assert result.stop_reason == "callback"
    assert [progress.epoch for progress in seen] == [1, 2, 3, 4]
    assert all(progress.stop is None for progress in seen)
    assert proven_again(problem, result) == pytest.approx(result.certificate, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@both
def test_the_proof_never_gets_worse(solver, loss):
    problem = random_problem(2, loss, n=40, centered=True)
    result = run(solver, problem, Stop(tol=1e-7, max_epochs=30, every=1))
    proofs = [progress.certificate for progress in result.history]
    assert len(proofs) >= 3
    for before, after in zip(proofs, proofs[1:], strict=False):
        assert after.primal <= before.primal and after.dual >= before.dual
    epochs = [progress.epoch for progress in result.history]
    assert epochs == sorted(set(epochs))


def test_the_best_point_outlives_worse_ones(problem, monkeypatch):
    """Dual descent moves its primal value up and down; the lowest is kept."""
    values = []

    def watched(*args):
        seen = evaluate(*args)
        values.append(seen.certificate.primal)
        return seen

    monkeypatch.setattr(driver, "evaluate", watched)
    monkeypatch.setattr(driver, "stretched", lambda problem, seen: seen)
    result = run(Dual(), problem, Stop(tol=1e-6, every=1))
    assert any(after > before for before, after in zip(values, values[1:], strict=False))
    assert result.certificate.primal == min(values)


def test_a_solved_run_is_not_prepared_to_go_on(problem):
    calls = []

    @dataclass(frozen=True)
    class Watched(Dual):
        def refresh(self, problem, state, seen):
            calls.append(seen.certificate.relative_gap)
            return super().refresh(problem, state, seen)

    result = run(Watched(), problem, Stop(tol=1e-4, every=1))
    assert result.stop_reason == "gap" and len(result.history) == len(calls) + 1
    assert min(calls) > 1e-4


@pytest.mark.parametrize("every", [1, 2, 5])
def test_every_so_many_epochs_there_is_a_certificate(problem, every):
    result = run(Dual(), problem, Stop(tol=0.0, max_epochs=20, every=every))
    certified = {progress.epoch for progress in result.history}
    assert set(range(every, 21, every)) <= certified


def test_without_every_certificates_are_rare(problem):
    stop = Stop(tol=0.0, max_epochs=40)
    certified = [progress.epoch for progress in run(Dual(), problem, stop).history]
    assert certified[-1] == 40 and len(certified) <= 8


@both
def test_a_manual_loop_equals_a_run(problem, solver):
    result = run(solver, problem, Stop(tol=0.0, max_epochs=6), seed=5)
    state = solver.init(problem, 5)
    for _ in range(6):
        state = solver.step(problem, state)
    alpha, w = solver.candidate(problem, state)
    seen = evaluate(problem, alpha, w)
    seen = stretched(problem, seen) if w is None else seen
    assert seen.certificate == result.certificate
    assert np.array_equal(seen.w, result.best.w)
    assert np.array_equal(seen.alpha, result.best.alpha)


@both
def test_a_driver_yields_each_step_and_answers_at_any_time(problem, solver):
    run_of = Driver(solver, problem, Stop(tol=1e-6))
    start = run_of.result()
    assert start.stop_reason == "running" and start.certificate.gap > 0.0
    steps = list(run_of)
    assert [progress.epoch for progress in steps] == list(range(1, len(steps) + 1))
    assert [progress.stop for progress in steps[:-1]] == [None] * (len(steps) - 1)
    assert steps[-1].stop == run_of.result().stop_reason == "gap"
    assert [p for p in steps if p.certificate is not None] == run_of.result().history


@both
def test_a_state_saved_and_loaded_goes_on_the_same_way(problem, solver):
    state = solver.init(problem, 3)
    for _ in range(3):
        state = solver.step(problem, state)
    loaded = pickle.loads(pickle.dumps(state))
    for _ in range(3):
        state, loaded = solver.step(problem, state), solver.step(problem, loaded)
    np.testing.assert_equal(loaded, state)


@dataclass(frozen=True)
class Interrupted(Dual):
    """Ctrl-C in step number `at`, after its work and before its state is handed back."""

    at: int = 1
    steps: list = field(default_factory=list)

    def step(self, problem, state):
        state = super().step(problem, state)
        self.steps.append(state.epoch)
        if len(self.steps) == self.at:
            raise KeyboardInterrupt
        return state


@pytest.mark.parametrize("at", [1, 5, 12])
def test_an_interrupted_run_has_an_answer(problem, at):
    result = run(Interrupted(at=at), problem, Stop(tol=0.0))
    assert result.stop_reason == "interrupted"
    assert result.certificate.primal < problem.c.sum()  # of w = 0
    assert proven_again(problem, result) == pytest.approx(result.certificate, rel=1e-12)


def test_an_interrupt_ends_the_iteration_with_its_reason(problem):
    steps = list(Driver(Interrupted(at=3), problem, Stop(tol=0.0)))
    assert [progress.stop for progress in steps] == [None, None, "interrupted"]


def test_a_solver_that_cannot_improve_ends_the_run(problem):
    @dataclass(frozen=True)
    class Tired(Dual):
        def step(self, problem, state):
            state = super().step(problem, state)
            return state._replace(exhausted=state.epoch == 3, still=True)

    result = run(Tired(shrinking=False), problem, Stop(tol=0.0))
    assert (result.stop_reason, result.state.epoch) == ("stalled", 3)
    assert result.history[-1].certificate == result.certificate


def test_auto_counts_with_the_gap_that_is_wanted():
    """Descent is soon near and slow to come nearer."""
    problem = random_problem(0, LOSSES[0], n=400)
    problem = problem._replace(c=np.full(400, 1.2 / float(problem.q.mean())))

    def chosen(tol):
        return Driver(Auto(), problem, Stop(tol=tol)).state.choice.name

    assert [chosen(tol) for tol in (np.inf, 1e-3, 1e-9, 0.0)] == [
        "dual",
        "dual",
        "newton",
        "newton",
    ]


@pytest.mark.parametrize(
    ("share", "estimate", "due"),
    [(2.0, 3.9e-4, True), (2.0, 4.1e-4, False), (0.5, 7.9e-4, True), (0.5, 8.1e-4, False)],
)
def test_a_certificate_that_ended_nothing_may_be_followed_at_once(problem, share, estimate, due):
    """In the same epoch, where the gap is there by the share of the estimate that it told."""
    driver = Driver(Dual(), problem, Stop(tol=1e-3))
    driver.state = driver.state._replace(epoch=1, objective=1.0, estimate=estimate)
    driver._certified, driver._not_before, driver._share, driver._asked = 1, 2, share, 9e-4
    assert driver._due() is due
    driver._share = np.nan  # nothing has been told
    assert not driver._due()
