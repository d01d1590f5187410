"""Model files: a `data.container` with the weights and a description in JSON.

Reading never runs code, and checks every number before it is used. The description has a format,
a version, a kind and `required`, the names of the fields that a reader must understand; it
ignores others that it does not know.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pegasos.data import container
from pegasos.data.atomic import writing
from pegasos.data.errors import DataError
from pegasos.model import cells_record, decision, kernel_record
from pegasos.model.cells_record import CELL_KINDS, CellsRecord
from pegasos.model.kernel_record import KERNEL_KINDS, KernelRecord
from pegasos.model.linear import (
    CLASS_TYPES,
    KINDS,
    MAPPED,
    LinearModel,
    MapRecord,
    check,
    n_features_of,
)

FORMAT, VERSION = "pegasos-model", 1
_REQUIRED = ["classes", "kind"]
_OF_SOME = (
    "cells",
    "decision",
    "kernel",
    "map",
    "n_features",
    "pairs",
)  # required wherever they are
_KNOWN = {*_REQUIRED, *_OF_SOME, "names", "parameters", "fit", "reading"}
_MAX_TEXT = 1 << 26  # characters of an array of class names: their number times the longest
_STREAM = "stream_"  # begins the names of the arrays of a stream's state
_MAP = "map_"  # and of a map
_PYTHON = {"int": int, "float": float, "str": str, "bool": bool}

Model = LinearModel | KernelRecord | CellsRecord


def save(path: str | os.PathLike[str], model: Model) -> None:
    """Write a model; an old file stays as it was unless all goes well."""
    code = CLASS_TYPES.get(model.classes.dtype.kind)
    if code is None:
        raise ValueError(f"classes of type {model.classes.dtype} cannot be saved")
    own, arrays = _parts(model)
    kept = decision.to_json(model.decision)
    if kept:
        decision.from_json(kept, len(model.classes))  # what is written can be read
        own["decision"] = kept
    for name, array in (model.stream or {}).items():
        arrays[_STREAM + name] = array
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "required": sorted([*_REQUIRED, *own]),
        "kind": model.kind,
        "classes": {"type": code, "values": model.classes.tolist()},
        "names": model.names,
        "parameters": model.parameters,
        "fit": model.fit,
        "reading": model.reading,
        **own,
    }
    _classes(description["classes"])  # what is written can be read
    with writing(path) as file:
        container.write(file, description, arrays)


def _parts(model: Model) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file says of this kind of model alone, and the arrays."""
    if isinstance(model, KernelRecord):
        return kernel_record.to_parts(kernel_record.check(model))
    if isinstance(model, CellsRecord):
        return cells_record.to_parts(cells_record.check(model))
    check(model)
    arrays = {"coef": model.coef, "intercept": model.intercept}
    if model.center is not None:
        arrays |= {"center_coef": model.center[0], "center_intercept": model.center[1]}
    own: dict[str, Any] = {"pairs": True} if model.pairs else {}
    if model.map is not None:
        own |= {"map": model.map.facts, "n_features": model.map.n_features}
        arrays |= {_MAP + name: array for name, array in model.map.arrays.items()}
    return own, arrays


def load_linear(path: str | os.PathLike[str], purpose: str) -> LinearModel:
    """Read the file of a linear model, which alone will do for the purpose."""
    model = load(path)
    if not isinstance(model, LinearModel) or model.map is not None:
        raise DataError(f"{os.fspath(path)}: a {model.kind}; {purpose} needs a linear model")
    return model


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file, or say in one line what is wrong with it."""
    try:
        description, arrays = container.read(path)
    except FileNotFoundError:
        raise DataError(f"{os.fspath(path)}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{os.fspath(path)}: is a directory, not a model file") from None
    try:
        return _model(description, arrays)
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def _model(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    found = description.get("format")
    if found != FORMAT:
        raise ValueError(f"not a model but a file of kind {str(found)[:40]!r}")
    if description.get("version") != VERSION:
        version = str(description.get("version"))[:20]
        raise ValueError(f"version {version!r} of the model format; readable: {VERSION}")
    required = _typed(description, "required", list)
    unknown = [str(name)[:40] for name in required if str(name) not in _KNOWN]
    if unknown:
        raise ValueError(f"needs a newer pegasos: unknown field {unknown[0]!r}")
    names = description.get("names")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise ValueError("names: expected a list of texts")
    classes = _classes(_typed(description, "classes", dict))
    common = {
        "kind": _typed(description, "kind", str),
        "classes": classes,
        "names": names,
        "decision": decision.from_json(description.get("decision", {}), len(classes)),
        **{name: _typed(description, name, dict) for name in ("parameters", "fit", "reading")},
    }
    if common["kind"] in KERNEL_KINDS:
        return kernel_record.from_parts(common, description, arrays, _stream(arrays))
    if common["kind"] in CELL_KINDS:
        return cells_record.from_parts(common, description, arrays)
    if common["kind"] not in KINDS:
        known = ", ".join(KINDS + KERNEL_KINDS + CELL_KINDS)
        raise ValueError(f"kind: {common['kind'][:40]!r} is not one of {known}")
    common["map"] = _map(description, arrays) if common["kind"] in MAPPED else None
    common["pairs"] = "pairs" in description and _typed(description, "pairs", bool)
    return _linear(common, arrays)


def _map(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> MapRecord:
    return MapRecord(
        n_features_of(description), _typed(description, "map", dict), _named(_MAP, arrays)
    )


def _linear(common: dict[str, Any], arrays: dict[str, np.ndarray]) -> LinearModel:
    if not {"coef", "intercept"} <= set(arrays):
        raise ValueError("arrays coef and intercept are missing")
    center = None
    if "center_coef" in arrays or "center_intercept" in arrays:
        if not {"center_coef", "center_intercept"} <= set(arrays):
            raise ValueError("half of the centre is missing")
        center = arrays["center_coef"], arrays["center_intercept"]
    weights: dict[str, Any] = {"coef": arrays["coef"], "intercept": arrays["intercept"]}
    return check(LinearModel(**weights, **common, center=center, stream=_stream(arrays)))


def _stream(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    return _named(_STREAM, arrays) or None


def _named(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with the prefix, without it."""
    found = {name: array for name, array in arrays.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): array for name, array in found.items()}


def _typed(description: dict[str, Any], key: str, kind: type) -> Any:
    value = description.get(key)
    if not isinstance(value, kind):
        raise ValueError(f"{key}: expected {kind.__name__}, got {str(value)[:40]!r}")
    return value


def _classes(entry: dict[str, Any]) -> np.ndarray:
    kind, values = entry.get("type"), entry.get("values")
    if not isinstance(kind, str) or kind not in _PYTHON or not isinstance(values, list):
        raise ValueError(f"classes: type {str(kind)[:20]!r}, expected one of {', '.join(_PYTHON)}")
    if not all(type(value) is _PYTHON[kind] for value in values):
        raise ValueError(f"classes: a value that is not of type {kind}")
    if kind == "str" and len(values) * max(map(len, values), default=0) > _MAX_TEXT:
        raise ValueError(f"classes: names too long for an array of {_MAX_TEXT} characters")
    try:
        return np.array(values, dtype=np.int64 if kind == "int" else _PYTHON[kind])
    except OverflowError:
        raise ValueError("classes: an integer beyond 64 bits") from None
