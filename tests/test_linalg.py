"""The factor of small matrices in compiled loops is that of LAPACK."""

import numpy as np
import pytest

from pegasos.core.jit import hot
from pegasos.solvers.linalg import diagonal_of, factor, solve_small
from pegasos.solvers.steps import sqdist


@hot
def _solve(G, R, x, room):
    return solve_small(G, R, x, room)


def room_for(d):
    return np.empty((d, d)), np.empty(d), np.empty(d)


def matrix(d, rank):
    A = np.random.default_rng(d).normal(size=(rank, d)) * np.logspace(-3, 3, d)
    return A.T @ A


@pytest.mark.parametrize("d", [1, 2, 9, 40, 127])
@pytest.mark.bounds
def test_it_solves(d):
    G, R, x = matrix(d, 3 * d), np.ones(d), np.arange(1.0, d + 1.0)
    expected = np.linalg.solve(G + np.diag(R), x)
    larger = np.full((d + 3, d + 3), np.nan)
    larger[:d, :d] = np.tril(G)  # of a larger one, and the lower triangle alone
    found = x.copy()
    assert _solve(larger, R, found, room_for(d))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_singular_matrix_is_lifted_until_it_has_a_factor():
    A = np.random.default_rng(0).normal(size=(2, 6))
    A[:, 3] = 0.0  # and a column without anything
    G = A.T @ A
    x = G @ np.ones(6)
    found = x.copy()
    assert _solve(G, np.zeros(6), found, room_for(6))
    for answer in (found, factor(G)(x)):
        np.testing.assert_allclose(G @ answer, x, rtol=1e-3, atol=1e-6)


def test_there_is_no_answer_without_a_factor():
    G = np.full((3, 3), np.nan)
    assert not _solve(G, np.ones(3), np.ones(3), room_for(3))


def test_the_diagonal_may_be_written():
    H = np.zeros((3, 3))
    diagonal_of(H)[:] += 2.0
    assert np.array_equal(H, 2.0 * np.eye(3))


@pytest.mark.parametrize("n", range(10))
@pytest.mark.bounds
def test_distances_of_any_length(n):
    w, center = np.random.default_rng(n).normal(size=(2, n))
    assert sqdist(w, center) == pytest.approx(((w - center) ** 2).sum(), abs=1e-12)
