"""The loop that reads LIBSVM text: bytes of complete lines in, rows out.

It knows whether a line is good, by the grammar of `data.grammar`, and stops at the first bad one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.data.decimal import nearest

_U = np.uint64
_ZERO, _ONE, _TEN = _U(48), _U(1), _U(10)  # unsigned: no test for an index from the end
_DIGITS = _U(19)  # decimal digits that surely fit 64 bits


class Space(NamedTuple):
    """Arrays for the rows of a block."""

    labels: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@hot
def count(data, size):
    """Lines and colons: bounds on the rows and entries of a block."""
    lines, colons = 0, 0
    for i in range(size):
        lines += data[i] == 10
        colons += data[i] == 58
    return lines, colons


@hot
def parse(data, size, rules, space, slow):
    """Fill the space, each row in the order of its line.

    Returns rows, entries, the start of a bad line or -1, slow lines, qids, and the rows whose
    columns do not rise. A line is slow if it holds a number that `nearest` leaves open:
    slow[k] = row, start, end.
    """
    i, row, k, n_slow, qids, unsorted = _U(0), 0, 0, 0, 0, 0
    while i < _U(size):
        first = i
        i = _skip_blanks(data, i)
        if _at_end(data, i):
            i = _skip_line(data, i)
            continue
        label, state = 0.0, 0
        if rules.labelled:
            label, i, state = _number(data, i)
            if state < 0 or not _at_gap(data, i):
                return row, k, np.int64(first), n_slow, qids, unsorted
        space.labels[row] = label
        last, rises, easy = -1, True, state == 0
        i = _skip_blanks(data, i)
        while not _at_end(data, i):
            if _is_qid(data, i):
                while not _at_gap(data, i):
                    i += _ONE
                qids += 1
            else:
                column, i = _index(data, i, rules)
                if column < 0:
                    return row, k, np.int64(first), n_slow, qids, unsorted
                value, i, state = _number(data, i)
                if state < 0 or not _at_gap(data, i):
                    return row, k, np.int64(first), n_slow, qids, unsorted
                if state == 0 and not abs(value) < rules.limit:
                    return row, k, np.int64(first), n_slow, qids, unsorted
                easy = easy and state == 0
                rises = rises and column > last
                last = column
                space.columns[k] = column
                space.values[k] = value
                k += 1
            i = _skip_blanks(data, i)
        unsorted += not rises
        if not easy:
            if n_slow < slow.shape[0]:
                slow[n_slow, 0], slow[n_slow, 1], slow[n_slow, 2] = row, first, i
            n_slow += 1
        row += 1
        space.starts[row] = k
        i = _skip_line(data, i)
    return row, k, -1, n_slow, qids, unsorted


@helper
def _skip_blanks(data, i):
    while data[i] == 32 or data[i] == 9:
        i += _ONE
    return i


@helper
def _at_end(data, i):
    """Whether the line ends here, or its comment begins."""
    c = data[i]
    return c == 10 or c == 35 or (c == 13 and data[i + _ONE] == 10)


@helper
def _at_gap(data, i):
    """Whether a token ends here."""
    return data[i] == 32 or data[i] == 9 or _at_end(data, i)


@helper
def _skip_line(data, i):
    while data[i] != 10:
        i += _ONE
    return i + _ONE


@helper
def _is_qid(data, i):
    if data[i] != 113 or data[i + _ONE] != 105:
        return False
    return data[i + _U(2)] == 100 and data[i + _U(3)] == 58


@helper
def _digit(data, i):
    """The digit at i; above 9 if there is none."""
    return _U(data[i]) - _ZERO


@helper
def _digits(data, i, m):
    """The digits from i on, appended to m (modulo 2^64), and the place after them."""
    d = _digit(data, i)
    while d < _TEN:
        m = m * _TEN + d
        i += _ONE
        d = _digit(data, i)
    return m, i


@helper
def _index(data, i, rules):
    """The column of an index before a colon, and the place after the colon; -1 if it is bad."""
    index, end = _digits(data, i, _U(0))
    if end == i or data[end] != 58 or index < _U(rules.first) or index > _U(rules.last):
        return -1, end
    if end - i > _DIGITS and _significant(data, i, end)[2] > _DIGITS:
        return -1, end
    return np.int64(index) - rules.first, end + _ONE


@helper
def _number(data, i):
    """A number, the place after it, and 0 (good), 1 (needs exact arithmetic) or -1 (bad)."""
    minus = data[i] == 45
    if minus or data[i] == 43:
        i += _ONE
    first, decimals = i, _U(0)
    m, i = _digits(data, i, _U(0))
    count = i - first
    if data[i] == 46:
        start = i + _ONE
        m, i = _digits(data, start, m)
        decimals = i - start
        count += decimals
    if count == _U(0):
        return 0.0, i, -1
    e, last = -np.int64(decimals), i
    if data[i] == 101 or data[i] == 69:
        power, i, good = _exponent(data, i + _ONE)
        if not good:
            return 0.0, i, -1
        e += power
    if count <= _DIGITS:
        value = nearest(m, e)
    else:
        m, dropped, _ = _significant(data, first, last)
        value = nearest(m, e + dropped)
        if dropped > 0 and nearest(m + _ONE, e + dropped) != value:
            value = np.nan
    return -value if minus else value, i, 1 if np.isnan(value) else 0


@helper
def _significant(data, i, end):
    """The leading 19 digits of a long number, how many are dropped, how many count."""
    m, dropped, count = _U(0), 0, _U(0)
    while i < end:
        d = _digit(data, i)
        i += _ONE
        if d >= _TEN:  # the decimal point
            continue
        if count > _U(0) or d > _U(0):
            count += _ONE
        if count <= _DIGITS:
            m = m * _TEN + d
        else:
            dropped += 1
    return m, dropped, count


@helper
def _exponent(data, i):
    """An exponent (capped: no line is so long), the place after it, and whether it is good."""
    minus = data[i] == 45
    if minus or data[i] == 43:
        i += _ONE
    start, power = i, np.int64(0)
    while _digit(data, i) < _TEN:
        power = min(np.int64(1_000_000_000_000), power * 10 + np.int64(_digit(data, i)))
        i += _ONE
    return -power if minus else power, i, i > start
