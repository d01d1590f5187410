"""Monomials of degree two and three and their columns.

A column for each monomial of up to `degree` of n features, in this order (scikit-learn's):

    1 | x_0, x_1, ... | x_0 x_0, x_0 x_1, ..., x_1 x_1, ... | x_0 x_0 x_0, x_0 x_0 x_1, ...

so that the column of (i, j), i <= j, or (i, j, k) has a closed form. `least` is the lowest degree
(0, or `degree`: a homogeneous map), `strict` leaves only products of different features. Columns
may be folded into fewer by a hash of their number, with a sign.

The triples that begin with a feature are pairs of those from it on, in a smaller triangle. The
pairs of one triangle are a `block`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper


class Whole(NamedTuple):
    """Every monomial has a column of its own."""

    width: int


class Folded(NamedTuple):
    """Monomials are hashed to so many columns."""

    width: int


class Monomials(NamedTuple):
    """Which monomials of n features, their coefficients, and the columns they are folded to.

    `coefs` are those of 1, i, ii, ij, iii, iij, ijk (different letters: different features),
    `firsts` the numbers that the closed forms of the four degrees are counted from.
    """

    n: int
    degree: int
    least: int
    strict: int
    coefs: tuple[float, ...]
    firsts: tuple[int, ...]
    fold: Any


@helper
def n_monomials(m, degree, least, strict):
    """Of m features. m: an integer, or an array of them."""
    up = 1 - 2 * strict
    total = 0 * m
    if least == 0:
        total = total + 1 + m
    if least <= 2:
        total = total + m * (m + up) // 2
    if degree == 3:
        total = total + m * (m + up) * (m + 2 * up) // 6
    return total


def monomials(n: int, shape: tuple[int, int, int], coefs: Any, hashed: int = 0) -> Monomials:
    """`shape`: degree, least, strict; `hashed`: to so many columns, 0 for not at all."""
    degree, least, strict = shape
    sizes = [0, 1, n, n_monomials(n, 2, 2, strict)] if least == 0 else [0, 0, 0, 0]
    ends = np.cumsum(sizes)
    firsts = (*ends[:2], *(ends[2:] - strict))  # (i, j) of i < j: its j begins at i + 1
    fold = Folded(hashed) if hashed else Whole(n_monomials(n, *shape))
    return Monomials(n, *shape, tuple(map(float, coefs)), tuple(map(int, firsts)), fold)


@helper
def _pairs_before(n, i, strict):
    """The place of (i, j) less j, in a triangle of n."""
    return i * (2 * n - i - 1 - 2 * strict) // 2


@helper
def pair_block(which):
    """The numbers of a block: where it begins, size and first feature of its triangle, and the
    coefficients of pairs: of the first entry with itself and with others, then of all others."""
    c = which.coefs
    return which.firsts[2], which.n, 0, c[2], c[3], c[2], c[3]


@helper
def triple_block(which, i):
    """Triples that begin with feature i."""
    n, rest, up, c = which.n, which.n - i, 1 - 2 * which.strict, which.coefs
    before = n * (n + up) * (n + 2 * up) - rest * (rest + up) * (rest + 2 * up)
    shift = i + which.strict
    return which.firsts[3] + before // 6, n - shift, shift, c[4], c[5], c[5], c[6]


@helper
def run(block, j, strict):
    """What is added to k for the column of (j, k) in a block."""
    return block[0] - block[2] + _pairs_before(block[1], j - block[2], strict)


@generic
def place(fold: Any, k: int) -> tuple[int, float]:
    """The column of monomial k, and its sign"""


@place.register(Whole)
def _(fold, k):
    return np.uint64(k), 1.0


@place.register(Folded)
def _(fold, k):
    """31 bits of a product that mixes all of k say where, another bit the sign."""
    z = (np.uint64(k) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(32))
    column = ((z & np.uint64(0x7FFFFFFF)) * np.uint64(fold.width)) >> np.uint64(31)
    return column, 1.0 - 2.0 * np.float64((z >> np.uint64(40)) & np.uint64(1))
