"""The multiclass objective of Crammer and Singer, and its certificate.

    P(W) = 1/2 ||W - W0||^2 + sum_i c_i max_k (m_ik),    m_ik = [k != y_i] + w_k.x_i - w_{y_i}.x_i

W holds a class per column; its last line belongs to the virtual column of the rows, as in
`objective.problem`. The dual variable of a row is its share pi_i among the classes (pi_ik >= 0, sum
over k = c_i), a way to write the maximum; pi_i = c_i at y_i means that the row does not act:

    W(pi) = W0 + V,  V = sum_i x_i (c_i e_{y_i} - pi_i)'
    D(pi) = sum_i sum_{k != y_i} pi_ik - 1/2 ||V||^2 - <W0, V>   <=   P(W) for every W

and the last line of V is zero if the intercepts are free.

Crammer, Singer, JMLR 2001; Keerthi, Sundararajan, Chang, Hsieh, Lin, KDD 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.jit import hot
from pegasos.core.matrix import all_combine, all_products, sqnorms
from pegasos.data.check import frozen
from pegasos.objective.certificate import Certificate, Evaluation, better, evaluate
from pegasos.objective.problem import Problem, check_weight


class MulticlassProblem(NamedTuple):
    """Rows, the number of the class of each, c_i > 0, q_i = ||x_i||^2, centre W0, reading of b."""

    rows: Any
    y: np.ndarray
    c: np.ndarray
    q: np.ndarray
    center: np.ndarray
    free: bool

    @property
    def n_classes(self) -> int:
        return self.center.shape[1]


def multiclass_problem(rows, y, c, center, free=False) -> MulticlassProblem:
    """A checked problem; `center` has a line per column of the rows and one for the intercepts."""
    q = sqnorms(rows)
    check_weight(c, q)
    return MulticlassProblem(rows, frozen(y), frozen(c), q, center, bool(free))


@evaluate.register(MulticlassProblem)
def _(problem, pi, W=None):
    """Certify W (by default W0 + V) against pi, made feasible first; margins are the scores.

    Free intercepts are each moved to where P is least while the others stay. Shares are returned as
    they were found: to balance them for the bound spreads them over rows that do not act.
    """
    found = feasible_shares(problem._replace(free=False), pi)
    pi = feasible_shares(problem, found)
    V = all_combine(problem.rows, pulls(problem, pi))
    if problem.free:
        V[-1] = 0.0
    W = problem.center + V if W is None else W.copy()
    scores = all_products(problem.rows, W)
    if problem.free:
        shifts = best_shifts(problem, scores)
        W[-1] += shifts / problem.rows.bias
        scores += shifts
        common = float((W[-1] - problem.center[-1]).mean())  # which changes nothing: none of it
        W[-1] -= common
        scores -= common * problem.rows.bias
    away = W - problem.center
    if problem.free:
        away[-1] = 0.0
    primal = 0.5 * float((away * away).sum()) + loss_sum(problem, scores)
    acting = float(pi.sum() - pi[np.arange(len(pi)), problem.y].sum())
    dual = acting - 0.5 * float((V * V).sum()) - float((problem.center * V).sum())
    return Evaluation(W, found, scores, Certificate(primal, max(0.0, dual)))  # as P >= 0


better.register(MulticlassProblem)(better.lookup(Problem))


def idle(problem: MulticlassProblem) -> np.ndarray:
    """The shares of rows of which none acts."""
    pi = np.zeros((len(problem.y), problem.n_classes))
    pi[np.arange(len(pi)), problem.y] = problem.c
    return pi


def pulls(problem: MulticlassProblem, pi: np.ndarray) -> np.ndarray:
    """alpha_i = c_i e_{y_i} - pi_i, with which a row pulls at the weights of the classes."""
    alpha = -pi
    alpha[np.arange(len(pi)), problem.y] += problem.c
    return alpha


def feasible_shares(problem: MulticlassProblem, pi: np.ndarray) -> np.ndarray:
    """pi clipped and scaled to its simplex and, if the intercepts are free, balanced.

    Balanced means that over all rows a class holds as much as its own rows weigh: classes with more
    give the same part of every share to those with less.
    """
    pi = np.maximum(pi, 0.0)
    held = pi.sum(axis=1)
    if not (held > 0.0).all():  # of another problem
        pi = np.where(held[:, None] > 0.0, pi, idle(problem))
        held = pi.sum(axis=1)
    pi *= (problem.c / held)[:, None]
    if not problem.free:
        return pi
    held = pi.sum(axis=0)
    own = np.bincount(problem.y, weights=problem.c, minlength=problem.n_classes)
    lack = np.maximum(own - held, 0.0)
    if lack.sum() > 0.0:
        kept = np.minimum(1.0, own / np.maximum(held, own))
        given = pi @ (1.0 - kept)
        pi = pi * kept + np.outer(given, lack / lack.sum())
    return pi


def best_shifts(problem: MulticlassProblem, scores: np.ndarray) -> np.ndarray:
    """Shifts of the scores of one class after the other, each of which minimises the loss.

    Of class k the loss is a sum of lines with one kink each: a row of the class pays until the
    shift makes up for its worst rival, another one from where class k becomes its worst.
    """
    levels = scores + 1.0
    levels[np.arange(len(problem.y)), problem.y] -= 1.0
    shifts = np.zeros(problem.n_classes)
    for k in range(problem.n_classes):
        own_levels = levels[:, k].copy()
        levels[:, k] = -np.inf
        kinks = levels.max(axis=1) - own_levels
        order = np.argsort(kinks)
        slopes = np.cumsum(problem.c[order])
        own = float(problem.c[problem.y == k].sum())
        first = min(int(np.searchsorted(slopes, own * (1.0 - 1e-12))), len(order) - 1)
        last = min(int(np.searchsorted(slopes, own * (1.0 + 1e-12), "right")), len(order) - 1)
        shifts[k] = np.clip(0.0, kinks[order[first]], kinks[order[last]])
        levels[:, k] = own_levels + shifts[k]
    return shifts


@hot
def loss_sum(problem, scores):
    total = 0.0
    for i in range(scores.shape[0]):
        own = scores[i, problem.y[i]]
        worst = 0.0
        for k in range(scores.shape[1]):
            if k != problem.y[i]:
                worst = max(worst, 1.0 + scores[i, k] - own)
        total += problem.c[i] * worst
    return total
