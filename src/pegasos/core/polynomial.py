"""Rows of monomials: a polynomial map of sparse rows, expanded while they are read.

A column for each monomial of up to `degree` of n features, in this order (scikit-learn's):

    1 | x_0, x_1, ... | x_0 x_0, x_0 x_1, ..., x_1 x_1, ... | x_0 x_0 x_0, x_0 x_0 x_1, ...

so that the column of (i, j), i <= j, or (i, j, k) has a closed form. `least` is the lowest degree
(0, or `degree`: a homogeneous map), `strict` leaves only products of different features. The loops
run over pairs and triples of non-zero entries: runs of entries x_b, x_b+1, ... that share the
factors before. What a verb does with a run is an op, a type with the verb `along`.

HashedRows fold the columns into `width` ones by a hash of their number, with a sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.cross import gathered
from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot
from pegasos.core.rows import (
    CsrRows,
    is_single,
    n_columns,
    n_entries,
    n_rows,
    row_announce,
    row_axpy,
    row_axpys,
    row_dot,
    row_dots,
    row_outer,
    row_prefetch,
    row_products,
    row_sqnorm,
    row_squares,
)
from pegasos.core.threads import run_blocks

_BLOCK = 1024  # rows to write at a time


class PolynomialRows(NamedTuple):
    """The map of `base`, whose columns are sorted in each row.

    `coefs` are those of 1, i, ii, ij, iii, iij, ijk (different letters: different features),
    `firsts` the columns that the closed forms of the four degrees are counted from.
    """

    base: CsrRows
    degree: int
    least: int
    strict: int
    coefs: np.ndarray
    firsts: np.ndarray
    width: int
    entries: int
    bias: float


class HashedRows(NamedTuple):
    """The same, its columns hashed to `width`."""

    base: CsrRows
    degree: int
    least: int
    strict: int
    coefs: np.ndarray
    firsts: np.ndarray
    width: int
    entries: int
    bias: float


class Shape(NamedTuple):
    """Which monomials: of degrees least..degree, `strict`: without powers."""

    degree: int
    least: int
    strict: int


@helper
def n_monomials(m, degree, least, strict):
    """Of m features. m: an integer, or an array of them."""
    up, more = 1 - 2 * strict, 2 - 4 * strict
    total = 0 * m
    if least == 0:
        total = total + 1 + m
    if least <= 2 <= degree:
        total = total + m * (m + up) // 2
    if degree == 3:
        total = total + m * (m + up) * (m + more) // 6
    return total


def polynomial_rows(base: CsrRows, shape: Shape, coefs: Any, hashed: int = 0) -> Any:
    """The map of rows; `hashed`: to so many columns, 0 for not at all."""
    n, (degree, least, strict) = base.width, shape
    sizes = [1, n, n_monomials(n, 2, 2, strict), 0]
    firsts = np.cumsum([0, *sizes[:3]]) if least == 0 else np.zeros(4, dtype=np.int64)
    firsts = firsts - strict * np.array([0, 0, 1, 1])  # a run then begins one column later
    width = hashed or n_monomials(n, *shape)
    given = np.asarray(coefs, dtype=np.float64)
    rows = (HashedRows if hashed else PolynomialRows)(
        base, degree, least, strict, given, firsts, width, 0, base.bias
    )
    return rows._replace(entries=int(_entries_of_rows(rows).sum()))


def _entries_of_rows(rows: Any) -> np.ndarray:
    sizes = np.diff(rows.base.starts.astype(np.int64))
    return n_monomials(sizes, rows.degree, rows.least, rows.strict)


# Where a monomial stands


@helper
def _pairs_before(n, i, strict):
    """The column of (i, j) less j, counted from the first pair."""
    return i * (2 * n - i - 1 - 2 * strict) // 2


@helper
def _triples_before(n, i, j, strict):
    """The column of (i, j, k) less k, counted from the first triple."""
    up, rest = 1 - 2 * strict, n - i
    before = n * (n + up) * (n + 2 * up) - rest * (rest + up) * (rest + 2 * up)
    return before // 6 + _pairs_before(rest - strict, j - i - strict, strict) - i - strict


@generic
def place(rows: Any, k: int) -> tuple[int, float]:
    """The column of monomial k, and its sign"""


@place.register(PolynomialRows)
def _(rows, k):
    return np.uint64(k), 1.0


@place.register(HashedRows)
def _(rows, k):
    """The high half of a product that mixes all bits says where, one bit of it the sign."""
    z = (np.uint64(k) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(32))
    low = z & np.uint64(0x7FFFFFFF)
    column = (low * np.uint64(rows.width)) >> np.uint64(31)
    return column, 1.0 - 2.0 * np.float64((z >> np.uint64(40)) & np.uint64(1))


# What is done with a run


@generic
def along(op: Any, first: int, b: int, end: int, p: float, lead: float) -> float:
    """Entries p x_c of monomials first + j_c, c = b, ..., end - 1, that of c = b times `lead`"""


@generic
def at(op: Any, k: int, v: float) -> float:
    """The entry v of monomial k"""


class Dot(NamedTuple):
    """The sum of entries times weights."""

    rows: Any
    w: np.ndarray


class Axpy(NamedTuple):
    """w += a entries"""

    rows: Any
    a: float
    w: np.ndarray


class Write(NamedTuple):
    """Columns and values from `place[0]` on, which moves on."""

    rows: Any
    columns: np.ndarray
    values: np.ndarray
    place: np.ndarray


@at.register(Dot)
def _(op, k, v):
    column, sign = place(op.rows, k)
    return v * sign * op.w[column]


@at.register(Axpy)
def _(op, k, v):
    column, sign = place(op.rows, k)
    op.w[column] += op.a * v * sign
    return 0.0


@at.register(Write)
def _(op, k, v):
    s = op.place[0]
    op.columns[s], sign = place(op.rows, k)
    op.values[s] = v * sign
    op.place[0] = s + 1
    return 0.0


@along.register(Dot)
def _(op, first, b, end, p, lead):
    """Two sums side by side, as in `core.rows`."""
    x, j, w = op.rows.base.values, op.rows.base.columns, op.w
    one, two = np.uint64(1), np.uint64(2)
    if b >= end:
        return 0.0
    column, sign = place(op.rows, first + np.int64(j[b]))
    even, odd = lead * x[b] * sign * w[column], 0.0
    b += one
    while b + one < end:
        column, sign = place(op.rows, first + np.int64(j[b]))
        even += x[b] * sign * w[column]
        column, sign = place(op.rows, first + np.int64(j[b + one]))
        odd += x[b + one] * sign * w[column]
        b += two
    if b < end:
        column, sign = place(op.rows, first + np.int64(j[b]))
        even += x[b] * sign * w[column]
    return p * (even + odd)


@along.register(Axpy)
def _(op, first, b, end, p, lead):
    x, j, w, ap = op.rows.base.values, op.rows.base.columns, op.w, op.a * p
    if b < end:
        at(op, first + np.int64(j[b]), p * lead * x[b])
    for c in range(b + np.uint64(1), end):
        column, sign = place(op.rows, first + np.int64(j[c]))
        w[column] += ap * x[c] * sign
    return 0.0


@along.register(Write)
def _(op, first, b, end, p, lead):
    x, j = op.rows.base.values, op.rows.base.columns
    for c in range(b, end):
        at(op, first + np.int64(j[c]), p * x[c] * (lead if c == b else 1.0))
    return 0.0


@helper
def over(op, i):
    """The sum of what `op` answers to all runs of row i."""
    rows = op.rows
    x, j, n = rows.base.values, rows.base.columns, rows.base.width
    coefs, firsts = rows.coefs, rows.firsts
    start, end, skip = rows.base.starts[i], rows.base.starts[i + 1], np.uint64(rows.strict)
    total = 0.0
    if rows.least == 0:
        total += at(op, 0, coefs[0]) + along(op, firsts[1], start, end, coefs[1], 1.0)
    if rows.least <= 2 <= rows.degree:
        lead = 1.0 if rows.strict else coefs[2] / coefs[3]
        for a in range(start, end):
            first = firsts[2] + _pairs_before(n, np.int64(j[a]), rows.strict)
            total += along(op, first, a + skip, end, coefs[3] * x[a], lead)
    if rows.degree == 3:
        total += _over_triples(op, start, end, skip)
    return total


@helper
def _over_triples(op, start, end, skip):
    rows = op.rows
    x, j, n, coefs = rows.base.values, rows.base.columns, rows.base.width, rows.coefs
    total = 0.0
    for a in range(start, end):
        for b in range(a + skip, end):
            first = rows.firsts[3] + _triples_before(
                n, np.int64(j[a]), np.int64(j[b]), rows.strict
            )
            p, lead = coefs[6] * x[a] * x[b], coefs[5] / coefs[6]
            if a == b:
                p, lead = coefs[5] * x[a] * x[b], coefs[4] / coefs[5]
            if rows.strict:
                lead = 1.0
            total += along(op, first, b + skip, end, p, lead)
    return total


@helper
def expanded(rows, i):
    """Row i as a matrix of one CSR row; hashed columns may come twice."""
    m = np.int64(rows.base.starts[i + 1] - rows.base.starts[i])
    size = n_monomials(m, rows.degree, rows.least, rows.strict)
    columns, values = np.empty(size, dtype=np.uint64), np.empty(size)
    over(Write(rows, columns, values, np.zeros(1, dtype=np.int64)), i)
    starts = np.zeros(2, dtype=np.uint64)
    starts[1] = size
    return CsrRows(values, columns, starts, rows.width, rows.bias)


@helper
def merged(rows, i):
    """The same with sorted columns that differ."""
    row = expanded(rows, i)
    columns, values = np.empty_like(row.columns), np.zeros_like(row.values)
    order, size = np.argsort(row.columns), 0
    for s in range(order.shape[0]):
        column = row.columns[order[s]]
        if size == 0 or columns[size - 1] != column:
            columns[size] = column
            size += 1
        values[size - 1] += row.values[order[s]]
    starts = np.zeros(2, dtype=np.uint64)
    starts[1] = size
    return CsrRows(values[:size], columns[:size], starts, rows.width, rows.bias)


# The verbs of `core.rows`


@row_sqnorm.register(PolynomialRows)
def _(rows, i):
    """From symmetric functions of the squares t = x^2: no difference is taken, none cancels.

    e: sums of products of k different t; powers: of t^2 and t^3; mixed: of t_i^2 t_j, i != j.
    """
    e1, e2, e3, squares, cubes, mixed = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(rows.base.starts[i], rows.base.starts[i + 1]):
        t = np.float64(rows.base.values[k]) * np.float64(rows.base.values[k])
        e3 += e2 * t
        mixed += t * t * e1 + squares * t
        e2 += e1 * t
        e1 += t
        squares += t * t
        cubes += t * t * t
    c = rows.coefs * rows.coefs
    total = rows.bias * rows.bias + c[0] + c[1] * e1 + c[2] * squares + c[3] * e2
    return total + c[4] * cubes + c[5] * mixed + c[6] * e3


@row_sqnorm.register(HashedRows)
def _(rows, i):
    return row_sqnorm(merged(rows, i), 0)


@row_outer.register(PolynomialRows)
def _(rows, i, a, out):
    row_outer(expanded(rows, i), 0, a, out)


@row_outer.register(HashedRows)
def _(rows, i, a, out):
    row_outer(merged(rows, i), 0, a, out)


@row_squares.register(PolynomialRows)
def _(rows, i, a, out):
    row_squares(expanded(rows, i), 0, a, out)


@row_squares.register(HashedRows)
def _(rows, i, a, out):
    row_squares(merged(rows, i), 0, a, out)


def _dot(rows, i, w):
    return rows.bias * w[rows.width] + over(Dot(rows, w), i)


def _axpy(rows, i, a, w):
    over(Axpy(rows, a, w), i)
    w[rows.width] += a * rows.bias


def _products(rows, i, W, out):
    row_products(expanded(rows, i), 0, W, out)


def _dots(rows, i, W, out):
    row_dots(expanded(rows, i), 0, W, out)


def _axpys(rows, i, a, W):
    row_axpys(expanded(rows, i), 0, a, W)


def _prefetch(rows, i):
    row_prefetch(rows.base, i)


def _announce(rows, i):
    return row_announce(rows.base, i)


def _gathered(rows, index):
    part = rows._replace(base=gathered(rows.base, index))
    return part._replace(entries=int(_entries_of_rows(part).sum()))


for _cls in (PolynomialRows, HashedRows):
    n_rows.register(_cls)(lambda rows: rows.base.starts.shape[0] - 1)
    n_columns.register(_cls)(lambda rows: rows.width)
    n_entries.register(_cls)(lambda rows: rows.entries)
    is_single.register(_cls)(lambda rows: rows.base.values.dtype == np.float32)
    row_dot.register(_cls)(_dot)
    row_axpy.register(_cls)(_axpy)
    row_products.register(_cls)(_products)
    row_dots.register(_cls)(_dots)
    row_axpys.register(_cls)(_axpys)
    row_prefetch.register(_cls)(_prefetch)
    row_announce.register(_cls)(_announce)
    gathered.register(_cls)(_gathered)


# The map written out


def written_rows(rows: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, columns and starts of the rows in CSR form; hashed columns may come twice."""
    starts = np.zeros(n_rows(rows) + 1, dtype=np.int64)
    np.cumsum(_entries_of_rows(rows), out=starts[1:])
    small = max(rows.width, rows.entries) < 1 << 31
    columns = np.empty(rows.entries, dtype=np.int32 if small else np.int64)
    values = np.empty(rows.entries, dtype=dtype)
    run_blocks(lambda s, e: _write_csr(rows, starts, columns, values, s, e), n_rows(rows), _BLOCK)
    return values, columns, starts.astype(columns.dtype)


def written_array(rows: Any, dtype: Any) -> np.ndarray:
    """The rows as an array."""
    out = np.zeros((n_rows(rows), rows.width), dtype=dtype)
    run_blocks(lambda s, e: _write_array(rows, out, s, e), n_rows(rows), _BLOCK)
    return out


@hot
def _write_csr(rows, starts, columns, values, start, stop):
    for i in range(start, stop):
        over(Write(rows, columns, values, starts[i : i + 1].copy()), i)


@hot
def _write_array(rows, out, start, stop):
    for i in range(start, stop):
        over(Axpy(rows, 1.0, out[i]), i)
