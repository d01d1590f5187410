"""Tables in: CSV (`.csv`, `.tsv`, also compressed) and Parquet, whole or in batches.

Columns are told apart by name. Features are numbers, and none is missing; labels are numbers or
text. Nothing is guessed: in CSV, whatever is not a number is text, an empty field is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pegasos.data.columns import Columns, choose, listed
from pegasos.data.csvtext import Csv
from pegasos.data.errors import DataError, excerpt
from pegasos.data.formats import format_of_name
from pegasos.data.parquet import Parquet, is_number

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]+$"
_ODD = r"(?i)^[+-]?(nan|inf|infinity)$"


class Table(NamedTuple):
    """Rows of features, their labels (None if there are none), and the names of the features."""

    X: np.ndarray
    y: np.ndarray | None
    names: list[str]


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None,
    dtype: np.dtype,
    header: bool = True,
    wanted: list[str] | None = None,
) -> Table:
    """Read a whole CSV or Parquet file.

    Parameters
    ----------
    path : path
        Its name tells the format: `.parquet`; `.tsv` with tabs; else CSV with commas. Text may be
        compressed by gzip, bzip2 or xz.
    label : str or None
        The column of the labels; None if there is none, and every column is a feature.
    dtype : {float32, float64}
        Of X.
    header : bool, default=True
        Whether the first line of CSV names the columns; if not, they are f0, f1, ..., and "0"
        means f0 as a label.
    wanted : list of str, default=None
        The features, all of them, in the order they shall have. None: as in the file.

    Returns
    -------
    table : Table
        `y` is int64 if all labels are whole numbers (or booleans), else float64, or text.

    Raises
    ------
    ValueError
        Names the file, the row (from 1, without the header) and the column that are wrong.
    """
    with _open(path, header) as source:
        columns = choose(source.name, source.names, label, wanted, header)
        X, chunks = gather(source, columns, _checked(dtype))
        labels = Labels(source.name, columns, source.texts_may_be_numbers)
        y = labels.of(chunks) if chunks else None
    return Table(X, y, [columns.names[j] for j in columns.features])


def read_batches(
    path: str | os.PathLike[str],
    *,
    label: str | None,
    dtype: np.dtype,
    header: bool = True,
    wanted: list[str] | None = None,
    batch_rows: int = 1 << 16,
    text_labels: bool = False,
) -> Iterator[Table]:
    """The same as `read_table`, but in tables of at most `batch_rows` rows, in bounded memory.

    Whether CSV labels are numbers is settled by the first batch: text later on is then a DataError.
    With `text_labels` they are text in any case.
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be 1 or more, not {batch_rows}")
    with _open(path, header) as source:
        columns = choose(source.name, source.names, label, wanted, header)
        names = [columns.names[j] for j in columns.features]
        labels = Labels(source.name, columns, source.texts_may_be_numbers and not text_labels)
        for piece in source.pieces(columns, _checked(dtype)):
            y = None if piece.labels is None else labels.of([piece.labels])
            for i in range(0, len(piece.X), batch_rows):
                part = slice(i, i + batch_rows)
                yield Table(piece.X[part], None if y is None else y[part], names)


def read_names(path: str | os.PathLike[str], *, header: bool = True) -> list[str]:
    """The names of all columns of a CSV or Parquet file, the label's included."""
    with _open(path, header) as source:
        return source.names


def _open(path: str | os.PathLike[str], header: bool) -> Csv | Parquet:
    return Parquet(path) if format_of_name(path) == "parquet" else Csv(path, header)


def _checked(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {dtype}")
    return dtype


def gather(source: Csv | Parquet, columns: Columns, dtype: np.dtype) -> tuple[np.ndarray, list]:
    """All features in one array, and the labels of the pieces; the pieces are dropped on the way.

    The share of the file that they came from tells how much room to ask for. Memory that is asked
    for but not filled costs nothing.
    """
    X = np.empty((0, len(columns.features)), dtype=dtype)
    chunks: list[Any] = []
    n = 0
    for piece in source.pieces(columns, dtype):
        end = n + len(piece.X)
        if end > len(X):
            X = _more_room(X[:n], end, source.share())
        X[n:end] = piece.X
        n = end
        if piece.labels is not None:
            chunks.append(piece.labels)
    return X[:n], chunks


def _more_room(X: np.ndarray, rows: int, share: float) -> np.ndarray:
    """The rows so far in an array for the whole file by its share, or for twice as many."""
    factor = 1.1 / share if share else 2.0
    room = np.empty((int(factor * rows) + 1, X.shape[1]), dtype=X.dtype)
    room[: len(X)] = X
    return room


class Labels:
    """Labels from Arrow to NumPy: whole numbers, numbers or text, the same kind every time."""

    def __init__(self, file: str, columns: Columns, texts_may_be_numbers: bool):
        self._file, self._columns = file, columns
        self._kind = None if texts_may_be_numbers else "text"
        self._rows = 0

    def of(self, chunks: list[Any]) -> np.ndarray:
        """The labels of the next rows."""
        import pyarrow as pa

        column = pa.chunked_array(chunks)
        y = whole(column.to_numpy()) if is_number(column.type) else self._from_texts(column)
        self._rows += len(y)
        return y

    def _from_texts(self, column: Any) -> np.ndarray:
        """Labels by their distinct texts: few, as a rule."""
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        array = column.unify_dictionaries().combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
        codes = array.indices.to_numpy(zero_copy_only=False)
        texts = array.dictionary.cast(pa.string())
        values = None if self._kind == "text" else self._numbers(texts, codes)
        if values is None and self._kind == "numbers":
            self._refuse(texts, codes, ~_matches(texts, _NUMBER), "is not a number, as those above")
        self._kind = "text" if values is None else "numbers"
        if values is None:
            values = np.array(texts.to_pylist(), dtype=np.str_)
        return whole(values[codes]) if values.dtype.kind == "f" else values[codes]

    def _numbers(self, texts: Any, codes: np.ndarray) -> np.ndarray | None:
        """The distinct labels as numbers; None if one of them is text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        odd = _matches(texts, _ODD)
        if not (_matches(texts, _NUMBER) | odd).all():
            return None
        self._refuse(texts, codes, odd, "is not a finite number")
        bare = pc.utf8_ltrim(_trimmed(texts), "+")
        if _matches(texts, _WHOLE).all():
            try:
                return bare.cast(pa.int64()).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                big = np.array([not -(2**63) <= int(t) < 2**63 for t in bare.to_pylist()])
                self._refuse(texts, codes, big, "does not fit into a 64-bit integer")
        values = bare.cast(pa.float64()).to_numpy(zero_copy_only=False)
        self._refuse(texts, codes, ~np.isfinite(values), "is too large for a float64")
        return values

    def _refuse(self, texts: Any, codes: np.ndarray, bad: np.ndarray, words: str) -> None:
        """A DataError for the first row whose label is among the bad ones, if there is one."""
        rows = np.flatnonzero(bad[codes])
        if rows.size:
            name = self._columns.names[self._columns.label]  # type: ignore[index]
            shown = excerpt(texts[int(codes[rows[0]])].as_py().encode())
            where = f"row {self._rows + rows[0] + 1}: column {listed([name])}"
            raise DataError(f"{self._file}: {where}: the label {shown} {words}")


def whole(labels: np.ndarray) -> np.ndarray:
    """Labels as int64 if all are whole, else as float64."""
    if labels.dtype.kind in "bi":
        return labels.astype(np.int64)
    if labels.dtype.kind == "u" and labels.max(initial=0) < 2**63:
        return labels.astype(np.int64)
    values = labels.astype(np.float64)
    rounded = np.rint(values)
    if np.array_equal(rounded, values) and np.abs(rounded).max(initial=0.0) < 2.0**62:
        return rounded.astype(np.int64)
    return values


def _trimmed(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_trim(texts, " \t")


def _matches(texts: Any, pattern: str) -> np.ndarray:
    import pyarrow.compute as pc

    found = pc.match_substring_regex(_trimmed(texts), pattern)
    return found.to_numpy(zero_copy_only=False)
