"""A model on a data file, block by block: labels and scores in bounded memory.

Nothing of scikit-learn is needed here, which saves its start-up time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pegasos.cli.console import note
from pegasos.cli.data import Reading, is_table
from pegasos.core.matrix import products
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.data import store
from pegasos.data.errors import DataError
from pegasos.data.files import dialect_of
from pegasos.data.stream import Text
from pegasos.data.svmlight import Piece, read_pieces
from pegasos.model.linear import LinearModel


class Scored(NamedTuple):
    """Labels of some rows (None if the file has none) and their scores, one column a problem."""

    labels: Any
    scores: np.ndarray


def scored(
    model: LinearModel, path: str, reading: Reading, labelled: bool = True
) -> Iterator[Scored]:
    """The rows of a file in order, in blocks."""
    if is_table(path):
        yield from _from_table(model, path, reading)
    elif store.is_store(path):
        data, _ = store.load(path)
        yield _piece(model, Piece(*data[:4], 0, 0), path, [0])
    else:
        yield from _from_text(model, path, reading, labelled)


def _from_text(model, path: str, reading: Reading, labelled: bool) -> Iterator[Scored]:
    dtype = np.dtype(np.float64 if reading.float64 else np.float32)
    duplicates = "sum" if reading.sum_duplicates else "error"
    dialect = dialect_of(dtype, reading.zero_based, reading.max_features, duplicates)
    beyond = [0]
    with Text(path) as text:
        dialect = dialect._replace(labelled=labelled)
        for piece in read_pieces(text, dialect, dtype, reading.threads):
            block = _piece(model, piece, path, beyond)
            yield block if labelled else block._replace(labels=None)
    if beyond[0]:
        d = model.n_features
        note(f"{text.name}: {beyond[0]} entries beyond the {d} features of the model ignored")


def _piece(model: LinearModel, piece: Piece, path: str, beyond: list[int]) -> Scored:
    """Scores of sparse rows; entries of features that the model does not know count in `beyond`."""
    starts, columns, values = piece.starts, piece.columns, piece.values
    if piece.width > model.n_features:
        known = columns < model.n_features
        beyond[0] += int(known.size - known.sum())
        starts = np.concatenate([[0], np.cumsum(known)])[starts]
        columns, values = columns[known], values[known]
    unsigned = np.uint32 if columns.itemsize == 4 else np.uint64
    rows = CsrRows(values, columns.view(unsigned), starts.astype(np.uint64), model.n_features, 1.0)
    return Scored(piece.labels, _scores(model, rows))


def _from_table(model: LinearModel, path: str, reading: Reading) -> Iterator[Scored]:
    from pegasos.data.tables import read_batches, read_names

    dtype = np.dtype(np.float64 if reading.float64 else np.float32)
    label, usual = reading.label, model.reading.get("label")
    if label is None and usual in read_names(path, header=reading.header):
        label = usual
    tables = read_batches(path, label=label, dtype=dtype, header=reading.header, wanted=model.names)
    for table in tables:
        if table.X.shape[1] != model.n_features:
            raise DataError(
                f"{path}: {table.X.shape[1]} features, the model has {model.n_features}"
            )
        yield Scored(table.y, _scores(model, DenseRows(table.X, 1.0)))


def _scores(model: LinearModel, rows: Any) -> np.ndarray:
    both = zip(model.coef, model.intercept, strict=True)
    return np.column_stack([products(rows, np.append(w, b)) for w, b in both])


def chosen(scores: np.ndarray) -> np.ndarray:
    """The number of the class of each row."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Of the classes, for a logistic model."""
    p = 1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0)))
    if p.shape[1] == 1:
        return np.column_stack([1.0 - p, p])
    return p / p.sum(axis=1, keepdims=True)


def reading_for(model: LinearModel, reading: Reading, zero_based: bool | None) -> Reading:
    """The reading of a file to predict: as in training, where nothing else is said."""
    first = bool(model.reading.get("zero_based", False))
    return reading._replace(zero_based=first if zero_based is None else zero_based)
