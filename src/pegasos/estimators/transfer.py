"""The centre w0 of the objective from what users hold: a related model, its file, or coefficients.

A model says for which class each of its rows is, and perhaps of which feature each column; whoever
wants a centre says the same of its problems and columns. Classes are matched by label, features by
name where both sides have names; else they are taken as they stand, and their numbers must agree.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pegasos.data.errors import DataError

_WANTED = (
    "a fitted linear model, the path of a model file, coefficients, or a tuple (coef, intercept)"
)


class Center(NamedTuple):
    """A source: coefficients and intercepts, by class if it has `classes_` (of two classes one row
    in all, for the second), else by problem.

    `pairs`: a row for each pair of classes. `map_` is what rows go through first; `reading` says
    how its data file was read, if it comes from a model file; `where` names it in messages. The
    last `unknown` columns are none of its own.
    """

    coef_: Any
    intercept_: Any
    classes_: Any = None
    feature_names_in_: Any = None
    map_: Any = None
    reading: Mapping[str, Any] = {}
    where: str = "center"
    pairs: bool = False
    unknown: int = 0

    def widened(self, n_columns: int) -> Center:
        """The same with at least so many columns, those that are new unknown to it."""
        more = max(0, n_columns - self.coef_.shape[1])
        coef = np.pad(self.coef_, ((0, 0), (0, more)))
        return self._replace(coef_=coef, unknown=self.unknown + more)


class Transferred(NamedTuple):
    """The centre as a fit used it: a row of `coef_` and a number of `intercept_` for each problem.

    Features that were `matched`, features `unknown` to the source (their centre is 0), features of
    the source that were `left_out`; `new_classes`, of which the source knows nothing (likewise 0).
    """

    coef_: np.ndarray
    intercept_: np.ndarray
    matched: int
    unknown: int
    left_out: int
    new_classes: list[Any]

    def widened(self, n_columns: int) -> Transferred:
        """The same with more columns, unknown to the source."""
        more = n_columns - self.coef_.shape[1]
        coef = np.pad(self.coef_, ((0, 0), (0, more)))
        return self._replace(coef_=coef, unknown=self.unknown + more)


class Wanted(NamedTuple):
    """Who wants centres: so many columns, the names of the features (or None), the classes, and of
    each problem the numbers of the class for it and of the one against it (None: the rest)."""

    n_columns: int
    names: Any
    classes: np.ndarray
    problems: list[tuple[int, int | None]]
    map: Any = None


def transferred(center: Any, wanted: Wanted) -> Transferred | None:
    """The centre of each problem, in the columns of the data; None if there is none."""
    if center is None:
        return None
    source = source_of(center)
    coef, intercept, new = _of_problems(source, wanted)
    own, theirs = _columns(source, wanted)
    matched = np.zeros((len(coef), wanted.n_columns))
    matched[:, own] = coef[:, theirs]
    known = coef.shape[1] - source.unknown
    n = int(np.count_nonzero(np.arange(coef.shape[1])[theirs] < known))
    counts = n, wanted.n_columns - n, known - n
    return Transferred(matched, intercept, *counts, new)


def centers_of(found: Transferred | None, shape: tuple[int, int], bias: float) -> np.ndarray:
    """(problems, columns) of centres in the form of weight vectors: intercept last, over bias."""
    centers = np.zeros((shape[0], shape[1] + 1))
    if found is not None:
        centers[:, :-1] = found.coef_
        if bias:
            centers[:, -1] = found.intercept_ / bias
    return centers


def source_of(center: Any) -> Center:
    """What the user gave, in one form."""
    if isinstance(center, Center):
        return center
    if isinstance(center, str | os.PathLike):
        return _from_file(center)
    if hasattr(center, "coef_"):
        return _of_model(center)
    if isinstance(center, tuple) and len(center) == 2:
        return _checked(Center(*center))
    if hasattr(center, "get_params") or isinstance(center, tuple):
        raise ValueError(
            f"center must be {_WANTED}; this {type(center).__name__} has no coef_: fit it, give "
            "the last step of a pipeline, and in a grid of a search FrozenEstimator(model)"
        )
    return _checked(Center(center, np.zeros(1)))


def _from_file(path: str | os.PathLike[str]) -> Center:
    from pegasos.estimators.files import opened  # which knows all estimators

    model, estimator = opened(path)
    name = os.fspath(path)
    if not hasattr(estimator, "coef_"):
        raise DataError(f"{name}: a {model.kind}; center needs a linear model")
    try:
        return _of_model(estimator)._replace(reading=model.reading, where=name)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None


def _of_model(model: Any) -> Center:
    names, classes = (getattr(model, name, None) for name in ("feature_names_in_", "classes_"))
    intercept, map_ = getattr(model, "intercept_", 0.0), getattr(model, "map_", None)
    pairs = getattr(model, "_pairs", hasattr(model, "support_vectors_"))
    source = _checked(Center(model.coef_, intercept, classes, names, map_))
    if classes is None or len(classes) == 2:
        return source
    return source._replace(pairs=bool(pairs))


def _checked(source: Center) -> Center:
    """Coefficients as a matrix, a number for each row as intercepts, all finite."""
    coef, where = source.coef_, source.where
    try:
        matrix = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
        matrix = np.atleast_2d(matrix)
        given = np.asarray(source.intercept_, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise ValueError(f"{where} must be {_WANTED}, got {type(coef).__name__}") from None
    if matrix.ndim != 2 or given.size not in (1, len(matrix)):
        shapes = f"coefficients of shape {matrix.shape} and {given.size} intercepts"
        raise ValueError(f"{where} must be {_WANTED}, got {shapes}")
    if not (np.isfinite(matrix).all() and np.isfinite(given).all()):
        raise ValueError(f"{where} holds values that are not finite")
    return source._replace(coef_=matrix, intercept_=np.broadcast_to(given, len(matrix)))


def _of_problems(source: Center, wanted: Wanted) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Coefficients and intercept of each problem, and the classes that the source does not know.

    Two classes are decided by half the difference of what speaks for the one and for the other:
    of a source with the same two classes these are its coefficients themselves.
    """
    coef, intercept, n = source.coef_, source.intercept_, len(wanted.problems)
    if source.pairs:
        _check_pairs(source, wanted)
    if source.classes_ is None or source.pairs:
        if len(coef) != n:
            raise ValueError(
                f"{source.where} must have {n} x {wanted.n_columns} coefficients (problems x "
                f"features), got {len(coef)} x {coef.shape[1]}"
            )
        return coef, intercept, []
    if len(coef) == 1:
        coef, intercept = np.concatenate([-coef, coef]), np.concatenate([-intercept, intercept])
    rows = {label: k for k, label in enumerate(np.asarray(source.classes_).tolist())}
    known = [rows.get(label) for label in wanted.classes.tolist()]
    W, b, served = np.zeros((n, coef.shape[1])), np.zeros(n), 0
    for p, (k, other) in enumerate(wanted.problems):
        one, two = known[k], known[k if other is None else other]
        if one is None or two is None:
            continue
        W[p], b[p], served = coef[one], intercept[one], served + 1
        if other is not None:
            W[p], b[p] = (W[p] - coef[two]) / 2.0, (b[p] - intercept[two]) / 2.0
    if not served:
        raise ValueError(
            f"{source.where}: its classes are {list(rows)[:8]}, not the data's "
            f"{wanted.classes.tolist()[:8]}; to transfer whatever they are called, give "
            "center=(coef, intercept)"
        )
    new = [label for label, row in zip(wanted.classes.tolist(), known, strict=True) if row is None]
    return W, b, new


def _check_pairs(source: Center, wanted: Wanted) -> None:
    """Coefficients of pairs of classes serve the same pairs only."""
    same = np.asarray(source.classes_).tolist() == wanted.classes.tolist()
    if not same or wanted.problems[0][1] is None:
        raise ValueError(
            f"{source.where}: its coefficients are of pairs of its classes, which serve "
            "multi_class='ovo' on the same classes; else it must have a row for each class"
        )


def _columns(source: Center, wanted: Wanted) -> tuple[Any, Any]:
    """Columns of the data, and columns of the source for the same features."""
    d, names = source.coef_.shape[1], source.feature_names_in_
    if source.map_ is not None or wanted.map is not None:
        _check_map(source, wanted)
    elif names is not None and wanted.names is not None:
        return _by_name(source, wanted)
    if d != wanted.n_columns:
        raise ValueError(
            f"{source.where} must have {len(wanted.problems)} x {wanted.n_columns} coefficients "
            f"(problems x features), got {len(source.coef_)} x {d}; with names on both sides "
            "features are matched by name"
        )
    return slice(None), slice(None)


def _by_name(source: Center, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
    places = {name: j for j, name in enumerate(source.feature_names_in_)}
    at = np.array([places.get(name, -1) for name in wanted.names], dtype=np.int64)
    own = np.flatnonzero(at >= 0)
    if own.size == 0:
        first, theirs = wanted.names[0], source.feature_names_in_[0]
        raise ValueError(
            f"{source.where}: none of its features is in the data, whose first is {first!r}; its "
            f"own first is {theirs!r}"
        )
    return own, at[own]


def _check_map(source: Center, wanted: Wanted) -> None:
    """Coefficients of mapped rows mean the same behind the same map only."""
    if source.map_ is None:
        return
    names = source.feature_names_in_, wanted.names
    named = all(given is not None for given in names) and list(names[0]) != list(names[1])
    if wanted.map is None or named or _facts(source.map_) != _facts(wanted.map):
        raise ValueError(
            f"{source.where}: its coefficients are of rows that went through another map; it must "
            "have the same features and parameters, gamma as a number"
        )


def _facts(map_: Any) -> dict[str, Any]:
    settled = {name: getattr(map_, name, None) for name in ("gamma_", "n_features_in_")}
    return {**map_.get_params(), **settled, "kind": type(map_), "gamma": None, "n_threads": None}
