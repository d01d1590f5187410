"""The best multiple of w.

    P(s w) = 1/2 ||s w - w0||^2 + sum c_i l(s z_i)

is convex in s, and its margins are those of w times s. A hinge pays for every support vector that
lies a little inside its margin and has nothing from those a little outside: before the end of
descent a slightly longer w is better, at large C by far, and costs no look at the rows.
"""

from __future__ import annotations

from typing import Any

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot
from pegasos.objective.certificate import Certificate, Evaluation, loss_sum
from pegasos.objective.losses import slope
from pegasos.objective.problem import Problem

_STEP = 1e-3  # the first
ENOUGH = 0.05  # of the gap: what a search may leave of its gain
ROUNDING = 1e-10  # of the objective: of a smaller gap sums over the rows know too little


@generic
def stretched(problem: Any, seen: Evaluation) -> Evaluation:
    """The same dual point with the best multiple of w"""
    return seen


@stretched.register(Problem)
def _(problem, seen):
    w, (primal, dual) = seen.w, seen.certificate
    if not primal - dual > ROUNDING * abs(primal):
        return seen
    priced = w[:-1] if problem.free else w
    line = float(priced @ priced), -float(priced @ problem.center[: len(priced)])
    s = multiple(problem.loss, problem.c, seen.margins, line, ENOUGH * (primal - dual))
    if s == 1.0:
        return seen
    margins = s * seen.margins
    away = s * w - problem.center
    if problem.free:
        away[-1] = 0.0
    longer = Certificate(0.5 * float(away @ away) + loss_sum(problem, margins), dual)
    return Evaluation(s * w, seen.alpha, margins, longer) if longer.primal < primal else seen


@hot
def multiple(loss, c, z, line, enough):
    """The s that minimises a s^2 / 2 + b s + sum c_i l(s z_i) up to `enough`.

    The second derivative is at least a: from a tilt g the root is not beyond -g / a, and no more
    than g^2 / 2a is to be gained.
    """
    a, b = line
    tilt = _tilt(loss, c, z, 1.0, a, b)
    if not tilt * tilt > 2.0 * a * enough or not a > 0.0:
        return 1.0
    near, far, end, at_near, at_far = 1.0, 1.0, 1.0 - tilt / a, tilt, tilt
    step = _STEP if end > 1.0 else -_STEP
    while far != end and at_far * tilt > 0.0:
        near, at_near = far, at_far
        far = far + step if abs(far + step - 1.0) < abs(end - 1.0) else end
        at_far, step = _tilt(loss, c, z, far, a, b), 4.0 * step
    for k in range(60):
        least = min(abs(at_near), abs(at_far))
        if least * min(least / (2.0 * a), abs(far - near)) <= enough:
            break
        s = 0.5 * (near + far)
        if k % 3 < 2 and at_near != at_far:
            s = near - at_near * (far - near) / (at_far - at_near)
        tilt = _tilt(loss, c, z, s, a, b)
        if (tilt > 0.0) == (at_near > 0.0):
            near, at_near = s, tilt
        else:
            far, at_far = s, tilt
    return near if abs(at_near) <= abs(at_far) else far


@helper
def _tilt(loss, c, z, s, a, b):
    """The derivative in s."""
    total = a * s + b
    for i in range(z.shape[0]):
        total += c[i] * z[i] * slope(loss, s * z[i])
    return total
