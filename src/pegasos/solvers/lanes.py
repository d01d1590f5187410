"""Many problems in one sweep: dual coordinate descent with up to LANES weightings of the rows.

Problems:  min_w 1/2 ||w - w0||^2 + sum_i c_ip l(y_i x_i.w), p = 1, 2, …: values of C, folds
           (c_ip = 0: row i is not in problem p). Labels are the same, so that lanes want the same
           rows; the classes of one-vs-all do not, and are faster one by one.
Update:    as in solvers.dual, for all lanes that want the row; it is read once for all
Order:     one random permutation per epoch of the rows that some lane wants
Shrinking: as in solvers.dual, by a bit per row and lane, all set again after 10, 20, 40, … epochs;
           a lane is done when its own estimate of the gap says so, and then wants no row
Intercept: free by the proximal centre of solvers.intercept

W is float32: good for gaps of 1e-4, not less. The result is a start for the driver, which
certifies each problem on its own, in float64, and goes on where that is not enough.
"""

from __future__ import annotations

import time
from functools import partial
from typing import NamedTuple

import numpy as np

from pegasos.core.jit import hot
from pegasos.core.lanes import LANES, lines
from pegasos.core.prefetch import prefetch
from pegasos.core.rng import shuffle, stream
from pegasos.core.rows import n_entries, n_rows, row_axpys, row_dots, row_prefetch
from pegasos.core.threads import run_blocks
from pegasos.objective.losses import conjugate, dual_step, value
from pegasos.objective.problem import Problem
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import proximal_scale
from pegasos.solvers.steps import settled

_AHEAD = 3
_TICK = 1 << 23  # entries that a thread visits between two looks at the clock
FEW = 2  # lanes left: from here on each is faster alone


class LaneState(NamedTuple):
    """alpha, W and `wanted` (a bit per lane) as steps change them; radius; sums of the epoch."""

    alpha: np.ndarray
    W: np.ndarray
    wanted: np.ndarray
    order: np.ndarray
    radius: np.ndarray
    terms: np.ndarray
    losses: np.ndarray
    aside: np.ndarray


class Goal(NamedTuple):
    """When to stop: estimates of the gap below tol but in the last `few` lanes, or a limit."""

    tol: float
    max_epochs: int
    deadline: float = np.inf
    few: int = FEW


def descend(together: Problem, goal: Goal, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """alpha of shape (problems, rows), near the optimum, and the epochs of each problem.

    `together` is a Problem whose c has a column for each of them.

    Groups of lanes are the same whatever the number of threads, and so is the result.
    """
    parts = _parts(together.c.sum(axis=0))
    groups = [_Group(together, part, goal, seed) for part in parts]
    visits = _TICK * n_rows(together.rows) // max(1, n_entries(together.rows)) + 1
    busy = groups
    while busy and time.perf_counter() < goal.deadline:
        run_blocks(partial(_advance, busy, visits), len(busy), 1)
        busy = [group for group in busy if group.busy]
    alpha, epochs = np.empty(together.c.T.shape), np.empty(together.c.shape[1], dtype=int)
    for part, group in zip(parts, groups, strict=True):
        alpha[part] = group.state.alpha[:, : part.size].T
        epochs[part] = group.epochs[: part.size]
    return alpha, epochs


def _parts(weight: np.ndarray) -> list[np.ndarray]:
    """Lanes in groups; those of most weight, which take most epochs, in one of their own."""
    order = np.argsort(weight, kind="stable")
    if weight.size < LANES // 2:
        return [order]
    slow, rest = order[-2 * FEW :], order[: -2 * FEW]
    return [slow, *np.array_split(rest, -(-rest.size // LANES))]


def _advance(groups: list[_Group], visits: int, start: int, stop: int) -> None:
    for group in groups[start:stop]:
        group.advance(visits)


class _Group:
    """Lanes that are swept together."""

    def __init__(self, together: Problem, part: np.ndarray, goal: Goal, seed: int):
        self.size, self.goal, self.epoch = part.size, goal, 0
        self.problem, self.centers = _padded(together, part)
        n, L = self.problem.c.shape
        self.running, self.epochs = np.arange(L) < part.size, np.zeros(L, dtype=int)
        self.members = ((self.problem.c > 0.0) @ (1 << np.arange(L))).astype(np.uint16)
        self.look_back = 10
        W, alpha = lines(len(self.centers)), lines(n)
        W[:] = self.centers
        sums = (np.zeros(L) for _ in range(3))
        radius = np.full(L, np.inf)
        order = np.flatnonzero(self.members)
        self.state = LaneState(alpha, W, self.members.copy(), order, radius, *sums)
        self.rng, self.cursor, self.active = stream(seed), 0, len(self.state.order)

    @property
    def busy(self) -> bool:
        several = int(self.running.sum()) > min(self.goal.few, self.size - 1)
        return several and self.active > 0 and self.epoch < self.goal.max_epochs

    def advance(self, visits: int) -> None:
        """Steps on so many rows, across the ends of epochs."""
        while visits > 0 and self.busy:
            if self.cursor == 0:
                shuffle(self.state.order, self.active, self.rng)
            self.cursor, self.active, visits = _sweep(
                self.problem, self.state, self.cursor, self.active, visits
            )
            if self.cursor >= self.active:
                self._end_of_epoch()

    def _end_of_epoch(self) -> None:
        s, problem = self.state, self.problem
        gap, pull = s.terms.copy(), s.W[-1] - self.centers[-1]
        objective = 0.5 * _sqdist(s.W, self.centers) + s.losses + s.aside
        if problem.free:
            gap += np.abs(pull) / problem.rows.bias
            self.centers[-1] = s.W[-1]
            s.W[-1] += pull
        s.radius[:] = Dual().caution * np.sqrt(2.0 * np.maximum(0.0, gap))
        s.terms[:], s.losses[:] = 0.0, 0.0
        done = gap <= 0.5 * self.goal.tol * objective
        self.epoch, self.cursor = self.epoch + 1, 0
        self.epochs[self.running] = self.epoch
        again = self.epoch >= self.look_back
        if again or np.any(done & self.running):
            self._choose_rows(done, again)

    def _choose_rows(self, done: np.ndarray, again: bool) -> None:
        """Lanes that are done want no row any more, the others, `again`, all of theirs."""
        self.running &= ~done
        wanted = self.state.wanted
        if again:
            wanted[:], self.state.aside[:] = self.members, 0.0
            self.active, self.look_back = len(self.state.order), 2 * self.epoch
        wanted &= np.uint16(self.running @ (1 << np.arange(LANES)))
        order = self.state.order[: self.active]
        left = wanted[order] != 0
        order[:] = np.concatenate([order[left], order[~left]])
        self.active = int(left.sum())


def _padded(together: Problem, part: np.ndarray) -> tuple[Problem, np.ndarray]:
    """The problems of some lanes, lanes without a problem having no rows; a centre for each."""
    rows, q, center = together.rows, together.q, together.center.copy()
    c = lines(len(q))
    c[:, : part.size] = together.c[:, part]
    if together.free:
        norms = q - rows.bias**2
        s = proximal_scale(norms, float(together.c[:, part].sum(axis=0).min()))
        center[-1] *= rows.bias / s
        rows, q = rows._replace(bias=s), norms + s**2
    centers = np.repeat(center[:, None], LANES, axis=1)
    return together._replace(rows=rows, c=c, q=q, center=center), centers


@hot
def _sqdist(W, centers):
    """||w_p - w0_p||^2 of each lane"""
    total = np.zeros(LANES)
    for j in range(W.shape[0]):
        for p in range(LANES):
            away = W[j, p] - centers[j, p]
            total[p] += away * away
    return total


@hot
def _sweep(problem, state, s, active, visits):
    """Steps on up to `visits` rows from place s on; returns place, active rows, visits left."""
    rows, loss, order, wanted = problem.rows, problem.loss, state.order, state.wanted
    z, step = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    while s < active and visits > 0:
        visits -= 1
        if s + _AHEAD < active:
            ahead = order[s + _AHEAD]
            row_prefetch(rows, ahead)
            prefetch(state.alpha, ahead * LANES)
            prefetch(problem.c, ahead * LANES)
            prefetch(problem.q, ahead)
            prefetch(problem.y, ahead)
            prefetch(wanted, ahead)
        i = order[s]
        y, q, root = problem.y[i], problem.q[i], np.sqrt(problem.q[i])
        want, left, moved = wanted[i], 0, False
        row_dots(rows, i, state.W, z)
        for p in range(LANES):
            step[p] = 0.0
            if (want >> p) & 1:
                c, old, at = np.float64(problem.c[i, p]), state.alpha[i, p], y * z[p]
                cost = c * value(loss, at)
                if state.radius[p] < np.inf and settled(loss, old / c, at, state.radius[p] * root):
                    state.aside[p] += cost
                    continue
                left |= 1 << p
                state.losses[p] += cost
                state.terms[p] += cost + c * conjugate(loss, old / c) + old * at
                new = np.float32(dual_step(loss, np.float64(old), at, q, c))
                if new != old:
                    state.alpha[i, p] = new
                    step[p] = (new - old) * y
                    moved = True
        wanted[i] = left
        if left == 0:
            active -= 1
            order[s], order[active] = order[active], i
            continue
        if moved:
            row_axpys(rows, i, step, state.W)
        s += 1
    return s, active, visits
