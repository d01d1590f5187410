"""Dual coordinate descent for the multiclass problem of Crammer and Singer: a row at a time.

Problem:   min_W 1/2 ||W - W0||^2 + sum_i c_i max_k ([k != y_i] + w_k.x_i - w_{y_i}.x_i)
Dual:      shares pi_i of the classes, pi_ik >= 0, sum_k pi_ik = c_i (see `objective.multiclass`)
Update:    pi_i <- max(0, (D - beta) / ||x_i||^2) with D_k = [k != y_i] + w_k.x_i + ||x_i||^2 pi_ik
           and the beta at which the shares sum to c_i; W follows at the cost of a row
Shrinking: a row with all of its share at one class leaves the epoch when this class leads by more
           than `caution` ||x_i|| sqrt(2) sqrt(2 gap); otherwise as in `solvers.dual`
Stopping:  `estimate`, the sum over the epoch of c_i max_k m_ik - sum_k pi_ik m_ik

The loop of epochs is that of `solvers.dual`; here are its verbs for this problem.
Keerthi, Sundararajan, Chang, Hsieh, Lin, KDD 2008, section 2.
"""

from __future__ import annotations

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot_allocating
from pegasos.core.many import row_products, row_spread
from pegasos.core.matrix import all_combine, all_products
from pegasos.core.rows import n_entries, n_rows, row_prefetch
from pegasos.objective.multiclass import (
    MulticlassProblem,
    feasible_shares,
    idle,
    loss_sum,
    pulls,
)
from pegasos.solvers.dual_verbs import SLICE, advance, bend, part, recall, start
from pegasos.solvers.intercept import corrected, imbalance, proposed
from pegasos.solvers.moves import aim
from pegasos.solvers.steps import Tally

_AHEAD = 2  # rows between a prefetch and the use of the row
_ROOT2 = np.sqrt(2.0)
_GOOD = 0.1  # of the gap: worth a jump of the intercepts


@start.register(MulticlassProblem)
def _(problem, pi):
    if pi is None:
        return idle(problem), problem.center.copy()
    pi = np.ascontiguousarray(feasible_shares(problem._replace(free=False), pi))
    return pi, problem.center + all_combine(problem.rows, pulls(problem, pi))


@bend.register(MulticlassProblem)
def _(problem):
    return 1.0, 0.0


@advance.register(MulticlassProblem)
def _(problem, place, span, threads):
    entries = problem.n_classes * max(1, n_entries(problem.rows))
    first, end = span
    last = min(end, first + max(1, SLICE * n_rows(problem.rows) // entries))
    return last - first, Tally(*_sweep(problem, place, first, last))


@imbalance.register(MulticlassProblem)
def _(problem, pi):
    return pulls(problem, pi).sum(axis=0)


@proposed.register(MulticlassProblem)
def _(problem, W, bias):
    """Intercepts of several classes are no matter of one dimension: those of the descent."""
    W = W.copy()
    W[-1] *= bias / problem.rows.bias
    return W


@corrected.register(MulticlassProblem)
def _(problem, inner, pi, seen):
    """Better intercepts, if they lower P by a good part of the gap: near the end descent knows
    more than each class by itself. Balanced shares would take it back: they serve the bound."""
    s = inner.rows.bias
    W = inner.center + all_combine(inner.rows, pulls(inner, pi))
    shift = seen.w[-1] * problem.rows.bias / s - W[-1]
    lower = loss_sum(problem, seen.margins - s * shift) - loss_sum(problem, seen.margins)
    if not lower > _GOOD * seen.certificate.gap:
        return None
    inner.center[-1] += shift
    W[-1] += shift
    return W


@part.register(MulticlassProblem)
def _(problem, place, found):
    return _part(problem, place, found)


@recall.register(MulticlassProblem)
def _(problem, place):
    place.stays[:] = True
    return _part(problem, place, all_products(problem.rows, place.w))


@aim.register(MulticlassProblem)
def _(problem, place, along, dW, target):
    return _aim(problem, place, along, dW, target)


@helper
def _settled(margins, own, slack):
    """Whether the class `own` leads all others by more than slack."""
    for k in range(margins.shape[0]):
        if k != own and margins[k] + slack >= margins[own]:
            return False
    return True


@helper
def _whole(pi):
    """The class that holds all of a share; -1 if there are several."""
    found = -1
    for k in range(pi.shape[0]):
        if pi[k] > 0.0:
            if found >= 0:
                return -1
            found = k
    return found


@helper
def _threshold(D, total):
    """The beta with sum_k max(0, D_k - beta) = total, by leaving out those below it."""
    size, held = D.shape[0], 0.0
    for k in range(size):
        held += D[k]
    while True:
        beta = (held - total) / size
        left, held = 0, 0.0
        for k in range(D.shape[0]):
            if D[k] > beta:
                left += 1
                held += D[k]
        if left >= size or left == 0:  # not below, but for rounding
            return beta
        size = left


@helper
def _project(D, beta, total, out):
    """out = max(0, D - beta), whose sum is the total but for rounding, which is taken out."""
    found, most = 0.0, 0
    for k in range(D.shape[0]):
        out[k] = max(0.0, D[k] - beta)
        found += out[k]
        most = k if D[k] > D[most] else most
    if found == 0.0:  # a total below the rounding of D
        out[most] = total
        found = total
    for k in range(D.shape[0]):
        out[k] *= total / found


@helper
def _margins(scores, y, m):
    """m_k = [k != y] + scores_k - scores_y; returns the largest."""
    own, worst = scores[y], 0.0
    for k in range(m.shape[0]):
        m[k] = scores[k] - own + (0.0 if k == y else 1.0)
        worst = max(worst, m[k])
    return worst


@helper
def _move(m, q, pi, new, step):
    """pi <- new; `step` becomes what leaves each class. Returns the gain and the largest step."""
    gain, largest = 0.0, 0.0
    for k in range(m.shape[0]):
        s = pi[k] - new[k]
        gain -= s * (m[k] + 0.5 * q * s)
        largest = max(largest, abs(s))
        step[k] = s
        pi[k] = new[k]
    return gain, largest


@hot_allocating
def _sweep(problem, place, first, last):
    """Steps on rows order[first:last]; a row that is settled leaves. Returns a Tally's fields."""
    order, W, K = place.order, place.w, place.w.shape[1]
    terms, losses, aside, gain, moves = 0.0, 0.0, 0.0, 0.0, 0
    m, D, new, step = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    for s in range(first, last):
        if s + _AHEAD < last:
            row_prefetch(problem.rows, order[s + _AHEAD])
        i = order[s]
        c, y, q, pi = problem.c[i], problem.y[i], problem.q[i], place.alpha[i]
        row_products(problem.rows, i, W, D)
        cost = c * _margins(D, y, m)
        whole = _whole(pi) if place.radius < np.inf else -1
        if whole >= 0 and _settled(m, whole, place.radius * _ROOT2 * np.sqrt(q)):
            place.stays[i] = False
            aside += cost
            continue
        losses += cost
        terms += cost
        for k in range(K):
            terms -= pi[k] * m[k]
            D[k] = m[k] + q * pi[k]
        if q > 0.0:
            _project(D, _threshold(D, q * c), q * c, new)
            for k in range(K):
                new[k] /= q
        else:  # an empty row costs c whatever W is
            new[:] = 0.0
            new[(y + 1) % K] = c
        more, largest = _move(m, q, pi, new, step)
        if largest > 0.0:
            row_spread(problem.rows, i, step, W)
            gain += more
            moves += largest > 1e-15 * c
    return terms, losses, aside, gain, moves


@hot_allocating
def _part(problem, place, scores):
    """Set rows aside; returns their loss."""
    aside, m = 0.0, np.empty(scores.shape[1])
    for i in range(scores.shape[0]):
        worst = _margins(scores[i], problem.y[i], m)
        whole = _whole(place.alpha[i])
        if whole >= 0 and _settled(m, whole, place.radius * _ROOT2 * np.sqrt(problem.q[i])):
            place.stays[i] = False
            aside += problem.c[i] * worst
    return aside


@hot_allocating
def _aim(problem, place, along, dW, target):
    """What lies outside of its simplex is projected onto it."""
    S, theta = along
    K, tilt = target.shape[1], 0.0
    aimed, lack, m = np.empty(K), np.empty(K), np.empty(K)
    for i in range(target.shape[0]):
        old, new, lowest, largest = place.alpha[i], target[i], 0.0, 0.0
        for k in range(K):
            move = 0.0
            for j in range(theta.shape[0]):
                move += theta[j] * S[i, k, j]
            aimed[k] = old[k] + move
            lowest, largest = min(lowest, aimed[k]), max(largest, abs(move))
            new[k] = aimed[k]
        if largest == 0.0 or not place.stays[i]:
            for k in range(K):
                new[k] = old[k]
        elif lowest < 0.0:
            _project(aimed, _threshold(aimed, problem.c[i]), problem.c[i], new)
        largest = 0.0
        for k in range(K):
            lack[k] = aimed[k] - new[k]
            largest = max(largest, abs(lack[k]))
        if largest > 0.0:
            row_products(problem.rows, i, place.w, m)
            _margins(m, problem.y[i], m)
            for k in range(K):
                tilt -= lack[k] * m[k]
            row_spread(problem.rows, i, lack, dW)
    return tilt
