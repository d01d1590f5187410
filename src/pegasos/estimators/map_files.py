"""Linear models behind a map (FixedSizeSVC, PolynomialSVC): their maps to model files, and back.

Of the matrix R of a Nyström map the file holds the trapezoid that is not zero, row by row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pegasos.core.rows import n_rows
from pegasos.estimators import parameters as par
from pegasos.estimators.fixed_size import FixedSizeSVC
from pegasos.estimators.model_facts import facts_of_a_file, plain, rebuilt
from pegasos.estimators.polynomial import PolynomialSVC
from pegasos.maps.fourier import FourierMap
from pegasos.maps.image import Image, KernelFeatures, Waves
from pegasos.maps.nystrom import NystroemMap
from pegasos.maps.polynomial import PolynomialMap
from pegasos.model.linear import MapRecord
from pegasos.model.vectors import check_points, rows_of, to_arrays
from pegasos.objective.kernel_json import checked, from_json, to_json
from pegasos.objective.kernel_points import Points, as_given, is_given, points
from pegasos.objective.kernels import Gaussian, Laplacian, Linear

CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (FixedSizeSVC, PolynomialSVC)}
_NUMBERS = ("sqnorms", "center", "trapezoid", "eigenvalues")


def to_map(estimator: Any) -> MapRecord:
    """The map of a fitted estimator; a TypeError if its kernel is a function."""
    of_maps: dict[type, Any] = {NystroemMap: _of_nystroem, FourierMap: _of_fourier}
    own, arrays = of_maps.get(type(estimator.map_), _of_polynomial)(estimator)
    parameters = estimator.map_.get_params(deep=False)
    known = {name: plain(value) for name, value in parameters.items() if name != "kernel"}
    return MapRecord(int(estimator.n_features_in_), {"parameters": known, **own}, arrays)


def restore(estimator: Any, record: MapRecord, width: int) -> None:
    """Give an estimator the map behind so many weights, if prediction with it can never fail."""
    with facts_of_a_file("parameters"):
        par.threads_of(estimator.n_threads)  # which predictions need
    make: Any = _polynomial
    if isinstance(estimator, FixedSizeSVC):
        make = _fourier if "frequencies" in record.arrays else _nystroem
    with facts_of_a_file("map"):
        make(estimator, record, width)


def _given(cls: Any, record: MapRecord, **own: Any) -> Any:
    """The map with the parameters of a file and its own, not yet fitted."""
    wanted = [name for name in cls._get_param_names() if name not in own]
    made = cls(**{name: rebuilt(record.facts["parameters"][name]) for name in wanted}, **own)
    par.threads_of(made.n_threads)
    return made


def _of_nystroem(estimator: FixedSizeSVC) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    given = estimator.map_
    (kernel, (rows, sqnorms, center)), R = given._image
    facts = {
        "kernel": to_json(kernel),
        "entropy": float(given.entropy_).hex(),
        "in_memory": bool(estimator.in_memory_),
    }
    arrays = {
        "sqnorms": sqnorms,
        "center": center,
        "trapezoid": R[_trapezoid(*R.shape)],
        "eigenvalues": given.eigenvalues_,
        "indices": given.component_indices_.astype(np.int64),
    }
    return facts, arrays | to_arrays(rows)


def _trapezoid(m: int, r: int) -> np.ndarray:
    """Where R is not zero: i <= j + m - r."""
    return np.tri(r, m, m - r, dtype=bool).T


def _nystroem(estimator: FixedSizeSVC, record: MapRecord, r: int) -> None:
    facts, arrays = record.facts, record.arrays
    missing = [name for name in (*_NUMBERS, "indices") if name not in arrays]
    if missing:
        raise ValueError(f"array map_{missing[0]} is missing")
    for name in _NUMBERS:
        array = arrays[name]
        if array.dtype != np.float64 or array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError(f"{name}: not a list of finite numbers of float64")
    rows = rows_of(arrays, record.n_features)
    if rows is None:
        raise ValueError("vectors: missing")
    kernel, m = checked(from_json(facts["kernel"])), n_rows(rows)
    prototypes = Points(rows, arrays["sqnorms"], arrays["center"])
    check_points(prototypes, m, record.n_features)
    if is_given(kernel):
        raise ValueError("kernel: a precomputed one has no prototypes")
    if arrays["sqnorms"].size != m or arrays["indices"].dtype != np.int64:
        raise ValueError(f"sqnorms, indices: not those of {m} prototypes")
    made = _given(NystroemMap, record, kernel=kernel)
    made._image = Image(KernelFeatures(kernel, prototypes), _whole(arrays["trapezoid"], m, r))
    made.kernel_, made.n_features_in_ = kernel, record.n_features
    made.eigenvalues_, made.component_indices_ = arrays["eigenvalues"], arrays["indices"]
    made.n_components_, made.dropped_ = r, m - r
    made.entropy_ = float.fromhex(facts["entropy"])
    _settle(estimator, made, facts)


def _settle(estimator: FixedSizeSVC, made: Any, facts: dict[str, Any]) -> None:
    estimator.map_, estimator.in_memory_ = made, facts["in_memory"] is True


def _of_fourier(estimator: FixedSizeSVC) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    features = estimator.map_._image.features
    facts = {"kernel": to_json(estimator.map_.kernel_), "in_memory": bool(estimator.in_memory_)}
    return facts, {"frequencies": as_given(features.frequencies)}


def _fourier(estimator: FixedSizeSVC, record: MapRecord, r: int) -> None:
    kernel, F = checked(from_json(record.facts["kernel"])), record.arrays["frequencies"]
    if not isinstance(kernel, Gaussian | Laplacian):
        raise ValueError("kernel: waves are of Gaussian and Laplacian ones")
    if F.dtype not in (np.float32, np.float64) or F.shape != (r // 2, record.n_features) or r % 2:
        raise ValueError(f"frequencies: {F.dtype} of shape {F.shape} do not make {r} columns")
    if not np.isfinite(F).all():
        raise ValueError("frequencies: not finite")
    made = _given(FourierMap, record, kernel=kernel)
    made._image = Image(Waves(points(Linear(), F), len(F) ** -0.5), np.zeros((0, 0)))
    made.kernel_, made.n_components_, made.n_features_in_ = kernel, r, record.n_features
    _settle(estimator, made, record.facts)


def _whole(trapezoid: np.ndarray, m: int, r: int) -> np.ndarray:
    """The matrix R, of which no more than half is not in the file."""
    if r > m or trapezoid.size != r * (m - r) + r * (r + 1) // 2:
        raise ValueError(f"trapezoid: {trapezoid.size} numbers do not map {m} values to {r}")
    R = np.zeros((m, r))
    R[_trapezoid(m, r)] = trapezoid
    return R


def _of_polynomial(estimator: PolynomialSVC) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return {"gamma": float(estimator.map_.gamma_).hex()}, {}


def _products(record: MapRecord) -> PolynomialMap:
    gamma = float.fromhex(record.facts["gamma"])
    if not math.isfinite(gamma):
        raise ValueError(f"gamma: must be finite, got {gamma}")
    return _given(PolynomialMap, record).settle_for(record.n_features, gamma)


def column_names(record: MapRecord, columns: set[int], features: list[str]) -> dict[int, str]:
    """Names of some columns of a map, from those of features, if it is one that can name them."""
    if "gamma" not in record.facts:
        return {}
    with facts_of_a_file("map"):
        return _products(record).names_of(columns, features)


def _polynomial(estimator: PolynomialSVC, record: MapRecord, width: int) -> None:
    made = _products(record)
    if made._n_features_out != width:
        raise ValueError(f"width: {made._n_features_out} columns for {width} weights")
    if hasattr(estimator, "feature_names_in_"):
        made.feature_names_in_ = estimator.feature_names_in_
    estimator.map_ = made
