"""Rows of monomials: a polynomial map of sparse rows, expanded while they are read.

The loops run over pairs of non-zero entries (`core.monomials` has their columns). Arrays are taken
out of their tuples once a row, since each time may cost Numba an atomic count of references; blocks
and what they are made from are plain numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.cross import gathered
from pegasos.core.dispatch import generic, helper
from pegasos.core.many import makes_arrays, row_axpys, row_dots, row_products, row_spread
from pegasos.core.monomials import (
    Folded,
    Monomials,
    Whole,
    n_monomials,
    pair_block,
    place,
    run,
    triple_block,
)
from pegasos.core.rows import (
    CsrRows,
    is_single,
    n_columns,
    n_entries,
    n_rows,
    row_announce,
    row_axpy,
    row_dot,
    row_outer,
    row_prefetch,
    row_sqnorm,
    row_squares,
)


class PolynomialRows(NamedTuple):
    """The map of `base`, whose columns are sorted in each row; `entries`: of all rows."""

    base: CsrRows
    monomials: Monomials
    width: int
    entries: int
    bias: float


def polynomial_rows(base: Any, which: Monomials, bias: float) -> PolynomialRows:
    """The map of rows, and a virtual column behind it; that of `base` is not used."""
    entries = int(sizes(base, which).sum())
    return PolynomialRows(base, which, which.fold.width, entries, bias)


def sizes(base: Any, which: Monomials) -> np.ndarray:
    """Monomials of each row that are not zero."""
    m = np.diff(base.starts.astype(np.int64))
    return n_monomials(m, which.degree, which.least, which.strict)


# x_i . w


@row_dot.register(PolynomialRows)
def _(rows, i, w):
    x, j, which = rows.base.values, rows.base.columns, rows.monomials
    start, end = rows.base.starts[i], rows.base.starts[i + 1]
    total = rows.bias * w[rows.width]
    if which.least == 0:
        column, sign = place(which.fold, 0)
        total += which.coefs[0] * sign * w[column]
        for b in range(start, end):
            column, sign = place(which.fold, which.firsts[1] + np.int64(j[b]))
            total += which.coefs[1] * x[b] * sign * w[column]
    if which.least <= 2:
        total += _dot_block(x, j, w, start, end, pair_block(which), which)
    if which.degree == 3:
        for a in range(start, end):
            block = triple_block(which, np.int64(j[a]))
            total += x[a] * _dot_block(x, j, w, a, end, block, which)
    return total


@helper
def _dot_block(x, j, w, start, end, block, which):
    """Two sums side by side: one would wait for each addition before the next."""
    one, two = np.uint64(1), np.uint64(2)
    total, same, rest = 0.0, block[3], block[4]
    for b in range(start, end):
        first, found, even, odd = run(block, np.int64(j[b]), which.strict), 0.0, 0.0, 0.0
        if same != 0.0:
            column, sign = place(which.fold, first + np.int64(j[b]))
            found = same * x[b] * sign * w[column]
        c = b + one if rest != 0.0 else end
        while c + one < end:
            column, sign = place(which.fold, first + np.int64(j[c]))
            even += x[c] * sign * w[column]
            column, sign = place(which.fold, first + np.int64(j[c + one]))
            odd += x[c + one] * sign * w[column]
            c += two
        if c < end:
            column, sign = place(which.fold, first + np.int64(j[c]))
            even += x[c] * sign * w[column]
        total += x[b] * (found + rest * (even + odd))
        same, rest = block[5], block[6]
    return total


# w += a x_i


@row_axpy.register(PolynomialRows)
def _(rows, i, a, w):
    add_monomials(rows, i, a, w)
    w[rows.width] += a * rows.bias


@helper
def add_monomials(rows, i, a, w):
    x, j, which = rows.base.values, rows.base.columns, rows.monomials
    start, end = rows.base.starts[i], rows.base.starts[i + 1]
    if which.least == 0:
        column, sign = place(which.fold, 0)
        w[column] += a * which.coefs[0] * sign
        for b in range(start, end):
            column, sign = place(which.fold, which.firsts[1] + np.int64(j[b]))
            w[column] += a * which.coefs[1] * x[b] * sign
    if which.least <= 2:
        _add_block(x, j, w, (start, end), a, pair_block(which), which)
    if which.degree == 3:
        for b in range(start, end):
            block = triple_block(which, np.int64(j[b]))
            _add_block(x, j, w, (b, end), a * x[b], block, which)


@helper
def _add_block(x, j, w, part, a, block, which):
    start, end = part
    same, rest = block[3], block[4]
    for b in range(start, end):
        first, ax = run(block, np.int64(j[b]), which.strict), a * x[b]
        if same != 0.0:
            column, sign = place(which.fold, first + np.int64(j[b]))
            w[column] += ax * same * x[b] * sign
        if rest != 0.0:
            for c in range(b + np.uint64(1), end):
                column, sign = place(which.fold, first + np.int64(j[c]))
                w[column] += ax * rest * x[c] * sign
        same, rest = block[5], block[6]


# The row as entries of a CSR row


@helper
def write_monomials(rows, i, columns, values, s):
    """Columns and values from place s on."""
    x, j, which = rows.base.values, rows.base.columns, rows.monomials
    start, end = rows.base.starts[i], rows.base.starts[i + 1]
    if which.least == 0:
        columns[s], sign = place(which.fold, 0)
        values[s] = which.coefs[0] * sign
        s += 1
        for b in range(start, end):
            columns[s], sign = place(which.fold, which.firsts[1] + np.int64(j[b]))
            values[s] = which.coefs[1] * x[b] * sign
            s += 1
    if which.least <= 2:
        s = _write_block((x, j), (columns, values), (start, end), 1.0, pair_block(which), which, s)
    if which.degree == 3:
        for b in range(start, end):
            block, a = triple_block(which, np.int64(j[b])), np.float64(x[b])
            s = _write_block((x, j), (columns, values), (b, end), a, block, which, s)


@helper
def _write_block(row, out, part, a, block, which, s):
    """Returns the next free place."""
    (x, j), (columns, values), (start, end) = row, out, part
    same, rest = block[3], block[4]
    for b in range(start, end):
        first, ax = run(block, np.int64(j[b]), which.strict), a * x[b]
        if same != 0.0:
            columns[s], sign = place(which.fold, first + np.int64(j[b]))
            values[s] = ax * same * x[b] * sign
            s += 1
        if rest != 0.0:
            for c in range(b + np.uint64(1), end):
                columns[s], sign = place(which.fold, first + np.int64(j[c]))
                values[s] = ax * rest * x[c] * sign
                s += 1
        same, rest = block[5], block[6]
    return s


@helper
def expanded(rows, i):
    """Row i as a matrix of one CSR row; folded columns may come twice, in any order."""
    which = rows.monomials
    m = np.int64(rows.base.starts[i + 1] - rows.base.starts[i])
    size = n_monomials(m, which.degree, which.least, which.strict)
    columns, values = np.empty(size, dtype=np.uint64), np.empty(size)
    write_monomials(rows, i, columns, values, 0)
    return _one_row(rows, columns, values)


@helper
def _one_row(rows, columns, values):
    starts = np.zeros(2, dtype=np.uint64)
    starts[1] = columns.shape[0]
    return CsrRows(values, columns, starts, rows.width, rows.bias)


@generic
def canonical_row(fold: Any, rows: Any, i: int) -> Any:
    """The same with sorted columns that differ"""


@canonical_row.register(Whole)
def _(fold, rows, i):
    return expanded(rows, i)


@canonical_row.register(Folded)
def _(fold, rows, i):
    row = expanded(rows, i)
    columns, values = np.empty_like(row.columns), np.zeros_like(row.values)
    order, size = np.argsort(row.columns), 0
    for s in range(order.shape[0]):
        column = row.columns[order[s]]
        if size == 0 or columns[size - 1] != column:
            columns[size] = column
            size += 1
        values[size - 1] += row.values[order[s]]
    return _one_row(rows, columns[:size], values[:size])


@row_outer.register(PolynomialRows)
def _(rows, i, a, out):
    row_outer(canonical_row(rows.monomials.fold, rows, i), 0, a, out)


@row_squares.register(PolynomialRows)
def _(rows, i, a, out):
    row_squares(canonical_row(rows.monomials.fold, rows, i), 0, a, out)


@row_products.register(PolynomialRows)
def _(rows, i, W, out):
    row_products(expanded(rows, i), 0, W, out)


@row_dots.register(PolynomialRows)
def _(rows, i, W, out):
    row_dots(expanded(rows, i), 0, W, out)


@row_axpys.register(PolynomialRows)
def _(rows, i, a, W):
    row_axpys(canonical_row(rows.monomials.fold, rows, i), 0, a, W)


makes_arrays.register(PolynomialRows)(lambda rows: True)


@row_spread.register(PolynomialRows)
def _(rows, i, a, W):
    row_spread(canonical_row(rows.monomials.fold, rows, i), 0, a, W)


# ||x_i||^2


@row_sqnorm.register(PolynomialRows)
def _(rows, i):
    return _sqnorm(rows.monomials.fold, rows, i)


@generic
def _sqnorm(fold: Any, rows: Any, i: int) -> float:
    """||x_i||^2"""


@_sqnorm.register(Whole)
def _(fold, rows, i):
    """From symmetric functions of the squares t = x^2: no difference is taken, none cancels.

    e: sums of products of k different t; squares and cubes of t; mixed: of t_i^2 t_j, i != j.
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
    sums = (1.0, e1, squares, e2, cubes, mixed, e3)
    total = rows.bias * rows.bias
    for c, found in zip(rows.monomials.coefs, sums):  # noqa: B905  (Numba knows no strict)
        total += c * c * found
    return total


@_sqnorm.register(Folded)
def _(fold, rows, i):
    return row_sqnorm(canonical_row(fold, rows, i), 0)


# What is asked of the base


@n_rows.register(PolynomialRows)
def _(rows):
    return n_rows(rows.base)


@n_columns.register(PolynomialRows)
def _(rows):
    return rows.width


@n_entries.register(PolynomialRows)
def _(rows):
    return rows.entries


@is_single.register(PolynomialRows)
def _(rows):
    return is_single(rows.base)


@row_prefetch.register(PolynomialRows)
def _(rows, i):
    row_prefetch(rows.base, i)


@row_announce.register(PolynomialRows)
def _(rows, i):
    return row_announce(rows.base, i)


@gathered.register(PolynomialRows)
def _(rows, index):
    return polynomial_rows(gathered(rows.base, index), rows.monomials, rows.bias)
