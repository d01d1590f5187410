"""What the theory promises of Pegasos, on shipped data: its regret, and its averaged iterate."""

import numpy as np
import pytest
from conftest import SEEDS, plain, random_problem
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bounds import bound, excesses, least, printed_bound, unit_problem
from pegasos.data.samples import load_sample
from pegasos.objective.losses import Pinball, value
from pegasos.solvers.subgradient import Subgradient

LAM, STEPS = 0.1, (1, 3, 10, 100, 1000)


def spam(tau: float):
    """Every tenth e-mail, standardised, then of norm 1."""
    X, y = load_sample("spambase")
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[::10]
    return unit_problem(X, np.where(y[::10] == 1, 1.0, -1.0), LAM, tau)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("projection", [True, False], ids=["projected", "free"])
@pytest.mark.parametrize("tau", [0.0, 0.5], ids=["hinge", "pinball"])
def test_the_averaged_iterate_keeps_the_bound(tau, projection, batch):
    problem, T = spam(tau), np.array(STEPS)
    solver = Subgradient(
        batch=batch, sampling="replacement", offset="none", power=0.0, projection=projection
    )
    optimum = least(problem, tol=1e-6)
    seen = np.array([excesses(problem, solver, STEPS, optimum, seed) for seed in range(3)])
    allowed = bound(T, LAM, 1.0, tau, projection)
    assert np.all(seen <= allowed)
    start = 1.0 - optimum  # w = 0 has f = 1: whoever stays there breaks the bound
    assert start > allowed[-1]


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
def test_the_printed_bound_is_the_looser_one(tau):
    T = np.arange(4.0, 1e5)
    for lam in (1e-4, 1e-2, 1.0):
        assert np.all(bound(T, lam, 2.0, tau) <= printed_bound(T, lam, 2.0, tau))


def instantaneous(problem, X, w, rows) -> float:
    """lam/2 ||w||^2 + mean loss of the rows of one step."""
    lam, z = 1.0 / problem.c.sum(), problem.y[rows] * (X[rows] @ w)
    return 0.5 * lam * w @ w + np.mean([value(problem.loss, margin) for margin in z])


@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 4), st.booleans())
def test_regret_in_any_order(seed, tau, k, projection):
    """The lemma below the theorem needs no luck: it holds for the rows as they come."""
    problem = random_problem(seed, Pinball(tau), n=12)
    problem = problem._replace(c=np.full(12, problem.c.mean()))
    X, lam = plain(problem.rows), 1.0 / problem.c.sum()
    solver = Subgradient(
        batch=k, sampling="order", offset="none", power=None, projection=projection
    )
    R = np.linalg.norm(X, axis=1).max()
    rival = np.random.default_rng(seed).normal(size=X.shape[1])
    rival *= 0.7 / (np.sqrt(lam) * np.linalg.norm(rival))
    G = np.sqrt(lam) + R if projection else 2.0 * R
    state, regret, t = solver.init(problem, 0), 0.0, 0
    while t < 40:
        w = solver.candidate(problem, state)[1]
        rows = slice(state.cursor, min(state.cursor + k, 12))
        regret += instantaneous(problem, X, w, rows) - instantaneous(problem, X, rival, rows)
        state, t = solver.advance(problem, state, 1), t + 1
        assert regret <= G**2 * (1.0 + np.log(t)) / (2.0 * lam) * (1.0 + 1e-9)
