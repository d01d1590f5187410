"""save_model and load_model: fitted estimators to model files and back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pegasos.data.errors import DataError
from pegasos.estimators import streams
from pegasos.estimators.base import LinearClassifier
from pegasos.estimators.linear import LinearSVC, LogisticRegression
from pegasos.estimators.online import PegasosClassifier
from pegasos.estimators.transfer import Center
from pegasos.model import file
from pegasos.model.linear import LinearModel
from pegasos.objective.certificate import Certificate
from pegasos.objective.losses import Logistic, Perceptron, Pinball, SquaredHinge
from pegasos.solvers.auto import Choice

_CLASSES: dict[str, Any] = {
    cls.__name__: cls for cls in (LinearSVC, LogisticRegression, PegasosClassifier)
}
_OUR_LOSSES = (Pinball, SquaredHinge, Logistic, Perceptron)
_LOSSES: dict[str, type] = {cls.__name__: cls for cls in _OUR_LOSSES}


def save_model(model: LinearClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    The file holds data only (no code) and is put in place whole or not at all. Kept are the
    weights, classes, feature names, parameters, the centre and the certificate, and the state of
    `partial_fit`, which goes on from it bit for bit; dual variables and history are not.

    Parameters
    ----------
    model : fitted LinearSVC, LogisticRegression or PegasosClassifier
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
    A fitted LinearSVC, LogisticRegression or PegasosClassifier.

    Raises
    ------
    ValueError
        One line that names the file and the part of it that is wrong.
    """
    model = file.load(path)
    try:
        return from_model(model)
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def to_model(estimator: LinearClassifier, reading: dict[str, Any] | None = None) -> LinearModel:
    """The model of a fitted estimator; `reading` says how its data file was read."""
    from sklearn.utils.validation import check_is_fitted

    kind = type(estimator).__name__
    if type(estimator) is not _CLASSES.get(kind):  # scikit-learn has classes of the same names
        found, known = f"{type(estimator).__module__}.{kind}", " or ".join(_CLASSES)
        raise TypeError(f"{found} cannot be saved; expected {known} of pegasos, else use pickle")
    check_is_fitted(estimator)
    parameters = estimator.get_params(deep=False)
    center = parameters.pop("center")
    names = getattr(estimator, "feature_names_in_", None)
    classes = np.asarray(estimator.classes_)
    stream = getattr(estimator, "_stream", None)
    return LinearModel(
        kind=kind,
        coef=np.asarray(estimator.coef_, dtype=np.float64),
        intercept=np.asarray(estimator.intercept_, dtype=np.float64),
        classes=classes.astype(str) if classes.dtype.kind == "O" else classes,
        names=None if names is None else [str(name) for name in names],
        parameters={name: _plain(value) for name, value in parameters.items()},
        fit=_facts(estimator),
        reading=reading or {},
        center=None if center is None else _center(center, estimator),
        stream=None if stream is None else streams.to_arrays(stream),
    )


def from_model(model: LinearModel) -> Any:
    """The estimator that a model came from, as fitted."""
    cls = _CLASSES[model.kind]
    known = cls._get_param_names()
    parameters = {k: _rebuilt(v) for k, v in model.parameters.items() if k in known}
    estimator: Any = cls(**parameters)
    if model.center is not None:
        estimator.center = Center(*model.center)
    estimator.coef_, estimator.intercept_ = model.coef, model.intercept
    estimator.classes_, estimator.n_features_in_ = model.classes, model.n_features
    if model.names is not None:
        estimator.feature_names_in_ = np.array(model.names, dtype=object)
    estimator.__dict__.update(_attributes(model.fit, len(model.coef)))
    if model.stream is not None:
        if not isinstance(estimator, PegasosClassifier):
            raise ValueError(f"stream: a {model.kind} does not learn from streams")
        estimator._carry(streams.from_arrays(model.stream))
    return estimator


def _facts(estimator: Any) -> dict[str, Any]:
    """Facts about the fit that are the same whenever it is repeated: no times."""
    if not hasattr(estimator, "certificate_"):
        return {}

    def listed(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    certificates, solvers = listed(estimator.certificate_), listed(estimator.solver_)
    return {
        "certificate": [[c.primal.hex(), c.dual.hex()] for c in map(_floats, certificates)],
        "stop_reason": listed(estimator.stop_reason_),
        "solver": [list(solver) for solver in solvers],
        "n_iter": int(estimator.n_iter_),
    }


def _floats(certificate: Certificate) -> Certificate:
    return Certificate(float(certificate.primal), float(certificate.dual))


def _attributes(fit: dict[str, Any], problems: int) -> dict[str, Any]:
    """Fitted attributes from the facts of a file (all or none); a ValueError if malformed."""
    if not fit:
        return {}
    try:
        pairs = [(float.fromhex(p), float.fromhex(d)) for p, d in fit["certificate"]]
        lists: dict[str, list[Any]] = {
            "certificate_": [Certificate(p, d) for p, d in pairs],
            "stop_reason_": [str(reason) for reason in fit["stop_reason"]],
            "solver_": [Choice(str(name), str(why)) for name, why in fit["solver"]],
        }
        n_iter = int(fit["n_iter"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"fit: {str(error)[:100]}") from None
    if any(len(values) != problems for values in lists.values()):
        raise ValueError(f"fit: expected facts about {problems} problems")
    one = {name: values[0] if problems == 1 else values for name, values in lists.items()}
    return {**one, "n_iter_": n_iter}


def _center(center: Any, estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    coef = np.atleast_2d(np.asarray(getattr(center, "coef_", center), dtype=np.float64))
    intercept = np.zeros(len(estimator.coef_))
    intercept += np.asarray(getattr(center, "intercept_", 0.0), dtype=np.float64)
    return coef, intercept


def _plain(value: Any) -> Any:
    """A parameter as JSON; a loss of the user's own only by its name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, dict):
        return {"items": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if isinstance(value, _OUR_LOSSES):
        return {"loss": type(value).__name__, "fields": list(value)}
    if isinstance(value, np.random.RandomState):
        return None
    return f"{type(value).__name__} (not kept in the file: pass it again)"


def _rebuilt(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        if "items" in value:
            return {k: v for k, v in value["items"]}
        return _LOSSES[value["loss"]](*(float(field) for field in value["fields"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"parameters: {str(error)[:100]}") from None
