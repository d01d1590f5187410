"""save_model and load_model: fitted estimators to model files and back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pegasos.data.errors import DataError
from pegasos.estimators import cell_files, kernel_files, map_files, streams
from pegasos.estimators.linear import LinearSVC, LogisticRegression
from pegasos.estimators.model_facts import attributes, facts, plain, rebuilt
from pegasos.estimators.online import PegasosClassifier
from pegasos.estimators.transfer import Center, Transferred
from pegasos.model import file
from pegasos.model.cells_record import CellsRecord
from pegasos.model.decision import Decision
from pegasos.model.kernel_record import KernelRecord
from pegasos.model.linear import LinearModel

_LINEAR: dict[str, Any] = {
    cls.__name__: cls for cls in (LinearSVC, LogisticRegression, PegasosClassifier)
}
_CLASSES = _LINEAR | map_files.CLASSES | kernel_files.CLASSES | cell_files.CLASSES


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file holds data only (no code) and is put in place whole or not at all. Kept are the
    weights (or kernel, support vectors and their coefficients), classes, feature names, parameters,
    the centre and the certificate, the fitted map or the cells, the threshold and what makes
    probabilities of scores, and the state of `partial_fit`,
    which goes on from it bit for bit; dual variables of linear models and history are not.

    Parameters
    ----------
    model : fitted classifier of pegasos
    path : path
    """
    file.save(path, to_model(model))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model file; nothing in it is executed, and damage is found.

    Parameters
    ----------
    path : path

    Returns
    -------
    A fitted estimator of the kind that was saved.

    Raises
    ------
    ValueError
        One line that names the file and the part of it that is wrong.
    """
    return opened(path)[1]


def opened(path: str | os.PathLike[str]) -> tuple[file.Model, Any]:
    """What a model file holds, and the estimator of it."""
    model = file.load(path)
    try:
        return model, from_model(model)
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def to_model(estimator: Any, reading: dict[str, Any] | None = None) -> file.Model:
    """The model of a fitted estimator; `reading` says how its data file was read."""
    from sklearn.utils.validation import check_is_fitted

    kind = type(estimator).__name__
    if type(estimator) is not _CLASSES.get(kind):  # scikit-learn has classes of the same names
        found, known = f"{type(estimator).__module__}.{kind}", " or ".join(_CLASSES)
        raise TypeError(f"{found} cannot be saved; expected {known} of pegasos, else use pickle")
    check_is_fitted(estimator)
    parameters = estimator.get_params(deep=False)
    parameters.pop("center", None)
    center = getattr(estimator, "center_", None)
    names = getattr(estimator, "feature_names_in_", None)
    classes = np.asarray(estimator.classes_)
    common: dict[str, Any] = {
        "kind": kind,
        "classes": classes.astype(str) if classes.dtype.kind == "O" else classes,
        "names": None if names is None else [str(name) for name in names],
        "reading": reading or {},
        "decision": Decision(float(estimator.threshold_), getattr(estimator, "calibration_", None)),
    }
    if kind in kernel_files.CLASSES:
        return kernel_files.to_record(estimator, parameters, common)
    if kind in cell_files.CLASSES:
        return cell_files.to_cells(estimator, parameters, common)
    stream = getattr(estimator, "_stream", None)
    return LinearModel(
        coef=np.asarray(estimator.coef_, dtype=np.float64),
        intercept=np.asarray(estimator.intercept_, dtype=np.float64),
        parameters={name: plain(value) for name, value in parameters.items()},
        fit=facts(estimator),
        center=None if center is None else (center.coef_, center.intercept_),
        stream=None if stream is None else streams.to_arrays(stream),
        map=map_files.to_map(estimator) if kind in map_files.CLASSES else None,
        pairs=estimator._pairs,
        **common,
    )


def from_model(model: file.Model) -> Any:
    """The estimator that a model came from, as fitted."""
    cls = _CLASSES[model.kind]
    known = cls._get_param_names()
    estimator: Any = cls(**{k: rebuilt(v) for k, v in model.parameters.items() if k in known})
    estimator.classes_, estimator.n_features_in_ = model.classes, model.n_features
    if model.names is not None:
        estimator.feature_names_in_ = np.array(model.names, dtype=object)
    if isinstance(model, KernelRecord):
        kernel_files.restore(estimator, model)
    elif isinstance(model, CellsRecord):
        cell_files.restore(estimator, model)
    else:
        _restore(estimator, model)
    if model.decision.threshold:
        estimator.threshold_ = model.decision.threshold
    if model.decision.calibration is not None:
        estimator.calibration_ = model.decision.calibration
    return estimator


def _restore(estimator: Any, model: LinearModel) -> None:
    if model.map is not None:
        map_files.restore(estimator, model.map, model.coef.shape[1])
    estimator.center_ = None
    if model.center is not None:
        about = model.classes, model.names, getattr(estimator, "map_", None)
        estimator.center = Center(*model.center, *about, pairs=model.pairs)
        estimator.center_ = Transferred(*model.center, model.coef.shape[1], 0, 0, [])
    estimator.coef_, estimator.intercept_ = model.coef, model.intercept
    estimator._pairs = model.pairs
    estimator.__dict__.update(attributes(model.fit, len(model.coef)))
    if model.stream is not None:
        if not isinstance(estimator, streams.OnStream):
            raise ValueError(f"stream: a {model.kind} does not learn from streams")
        estimator._carry(streams.from_arrays(model.stream))
