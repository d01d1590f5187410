"""The loops between two passes over the data: what they fill and sum, also in blocks."""

import numpy as np
import pytest
from conftest import every_intercept, every_loss, random_problem

from pegasos.objective.certificate import conjugate_sum, feasible, loss_sum
from pegasos.objective.losses import curvature, dual_step, is_piecewise_linear, slope
from pegasos.solvers import responses
from pegasos.solvers.responses import (
    foretold,
    proximal_pull,
    proximal_responses,
    responses_along,
)


@pytest.fixture(params=[7, 1 << 16], autouse=True)
def blocks(request, monkeypatch):
    monkeypatch.setattr(responses, "_BLOCK", request.param)


def scored(loss, intercept="none"):
    """A problem, one of its rows without weight, and two vectors of scores."""
    problem = random_problem(3, loss, intercept=intercept)
    c = problem.c.copy()
    c[4] = 0.0
    scores, along = np.random.default_rng(4).normal(size=(2, c.size))
    return problem._replace(c=c), scores, along


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@every_loss
def test_along_a_line(loss):
    problem, scores, along = scored(loss)
    found = responses_along(problem, scores, along, 0.3)
    to = scores + 0.3 * along
    z = [float(z) for z in problem.y * to]
    a = -problem.c * [slope(loss, x) for x in z]
    close(found.scores, to)
    close(found.a, a)
    close(found.h, problem.c * [curvature(loss, x) for x in z])
    close(found.push, problem.y * a)
    close(found.pull, (problem.y * a) @ along)
    close(found.losses, loss_sum(problem, problem.y * to))


@every_loss
@pytest.mark.parametrize("q", [0.0, 0.5])
def test_around_a_proximal_centre(loss, q):
    problem, scores, along = scored(loss)
    alpha = feasible(problem, 0.5 * problem.c)
    terms = zip(alpha, problem.y * scores, problem.c, strict=True)
    z = [float(x) for x in problem.y * scores]
    if q > 0.0:
        a = np.array([dual_step(loss, k, x, q, c) if c else 0.0 for k, x, c in terms])
    else:
        a = -problem.c * [slope(loss, x) for x in z]
    found = proximal_responses(problem, alpha, q, scores, alpha)
    used = problem.c > 0.0
    close(found.a[used], a[used])
    close(found.shift, problem.y * (found.a - alpha))
    close(found.losses, loss_sum(problem, problem.y * scores))
    close(found.conjugates, conjugate_sum(problem, found.a))
    close(proximal_pull(problem, alpha, q, scores, along, 0.0), (problem.y * found.a) @ along)


@every_loss
@every_intercept
def test_what_is_foretold_is_feasible(loss, intercept):
    if is_piecewise_linear(loss):
        return
    problem, scores, along = scored(loss, intercept)
    here = responses_along(problem, scores, along, 0.0)
    told = here.a - here.h * problem.y * along
    found = foretold(problem, here.a, here.h, scores, scores + along)
    close(found.alpha, feasible(problem, told))
    close(found.shift, problem.y * (found.alpha - told))
    close(found.conjugates, conjugate_sum(problem, found.alpha))
