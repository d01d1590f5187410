"""Parquet to columns: batches of rows, checked before they are used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from pegasos.data.columns import MISSING, Columns, Piece, listed
from pegasos.data.errors import DataError, ReadError

CELLS = 1 << 20  # of a batch


class Parquet:
    """A Parquet file, opened: the names of its columns, and its rows in pieces."""

    texts_may_be_numbers = False

    def __init__(self, path: str | os.PathLike[str]):
        self.path, self.name = path, os.fspath(path)
        self._before = _state(self.name)
        self._file = _open(self.name)
        self._schema = self._file.schema_arrow
        self._done = 0
        self.names: list[str] = list(self._schema.names)

    def __enter__(self) -> Parquet:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close(force=True)

    def pieces(self, columns: Columns, dtype: np.dtype) -> Iterator[Piece]:
        """The rows of the file, batch by batch; the first fault is a DataError."""
        self._check_types(columns)
        if self._file.metadata.num_rows == 0:
            raise DataError(f"{self.name}: no rows")
        batches = self._file.iter_batches(batch_size=max(256, CELLS // len(self.names)))
        for batch in self._reading(batches):
            piece = self._piece(batch, columns, dtype)
            self._done += len(piece.X)
            if len(piece.X):
                yield piece
        if _state(self.name) != self._before:
            raise ReadError(f"{self.name}: changed while it was read; try again")

    def share(self) -> float:
        """The part of the rows that was read so far."""
        return self._done / max(1, self._file.metadata.num_rows)

    def _reading(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches; what Arrow cannot decode is damage."""
        import pyarrow as pa

        try:
            yield from batches
        except (OSError, pa.ArrowException) as error:
            words = f"damaged after row {self._done}: {_one_line(error)}"
            raise ReadError(f"{self.name}: {words}") from None

    def _check_types(self, columns: Columns) -> None:
        for j, field in enumerate(self._schema):
            if is_number(field.type) or (j == columns.label and is_text(field.type)):
                continue
            allowed = "numbers, booleans or text" if j == columns.label else "numbers or booleans"
            found = f"of type {_one_line(field.type)[:80]}; {allowed} are allowed"
            raise DataError(f"{self.name}: column {listed([field.name])}: {found}")

    def _piece(self, batch: Any, columns: Columns, dtype: np.dtype) -> Piece:
        X = np.empty((batch.num_rows, len(columns.features)), dtype=dtype)
        whole = all(column.null_count == 0 for column in batch.columns)
        if whole:
            for k, j in enumerate(columns.features):
                with np.errstate(over="ignore"):  # found below
                    X[:, k] = batch.column(j).to_numpy(zero_copy_only=False)
        labels = None if columns.label is None else batch.column(columns.label)
        if not whole or not np.isfinite(X).all() or not _finite(labels):
            raise self._fault(batch, columns.label, dtype)
        return Piece(X, labels)

    def _fault(self, batch: Any, label: int | None, dtype: np.dtype) -> DataError:
        """The first value of a batch that cannot be used."""
        faults = []
        for j, column in enumerate(batch.columns):
            found = first_fault(column, None if j == label else dtype)
            if found is not None:
                faults.append((found[0], j, found[1]))
        row, j, words = min(faults)
        where = f"row {self._done + row + 1}: column {listed([self.names[j]])}"
        return DataError(f"{self.name}: {where}: {words}")


def is_number(kind: Any) -> bool:
    """Whether a column of this type holds numbers (or booleans, which count as 0 and 1)."""
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds text, plain or by a dictionary."""
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(value) or types.is_large_string(value) or types.is_string_view(value)


def first_fault(column: Any, dtype: np.dtype | None) -> tuple[int, str] | None:
    """Row (from 0) and words for the first value that is missing, not finite or too large."""
    from pyarrow import types

    missing = column.is_null().to_numpy(zero_copy_only=False)
    bad = missing.copy()
    if types.is_floating(column.type):
        values = column.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            bad |= ~np.isfinite(values if dtype is None else values.astype(dtype))
    if not bad.any():
        return None
    row = int(np.argmax(bad))
    if missing[row]:
        return row, MISSING
    if np.isfinite(values[row]):
        return row, f"{values[row]} is too large for a float32; ask for float64"
    return row, f"{values[row]} is not a finite number"


def _finite(labels: Any) -> bool:
    from pyarrow import types

    if labels is None or not types.is_floating(labels.type):
        return True
    return bool(np.isfinite(labels.to_numpy(zero_copy_only=False)).all())


def _open(name: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open(name, "rb") as file:
            start = file.read(4)
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name}: is a directory, not a file") from None
    if start not in (b"PAR1", b"PARE"):
        raise DataError(f"{name}: not a Parquet file: it begins with {start!r}, not b'PAR1'")
    try:
        # Row groups are read in small steps: a file may have a single one.
        return parquet.ParquetFile(name, pre_buffer=False, buffer_size=1 << 16)
    except (OSError, pa.ArrowException) as error:
        words = "the end of the Parquet file is missing or damaged"
        raise DataError(f"{name}: {words}: {_one_line(error)}") from None


def _state(name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _one_line(what: Any) -> str:
    return " ".join(str(what).split())
