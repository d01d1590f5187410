"""Matrices that follow the curvature of small tables, in a compiled loop."""

from typing import NamedTuple

import numpy as np
import pytest
from conftest import make_rows, plain

from pegasos.core.jit import hot
from pegasos.objective.losses import Hinge
from pegasos.objective.problem import make_problem
from pegasos.solvers.small import begun, follow, is_small, room_for

pytestmark = pytest.mark.filterwarnings("error")


class Bend(NamedTuple):
    h: np.ndarray
    u: np.ndarray
    G: np.ndarray


@hot
def _follow(problem, at, to, given, room):
    return follow(problem, at, to, given, room)


def table(kind, n=900, d=11):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < (0.1 if kind.startswith("csr") else 1.0))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return make_problem(make_rows(kind, X, 1.0), y, np.ones(n), Hinge())


@pytest.mark.parametrize("kind", ["dense-float32", "dense-float64", "csr-float32-uint32"])
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.bounds
def test_a_matrix_follows_the_rows_that_changed(kind, single):
    problem, rng, unit = table(kind), np.random.default_rng(1), 0.5
    X, room, (u, G), told = plain(problem.rows), room_for(problem), begun(problem), (0.0, True)
    h = np.where(np.arange(900) < 700, rng.random(900), 0.0)
    for share in (0.05, 0.0, 0.35, 0.95, 0.05):  # of 0.35 more than a room is taken away
        h = np.where(rng.random(900) < share, h * (rng.random(900) < 0.3), h)
        at, to = Bend(h, u, G), Bend(h, np.empty_like(u), np.empty_like(G))
        told = _follow(problem, at, to, (unit, *told, single), room)
        u, G = to.u, to.G
        expected = X.T @ ((unit * h)[:, None] * X)
        rough = 1e-4 if single else 1e-10
        np.testing.assert_array_equal(u, unit * h)
        lower = np.tril(G[: X.shape[1], : X.shape[1]])
        np.testing.assert_allclose(lower, np.tril(expected), rtol=rough, atol=rough)
        assert told[0] >= unit * h @ problem.q * (1.0 - 1e-9) and told[1] is not single


def test_much_mass_is_not_left_to_float32():
    problem = table("dense-float32")
    u, G = begun(problem)
    h = np.full(900, 1e6)
    at, to = Bend(h, u, G), Bend(h, np.empty_like(u), np.empty_like(G))
    mass, precise = _follow(problem, at, to, (1.0, 0.0, False, True), room_for(problem))
    X = plain(problem.rows)
    assert precise and mass == pytest.approx(1e6 * problem.q.sum())
    lower = np.tril(to.G[: X.shape[1], : X.shape[1]])
    np.testing.assert_allclose(lower, np.tril(1e6 * X.T @ X), rtol=1e-10, atol=1e-3)


def test_many_columns_are_not_small():
    assert is_small(table("dense-float32")) and not is_small(table("dense-float32", d=200))
