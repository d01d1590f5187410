"""A model on a data file, block by block: labels and scores in bounded memory.

Linear models and single kernel machines need nothing of scikit-learn, which saves its start-up
time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pegasos.cli.console import note
from pegasos.cli.data import Reading
from pegasos.core.threads import available, use_threads
from pegasos.data import container, store
from pegasos.data.check import as_matrix, as_rows
from pegasos.data.errors import DataError
from pegasos.data.files import dialect_of
from pegasos.data.formats import is_table
from pegasos.data.stream import Text, name_of
from pegasos.data.svmlight import Piece, read_pieces, rows_of
from pegasos.model.cells_record import CellsRecord
from pegasos.model.decision import chosen, probabilities
from pegasos.model.file import Model
from pegasos.model.kernel import scores_of as kernel_scores
from pegasos.model.kernel_record import KernelRecord, machine
from pegasos.model.linear import MAPPED, scores_of, weight_vectors
from pegasos.model.pairs import class_scores, decided, problem_names
from pegasos.objective.kernel_points import is_given


class Scored(NamedTuple):
    """Labels of some rows (None if the file has none) and their scores."""

    labels: Any
    scores: np.ndarray


class Known(NamedTuple):
    """The number of the true class of each row (-1: unknown to the model), its scores, and the
    names of classes that are unknown."""

    truth: np.ndarray
    scores: np.ndarray
    strangers: list[str]


def scorer(model: Model, threads: int | None) -> Callable[[Any], np.ndarray]:
    """What gives rows with a virtual column of ones their scores, a column per class (one in all
    for two classes; per problem of a kernel machine)."""
    if isinstance(model, CellsRecord) or model.kind in MAPPED:
        return _decisions(model, threads)
    if not isinstance(model, KernelRecord):
        weights = weight_vectors(model.coef, model.intercept)
        return lambda rows: class_scores(scores_of(weights, rows), len(model.classes), model.pairs)
    if is_given(model.kernel):
        raise DataError("a precomputed kernel predicts from kernel values: use Python")
    ready = machine(model)

    def score(rows: Any) -> np.ndarray:
        with use_threads(threads or available()):
            return kernel_scores(ready, rows._replace(bias=0.0))

    return score


def _decisions(model: Model, threads: int | None) -> Callable[[Any], np.ndarray]:
    from pegasos.estimators.files import from_model

    estimator = from_model(model._replace(names=None))
    estimator.n_threads = threads

    def score(rows: Any) -> np.ndarray:
        found = estimator.decision_function(as_matrix(rows))
        return found.reshape(len(found), -1)

    return score


def classes_of(model: Model, scores: np.ndarray) -> np.ndarray:
    """The number of the class of each row."""
    if len(model.classes) == 2:
        return chosen(scores, model.decision.threshold)
    return _decided(model, scores)[1]


def _decided(model: Model, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = isinstance(model, KernelRecord) and model.pairs  # others have scores of classes
    break_ties = model.parameters.get("break_ties") is True
    return decided(scores, len(model.classes), pairs, break_ties)


def score_names(model: Model) -> list[str]:
    """What each column of scores speaks for."""
    pairs = isinstance(model, KernelRecord) and model.pairs
    return problem_names(model.classes, pairs, ":")


def has_probabilities(model: Model) -> bool:
    return model.kind == "LogisticRegression" or model.decision.calibration is not None


def probabilities_of(model: Model, scores: np.ndarray) -> np.ndarray:
    """Of the classes of each row."""
    return probabilities(*_decided(model, scores), model.decision.calibration)


def scored(model: Model, path: str, reading: Reading, labelled: bool = True) -> Iterator[Scored]:
    """The rows of a file in order, in blocks."""
    score = scorer(model, reading.threads)
    if is_table(path):
        return _from_table(model, path, reading, score)
    return _from_text(model, path, reading, score, labelled)


def known(model: Model, path: str, reading: Reading) -> Known:
    """The rows of a file whose labels say what is true, all of them."""
    from pegasos.data.tables import whole

    blocks = list(scored(model, path, reading))
    if blocks[0].labels is None:
        raise DataError(f"{path}: no labels to compare with; name their column with --label")
    y = np.concatenate([block.labels for block in blocks])
    y = y if y.dtype.kind in "OU" else whole(y)
    scores = np.concatenate([block.scores for block in blocks])
    number = {name: k for k, name in enumerate(model.classes.tolist())}
    truth = np.array([number.get(name, -1) for name in y.tolist()])
    strangers = sorted({str(name) for name in y[truth < 0].tolist()})
    return Known(truth, scores, strangers)


def _from_text(
    model: Model, path: str, reading: Reading, score: Callable[[Any], np.ndarray], labelled: bool
) -> Iterator[Scored]:
    beyond = 0
    for piece in pieces(path, reading, labelled):
        rows, unknown = rows_of(piece, model.n_features)
        beyond += unknown
        yield Scored(piece.labels if labelled else None, score(rows))
    if beyond:
        d = model.n_features
        note(f"{name_of(path)}: {beyond} entries beyond the {d} features of the model ignored")


def pieces(
    path: str, reading: Reading, labelled: bool, block: int | None = None
) -> Iterator[Piece]:
    """Sparse rows of LIBSVM text or of the binary form.

    In blocks of `block` bytes, if given; those of a pipe come as soon as they are there.
    """
    if container.kind_of(path) is not None:
        yield from store.pieces(path)
        return
    dtype = np.dtype(np.float64 if reading.float64 else np.float32)
    duplicates = "sum" if reading.sum_duplicates else "error"
    dialect = dialect_of(dtype, reading.zero_based, reading.max_features, duplicates)
    with Text(path, block) as text:
        threads = reading.threads if block is None or text.is_file else 1
        yield from read_pieces(text, dialect._replace(labelled=labelled), dtype, threads)


def _from_table(
    model: Model, path: str, reading: Reading, score: Callable[[Any], np.ndarray]
) -> Iterator[Scored]:
    from pegasos.data.tables import read_batches

    dtype = np.dtype(np.float64 if reading.float64 else np.float32)
    tables = read_batches(
        path,
        label=_label(model, path, reading),
        dtype=dtype,
        header=reading.header,
        wanted=model.names,
        text_labels=model.classes.dtype.kind == "U",
    )
    for table in tables:
        if table.X.shape[1] != model.n_features:
            found = table.X.shape[1]
            words = f"{found} features, the model has {model.n_features}"
            raise DataError(f"{path}: {words}; if one is the label, name it with --label")
        yield Scored(table.y, score(as_rows(table.X, 1.0)))


def _label(model: Model, path: str, reading: Reading) -> str | None:
    """The column of the labels: as said, or that of the training data if it is there."""
    from pegasos.data.tables import read_names

    usual = model.reading.get("label")
    if reading.label is not None or usual is None or not os.path.isfile(path):
        return reading.label
    names = read_names(path, header=reading.header)
    there = usual in names if reading.header else len(names) == model.n_features + 1
    return usual if there else None


def reading_for(model: Model, reading: Reading, zero_based: bool | None) -> Reading:
    """The reading of a file to predict: as in training, where nothing else is said."""
    first = bool(model.reading.get("zero_based", False))
    header = reading.header and bool(model.reading.get("header", True))
    zero_based = first if zero_based is None else zero_based
    return reading._replace(zero_based=zero_based, header=header)
