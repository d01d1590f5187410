"""A data file, or standard input, as batches of rows in order; how far one has come in them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pegasos.cli import apply
from pegasos.cli.data import Reading
from pegasos.data.errors import DataError
from pegasos.data.formats import is_table

BLOCK = 1 << 20  # bytes of text in a batch: a stream that comes slowly is learnt in such portions


class Batch(NamedTuple):
    """Rows, their labels, and the names of the features if they have any."""

    X: Any
    y: np.ndarray
    names: list[str] | None

    def part(self, rows: slice) -> Batch:
        return Batch(self.X[rows], self.y[rows], self.names)


class Place(NamedTuple):
    """How many rows went by, and a running checksum of each of the arrays they were held in."""

    rows: int = 0
    sums: tuple[int, ...] = ()

    def after(self, batch: Batch) -> Place:
        X, y = batch.X, batch.y
        text = y.dtype.kind in "OU"
        labels = "\n".join(map(str, [*y, ""])).encode() if text else y.astype(np.float64).data
        if sp.issparse(X):
            arrays = [np.diff(X.indptr).astype(np.int64), X.indices.astype(np.int32), X.data]
        else:
            arrays = [np.ascontiguousarray(X)]
        parts = [labels, *(array.reshape(-1).view(np.uint8).data for array in arrays)]
        before = self.sums or (0,) * len(parts)
        sums = tuple(zlib.crc32(part, sum_) for part, sum_ in zip(parts, before, strict=True))
        return Place(self.rows + len(y), sums)


def batches(path: str, reading: Reading, text_labels: bool) -> Iterator[Batch]:
    """The rows of a file in order; a sparse batch is as wide as its largest index."""
    if is_table(path):
        yield from _of_table(path, reading, text_labels)
        return
    for piece in apply.pieces(path, reading, labelled=True, block=BLOCK):
        shape = (len(piece.labels), max(1, piece.width))
        X = sp.csr_array((piece.values, piece.columns, piece.starts), shape=shape)
        yield Batch(X, piece.labels, None)


def _of_table(path: str, reading: Reading, text_labels: bool) -> Iterator[Batch]:
    from pegasos.data.tables import read_batches

    if reading.label is None:
        raise DataError(f"{path}: name the column of the labels with --label")
    dtype = np.dtype(np.float64 if reading.float64 else np.float32)
    tables = read_batches(
        path, label=reading.label, dtype=dtype, header=reading.header, text_labels=text_labels
    )
    for table in tables:
        assert table.y is not None
        yield Batch(table.X, table.y, table.names if reading.header else None)


def beyond(source: Iterator[Batch], saved: Place, name: str) -> Iterator[Batch]:
    """The rows that follow on the saved place, once those before it have proven to be the same."""
    place = Place()
    for batch in source:
        left = saved.rows - place.rows
        if left > 0:
            place = place.after(batch.part(slice(None, left)))
            if place.rows == saved.rows and place != saved:
                raise DataError(f"{name}: {_another(saved.rows)}")
            batch = batch.part(slice(left, None))
        if len(batch.y):
            yield batch
    if place.rows < saved.rows:
        raise DataError(f"{name}: ends after {place.rows} rows: {_another(saved.rows)}")


def _another(rows: int) -> str:
    return (
        f"not the stream of the checkpoint, whose first {rows} rows were others; remove the "
        "checkpoint or name another file"
    )
