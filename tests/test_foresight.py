"""Steps of a first epoch go by margins that are foreseen; a sample of the rows tells the gap."""

import numpy as np
import pytest
from conftest import make_rows, sample_problem
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core import matrix
from pegasos.core.threads import use_threads
from pegasos.objective.certificate import evaluate
from pegasos.objective.losses import Hinge, Logistic, Pinball, SquaredHinge
from pegasos.objective.problem import make_problem
from pegasos.solvers import dual, dual_verbs, team
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.dual_state import place_of
from pegasos.solvers.dual_verbs import noise_ahead, sampled
from pegasos.solvers.intercept import FreeIntercept
from pegasos.solvers.steps import foreseen

smooth = pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)


def like_text(loss, n=2000, C=0.1, bias=0.0, seed=0):
    """Few columns are frequent and many rare; a third of the rows is positive."""
    rng, d = np.random.default_rng(seed), 400
    X = rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.6 / np.arange(1, d + 1) ** 0.5)
    X /= np.maximum(1e-9, np.linalg.norm(X, axis=1))[:, None]
    scores = X @ rng.normal(size=d)
    y = np.where(scores > np.quantile(scores, 2 / 3), 1.0, -1.0)
    return make_problem(make_rows("csr-float32-uint32", X, bias), y, np.full(n, C), loss)


@given(z=st.floats(-5.0, 5.0), share=st.floats(0.001, 1.0), noise=st.floats(0.01, 1.0))
def test_what_is_foreseen_is_never_less(z, share, noise):
    found = foreseen(z, share, noise)
    assert found >= z and (found == z or z > 0.0)
    assert foreseen(z, 1.0, noise) == pytest.approx(z)
    assert foreseen(z, share, 1.0) == pytest.approx(z)
    assert found <= max(z, 0.0) / share * (1.0 + 1e-9) or z <= 0.0


@smooth
def test_a_first_epoch_with_foresight_does_what_others_do_in_two(loss, monkeypatch):
    problem = like_text(loss, C=0.02)
    state = _after(problem, 1)
    with monkeypatch.context() as patch:
        patch.setattr(dual, "noise_ahead", lambda problem, alpha: 1.0)
        others = [_gap(problem, _after(problem, epochs)) for epochs in (1, 2)]
    assert _gap(problem, state) < 0.5 * others[0]
    assert _gap(problem, _after(problem, 2)) < 0.7 * others[1]


@smooth
def test_the_dual_rises_with_each_step(loss):
    problem = like_text(loss, n=60)
    state = Dual()._begun(problem, Dual().init(problem, 0))
    assert state.noise < 1.0
    last, place = evaluate(problem, state.alpha).certificate.dual, place_of(state)
    for k in range(state.active):
        dual_verbs.advance(problem, place, (k, k + 1), 1)
        now = evaluate(problem, state.alpha).certificate.dual
        assert now >= last - 1e-12 * abs(last)
        last = now


@smooth
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("free", [False, True])
def test_it_ends_with_its_proof(loss, tol, free):
    problem = like_text(loss, bias=float(free))._replace(free=free)
    solver = FreeIntercept(Dual()) if free else Dual()
    found = run(solver, problem, Stop(tol=tol))
    exact = evaluate(problem, found.best.alpha, found.best.w).certificate
    assert found.stop_reason == "gap" and exact.relative_gap <= 1.001 * tol


@smooth
def test_the_same_answer_in_slices(loss, monkeypatch):
    problem = like_text(loss)
    at_once = _after(problem, 1)
    monkeypatch.setattr(dual_verbs, "SLICE", 20_000)
    in_slices = _after(problem, 1)
    assert np.array_equal(at_once.alpha, in_slices.alpha)


def test_only_from_zero_and_where_rows_weigh_little():
    problem = like_text(Logistic())
    n, width = len(problem.y), problem.center.size
    assert 0.0 < noise_ahead(problem, None) < 1.0
    assert noise_ahead(problem, np.zeros(n)) == 1.0
    assert noise_ahead(problem._replace(center=np.full(width, 0.1)), None) == 1.0
    assert noise_ahead(problem._replace(c=np.full(n, 100.0)), None) == 1.0
    for loss in (Hinge(), Pinball(0.5)):  # a kink: rows leave, and epochs are short after two
        assert noise_ahead(like_text(loss), None) == 1.0


@pytest.fixture
def _always_shared(monkeypatch):
    """With two or three meetings an epoch."""
    for name, number in {"_WORTH": 0.0, "_PAYS": 0.0, "_LENGTH": 4e3, "_COLUMN": 0.0}.items():
        monkeypatch.setattr(team, name, number)


@smooth
def test_threads_that_share_a_first_epoch_foresee_its_end(loss, monkeypatch, _always_shared):
    problem = like_text(loss, C=0.02)
    one = _gap(problem, _after(problem, 1))
    with use_threads(2):
        two = _gap(problem, _after(problem, 1))
        monkeypatch.setattr(dual, "noise_ahead", lambda problem, alpha: 1.0)
        assert two < 0.7 * _gap(problem, _after(problem, 1))
    assert two < 2.0 * one


def test_a_run_that_one_thread_began_goes_on_with_two(_always_shared, monkeypatch):
    problem, solver = like_text(Logistic()), Dual()
    monkeypatch.setattr(dual_verbs, "SLICE", 20_000)
    state = solver.step(problem, solver.init(problem, 0))
    assert 0 < state.cursor < state.active and not state.shared
    with use_threads(2):
        state = solver.step(problem, state)
    assert state.shared
    np.testing.assert_allclose(state.w, evaluate(problem, state.alpha).w, atol=1e-12)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_share_end_with_their_proof(loss, threads, _always_shared):
    problem = like_text(loss)
    with use_threads(threads):
        found = run(Dual(), problem, Stop(tol=1e-4))
    exact = evaluate(problem, found.best.alpha, found.best.w).certificate
    assert found.stop_reason == "gap" and exact.relative_gap <= 1.001e-4


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
def test_a_sample_tells_the_gap_and_a_little_more(loss):
    small, large = like_text(loss, n=300), like_text(loss, n=20_000)
    for problem, least, most in ((small, 1.0 - 1e-9, 1.0 + 1e-9), (large, 0.9, 1.8)):
        state = _after(problem, 1)  # the sample of the small one is all of it
        told, losses = sampled(problem, place_of(state), state.active)
        assert least <= told / _gap(problem, state) <= most
        primal = evaluate(problem, state.alpha).certificate.primal
        assert 0.5 * state.w @ state.w + losses == pytest.approx(primal, rel=0.2 * (most - 1.0))


def test_a_sample_of_rows_with_a_period_has_all_of_them(monkeypatch):
    problem, seen = like_text(Logistic(), n=32_768), []

    def survey(problem, place, chosen, *rest):
        seen.append(chosen)
        return 1.0, 0.0, 1.0, 1.0

    monkeypatch.setattr(dual_verbs, "_survey", survey)
    monkeypatch.setattr(dual, "near_rows", lambda rows: 16)  # as of many entries
    state = Dual()._begun(problem, Dual().init(problem, 0))
    sampled(problem, place_of(state), state.active)
    counts = np.bincount(np.concatenate(seen) % 16, minlength=16)
    assert counts.sum() >= 512 and counts.min() >= 10


def test_a_sample_of_no_rows():
    problem = like_text(Logistic(), n=50)
    assert sampled(problem, place_of(Dual().init(problem, 0)), 0) == (0.0, 0.0)


def test_threads_share_a_survey(monkeypatch):
    problem = like_text(Logistic())
    place, chosen = place_of(_after(problem, 1)), np.arange(0, 2000, 3)
    found = []
    for block, threads in ((1e9, 1), (100.0, 1), (100.0, 2)):
        monkeypatch.setattr(matrix, "_BLOCK", block)
        monkeypatch.setattr(matrix, "_ALONE", block)
        with use_threads(threads):
            found.append(dual_verbs._surveyed(problem, place, chosen, *np.empty((2, 667))))
    assert np.array_equal(found[1], found[2]) and np.allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.slow
def test_on_the_samples():
    for name in ("pima", "spambase"):
        problem = sample_problem(name, Logistic(), "csr-float32-uint32", C=0.001)
        assert noise_ahead(problem, None) < 1.0
        assert run(Dual(), problem, Stop(tol=1e-6)).stop_reason == "gap"


def _after(problem, epochs):
    state = Dual().init(problem, 0)
    while state.epoch < epochs:
        state = Dual().step(problem, state)
    return state


def _gap(problem, state):
    return evaluate(problem, state.alpha).certificate.gap
