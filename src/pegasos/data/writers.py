"""Data files out: LIBSVM text, CSV and Parquet, in blocks of rows, each file whole or not at all.

Numbers are written in the shortest form that reads back to the same bits. A name that ends
with `.gz` makes a text file compressed.
"""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from pegasos.data.atomic import writing
from pegasos.data.errors import DataError, excerpt
from pegasos.data.formats import delimiter_of
from pegasos.data.grammar import MAX_INDEX

CELLS = 1 << 20  # of a block of rows of text
GROUP = 1 << 24  # of a row group of Parquet
MAX_CELLS = 2_000_000_000  # of a sparse matrix that is written as a table


def write_svmlight(path: str | os.PathLike[str], X: Any, y: Any, first: int = 1) -> None:
    """Write LIBSVM/SVMlight text; the first column has the index `first`.

    Stored zeros of a sparse matrix are written, zeros of an array are not.
    """
    name = os.fspath(path)
    X = _rows(name, X)
    labels = _labels(name, X, y)
    if labels.dtype.kind == "U":
        shown = excerpt(str(labels[0]).encode()) if len(labels) else "text"
        words = f"LIBSVM text cannot hold labels like {shown}; write .csv or .parquet"
        raise DataError(f"{name}: {words}, or number the classes")
    if first not in (0, 1):
        raise ValueError(f"first must be 0 or 1, not {first}")
    if X.shape[1] - 1 + first > MAX_INDEX:
        raise DataError(f"{name}: {X.shape[1]} columns; the largest index allowed is {MAX_INDEX}")
    with _text(path) as file:
        for i, end in _blocks(X, CELLS):
            file.write(_lines(name, _csr(X[i:end]), labels[i:end], (i, first)))


def write_csv(
    path: str | os.PathLike[str], X: Any, y: Any, names: list[str] | None = None, label: str = "y"
) -> None:
    """Write CSV with a header (with tabs if the name says .tsv), the labels last if y is given.

    CSV does not tell text from numbers: labels like "1" read back as numbers.
    """
    from pyarrow import csv

    name = os.fspath(path)
    X = _rows(name, X)
    schema, labels = _table(name, X, y, names, label)
    options = csv.WriteOptions(delimiter=delimiter_of(path))
    _check_plain(name, labels, schema.names)
    with _text(path) as file, csv.CSVWriter(file, schema, write_options=options) as writer:
        for i, end in _blocks(X, CELLS, full=True):
            writer.write_batch(_batch(name, X[i:end], labels, schema, i))


def write_parquet(
    path: str | os.PathLike[str], X: Any, y: Any, names: list[str] | None = None, label: str = "y"
) -> None:
    """Write Parquet, the labels in the last column if y is given."""
    from pyarrow import parquet

    name = os.fspath(path)
    X = _rows(name, X)
    schema, labels = _table(name, X, y, names, label)
    with writing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for i, end in _blocks(X, GROUP, full=True):
            writer.write_batch(_batch(name, X[i:end], labels, schema, i))


@contextlib.contextmanager
def _text(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    if os.fspath(path).lower().endswith((".bz2", ".xz")):
        raise DataError(f"{os.fspath(path)}: text is written plain or as .gz")
    with writing(path) as file:
        if not os.fspath(path).lower().endswith(".gz"):
            yield file
            return
        # Neither name nor time: the same data make the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def _is_sparse(X: Any) -> bool:
    import scipy.sparse as sp

    return sp.issparse(X)


def _rows(name: str, X: Any) -> Any:
    """X as a CSR matrix or an array, whichever it is nearer to."""
    X = X.tocsr() if _is_sparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        words = f"rows must be a matrix of numbers, not {X.dtype} of shape {X.shape}"
        raise DataError(f"{name}: {words}")
    return X


def _blocks(X: Any, most: int, full: bool = False) -> Iterator[tuple[int, int]]:
    """First row and end of blocks of at most so many entries (cells if `full`), or one row."""
    n, d = X.shape
    i = 0
    while i < n:
        if full or not _is_sparse(X):
            end = i + most // max(d, 1)
        else:
            last = min(int(X.indptr[i]) + most, int(X.indptr[-1]))
            last = X.indptr.dtype.type(last)  # another type would copy the whole array
            end = int(np.searchsorted(X.indptr, last, side="right")) - 1
        end = min(max(end, i + 1), i + most, n)
        yield i, end
        i = end


def _labels(name: str, X: Any, y: Any) -> np.ndarray:
    """Labels as numbers or text, as many as rows."""
    labels = np.asarray(y)
    if labels.dtype.kind == "O":
        text = all(isinstance(value, str) for value in labels.ravel())
        labels = labels.astype(np.str_) if text else labels
    if labels.dtype.kind not in "biufU":
        raise DataError(f"{name}: labels must be numbers or text, not {labels.dtype}")
    if labels.shape != (X.shape[0],):
        raise DataError(f"{name}: {X.shape[0]} rows, but labels of shape {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise DataError(f"{name}: row {row + 1}: the label {labels[row]} is not finite")
    return labels.astype(np.int64) if labels.dtype.kind == "b" else labels


# LIBSVM text


def _csr(rows: Any) -> Any:
    """Some rows as a CSR matrix with sorted columns, each at most once."""
    import scipy.sparse as sp

    block = sp.csr_array(rows if _is_sparse(rows) else _floats(rows))
    if not block.has_canonical_format:
        block = block.copy() if block is rows else block
        block.sum_duplicates()
    return block


def _lines(name: str, block: Any, labels: np.ndarray, start: tuple[int, int]) -> Any:
    """The text of some rows, as a buffer; `start` is their first row and the first index."""
    import pyarrow as pa
    import pyarrow.compute as pc

    row, first = start
    values = _floats(block.data)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        k = int(bad[0])
        i = int(np.searchsorted(block.indptr, k, side="right"))
        where = f"row {row + i}: index {block.indices[k] + first}"
        raise DataError(f"{name}: {where}: {values[k]} is not finite")
    text = pa.string()
    indices = pc.cast(pa.array(block.indices.astype(np.int64) + first), text)
    fields = pc.binary_join_element_wise(indices, pc.cast(pa.array(values), text), ":")
    rows = pa.ListArray.from_arrays(block.indptr.astype(np.int32), fields)
    heads = pc.cast(pa.array(_shortest(labels)), text)
    whole = pc.binary_join_element_wise(heads, pc.binary_join(rows, " "), " ")
    empty = pa.array(np.diff(block.indptr) == 0)
    lines = pc.binary_join_element_wise(pc.if_else(empty, heads, whole), "", "\n")
    return b"" if len(lines) == 0 else lines.buffers()[2]


def _floats(values: np.ndarray) -> np.ndarray:
    """Values as float32 or float64, whichever they are or fit into."""
    if values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float32 if values.dtype == np.float16 else np.float64)


def _shortest(labels: np.ndarray) -> np.ndarray:
    """Labels in a type whose text is short: float16 and long doubles have none of their own."""
    return _floats(labels) if labels.dtype.kind == "f" else labels


# Tables


def _table(
    name: str, X: Any, y: Any, names: list[str] | None, label: str
) -> tuple[Any, np.ndarray | None]:
    """The schema of a table and its labels, checked."""
    import pyarrow as pa

    n, d = X.shape
    if _is_sparse(X) and n * d > MAX_CELLS:
        words = f"{n} x {d} is too much for a table, which stores every zero"
        raise DataError(f"{name}: {words}; LIBSVM text (.svm) or the binary form would work")
    names = [f"f{j}" for j in range(1, d + 1)] if names is None else list(names)
    if len(names) != d:
        raise DataError(f"{name}: {len(names)} names for {d} columns")
    labels = None if y is None else _labels(name, X, y)
    every = names if labels is None else [*names, label]
    if len(set(every)) != len(every):
        twice = next(one for k, one in enumerate(every) if one in every[:k])
        raise DataError(f"{name}: two columns would be named {twice!r}")
    kinds = [pa.from_numpy_dtype(_floats(np.empty(0, X.dtype)).dtype)] * d
    if labels is not None:
        is_text = labels.dtype.kind == "U"
        kinds.append(pa.string() if is_text else pa.from_numpy_dtype(_shortest(labels).dtype))
    return pa.schema(list(zip(every, kinds, strict=True))), labels


def _batch(name: str, rows: Any, labels: np.ndarray | None, schema: Any, start: int) -> Any:
    """Some rows as a batch of columns; `start` is the first of them."""
    import pyarrow as pa

    dense = rows.toarray() if _is_sparse(rows) else np.asarray(rows)
    values = _floats(dense)
    if not np.isfinite(values).all():
        i, j = np.argwhere(~np.isfinite(values))[0]
        where = f"row {start + i + 1}: column {schema.names[j]!r}"
        raise DataError(f"{name}: {where}: {values[i, j]} is not finite")
    columns = [pa.array(column) for column in np.ascontiguousarray(values.T)]
    if labels is not None:
        columns.append(pa.array(_shortest(labels[start : start + len(values)]), schema.types[-1]))
    return pa.record_batch(columns, schema=schema)


def _check_plain(name: str, labels: np.ndarray | None, names: list[str]) -> None:
    """Refuse what CSV text could not give back: empty text, and line breaks or NUL within."""
    texts = np.unique(labels).tolist() if labels is not None and labels.dtype.kind == "U" else []
    for text in [*names, *texts]:
        if not text.strip() or any(c in text for c in "\r\n\0"):
            raise DataError(f"{name}: CSV cannot hold the name or label {text!r}; Parquet can")
