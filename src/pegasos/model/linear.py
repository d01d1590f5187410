"""A linear model: what prediction needs, and how it came about."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.matrix import all_products, products
from pegasos.model import stream as streams
from pegasos.model.decision import Decision
from pegasos.model.pairs import n_problems

MAPPED = ("FixedSizeSVC", "PolynomialSVC")  # linear in what a map makes of the rows
KINDS = ("LinearSVC", "LogisticRegression", "PegasosClassifier", *MAPPED)
_MOST_FEATURES = 2**31 - 1
CLASS_TYPES = {"i": "int", "u": "int", "f": "float", "b": "bool", "U": "str"}


class MapRecord(NamedTuple):
    """A map as a file keeps it: features that go in, JSON and arrays. Whoever makes the map of it
    checks it (`estimators.map_files`)."""

    n_features: int
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]


class LinearModel(NamedTuple):
    """Scores X coef' + intercept, one column per class (one in all for two classes), or one per
    pair of classes if `pairs`.

    `fit` holds facts about the fit (certificates, stop reasons, solvers, epochs), `parameters`
    those of the estimator, `reading` how its data file was read; `stream` is what a learner from
    a stream needs to go on (see `model.stream`); `map` what rows go through first; `decision` what
    scores become.
    """

    kind: str
    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    names: list[str] | None
    parameters: dict[str, Any]
    fit: dict[str, Any]
    reading: dict[str, Any]
    center: tuple[np.ndarray, np.ndarray] | None = None
    stream: dict[str, np.ndarray] | None = None
    map: MapRecord | None = None
    pairs: bool = False
    decision: Decision = Decision()

    @property
    def n_features(self) -> int:
        return self.coef.shape[1] if self.map is None else self.map.n_features


def weight_vectors(coef: np.ndarray, intercept: np.ndarray) -> list[np.ndarray]:
    """One vector per problem, the intercept last, as rows with a virtual column of ones want it."""
    return [np.append(w, b) for w, b in zip(coef, intercept, strict=True)]


def scores_of(weights: list[np.ndarray], rows: Any) -> np.ndarray:
    """Scores of rows with a virtual column of ones, a column per problem."""
    if len(weights) == 1:
        return products(rows, weights[0])[:, None]
    return all_products(rows, np.column_stack(weights))


def check(model: LinearModel) -> LinearModel:
    """The same model, if prediction with it can never fail; else a ValueError that says why."""
    if model.pairs and (len(model.classes) == 2 or model.stream is not None):
        raise ValueError("pairs: not of two classes, nor of what learns from a stream")
    K = n_problems(len(model.classes), model.pairs)
    if model.kind not in KINDS:
        raise ValueError(f"kind: {str(model.kind)[:40]!r} is not one of {', '.join(KINDS)}")
    if (model.map is not None) != (model.kind in MAPPED):
        raise ValueError(f"map: missing, or there though a {model.kind} has none")
    check_classes(model.classes)
    _check_weights(model.coef, model.intercept, K, "coef")
    if model.center is not None:
        _check_weights(*model.center, K, "center")
        if model.center[0].shape != model.coef.shape:
            raise ValueError("center: not of the shape of coef")
    if model.stream is not None:
        streams.check(model.stream, K, model.coef.shape[1], len(model.classes))
    check_names(model.names, model.n_features)
    return model


def check_classes(classes: np.ndarray) -> None:
    """Two or more, each once."""
    if len(classes) < 2:
        raise ValueError(f"classes: {len(classes)}, at least 2 are needed")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ValueError("classes: not finite")
    if len(np.unique(classes)) < len(classes):
        raise ValueError("classes: one occurs twice")


def n_features_of(description: dict[str, Any]) -> int:
    """The number of features that a file speaks of."""
    d = description.get("n_features")
    if type(d) is not int or not 1 <= d <= _MOST_FEATURES:
        raise ValueError(f"n_features: expected 1 to {_MOST_FEATURES}, got {str(d)[:40]!r}")
    return d


def check_names(names: list[str] | None, n_features: int) -> None:
    """Of the features: none, or one for each."""
    if names is not None and (len(names) != n_features or len(set(names)) < len(names)):
        raise ValueError(f"names: {len(names)} for {n_features} features, or one twice")


def _check_weights(coef: np.ndarray, intercept: np.ndarray, K: int, what: str) -> None:
    if coef.dtype != np.float64 or intercept.dtype != np.float64:
        raise ValueError(f"{what}: not float64")
    if coef.ndim != 2 or coef.shape[0] != K or coef.shape[1] < 1 or intercept.shape != (K,):
        shapes = f"{coef.shape} and {intercept.shape}"
        raise ValueError(f"{what}: shapes {shapes} do not fit {K} problems")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(f"{what}: holds numbers that are not finite")
