"""Losses l(z) of the margin z = y f(x), each by four verbs.

    value(loss, z)                   l(z)
    slope(loss, z)                   l'(z); at a kink the one of the inactive side
    conjugate(loss, a)               l*(-a) for a in the domain [-slope(+inf), -slope(-inf)]
    dual_step(loss, alpha, z, q, c)  the alpha' that maximises the dual along one coordinate:
                                     -z (a' - a) - q/2 (a' - a)^2 - c l*(-a'/c)

and, where it can be written down, `curvature(loss, z)` = l''(z), else taken by differences, and
`rise(loss, a)`, two derivatives of l*(-a), without which descent has no second-order steps. A
step of descent asks `visit` for three of them at once, which may be registered where they have work
in common.
A loss from outside the package registers the same verbs and trains by the same solvers; see
docs/guide/own-loss.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pegasos.core.dispatch import generic, helper
from pegasos.core.elementary import exponential, log1p_unit, logarithm

_TINY = 1e-300
_BETWEEN_KINKS = [0.25 * k + 0.0137 for k in range(-12, 13)]  # differences across one look curved
_FAR = 1e6  # of alpha / c
_ROUGH = 0.5  # a step of descent below is its last: within 3e-3 of c, where the next visit begins


@generic
def value(loss: Any, z: float) -> float:
    """l(z)"""


@generic
def slope(loss: Any, z: float) -> float:
    """l'(z)"""


@generic
def conjugate(loss: Any, a: float) -> float:
    """l*(-a), for a in the domain"""


@generic
def dual_step(loss: Any, alpha: float, z: float, q: float, c: float) -> float:
    """The best new alpha along one coordinate"""


@generic
def curvature(loss: Any, z: float) -> float:
    """l''(z); by central differences of the slope unless registered"""
    return max(0.0, (slope(loss, z + 1e-6) - slope(loss, z - 1e-6)) / 2e-6)


@generic
def rise(loss: Any, a: float) -> tuple[float, float]:
    """First and second derivative of l*(-a) in a, inside the domain; NaN unless registered"""
    return math.nan, math.nan


@generic
def visit(loss: Any, alpha: float, z: float, q: float, c: float) -> tuple[float, float, float]:
    """c l(z), its share c (l(z) + l*(-alpha/c)) + alpha z of the gap, and the dual step"""
    cost = c * value(loss, z)
    share = cost + c * conjugate(loss, alpha / c) + alpha * z
    return cost, share, dual_step(loss, alpha, z, q, c)


VERBS = (value, slope, conjugate, dual_step)


class Pinball(NamedTuple):
    """max(1 - z, tau (z - 1)): the hinge with a price tau for margins beyond 1 (tau in [0, 1])."""

    tau: float


def _equal(loss: Any, other: Any) -> bool:
    """Losses without parameters are empty tuples, yet not all the same loss."""
    return type(loss) is type(other)


def _unequal(loss: Any, other: Any) -> bool:
    return type(loss) is not type(other)


def _hash(loss: Any) -> int:
    return hash(type(loss))


class SquaredHinge(NamedTuple):
    """max(0, 1 - z)^2"""

    __eq__, __ne__, __hash__ = _equal, _unequal, _hash  # type: ignore[misc]


class Logistic(NamedTuple):
    """log(1 + exp(-z))"""

    __eq__, __ne__, __hash__ = _equal, _unequal, _hash  # type: ignore[misc]


class Perceptron(NamedTuple):
    """max(0, -z): the loss of the perceptron, which asks only for the right side."""

    __eq__, __ne__, __hash__ = _equal, _unequal, _hash  # type: ignore[misc]


NEVER_NEGATIVE = (Pinball, SquaredHinge, Logistic, Perceptron)


def Hinge() -> Pinball:  # noqa: N802  (named like the other losses)
    """max(0, 1 - z): pinball with tau = 0, the same code."""
    return Pinball(0.0)


def domain(loss: Any) -> tuple[float, float]:
    """The interval of a = alpha / c in which l*(-a) is finite."""
    return -slope(loss, math.inf), -slope(loss, -math.inf)


def parabola(loss: Any) -> tuple[float, float]:
    """k and r, if l*(-a) is r a^2 / 2 - k a, and a constant, over its domain; else NaN twice.

    r = 0: two lines that meet at z = k. Five values tell, of which all third differences vanish,
    and where the domain has no end one far away.
    """
    low, high = domain(loss)
    if not -math.inf < low < high:
        return math.nan, math.nan
    step = 0.25 * (high - low) if high < math.inf else 1.0
    at = [conjugate(loss, low + j * step) for j in range(5)]
    slack = 1e-12 * sum(map(abs, at))
    if any(abs(at[j] - at[j + 3] + 3.0 * (at[j + 2] - at[j + 1])) > slack for j in (0, 1)):
        return math.nan, math.nan
    bend = at[0] + at[4] - 2.0 * at[2]
    r = bend / (2.0 * step) ** 2 if abs(bend) > slack else 0.0
    k = r * (low + 2.0 * step) - (at[4] - at[0]) / (4.0 * step)
    if high == math.inf:
        told = at[0] + _FAR * (0.5 * r * (_FAR + 2.0 * low) - k)
        if abs(conjugate(loss, low + _FAR) - told) > 1e-9 * abs(told):
            return math.nan, math.nan
    return k, r


def check_loss(loss: Any) -> Any:
    """`loss` itself, or a TypeError that names the verb it lacks."""
    for verb in VERBS:
        verb.lookup(type(loss))
    return loss


@value.register(Pinball)
def _(loss, z):
    return max(1.0 - z, loss.tau * (z - 1.0))


@slope.register(Pinball)
def _(loss, z):
    return -1.0 if z < 1.0 else loss.tau


@conjugate.register(Pinball)
def _(loss, a):
    return -a


@curvature.register(Pinball)
def _(loss, z):
    return 0.0


@dual_step.register(Pinball)
def _(loss, alpha, z, q, c):
    return min(max(alpha + (1.0 - z) / max(q, _TINY), -loss.tau * c), c)


@value.register(Perceptron)
def _(loss, z):
    return max(0.0, -z)


@slope.register(Perceptron)
def _(loss, z):
    return -1.0 if z <= 0.0 else 0.0  # at 0 it learns: else it would never begin


@conjugate.register(Perceptron)
def _(loss, a):
    return 0.0


@curvature.register(Perceptron)
def _(loss, z):
    return 0.0


@dual_step.register(Perceptron)
def _(loss, alpha, z, q, c):
    return min(max(alpha - z / max(q, _TINY), 0.0), c)


@value.register(SquaredHinge)
def _(loss, z):
    h = max(0.0, 1.0 - z)
    return h * h


@slope.register(SquaredHinge)
def _(loss, z):
    return -2.0 * max(0.0, 1.0 - z)


@conjugate.register(SquaredHinge)
def _(loss, a):
    return a * (0.25 * a - 1.0)


@curvature.register(SquaredHinge)
def _(loss, z):
    return 2.0 if z < 1.0 else 0.0


@dual_step.register(SquaredHinge)
def _(loss, alpha, z, q, c):
    return max(0.0, alpha + (1.0 - z - 0.5 * alpha / c) / (q + 0.5 / c))


@value.register(Logistic)
def _(loss, z):
    return log1p_unit(exponential(-abs(z))) + (0.0 if z > 0.0 else -z)


@slope.register(Logistic)
def _(loss, z):
    return -_sigmoid(-z)


@conjugate.register(Logistic)
def _(loss, a):
    m = min(a, 1.0 - a)  # the logarithm of 1 - m would lose what a small m is
    return m * logarithm(max(m, _TINY)) + (1.0 - m) * log1p_unit(-m)


@rise.register(Logistic)
def _(loss, a):
    return logarithm(a / (1.0 - a)), 1.0 / (a * (1.0 - a))


@curvature.register(Logistic)
def _(loss, z):
    e = exponential(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@dual_step.register(Logistic)
def _(loss, alpha, z, q, c):
    low, high = q * (alpha - c) - z, q * alpha - z
    s = min(max(-z, low), high)
    return _logistic_root(s, _sigmoid(s), (low, high), 1e-4, (alpha, z, q, c))


@visit.register(Logistic)
def _(loss, alpha, z, q, c):
    """With alpha = c sigmoid(s) the three are short sums in s + z, small after the first epoch."""
    rest = c - alpha
    if not (alpha > 0.0 and rest > 0.0):
        e = exponential(-abs(z))
        cost = c * (log1p_unit(e) + max(0.0, -z))
        p = (1.0 if z <= 0.0 else e) / (1.0 + e)
        bracket = (q * (alpha - c) - z, q * alpha - z)
        return cost, cost + alpha * z, _logistic_root(-z, p, bracket, _ROUGH, (alpha, z, q, c))
    a, s, base = alpha / c, logarithm(alpha / rest), logarithm(c / rest)  # base: log(1 + exp(s))
    d, bend, skew = -z - s, a * (1.0 - a), 0.5 - a
    if abs(d) < 0.5:  # sums to within 3e-3: the gap is only estimated by them
        share = d * d * bend * (0.5 + d * (skew / 3.0 + d * (1.0 - 6.0 * bend) / 24.0))
        cost = share + a * d + base
    else:
        cost = value(loss, z)
        share = cost - base + a * (s + z)
    bracket = min(s, -z), max(s, -z)
    new = _logistic_root(s, a, bracket, _ROUGH, (alpha, z, q, c))
    return c * cost, c * share, new


@helper
def _logistic_root(s, p, bracket, last, row):
    """c sigmoid(s) at the root of s + z + q (c sigmoid(s) - alpha), which is in the bracket.

    The function rises with slope >= 1: Halley's method from s, where p is the sigmoid, bisection
    when it leaves the bracket, and at times, since a step may land just inside. A step below
    `last` is the last: what it leaves is of the order of its cube.
    """
    low, high = bracket
    alpha, z, q, c = row
    for k in range(200):
        error = s + z + q * (c * p - alpha)
        if error > 0.0:
            high = s
        else:
            low = s
        bend, skew = p * (1.0 - p), 0.5 - p  # p' and half of p'' / p'
        rise = 1.0 + q * c * bend
        step = error * rise / (rise * rise - error * q * c * bend * skew)
        if abs(step) <= last:  # then three terms give the new p
            return c * (p - step * bend * (1.0 - step * skew))
        s -= step
        if s <= low or s >= high or k % 4 == 3:
            s = 0.5 * (low + high)
        p = _sigmoid(s)
    return c * p


@helper
def _sigmoid(t):
    e = exponential(-abs(t))
    return (1.0 if t >= 0.0 else e) / (1.0 + e)


def is_piecewise_linear(loss: Any) -> bool:
    """Whether the loss has no curvature where margins lie: Newton's method has nothing to use."""
    return all(curvature(loss, z) == 0.0 for z in _BETWEEN_KINKS)
