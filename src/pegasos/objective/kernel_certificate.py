"""The certificate of a kernel machine, in float64, with the offset that minimises P.

A row with beta_i = 0 that is safely beyond the margin costs nothing, and its score need not be
computed anew: a solver's own scores say who these are. The error of those scores is measured on all
others and grows with sqrt(K_ii), as rounding does; a row is safe if eight times that, and the way
the offset moved, leave it beyond the margin.
"""

from __future__ import annotations

import numpy as np

from pegasos.core.jit import hot
from pegasos.objective.certificate import Certificate, Evaluation, better, evaluate
from pegasos.objective.kernel_points import take
from pegasos.objective.kernel_problem import KernelProblem, expand, expand_self

_BAND = 0.05  # of margins beyond 1 that are computed anew


@evaluate.register(KernelProblem)
def _(problem, alpha, w=None):
    """alpha holds beta; w, if given, the solver's scores K beta.

    The evaluation has w = (beta, b).
    """
    beta = feasible(problem, alpha)
    scores = exact_scores(problem, beta, w)
    b = best_offset(problem, scores) if problem.free else 0.0
    margins = problem.y * (scores + b)
    square = float(beta @ scores)
    primal = 0.5 * square + float(problem.c @ _losses(problem, margins))
    dual = float(problem.p @ beta) - 0.5 * square
    return Evaluation(np.append(beta, b), beta, margins, Certificate(primal, dual))


@better.register(KernelProblem)
def _(problem, best, seen):
    """The higher dual value, and of equal ones the later: a solver's w is made of its beta."""
    old, new = best.certificate, seen.certificate
    slack = 1e-12 * abs(old.dual)
    return best if new.dual < old.dual - slack or np.isnan(new.dual) else seen


def _losses(problem: KernelProblem, margins: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 - margins, problem.loss.tau * (margins - 1.0))


def feasible(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """beta clipped to its box and, if b is free, balanced (but for rounding) to sum beta = 0."""
    beta = np.clip(beta, problem.low, problem.high)
    excess = float(beta.sum())
    if problem.free and abs(excess) > 1e-12 * float(np.abs(beta).sum()):
        heavy = beta > 0.0 if excess > 0.0 else beta < 0.0
        beta[heavy] *= max(0.0, 1.0 - excess / float(beta[heavy].sum()))
    return beta


def exact_scores(
    problem: KernelProblem, beta: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray:
    """K beta in float64; `known` scores stay where they are sure to cost nothing."""
    used = np.flatnonzero(beta)
    support = take(problem.points, used)

    def exact(rows: np.ndarray) -> np.ndarray:
        return expand(problem.kernel, take(problem.points, rows), support, beta[used])

    own = expand_self(problem.kernel, support, beta[used])
    if known is None or problem.loss.tau > 0.0:
        scores = np.empty(len(beta))
        scores[used] = own
        others = np.flatnonzero(beta == 0.0)
        scores[others] = exact(others)
        return scores
    scores = np.array(known, dtype=np.float64)
    offset = best_offset if problem.free else _no_offset
    b, length = offset(problem, scores), np.sqrt(np.abs(problem.q))
    slack = problem.y * (scores + b) - 1.0
    scores[used] = own
    done = beta != 0.0
    doubtful = ~done & ~(slack > _BAND)
    while True:  # each pass computes rows anew, so it ends
        rows = np.flatnonzero(doubtful)
        scores[rows] = exact(rows)
        done |= doubtful
        errors = np.abs(scores - known)[done] / np.maximum(length[done], 1e-300)
        moved = abs(offset(problem, scores) - b)
        doubtful = ~done & ~(8.0 * errors.max(initial=0.0) * length + moved < slack)
        if not doubtful.any():
            return scores


def _no_offset(problem: KernelProblem, scores: np.ndarray) -> float:
    return 0.0


def best_offset(problem: KernelProblem, scores: np.ndarray) -> float:
    """The b that minimises the losses, the middle of its interval if they are level there.

    Their sum is piecewise linear in b with a kink where a margin is 1; each kink adds
    (1 + tau) c_i to the slope.
    """
    kinks = problem.y - scores
    order = np.argsort(kinks)
    c, y, tau = problem.c, problem.y, problem.loss.tau
    first = -float(c[y > 0.0].sum()) - tau * float(c[y < 0.0].sum())
    slopes = first + (1.0 + tau) * np.cumsum(c[order])
    level = 1e-12 * (1.0 + tau) * float(c.sum())
    k = min(int(np.searchsorted(slopes, -level)), len(kinks) - 1)
    if slopes[k] <= level and k + 1 < len(kinks):
        return 0.5 * float(kinks[order[k]] + kinks[order[k + 1]])
    return float(kinks[order[k]])


@hot
def extremes(f, beta, low, high):
    """The least f of those that can grow, the greatest of those that can shrink."""
    least, most = np.inf, -np.inf
    for i in range(f.shape[0]):
        if beta[i] < high[i] and f[i] < least:
            least = f[i]
        if beta[i] > low[i] and f[i] > most:
            most = f[i]
    return least, most


def violation(problem: KernelProblem, beta: np.ndarray, f: np.ndarray) -> float:
    """How far beta is from the optimality conditions, as LIBSVM measures it.

    A free offset: the greatest f of those that can shrink minus the least of those that can
    grow. Without: the greatest slope along which one can move.
    """
    least, most = extremes(f, beta, problem.low, problem.high)
    return max(0.0, most - least if problem.free else max(most, -least))
