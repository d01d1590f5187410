"""`--center MODEL`: a model to stay near to, whatever the format of the data."""

from __future__ import annotations

from typing import Any

from pegasos.cli.data import Reading
from pegasos.data.errors import DataError
from pegasos.data.formats import is_table


def width_with(estimator: Any, file: str, reading: Reading, width: int) -> int:
    """The columns of data and centre together; the centre of the estimator gets as many.

    An index of LIBSVM text is a name, and a file shows the columns up to its largest one only. So
    of two such files neither the longer nor the shorter is wrong.
    """
    center = estimator.center
    if center is None or is_table(file) or "zero_based" not in center.reading:
        return width
    if center.reading["zero_based"] != reading.zero_based:
        raise DataError(
            f"{center.where}: its indices start at another number: --zero-based differs"
        )
    estimator.center = center.widened(width)
    return int(estimator.center.coef_.shape[1])


def facts_of(estimator: Any) -> dict[str, Any] | None:
    """What became of the centre, for a report; None if there was none."""
    found = getattr(estimator, "center_", None)
    names = "matched", "unknown", "left_out", "new_classes"
    return None if found is None else {name: getattr(found, name) for name in names}


def in_words(facts: dict[str, Any]) -> str:
    """The same as a line of text."""
    words = f"centre: {facts['matched']:,} features matched"
    if facts["unknown"]:
        words += f", {facts['unknown']:,} unknown to it"
    if facts["left_out"]:
        words += f", {facts['left_out']:,} of its own left out"
    if facts["new_classes"]:
        words += f"; classes new to it: {', '.join(map(str, facts['new_classes'][:6]))}"
    return words
