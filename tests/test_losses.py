"""The laws of a loss: its four verbs agree with each other and with brute force."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from conftest import LOSSES
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pegasos.core.jit import hot
from pegasos.objective.losses import (
    Hinge,
    Logistic,
    Pinball,
    SquaredHinge,
    check_loss,
    conjugate,
    curvature,
    domain,
    dual_step,
    is_piecewise_linear,
    slope,
    value,
    visit,
)

KINK = 1.0  # of every loss here that has one
MARGINS = st.floats(-30.0, 30.0) | st.sampled_from((-1.0, 0.0, KINK, 2.0))
SHARES = st.floats(0.0, 1.0)
TAUS = st.floats(0.0, 1.0)
every_loss = pytest.mark.parametrize("loss", [*LOSSES, Pinball(1.0)], ids=repr)


def inside(loss, share):
    """A point of the domain, from its low end (share 0) to its high end or 20 (share 1)."""
    low, high = domain(loss)
    return low + share * (min(high, 20.0) - low)


@every_loss
@given(z=MARGINS, share=SHARES)
def test_fenchel_young(loss, z, share):
    a = inside(loss, share)
    assert value(loss, z) + conjugate(loss, a) + a * z >= -1e-13 * (1.0 + abs(a * z))


@every_loss
@given(z=MARGINS)
def test_fenchel_young_is_an_equality_at_the_slope(loss, z):
    a = -slope(loss, z)
    low, high = domain(loss)
    assert low <= a <= high
    total = value(loss, z) + conjugate(loss, a) + a * z
    assert abs(total) <= 1e-12 * (1.0 + abs(a * z) + value(loss, z))


@every_loss
@given(z=MARGINS)
def test_slope_is_the_derivative(loss, z):
    h = 1e-5
    assume(abs(z - KINK) > 2.0 * h)
    difference = (value(loss, z + h) - value(loss, z - h)) / (2.0 * h)
    assert slope(loss, z) == pytest.approx(difference, abs=1e-8, rel=1e-8)


@every_loss
@given(z=MARGINS)
def test_curvature_is_the_derivative_of_the_slope(loss, z):
    h = 1e-5
    assume(abs(z - KINK) > 2.0 * h)
    difference = (slope(loss, z + h) - slope(loss, z - h)) / (2.0 * h)
    assert curvature(loss, z) == pytest.approx(difference, abs=1e-8, rel=1e-8)


@every_loss
@given(z=MARGINS, other=MARGINS)
def test_every_slope_is_a_subgradient(loss, z, other):
    """Convexity, with its tangents."""
    below = value(loss, z) + slope(loss, z) * (other - z)
    assert value(loss, other) >= below - 1e-12 * (1.0 + abs(below))


@every_loss
@given(low=MARGINS, high=MARGINS)
def test_slopes_rise(loss, low, high):
    assume(low < high)
    assert slope(loss, low) <= slope(loss, high)
    assert curvature(loss, low) >= 0.0


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (Hinge(), (0.0, 1.0)),
        (Pinball(0.3), (-0.3, 1.0)),
        (SquaredHinge(), (0.0, math.inf)),
        (Logistic(), (0.0, 1.0)),
    ],
)
def test_domain(loss, expected):
    assert domain(loss) == expected
    ends = [a for a in expected if math.isfinite(a)]
    assert all(math.isfinite(conjugate(loss, a)) for a in ends)


def gain(loss, alpha, z, q, c, new):
    """What the dual gains along one coordinate, up to a constant."""
    return -z * (new - alpha) - 0.5 * q * (new - alpha) ** 2 - c * conjugate(loss, new / c)


def best_by_golden_section(function, low, high):
    """The maximum of a concave function on [low, high]."""
    share = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(150):
        left, right = high - share * (high - low), low + share * (high - low)
        if function(left) >= function(right):
            high = right
        else:
            low = left
    return max(function(low), function(0.5 * (low + high)), function(high))


POSITIVE = st.floats(1e-3, 1e3)


@every_loss
@given(share=SHARES, z=MARGINS, q=st.just(0.0) | POSITIVE, c=POSITIVE)
@example(share=0.0, z=-30.0, q=1e3, c=1e3)
@example(share=1.0, z=30.0, q=1e3, c=1e3)
def test_dual_step_is_the_best_of_brute_search(loss, share, z, q, c):
    alpha = c * inside(loss, share)
    low, high = domain(loss)
    new = dual_step(loss, alpha, z, q, c)
    assert low * c <= new <= high * c
    reach = min(high * c, abs(alpha) + 2.0 * c * (2.0 + abs(z)))  # of the squared hinge
    best = best_by_golden_section(lambda a: gain(loss, alpha, z, q, c, a), low * c, reach)
    size = c * (1.0 + value(loss, z)) + abs(z * (new - alpha)) + q * (new - alpha) ** 2
    assert gain(loss, alpha, z, q, c, new) >= best - 1e-12 * size


@every_loss
@given(share=SHARES, z=MARGINS, q=POSITIVE, c=POSITIVE)
def test_dual_step_lands_where_the_slope_answers_it(loss, share, z, q, c):
    """The new alpha is -c l'(z') at the margin z' that it makes, or between the two at a kink."""
    alpha = c * inside(loss, share)
    new = dual_step(loss, alpha, z, q, c)
    reached = z + q * (new - alpha)
    blur = 1e-12 * (1.0 + abs(z) + q * (abs(new) + abs(alpha)))
    rounding = 1e-12 * abs(new)
    assert -c * slope(loss, reached + blur) <= new + rounding
    assert -c * slope(loss, reached - blur) >= new - rounding


@given(exponent=st.floats(-300.0, -0.31))
def test_the_logistic_conjugate_keeps_small_shares(exponent):
    """a log a + (1 - a) log(1 - a), of which the second term is about -a."""
    a = 10.0**exponent
    right = a * math.log(a) + (1.0 - a) * math.log1p(-a)
    assert conjugate(Logistic(), a) == pytest.approx(right, rel=1e-14, abs=0.0)
    assert conjugate(Logistic(), 1.0 - a) == pytest.approx(right, rel=1e-12, abs=1e-15 * -exponent)


@given(
    share=st.sampled_from((0.0, 1e-9, 0.1, 0.5, 0.9, 1.0)),
    z=st.floats(-30.0, 30.0),
    log_q=st.floats(-4.0, 24.0),
)
@example(share=0.0, z=-7.455824709635534, log_q=math.log10(145.07090349685495))
@example(share=0.11263230303295901, z=-10.509824893559447, log_q=math.log10(20.012779895797127))
def test_the_logistic_step_is_that_of_bisection(share, z, log_q):
    """Also where a step of Halley's method lands just inside the bracket, again and again."""
    q = 10.0**log_q
    low, high = q * (share - 1.0) - z, q * share - z
    for _ in range(200):
        s = 0.5 * (low + high)
        if s + z + q * (1.0 / (1.0 + math.exp(min(700.0, -s))) - share) > 0.0:
            high = s
        else:
            low = s
    right = 1.0 / (1.0 + math.exp(min(700.0, -low)))
    assert dual_step(Logistic(), share, z, q, 1.0) == pytest.approx(right, abs=1e-12)


@every_loss
@given(share=SHARES, z=MARGINS, c=POSITIVE)
def test_dual_step_without_proximal_term_is_the_slope(loss, share, z, c):
    assume(z != KINK or not is_piecewise_linear(loss))
    new = dual_step(loss, c * inside(loss, share), z, 0.0, c)
    assert new == pytest.approx(-c * slope(loss, z), rel=1e-9, abs=1e-13 * c * (1 + share))


@every_loss
@given(share=SHARES, z=MARGINS, q=POSITIVE, c=POSITIVE)
@example(share=0.0, z=30.0, q=1e3, c=1e3)
@example(share=1.0, z=-30.0, q=1e3, c=1e3)
def test_a_visit_is_value_share_of_the_gap_and_step(loss, share, z, q, c):
    """To rounding; of the logistic loss to what an estimate and a step of descent need."""
    alpha = c * inside(loss, share)
    cost, of_gap, new = visit(loss, alpha, z, q, c)
    low, high = domain(loss)
    assert low * c <= new <= high * c
    rounding = 1e-13 * c * (1.0 + value(loss, z) + abs(inside(loss, share) * z))
    right = c * (value(loss, z) + conjugate(loss, alpha / c)) + alpha * z
    assert of_gap == pytest.approx(right, rel=3e-3, abs=rounding)
    assert cost == pytest.approx(c * value(loss, z), abs=3e-3 * right + rounding)
    rough = 3e-3 * c if isinstance(loss, Logistic) else 0.0
    assert new == pytest.approx(dual_step(loss, alpha, z, q, c), rel=1e-12, abs=rough)


@given(share=st.floats(0.01, 0.99), q=POSITIVE, c=POSITIVE)
def test_visits_of_a_logistic_row_end_at_its_step(share, q, c):
    """A rough step is the start of the next: some of them leave nothing."""
    z, alpha = 0.7, c * share
    margin, new = z, alpha
    for _ in range(6):
        last = new
        _, _, new = visit(Logistic(), last, margin, q, c)
        margin += q * (new - last)
    assert new == pytest.approx(dual_step(Logistic(), alpha, z, q, c), rel=1e-9)


def test_at_the_kink_the_slope_is_that_of_the_inactive_side():
    assert [slope(Pinball(tau), KINK) for tau in (0.0, 0.3)] == [0.0, 0.3]
    assert slope(SquaredHinge(), KINK) == 0.0 == curvature(SquaredHinge(), KINK)


@given(z=MARGINS)
def test_hinge_is_pinball_without_a_price(z):
    assert Hinge() == Pinball(0.0)
    assert value(Hinge(), z) == max(0.0, 1.0 - z)


@given(tau=TAUS, z=MARGINS)
def test_known_values(tau, z):
    assert value(Pinball(tau), z) == (1.0 - z if z < 1.0 else tau * (z - 1.0))
    assert value(SquaredHinge(), z) == max(0.0, 1.0 - z) ** 2
    assert value(Logistic(), z) == pytest.approx(np.logaddexp(0.0, -z), rel=1e-15)


@pytest.mark.parametrize("z", [-1e6, 1e6, -800.0, 800.0])
def test_nothing_overflows_far_out(z):
    for loss in LOSSES:
        numbers = [value(loss, z), slope(loss, z), curvature(loss, z)]
        numbers += [dual_step(loss, 0.5, z, q, 1.0) for q in (0.0, 1e-6, 1e6)]
        assert all(math.isfinite(x) for x in numbers), (loss, numbers)


@hot
def all_verbs(loss, z, share, out):
    for i in range(z.shape[0]):
        out[i, 0] = value(loss, z[i])
        out[i, 1] = slope(loss, z[i])
        out[i, 2] = curvature(loss, z[i])
        out[i, 3] = conjugate(loss, share[i])
        out[i, 4] = dual_step(loss, share[i], z[i], 0.5, 1.0)


@pytest.mark.jit
@pytest.mark.bounds
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_compiled_verbs_equal_plain_ones(loss):
    rng = np.random.default_rng(0)
    z, share = rng.uniform(-4.0, 4.0, 50), rng.random(50)
    compiled, plain = np.empty((50, 5)), np.empty((50, 5))
    all_verbs(loss, z, share, compiled)
    all_verbs.__wrapped__(loss, z, share, plain)
    assert np.allclose(compiled, plain, rtol=1e-13, atol=1e-15)


def test_check_loss_names_the_missing_verb():
    assert check_loss(LOSSES[0]) is LOSSES[0]
    with pytest.raises(TypeError, match="str has no 'value'"):
        check_loss("hinge")


@every_loss
def test_piecewise_linear_is_recognised(loss):
    assert is_piecewise_linear(loss) == isinstance(loss, Pinball)


def test_losses_without_parameters_are_told_apart():
    assert SquaredHinge() != Logistic() and SquaredHinge() == SquaredHinge()
    assert len({SquaredHinge(), Logistic(), Hinge(), SquaredHinge()}) == 3


class MyHinge(NamedTuple):
    """A hinge from outside, with the four verbs and no curvature."""


value.register(MyHinge)(lambda loss, z: max(0.0, 1.0 - z))
slope.register(MyHinge)(lambda loss, z: -1.0 if z < 1.0 else 0.0)
conjugate.register(MyHinge)(lambda loss, a: -a)
dual_step.register(MyHinge)(
    lambda loss, alpha, z, q, c: min(max(alpha + (1.0 - z) / max(q, 1e-300), 0.0), c)
)


def test_a_hinge_from_outside_is_known_as_piecewise_linear():
    assert is_piecewise_linear(MyHinge())
    assert is_piecewise_linear(Hinge())
    assert not is_piecewise_linear(SquaredHinge()) and not is_piecewise_linear(Logistic())
