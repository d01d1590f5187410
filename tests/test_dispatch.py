"""Open verbs: what is registered outside the package works as if it were inside."""

from typing import NamedTuple

import numpy as np
import pytest
from conftest import LOSSES, frozen, make_rows, random_labels
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core import rows as storage
from pegasos.core.dispatch import generic
from pegasos.core.gram import gram
from pegasos.core.jit import hot
from pegasos.core.matrix import combine, products, sqnorms
from pegasos.objective.losses import (
    check_loss,
    conjugate,
    curvature,
    dual_step,
    slope,
    value,
)
from pegasos.objective.problem import make_problem
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.newton import Newton


class SmoothHinge(NamedTuple):
    """The hinge with its kink rounded over a width; it registers no curvature."""

    width: float


@value.register(SmoothHinge)
def _(loss, z):
    h = max(0.0, 1.0 - z)
    return h * h / (2.0 * loss.width) if h < loss.width else h - 0.5 * loss.width


@slope.register(SmoothHinge)
def _(loss, z):
    return -min(max((1.0 - z) / loss.width, 0.0), 1.0)


@conjugate.register(SmoothHinge)
def _(loss, a):
    return a * (0.5 * loss.width * a - 1.0)


@dual_step.register(SmoothHinge)
def _(loss, alpha, z, q, c):
    new = alpha + (1.0 - z - loss.width * alpha / c) / (q + loss.width / c)
    return min(max(new, 0.0), c)


class PlainRows(NamedTuple):
    """Full rows, whose verbs take a weight vector to have d + 1 entries and no more."""

    values: np.ndarray
    bias: float


@storage.n_rows.register(PlainRows)
def _(rows):
    return rows.values.shape[0]


@storage.n_columns.register(PlainRows)
def _(rows):
    return rows.values.shape[1]


@storage.n_entries.register(PlainRows)
def _(rows):
    return rows.values.size


@storage.row_axpy.register(PlainRows)
def _(rows, i, a, w):
    for k in range(w.shape[0] - 1):
        w[k] += a * rows.values[i, k]
    w[w.shape[0] - 1] += a * rows.bias


def test_rows_from_outside_are_written_into_vectors_of_their_length():
    X, h = np.random.default_rng(0).normal(size=(30, 5)), np.linspace(0.5, 2.0, 30)
    whole = np.column_stack([X, np.full(30, 0.7)])
    found = gram(PlainRows(X, 0.7), h, np.float64, np.arange(6))
    np.testing.assert_allclose(found, whole.T @ (h[:, None] * whole), rtol=1e-12)


class OneHotRows(NamedTuple):
    """A 1 in the column `codes[i]` of row i, and nothing else."""

    codes: np.ndarray
    width: int
    bias: float


@storage.n_rows.register(OneHotRows)
def _(rows):
    return rows.codes.shape[0]


@storage.n_columns.register(OneHotRows)
def _(rows):
    return rows.width


@storage.n_entries.register(OneHotRows)
def _(rows):
    return rows.codes.shape[0]


@storage.row_dot.register(OneHotRows)
def _(rows, i, w):
    return w[rows.codes[i]] + rows.bias * w[rows.width]


@storage.row_axpy.register(OneHotRows)
def _(rows, i, a, w):
    w[rows.codes[i]] += a
    w[rows.width] += a * rows.bias


@storage.row_sqnorm.register(OneHotRows)
def _(rows, i):
    return 1.0 + rows.bias * rows.bias


@storage.row_outer.register(OneHotRows)
def _(rows, i, a, out):
    j, d = rows.codes[i], rows.width
    out[j, j] += a
    out[d, j] += a * rows.bias
    out[d, d] += a * rows.bias * rows.bias


@storage.row_prefetch.register(OneHotRows)
def _(rows, i):
    pass


class Nothing(NamedTuple):
    """A type that no verb knows."""

    number: float


class HalfALoss(NamedTuple):
    """A loss whose author forgot two verbs."""


value.register(HalfALoss)(lambda loss, z: z * z)
slope.register(HalfALoss)(lambda loss, z: 2.0 * z)


@hot
def value_in_a_loop(loss, z):
    return value(loss, z)


@hot
def curvature_in_a_loop(loss, z):
    return curvature(loss, z)


@given(width=st.floats(0.1, 1.0), z=st.floats(-3.0, 3.0))
@pytest.mark.bounds
def test_an_outside_loss_is_called_from_python_and_from_a_loop(width, z):
    expected = np.clip((1.0 - z) / width, 0.0, 1.0)
    expected = expected * (1.0 - z) - width * expected**2 / 2.0
    assert value(SmoothHinge(width), z) == pytest.approx(expected, abs=1e-12)
    assert value_in_a_loop(SmoothHinge(width), z) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("solver", [Dual(), Newton()], ids=repr)
def test_an_outside_loss_trains(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = random_labels(rng, X)
    rows = make_rows("dense-float64", X, 1.0)
    problem = make_problem(rows, y, np.ones(30), check_loss(SmoothHinge(0.5)))
    assert run(solver, problem, Stop(tol=1e-6)).stop_reason == "gap"


def one_hot_pair(seed, n=30, d=4):
    """The same rows as an outside type and as an array."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(d, size=n)
    X = np.eye(d)[codes]
    return OneHotRows(frozen(codes), d, 0.5), make_rows("dense-float64", X, 0.5), rng


def test_an_outside_storage_multiplies():
    outside, inside, rng = one_hot_pair(1)
    w, a, h = rng.normal(size=5), rng.normal(size=30), rng.random(30)
    assert np.allclose(products(outside, w), products(inside, w))
    assert np.allclose(combine(outside, a), combine(inside, a))
    assert np.allclose(sqnorms(outside), sqnorms(inside))
    grams = [gram(rows, h, np.float64, np.arange(5)) for rows in (outside, inside)]
    assert np.allclose(*grams)


@pytest.mark.parametrize(
    "solver",
    [
        Dual(),
        Newton(),
    ],
    ids=repr,
)
@pytest.mark.bounds
def test_an_outside_storage_trains(solver):
    outside, inside, rng = one_hot_pair(2)
    y = frozen(np.where(rng.random(30) < 0.5, 1.0, -1.0))
    for loss in LOSSES[:3:2]:
        found = [
            run(solver, make_problem(rows, y, np.ones(30), loss), Stop(tol=1e-8))
            for rows in (outside, inside)
        ]
        assert [result.stop_reason for result in found] == ["gap", "gap"]
        assert np.allclose(found[0].best.w, found[1].best.w, atol=1e-3)


def test_a_missing_verb_is_named_with_the_type():
    expected = r"Nothing has no 'value': register one with @value.register\(Nothing\)"
    with pytest.raises(TypeError, match=expected):
        value(Nothing(1.0), 0.5)
    with pytest.raises(TypeError, match=expected):
        value_in_a_loop(Nothing(1.0), 0.5)
    with pytest.raises(TypeError, match=expected):
        check_loss(Nothing(1.0))


def test_check_loss_finds_what_is_missing_before_any_loop_runs():
    with pytest.raises(TypeError, match="HalfALoss has no 'conjugate'"):
        check_loss(HalfALoss())
    rows = make_rows("dense-float64", np.ones((2, 1)))
    with pytest.raises(TypeError, match="HalfALoss has no 'conjugate'"):
        make_problem(rows, frozen(np.array([1.0, -1.0])), np.ones(2), HalfALoss())


@given(z=st.floats(-3.0, 3.0))
def test_a_verb_with_a_body_falls_back_on_it(z):
    """curvature of a loss that registered none: differences of its slope."""
    loss = SmoothHinge(0.5)
    expected = max(0.0, (slope(loss, z + 1e-6) - slope(loss, z - 1e-6)) / 2e-6)
    assert curvature(loss, z) == expected
    assert curvature_in_a_loop(loss, z) == pytest.approx(expected, abs=1e-9)
    if abs(z - 0.75) < 0.2:
        assert expected == pytest.approx(2.0)


@generic
def size_of(thing):
    """A verb with a body; registered types have their own."""
    return len(thing) * 1.0


def test_a_body_may_be_a_constant():
    @generic
    def weight(thing):
        """1 unless registered."""
        return 1.0

    assert weight(Nothing(3.0)) == 1.0


def test_registering_again_replaces():
    assert size_of(Nothing(3.0)) == 1.0
    size_of.register(Nothing)(lambda thing: thing.number)
    assert size_of(Nothing(3.0)) == 3.0
    size_of.register(Nothing, reassociate=True)(lambda thing: -thing.number)
    assert size_of(Nothing(3.0)) == -3.0 and Nothing in size_of.reordered
    size_of.register(Nothing)(lambda thing: thing.number)
    assert Nothing not in size_of.reordered


class InOrder(NamedTuple):
    """Numbers summed in their order."""

    numbers: np.ndarray


class InAnyOrder(NamedTuple):
    """Numbers whose sum may be reordered."""

    numbers: np.ndarray


@generic
def total(items):
    """The sum."""


@total.register(InOrder)
@total.register(InAnyOrder, reassociate=True)
def _(items):
    s = 0.0
    for k in range(items.numbers.shape[0]):
        s += items.numbers[k]
    return s


@hot
def total_in_a_loop(items):
    return total(items)


@given(n=st.integers(0, 300))
@pytest.mark.bounds
def test_sums_are_reordered_only_where_allowed(n):
    numbers = np.random.default_rng(n).normal(size=n)
    exact = total(InOrder(numbers))
    assert total_in_a_loop(InOrder(numbers)) == exact, "same order, same bits"
    assert total_in_a_loop(InAnyOrder(numbers)) == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize("kind", [InOrder, InAnyOrder])
def test_nan_and_infinity_survive_reordering(kind):
    numbers = np.ones(100)
    numbers[50] = np.nan
    assert np.isnan(total_in_a_loop(kind(numbers)))
    numbers[50] = np.inf
    assert total_in_a_loop(kind(numbers)) == np.inf
