"""The certificate: against a slow reference, and never above the truth."""

import math

import numpy as np
import pytest
from conftest import (
    LOSSES,
    SEEDS,
    any_problem,
    every_intercept,
    every_loss,
    frozen,
    make_rows,
    plain,
    random_problem,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from pegasos.objective.certificate import Certificate, best_shift, evaluate, feasible
from pegasos.objective.losses import Hinge, Logistic, SquaredHinge, domain, value
from pegasos.objective.problem import C_from_lam, make_problem


def losses_of(loss, z):
    """l(z), plain."""
    if isinstance(loss, SquaredHinge):
        return np.maximum(0.0, 1.0 - z) ** 2
    if isinstance(loss, Logistic):
        return np.logaddexp(0.0, -z)
    return np.maximum(1.0 - z, loss.tau * (z - 1.0))


def conjugates_of(loss, a):
    """l*(-a), plain."""
    if isinstance(loss, SquaredHinge):
        return a * a / 4.0 - a
    if isinstance(loss, Logistic):
        return sum(np.where(p > 0.0, p * np.log(np.maximum(p, 1e-300)), 0.0) for p in (a, 1.0 - a))
    return -a


def reference_primal(problem, w):
    away = w - problem.center
    if problem.free:
        away = away[:-1]
    margins = problem.y * (plain(problem.rows) @ w)
    return away @ away / 2.0 + problem.c @ losses_of(problem.loss, margins)


def reference_dual(problem, alpha):
    v = plain(problem.rows).T @ (problem.y * alpha)
    if problem.free:
        v[-1] = 0.0
    conjugates = conjugates_of(problem.loss, alpha / problem.c)
    return -(v @ v) / 2.0 - problem.center @ v - problem.c @ conjugates


def random_alpha(problem, seed):
    """Inside the box or far outside of it."""
    rng = np.random.default_rng(seed)
    return rng.choice((0.1, 1.0, 10.0)) * problem.c * rng.normal(size=problem.c.size)


@every_loss
@every_intercept
@given(seed=SEEDS)
@pytest.mark.bounds
def test_both_values_equal_the_reference(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    w = np.random.default_rng(seed).normal(size=problem.center.size)
    seen = evaluate(problem, random_alpha(problem, seed), w)
    assert seen.certificate.primal == pytest.approx(reference_primal(problem, seen.w), rel=1e-12)
    expected = reference_dual(problem, seen.alpha)
    assert seen.certificate.dual == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert np.allclose(seen.margins, problem.y * (plain(problem.rows) @ seen.w), atol=1e-9)
    assert np.array_equal(seen.w[:-1], w[:-1])
    assert problem.free or seen.w[-1] == w[-1]


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_no_dual_value_is_above_any_primal_value(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    rng = np.random.default_rng(seed)
    for w in (None, rng.normal(size=problem.center.size), np.zeros(problem.center.size)):
        primal, dual = evaluate(problem, random_alpha(problem, seed), w).certificate
        assert primal >= dual - 1e-12 * (abs(primal) + abs(dual))


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_without_w_the_point_is_the_one_of_alpha(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    seen = evaluate(problem, random_alpha(problem, seed))
    w = problem.center + plain(problem.rows).T @ (problem.y * seen.alpha)
    kept = slice(None, -1) if problem.free else slice(None)
    assert np.allclose(seen.w[kept], w[kept], rtol=1e-12, atol=1e-10)


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_nothing_given_is_written(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    alpha, w = random_alpha(problem, seed), np.ones(problem.center.size)
    center = problem.center.copy()
    evaluate(problem, frozen(alpha), frozen(w))
    assert np.array_equal(problem.center, center)


@every_loss
@every_intercept
@given(seed=SEEDS)
def test_feasible_stays_in_the_box_and_balances(loss, intercept, seed):
    problem = any_problem(seed, loss, intercept)
    given_alpha = random_alpha(problem, seed)
    alpha = feasible(problem, given_alpha)
    low, high = domain(problem.loss)
    assert (low * problem.c <= alpha).all() and (alpha <= high * problem.c).all()
    if problem.free:
        assert abs(alpha @ problem.y) <= 1e-13 * np.abs(alpha).sum()
    else:
        assert np.array_equal(alpha, np.clip(given_alpha, low * problem.c, high * problem.c))
    again = feasible(problem, alpha)
    assert np.allclose(again, alpha, rtol=1e-12, atol=1e-14)


def shifted_sum(problem, scores, t):
    return problem.c @ losses_of(problem.loss, problem.y * (scores + t))


def least_shifted_sum(problem, scores):
    """By search between the kinks and beyond them."""
    kinks = problem.y - scores
    reach = (kinks.min() - 60.0, kinks.max() + 60.0)
    options = {"xatol": 1e-11, "maxiter": 1000}
    found = minimize_scalar(
        lambda t: shifted_sum(problem, scores, t), bounds=reach, method="bounded", options=options
    ).fun
    return min([found, *(shifted_sum(problem, scores, t) for t in (*kinks, *reach))])


@every_loss
@given(seed=SEEDS)
def test_best_shift_is_the_best_of_brute_search(loss, seed):
    problem, rng = any_problem(seed, loss, "free"), np.random.default_rng(seed)
    scores = rng.choice((0.0, 0.3, 3.0)) * (rng.normal(size=problem.y.size) + 1.0)
    reached = shifted_sum(problem, scores, best_shift(problem, scores))
    start = shifted_sum(problem, scores, 0.0)
    assert reached <= least_shifted_sum(problem, scores) + 2e-10 * start


def test_best_shift_is_as_good_from_far_away():
    for loss in LOSSES:
        problem = random_problem(0, loss, intercept="free")
        scores = np.random.default_rng(0).normal(size=problem.y.size)
        least = least_shifted_sum(problem, scores)
        for offset in (1e3, -1e6):
            far = scores + offset
            reached = shifted_sum(problem, far, best_shift(problem, far))
            assert reached <= least * (1.0 + 1e-8)


@every_loss
def test_one_class_needs_no_loss_with_a_free_intercept(loss):
    problem = random_problem(0, loss, intercept="free")._replace(y=frozen(np.ones(30)))
    primal, dual = evaluate(problem, np.zeros(30)).certificate
    assert primal == pytest.approx(0.0, abs=1e-6) and dual == 0.0


def labels(n):
    return frozen(np.resize([1.0, -1.0], n))


def test_weight_k_equals_k_copies():
    rng = np.random.default_rng(0)
    X, y, k = rng.normal(size=(10, 3)), labels(10), rng.integers(1, 4, 10)
    alpha, w = rng.random(10), rng.normal(size=4)
    for loss in LOSSES:
        for free in (False, True):
            rows = make_rows("dense-float64", X, 1.0)
            once = evaluate(make_problem(rows, y, k.astype(float), loss, free=free), alpha, w)
            rows = make_rows("dense-float64", np.repeat(X, k, axis=0), 1.0)
            copies = make_problem(rows, frozen(np.repeat(y, k)), np.ones(k.sum()), loss, free=free)
            often = evaluate(copies, np.repeat(alpha / k, k), w)
            assert once.certificate == pytest.approx(often.certificate, rel=1e-9)


@every_loss
@given(seed=SEEDS, lam=st.floats(1e-4, 1e2), weighted=st.booleans())
def test_lam_is_the_same_objective_up_to_a_factor(loss, seed, lam, weighted):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(8, 3)), labels(8), rng.normal(size=4)
    weight = rng.random(8) + 0.1 if weighted else np.ones(8)
    C = C_from_lam(lam, weight.sum())
    problem = make_problem(make_rows("dense-float64", X), y, C * weight, loss)
    mean_loss = np.average(losses_of(loss, y * (X @ w[:-1])), weights=weight)
    expected = (lam / 2.0 * w @ w + mean_loss) * C * weight.sum()
    assert evaluate(problem, np.zeros(8), w).certificate.primal == pytest.approx(expected)


def test_make_problem_refuses_overflow_and_unknown_losses():
    y = labels(2)
    for size in (1e100, np.nan):
        with pytest.raises(ValueError, match="Scale the features"):
            rows = make_rows("dense-float64", np.full((2, 1), size))
            make_problem(rows, y, np.full(2, 1e60), Hinge())
    with pytest.raises(TypeError, match="has no 'value'"):
        make_problem(make_rows("dense-float64", np.ones((2, 1))), y, np.ones(2), "hinge")


def test_a_certificate_knows_its_gap():
    assert Certificate(4.0, 3.0).gap == 1.0
    assert Certificate(4.0, 3.0).relative_gap == 0.25
    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(1.0, 1.0 + 1e-16).gap == 0.0


def test_nan_proves_nothing():
    for certificate in (Certificate(math.nan, 0.0), Certificate(1.0, math.nan)):
        assert not certificate.gap <= 1e9
        assert not certificate.relative_gap <= 1e9


def test_reference_losses_are_the_losses():
    z = np.linspace(-3.0, 3.0, 41)
    for loss in LOSSES:
        expected = [value(loss, float(t)) for t in z]
        assert np.allclose(losses_of(loss, z), expected, rtol=1e-14)


def test_a_bound_above_the_value_proves_nothing():
    assert Certificate(1.0, 2.0).gap == math.inf
    assert Certificate(0.0, -1e-9).relative_gap == math.inf
    assert Certificate(-2.0, -3.0).relative_gap == 0.5
