"""What Newton's methods ask of every row between two passes over the data, in one loop each.

A row has its score s_i, margin z_i = y_i s_i, response a_i and slope h_i = -da_i/dz_i (see
`solvers.newton`). A loop fills these and sums what belongs to them; its sums may be reordered, so
that it vectorises. Blocks of rows run on threads, their sums are added in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot
from pegasos.core.threads import run_blocks
from pegasos.objective.certificate import conjugate_sum, feasible
from pegasos.objective.losses import conjugate, curvature, domain, dual_step, slope, value
from pegasos.objective.problem import Problem

_BLOCK = 1 << 16  # rows to a loop
FLAT = 0.2  # of the derivative along d at the start: where a line search ends


class Terms(NamedTuple):
    """The part of a problem that scores meet."""

    loss: Any
    y: np.ndarray
    c: np.ndarray


class Responses(NamedTuple):
    """Scores, a, h, y a; the sums y_i along_i a_i and c_i l(z_i)."""

    scores: np.ndarray
    a: np.ndarray
    h: np.ndarray
    push: np.ndarray
    pull: float
    losses: float


class Proximal(NamedTuple):
    """a, h, y times what a gained since the last time, around a proximal centre; the sums
    c_i l(z_i) and c_i l*(-a_i/c_i)."""

    a: np.ndarray
    h: np.ndarray
    shift: np.ndarray
    losses: float
    conjugates: float


class Foretold(NamedTuple):
    """A feasible alpha; y times what was added to the response; the sum c_i l*(-alpha_i/c_i)."""

    alpha: np.ndarray
    shift: np.ndarray
    conjugates: float


def responses_along(problem: Problem, scores: np.ndarray, along: np.ndarray, t: float) -> Responses:
    """Those of a loss with curvature at scores + t along."""
    out = _columns(4, scores.size)
    sums = _in_blocks(
        problem, lambda terms, k: _fill_along(terms, scores[k], along[k], t, _cut(out, k))
    )
    return Responses(*out, *sums)


@helper
def next_length(k, t, tilt, bracket):
    """The t to try after the k-th, where the derivative along d is `tilt`, and the new bracket.

    A bracket is (low, high, tilt at low, tilt at high); secants and halves take turns.
    """
    low, high, at_low, at_high = bracket
    if tilt < 0.0:
        low, at_low = t, tilt
    else:
        high, at_high = t, tilt
    middle = 0.5 * (low + high)
    if k % 2 == 0 and at_high < np.inf:
        middle = low - at_low * (high - low) / (at_high - at_low)
    return (2.0 * t if high == np.inf else middle), (low, high, at_low, at_high)


def proximal_responses(problem: Problem, alpha: np.ndarray, q: float, scores, last) -> Proximal:
    """a_i(z_i) around alpha_i with weight q, `last` the last time; q = 0: of a loss with
    curvature."""
    out = _columns(3, scores.size)
    given = alpha, scores, last
    sums = _in_blocks(
        problem, lambda terms, k: _fill_proximal(terms, q, _cut(given, k), _cut(out, k))
    )
    return Proximal(*out, *sums)


def proximal_pull(problem: Problem, alpha: np.ndarray, q: float, scores, along, t) -> float:
    """sum_i y_i along_i a_i at scores + t along; q = 0: of a loss with curvature"""
    return _in_blocks(
        problem, lambda terms, k: (_sum_pull(terms, alpha[k], q, scores[k], along[k], t),)
    )[0]


def foretold(problem: Problem, a: np.ndarray, h: np.ndarray, scores, to) -> Foretold:
    """The response at the scores `to` as its value and slope at `scores` foretell it."""
    out = _columns(2, scores.size)
    reach = domain(problem.loss)
    sums = _in_blocks(
        problem,
        lambda terms, k: (
            _fill_foretold(terms, reach, a[k], h[k], scores[k], to[k], _cut(out, k)),
        ),
    )
    if not problem.free:
        return Foretold(*out, *sums)
    alpha = feasible(problem, out[0])
    shift = out[1] + problem.y * (alpha - out[0])
    return Foretold(alpha, shift, conjugate_sum(problem, alpha))


def _columns(count: int, n: int) -> list[Any]:
    """Arrays of their own: a block of rows of one array is not contiguous, nor is its loop fast."""
    return [np.empty(n) for _ in range(count)]


def _cut(arrays: Sequence[Any], k: slice) -> tuple[np.ndarray, ...]:
    return tuple(array[k] for array in arrays)


def _in_blocks(problem: Problem, loop: Callable[[Terms, slice], Any]) -> tuple[float, ...]:
    loss, y, c = problem.loss, problem.y, problem.c
    if y.size <= _BLOCK:
        return loop(Terms(loss, y, c), slice(None))

    def part(start: int, stop: int) -> Any:
        return loop(Terms(loss, y[start:stop], c[start:stop]), slice(start, stop))

    return tuple(map(sum, zip(*run_blocks(part, y.size, _BLOCK), strict=True)))


@generic
def along_block(terms: Any, scores: Any, along: Any, t: float, out: Any) -> tuple[float, float]:
    """The loop of `responses_along`."""


@generic
def _around(terms: Any, q: float, given: Any, out: Any) -> tuple[float, float]:
    """The loop of `proximal_responses`, q > 0."""


@generic
def _here(terms: Any, given: Any, out: Any) -> tuple[float, float]:
    """The same, q = 0."""


@generic
def ahead_block(terms: Any, reach: Any, a: Any, h: Any, scores: Any, to: Any, out: Any) -> float:
    """The loop of `foretold`, without the balance that a free intercept asks for."""


@generic
def _pull_around(terms: Any, alpha: Any, q: float, scores: Any, along: Any, t: float) -> float:
    """The loop of `proximal_pull`, q > 0."""


@generic
def _pull_here(terms: Any, scores: Any, along: Any, t: float) -> float:
    """The same, q = 0."""


@along_block.register(Terms, reassociate=True)
def _(terms, scores, along, t, out):
    loss, y, c = terms.loss, terms.y, terms.c
    moved, a, h, push = out[0], out[1], out[2], out[3]
    pull = losses = 0.0
    for i in range(scores.shape[0]):
        moved[i] = scores[i] + t * along[i]
        z = y[i] * moved[i]
        a[i] = -c[i] * slope(loss, z)
        h[i] = c[i] * curvature(loss, z)
        push[i] = y[i] * a[i]
        pull += push[i] * along[i]
        losses += c[i] * value(loss, z)
    return pull, losses


@_around.register(Terms, reassociate=True)
def _(terms, q, given, out):
    loss, y, c = terms.loss, terms.y, terms.c
    alpha, scores, last = given[0], given[1], given[2]
    a, h, shift = out[0], out[1], out[2]
    low, high = -slope(loss, np.inf), -slope(loss, -np.inf)
    losses = conjugates = 0.0
    for i in range(scores.shape[0]):
        z = y[i] * scores[i]
        a[i] = dual_step(loss, alpha[i], z, q, c[i])
        bend = c[i] * curvature(loss, z + q * (a[i] - alpha[i]))
        at_kink = bend == 0.0 and low * c[i] < a[i] < high * c[i]
        h[i] = 1.0 / q if at_kink else bend / (1.0 + q * bend)
        shift[i] = y[i] * (a[i] - last[i])
        losses += c[i] * value(loss, z)
        conjugates += c[i] * conjugate(loss, a[i] / c[i]) if c[i] > 0.0 else 0.0
    return losses, conjugates


@_here.register(Terms, reassociate=True)
def _(terms, given, out):
    loss, y, c = terms.loss, terms.y, terms.c
    scores, last = given[1], given[2]
    a, h, shift = out[0], out[1], out[2]
    losses = conjugates = 0.0
    for i in range(scores.shape[0]):
        z = y[i] * scores[i]
        a[i] = -c[i] * slope(loss, z)
        h[i] = c[i] * curvature(loss, z)
        shift[i] = y[i] * (a[i] - last[i])
        losses += c[i] * value(loss, z)
        conjugates += c[i] * conjugate(loss, a[i] / c[i]) if c[i] > 0.0 else 0.0
    return losses, conjugates


@ahead_block.register(Terms, reassociate=True)
def _(terms, reach, a, h, scores, to, out):
    loss, y, c = terms.loss, terms.y, terms.c
    alpha, shift = out[0], out[1]
    low, high = reach
    conjugates = 0.0
    for i in range(scores.shape[0]):
        told = a[i] - h[i] * (y[i] * (to[i] - scores[i]))
        kept = low * c[i] if told < low * c[i] else told
        kept = high * c[i] if kept > high * c[i] else kept
        alpha[i] = kept if c[i] > 0.0 else 0.0
        shift[i] = y[i] * (alpha[i] - told)
        conjugates += c[i] * conjugate(loss, alpha[i] / c[i]) if c[i] > 0.0 else 0.0
    return conjugates


@_pull_around.register(Terms, reassociate=True)
def _(terms, alpha, q, scores, along, t):
    loss, y, c = terms.loss, terms.y, terms.c
    pull = 0.0
    for i in range(scores.shape[0]):
        z = y[i] * (scores[i] + t * along[i])
        pull += y[i] * along[i] * dual_step(loss, alpha[i], z, q, c[i])
    return pull


@_pull_here.register(Terms, reassociate=True)
def _(terms, scores, along, t):
    loss, y, c = terms.loss, terms.y, terms.c
    pull = 0.0
    for i in range(scores.shape[0]):
        z = y[i] * (scores[i] + t * along[i])
        pull -= y[i] * along[i] * c[i] * slope(loss, z)
    return pull


@hot
def _fill_along(terms, scores, along, t, out):
    return along_block(terms, scores, along, t, out)


@helper
def proximal_loop(terms, q, given, out):
    """The loop of `proximal_responses`."""
    return _around(terms, q, given, out) if q > 0.0 else _here(terms, given, out)


@helper
def pull_loop(terms, alpha, q, scores, along, t):
    """The loop of `proximal_pull`."""
    if q > 0.0:
        return _pull_around(terms, alpha, q, scores, along, t)
    return _pull_here(terms, scores, along, t)


@hot
def _fill_proximal(terms, q, given, out):
    return proximal_loop(terms, q, given, out)


@hot
def _fill_foretold(terms, reach, a, h, scores, to, out):
    return ahead_block(terms, reach, a, h, scores, to, out)


@hot
def _sum_pull(terms, alpha, q, scores, along, t):
    return pull_loop(terms, alpha, q, scores, along, t)
