"""The columns of a table: which one is the label, which are features, and in what order."""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

import numpy as np

from pegasos.data.errors import DataError

MISSING = "the value is missing; fill or drop missing values first"


class Columns(NamedTuple):
    """Names of all columns in the order of the file; places of the label (or None) and of the
    features, the latter in the order in which they are wanted."""

    names: list[str]
    label: int | None
    features: list[int]


class Piece(NamedTuple):
    """Some rows of a table: features, and labels as an Arrow array (None if there are none)."""

    X: np.ndarray
    labels: Any


def choose(
    file: str, names: list[str], label: str | None, wanted: list[str] | None, header: bool
) -> Columns:
    """The columns by name; a label or a feature that is not there is a DataError."""
    _check_names(file, names)
    at = None if label is None else _place(file, names, label, header)
    rest = [j for j in range(len(names)) if j != at]
    if not rest:
        raise DataError(f"{file}: no columns besides the label {names[0]!r}")
    if wanted is None:
        return Columns(names, at, rest)
    places = {names[j]: j for j in rest}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise DataError(f"{file}: no column {listed(missing)}, which the model was trained with")
    extra = sorted(set(places) - set(wanted), key=names.index)
    if extra:
        raise DataError(f"{file}: the model was trained without column {listed(extra)}")
    return Columns(names, at, [places[name] for name in wanted])


def listed(names: list[str]) -> str:
    """Names as they can be shown in a message."""
    shown = ", ".join(repr(_short(name)) for name in names[:8])
    return f"{shown}, … ({len(names)} in all)" if len(names) > 8 else shown


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:40] + "…"


def _check_names(file: str, names: list[str]) -> None:
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name.strip():
            hint = " (an index? pandas leaves it out by index=False)" if number == 1 else ""
            raise DataError(f"{file}: column {number} has no name{hint}")
        if name in seen:
            twice = f"columns {seen[name]} and {number}"
            raise DataError(f"{file}: {twice} have the same name, {listed([name])}")
        seen[name] = number


def _place(file: str, names: list[str], label: str, header: bool) -> int:
    if not header and label.isascii() and label.isdigit():
        label = f"f{int(label)}"
    if label in names:
        return names.index(label)
    lower = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(label.lower(), lower, n=1)
    hint = f"did you mean {lower[near[0]]!r}?" if near else f"the columns are {listed(names)}"
    raise DataError(f"{file}: no column {label!r} for the labels; {hint}")
