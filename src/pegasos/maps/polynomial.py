"""The polynomial map: all products of up to two or three features, as columns.

phi(x).phi(z) = (gamma x.z + coef0)^degree, or plain products with coefficient 1. Rows of it are
expanded while they are read (`core.polynomial`); `transform` writes them out for others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from pegasos.core import parameters as par
from pegasos.core.jit import hot
from pegasos.core.logs import warn
from pegasos.core.monomials import monomials, n_monomials
from pegasos.core.polynomial import (
    PolynomialRows,
    add_monomials,
    polynomial_rows,
    sizes,
    write_monomials,
)
from pegasos.core.rows import n_rows
from pegasos.core.threads import run_blocks
from pegasos.data.check import as_rows
from pegasos.maps.base import FEW, FeatureMap
from pegasos.objective.kernel_names import is_of_rows
from pegasos.objective.kernels import check_number, gamma_of

WIDE = 10_000  # columns: an array that is mapped to more of them becomes a CSR matrix
_ROWS = 1024  # to write at a time
_PATTERNS = ((), (1,), (2,), (1, 1), (3,), (2, 1), (1, 1, 1))  # exponents of a monomial


class PolynomialMap(FeatureMap):
    """Products of up to `degree` features, so that phi(x).phi(z) = (gamma x.z + coef0)^degree.

    Columns are in the order of scikit-learn's PolynomialFeatures: 1, x0, x1, ..., x0^2, x0 x1, ...
    With coef0 = 0 only those of the highest degree are there.

    Parameters
    ----------
    degree : {2, 3}, default=2
    gamma : "scale", "auto" or float, default="scale"
        "scale" is 1 / (n_features var(X)), "auto" 1 / n_features.
    coef0 : float, default=1.0
        At least 0.
    coefficients : {"kernel", "plain"}, default="kernel"
        "plain": all are 1, as in scikit-learn's PolynomialFeatures; gamma and coef0 are not used.
    interaction_only : bool, default=False
        Only products of different features.
    width : int, default=2**22
        Most columns. If (n + degree)! / (n! degree!) is more, columns are hashed to this number
        of them, with signs, and a warning says so.
    n_threads : int, default=None
        Threads; None means all cores.

    Attributes
    ----------
    gamma_ : float
    n_columns_ : int
        Columns of phi before hashing.
    n_features_in_ : int
    feature_names_in_ : array, if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from pegasos import PolynomialMap
    >>> phi = PolynomialMap(gamma=1.0).fit_transform(np.array([[1.0, 2.0], [3.0, -1.0]]))
    >>> bool(np.isclose(phi[0] @ phi[1], (1.0 * 3.0 - 2.0 * 1.0 + 1.0) ** 2))
    True
    """

    def __init__(
        self,
        degree=2,
        *,
        gamma="scale",
        coef0=1.0,
        coefficients="kernel",
        interaction_only=False,
        width=2**22,
        n_threads=None,
    ):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.coefficients = coefficients
        self.interaction_only = interaction_only
        self.width = width
        self.n_threads = n_threads

    def fit(self, X, y=None):
        """Find gamma and the number of columns.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or a stream
            A stream is an iterable of such blocks, or of pairs (block, labels), read once: the map
            is fitted to 20000 rows of it drawn at random.
        y : not used

        Returns
        -------
        self
        """
        par.threads_of(self.n_threads)
        return self.settle(self._to_fit(X, np.random.default_rng(0)))

    def check(self) -> None:
        """Refuse parameters that would do for no rows."""
        par.one_of("coefficients", self.coefficients, ("kernel", "plain"))
        par.positive("coef0", self.coef0, zero=True)
        check_number("gamma", self.gamma)
        if self.degree not in (2, 3):
            raise ValueError(f"degree must be 2 or 3, got {self.degree!r}; SVC has higher ones")

    def settle(self, X: Any, weight: np.ndarray | None = None) -> PolynomialMap:
        """`fit` to rows that are checked; with weights of them, in the variance."""
        self.settle_for(X.shape[1], gamma_of(self.gamma, X, weight))
        n, total, width = self.n_features_in_, self.n_columns_, self._n_features_out
        if width < total:
            warn(
                f"degree {self.degree} of {n} features makes {total} columns, more than "
                f"width={width}: they are hashed to {width}, where some fall together; a larger "
                "width is more exact"
            )
        return self

    def settle_for(self, n_features: int, gamma: float) -> PolynomialMap:
        """The map of so many features with this gamma, whatever the rows."""
        self.check()
        plain, coef0 = self.coefficients == "plain", float(self.coef0)
        strict, least = int(bool(self.interaction_only)), 0 if plain or coef0 else self.degree
        self._shape = int(self.degree), least, strict
        self.gamma_, self.n_features_in_ = gamma, n_features
        self.n_columns_ = n_monomials(n_features, *self._shape)
        self._n_features_out = self._width()
        hashed = self._n_features_out if self._n_features_out < self.n_columns_ else 0
        try:
            coefs = [1.0] * len(_PATTERNS) if plain else _roots(self.degree, self.gamma_, coef0)
        except OverflowError:
            raise ValueError(
                f"gamma={self.gamma_:g} and coef0={coef0:g} are too large for degree {self.degree}"
            ) from None
        coefs = [
            c * _counts(exponents, *self._shape)
            for c, exponents in zip(coefs, _PATTERNS, strict=True)
        ]
        self._monomials = monomials(n_features, self._shape, coefs, hashed)
        return self

    def _width(self) -> int:
        """Columns after hashing, if there are too many for less."""
        n, total, width = self.n_features_in_, self.n_columns_, par.count("width", self.width)
        if total == 0:
            raise ValueError(
                f"{n} features have no product of {self.degree} different ones: "
                "use interaction_only=False or coef0 > 0"
            )
        if total <= width:
            return total
        if 6 * total >= 2**63:
            raise ValueError(f"{n} features are too many for degree {self.degree}: use degree=2")
        return width

    def rows(self, X: Any, bias: float = 0.0) -> PolynomialRows:
        """The mapped rows of a checked array or CSR matrix, for solvers: nothing is written out."""
        base = as_rows(X if sp.issparse(X) else sp.csr_array(X))
        return polynomial_rows(base, self._monomials, bias)

    def transform(self, X):
        """phi(X), in the dtype of X.

        Returns
        -------
        CSR matrix, or an array if X is one and phi has at most 10,000 columns
        """
        return self.mapped(self._to_map(X))

    def mapped(self, X: Any) -> Any:
        with self._at_work():
            rows = self.rows(X)
            if not sp.issparse(X) and rows.width <= WIDE:
                return _written_array(rows, X.dtype)
            made = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
            mapped = made(_written_rows(rows, X.dtype), shape=(X.shape[0], rows.width))
        if rows.width < self.n_columns_:
            mapped.sum_duplicates()
        return mapped

    def rows_wanted(self) -> int:
        return FEW * (self.coefficients == "kernel" and is_of_rows(self.gamma))

    def longest_image(self, X: Any) -> int:
        entries = int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else X.shape[1]
        dense = not sp.issparse(X) and self._n_features_out <= WIDE
        return self._n_features_out if dense else n_monomials(entries, *self._shape)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns: "1", "x0", "x0^2", "x0 x1"; hashed ones are numbered.

        Parameters
        ----------
        input_features : array of names, default=None

        Returns
        -------
        array of names
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self._n_features_out < self.n_columns_:
            return super().get_feature_names_out()
        found = self.names_of(range(self.n_columns_), names)
        return np.array(list(found.values()), dtype=object)

    def names_of(self, columns: Container[int], names: Any) -> dict[int, str]:
        """Of some columns, from names of all features; hashed ones have none."""
        if self._n_features_out < self.n_columns_:
            return {}
        every = enumerate(_chosen(self.n_features_in_, *self._shape))
        return {j: _name(names, chosen) for j, chosen in every if j in columns}


def _roots(degree: int, gamma: float, coef0: float) -> list[float]:
    """Of the terms of (gamma x.z + coef0)^degree: the coefficients of their monomials."""

    def one(exponents: tuple[int, ...]) -> float:
        k = min(sum(exponents), degree)
        ways = math.factorial(degree) // math.factorial(degree - k)
        ways //= math.prod(map(math.factorial, exponents))
        return math.sqrt(ways * coef0 ** (degree - k) * gamma**k)

    return [one(exponents) for exponents in _PATTERNS]


def _counts(exponents: tuple[int, ...], degree: int, least: int, strict: int) -> bool:
    """Whether such a monomial has a column."""
    powers = max(exponents, default=0) > 1
    return least <= sum(exponents) <= degree and not (strict and powers)


def _chosen(n: int, degree: int, least: int, strict: int) -> Iterator[tuple[int, ...]]:
    """The features of each column."""
    draw = itertools.combinations if strict else itertools.combinations_with_replacement
    return itertools.chain.from_iterable(draw(range(n), k) for k in range(least, degree + 1))


def _name(names: Any, chosen: tuple[int, ...]) -> str:
    powers = [(names[i], len(list(same))) for i, same in itertools.groupby(chosen)]
    return " ".join(name if k == 1 else f"{name}^{k}" for name, k in powers) or "1"


def _written_rows(rows: PolynomialRows, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, columns and starts of the rows in CSR form; folded columns may come twice."""
    starts = np.zeros(n_rows(rows) + 1, dtype=np.int64)
    np.cumsum(sizes(rows.base, rows.monomials), out=starts[1:])
    small = max(rows.width, rows.entries) < 1 << 31
    columns = np.empty(rows.entries, dtype=np.int32 if small else np.int64)
    values = np.empty(rows.entries, dtype=dtype)
    out = columns, values
    run_blocks(lambda s, e: _write_csr(rows, starts, out, s, e), n_rows(rows), _ROWS)
    return values, columns, starts.astype(columns.dtype)


def _written_array(rows: PolynomialRows, dtype: Any) -> np.ndarray:
    """The rows as an array."""
    out = np.zeros((n_rows(rows), rows.width), dtype=dtype)
    run_blocks(lambda s, e: _write_array(rows, out, s, e), n_rows(rows), _ROWS)
    return out


@hot
def _write_csr(rows, starts, out, start, stop):
    for i in range(start, stop):
        write_monomials(rows, i, out[0], out[1], starts[i])


@hot
def _write_array(rows, out, start, stop):
    for i in range(start, stop):
        add_monomials(rows, i, 1.0, out[i])
