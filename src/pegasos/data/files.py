"""Data files in: LIBSVM text (and its cache), the binary form, CSV and Parquet."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pegasos.data import store
from pegasos.data.errors import DataError
from pegasos.data.grammar import FLOAT32_LIMIT, MAX_INDEX, Dialect
from pegasos.data.stream import Text
from pegasos.data.svmlight import Csr, gather, read_pieces


def load_svmlight(
    path: str | os.PathLike[str],
    *,
    dtype: Any = np.float32,
    zero_based: bool = False,
    n_features: int | None = None,
    duplicates: str = "error",
    cache: bool = False,
    n_threads: int | None = None,
) -> tuple[Any, np.ndarray]:
    """Read a LIBSVM/SVMlight text file.

    Parameters
    ----------
    path : path
        Plain, gzip, bzip2 or xz; "-" is standard input.
    dtype : {float32, float64}, default=float32
        Of the values of X.
    zero_based : bool, default=False
        Whether the first column has index 0. It is never guessed.
    n_features : int, default=None
        Columns of X; an index beyond is an error. None: the largest index found.
    duplicates : {"error", "sum"}, default="error"
        What to do if an index occurs twice in a line.
    cache : bool, default=False
        Keep the parsed file in the user's cache directory, where the next call finds it.
    n_threads : int, default=None
        Threads; None means all cores.

    Returns
    -------
    X : CSR array of shape (n_samples, n_features)
    y : array of shape (n_samples,)

    Raises
    ------
    ValueError
        Names the file, the line, the column and the field that is wrong.
    """
    dialect = dialect_of(np.dtype(dtype), zero_based, n_features, duplicates)
    data = read_svmlight(path, dialect, np.dtype(dtype), cache, n_threads)
    return matrix(data, n_features), np.array(data.labels)


def dialect_of(
    dtype: np.dtype, zero_based: bool, n_features: int | None, duplicates: str
) -> Dialect:
    """The reader's settings from the user's."""
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {dtype}")
    if duplicates not in ("error", "sum"):
        raise ValueError(f"duplicates must be 'error' or 'sum', not {duplicates!r}")
    if n_features is not None and not 1 <= n_features <= MAX_INDEX:
        raise ValueError(f"n_features must be from 1 to {MAX_INDEX}, not {n_features}")
    first = 0 if zero_based else 1
    last = MAX_INDEX if n_features is None else n_features + first - 1
    limit = FLOAT32_LIMIT if dtype == np.float32 else np.inf
    return Dialect(first, last, duplicates == "sum", limit=float(limit))


def read_svmlight(
    path: str | os.PathLike[str],
    dialect: Dialect,
    dtype: np.dtype,
    cache: bool = False,
    n_threads: int | None = None,
) -> Csr:
    """All rows of a text file, from its cache if that is allowed and good."""
    if not cache or os.fspath(path) == "-" or not os.path.isfile(path):
        return _parsed(path, dialect, dtype, n_threads)
    how = {**dialect._asdict(), "limit": str(dialect.limit), "dtype": dtype.name}
    found = store.from_cache(path, how)
    if found is not None:
        return found
    origin = store.origin_of(path, how)
    data = _parsed(path, dialect, dtype, n_threads)
    store.to_cache(path, how, data, origin)
    return data


def _parsed(path, dialect: Dialect, dtype: np.dtype, n_threads: int | None) -> Csr:
    with Text(path) as text:

        def share() -> float:
            done, size = text.progress()
            return done / size if size else 0.0

        return gather(read_pieces(text, dialect, dtype, n_threads), share)


def matrix(data: Csr, n_features: int | None = None) -> Any:
    """The SciPy CSR array over the arrays of the data."""
    import scipy.sparse as sp

    width = data.width if n_features is None else n_features
    if data.width > width:
        raise DataError(f"{data.width} columns, more than the {width} asked for")
    shape = (len(data.labels), width)
    return sp.csr_array((data.values, data.columns, data.starts), shape=shape)
