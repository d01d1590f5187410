"""The rows at work in late epochs as a problem of their own, for `solvers.dual`.

Once most rows are aside, descent goes over the same few of them many times, and its second-order
steps over all of alpha and w. Rows that are aside do not move, and neither do the weights of
columns that only they hold. So the others are copied (see `core.compact`), and state and problem
are those of the copy until somebody else has to move, as a look at the rows aside or a certificate
may find, or asks for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.compact import compact, entries_of, is_scattered
from pegasos.core.dispatch import generic
from pegasos.data.check import frozen
from pegasos.objective.problem import Problem
from pegasos.solvers.moves import Moves


class Excerpt(NamedTuple):
    """Which `rows` and `columns`, and the problem that they make.

    alpha and w are those of all, in which only the others are up to date, `center` is that of all;
    `size` and `away` are ||w||^2 and ||w - w0||^2 on the columns left out.
    """

    rows: np.ndarray
    columns: np.ndarray
    problem: Any
    alpha: np.ndarray
    w: np.ndarray
    center: np.ndarray
    size: float
    away: float


@generic
def has_excerpts(problem: Any) -> bool:
    """Whether the next two verbs are for such a problem"""
    return False


@generic
def excerpt_size(problem: Any, chosen: np.ndarray) -> int:
    """The entries of the chosen rows"""


@generic
def excerpted(problem: Any, chosen: np.ndarray) -> tuple[Any, np.ndarray]:
    """The problem of the chosen rows, and the columns that they are on"""


@has_excerpts.register(Problem)
def _(problem):
    return is_scattered(problem.rows)


@excerpt_size.register(Problem)
def _(problem, chosen):
    return entries_of(problem.rows, chosen)


@excerpted.register(Problem)
def _(problem, chosen):
    rows, columns = compact(problem.rows, chosen)
    y, c = (frozen(a[chosen]) for a in (problem.y, problem.c))
    q, center = problem.q[chosen], problem.center[columns]
    return problem._replace(rows=rows, y=y, c=c, q=q, center=center), columns


def at_hand(problem: Any, state: Any) -> Any:
    """The problem that the arrays of the state belong to."""
    if not isinstance(state.excerpt, Excerpt):
        return problem
    hand = state.excerpt.problem
    hand.center[-1] = problem.center[-1]  # a free intercept moves it
    return hand


def chosen_rows(state: Any) -> np.ndarray:
    """Those that stay, and those with a part in the last moves or in the one at hand."""
    past = state.past
    if past is None:
        return np.flatnonzero(state.stays)
    return np.flatnonzero(state.stays | past.S.any(axis=1) | (state.alpha != past.alpha))


def taken(problem: Any, state: Any, rows: np.ndarray) -> Any:
    """The state on an excerpt of these rows, which all that may move are among."""
    hand, columns = excerpted(problem, rows)
    place = np.full(len(state.order), -1)
    place[rows] = np.arange(rows.size)
    listed, order = (_found(place, a[: state.active]) for a in (state.listed, state.order))
    size, away = _left_out(state.w, problem.center, columns)
    all_of = Excerpt(rows, columns, hand, state.alpha, state.w, problem.center, size, away)
    return state._replace(
        alpha=state.alpha[rows],
        w=state.w[columns],
        stays=state.stays[rows],
        listed=_padded(listed, rows.size),
        order=_padded(order, rows.size),
        active=min(listed.size, rows.size),
        past=state.past and _moves_on(state.past, rows, columns),
        excerpt=all_of,
    )


def all_alpha(state: Any) -> np.ndarray:
    """alpha of all rows."""
    if not isinstance(state.excerpt, Excerpt):
        return state.alpha
    state.excerpt.alpha[state.excerpt.rows] = state.alpha
    return state.excerpt.alpha


def of_all(state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """alpha, w, and which rows stay, of all rows."""
    part = state.excerpt
    if not isinstance(part, Excerpt):
        return state.alpha, state.w, state.stays
    part.w[part.columns] = state.w
    stays = np.zeros(part.alpha.size, dtype=np.bool_)
    stays[part.rows] = state.stays
    return all_alpha(state), part.w, stays


def moved_to(state: Any, w: np.ndarray) -> Any:
    """The state at a w of all columns."""
    part = state.excerpt
    if not isinstance(part, Excerpt):
        state.w[:] = w
        return state
    part.w[:] = w
    state.w[:] = w[part.columns]
    size, away = _left_out(w, part.center, part.columns)
    return state._replace(excerpt=part._replace(size=size, away=away))


def recalled(state: Any, stays: np.ndarray) -> Any:
    """The state where these of all rows stay; still on its excerpt, if that has them all."""
    part = state.excerpt
    if isinstance(part, Excerpt):
        kept = stays[part.rows]
        if np.count_nonzero(kept) == np.count_nonzero(stays):
            return state._replace(stays=kept)
    return whole(state)._replace(stays=stays)


def whole(state: Any) -> Any:
    """The state on all rows."""
    if not isinstance(state.excerpt, Excerpt):
        return state._replace(excerpt=None)
    rows, (alpha, w, stays) = state.excerpt.rows, of_all(state)
    return state._replace(
        alpha=alpha,
        w=w,
        stays=stays,
        listed=_padded(rows[state.listed[: state.active]], alpha.size),
        order=_padded(rows[state.order[: state.active]], alpha.size),
        past=state.past and _moves_of_all(state.past, state.excerpt),
        excerpt=None,
    )


def kept(state: Any) -> Any:
    """What a checkpoint holds: the state on all rows, and which of them were taken."""
    rows = state.excerpt.rows if isinstance(state.excerpt, Excerpt) else state.excerpt
    return whole(state)._replace(excerpt=rows)


def resumed(problem: Any, state: Any) -> Any:
    """The state that a checkpoint held."""
    return taken(problem, state, state.excerpt) if isinstance(state.excerpt, np.ndarray) else state


def check(problem: Any, state: Any) -> None:
    """A ValueError if a state from outside has places or an excerpt that no run has."""
    active, listed, rows = state.active, state.listed, state.excerpt
    if not 0 <= state.cursor <= active <= len(listed):
        raise ValueError(f"active: expected rows from {state.cursor} to {len(listed)}")
    if np.any(listed[1:active] <= listed[: max(0, active - 1)]):
        raise ValueError("listed: rows do not ascend")
    if rows is not None and not (has_excerpts(problem) and rows.size and rows.dtype == np.int64):
        raise ValueError("excerpt: there is none of such a problem")


def _found(place: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Where those of the rows are that were taken."""
    found = place[rows]
    return found[found >= 0]


def _left_out(w: np.ndarray, center: np.ndarray, columns: np.ndarray) -> tuple[float, float]:
    """||w||^2 and ||w - w0||^2 on all other columns."""
    others = np.ones(w.size, dtype=np.bool_)
    others[columns] = False
    rest = w[others]
    size = float(rest @ rest)
    if not center.any():
        return size, size
    rest -= center[others]
    return size, float(rest @ rest)


def _padded(some: np.ndarray, length: int) -> np.ndarray:
    """With any rows behind them."""
    out = np.arange(length)
    out[: some.size] = some[:length]
    return out


def _moves_on(past: Moves, rows: np.ndarray, columns: np.ndarray) -> Moves:
    U = np.empty((past.g.size, columns.size))
    for line, whole_line in zip(U, past.U, strict=True):  # faster than U[:, columns]
        np.take(whole_line, columns, out=line, mode="clip")
    return past._replace(S=past.S[rows], U=U, alpha=past.alpha[rows], v=past.v[columns])


def _moves_of_all(past: Moves, excerpt: Excerpt) -> Moves:
    rows, columns, _, alpha, w, center, _, _ = excerpt
    S, U = np.zeros((alpha.size, past.g.size)), np.zeros((past.g.size, w.size))
    S[rows] = past.S
    for line, part in zip(U, past.U, strict=True):
        line[columns] = part
    before, v = alpha.copy(), w - center
    before[rows], v[columns] = past.alpha, past.v
    return past._replace(S=S, U=U, alpha=before, v=v)
