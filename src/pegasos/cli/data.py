"""Data files for the commands: whatever the format, X, y and the names of the features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pegasos.core.memory import free_memory
from pegasos.data.errors import DataError
from pegasos.data.formats import is_table

MAX_CLASSES = 1000


class Reading(NamedTuple):
    """How a data file is read."""

    label: str | None = None
    header: bool = True
    zero_based: bool = False
    float64: bool = False
    sum_duplicates: bool = False
    max_features: int | None = None
    cache: bool = False
    threads: int | None = None


class Data(NamedTuple):
    """Rows, labels (None if there are none) and the names of the features, if they have any."""

    X: Any
    y: Any
    names: list[str] | None


def read(path: str, reading: Reading) -> Data:
    """A whole data file."""
    import numpy as np

    from pegasos.data import container, store
    from pegasos.data.files import dialect_of, matrix, read_svmlight
    from pegasos.data.tables import whole

    dtype = np.dtype(np.float64 if reading.float64 else np.float32)
    if is_table(path):
        from pegasos.data.tables import read_table

        if reading.label is None:
            raise DataError(f"{path}: name the column of the labels with --label")
        table = read_table(path, label=reading.label, dtype=dtype, header=reading.header)
        return Data(table.X, table.y, table.names if reading.header else None)
    if container.kind_of(path) is not None:
        stored, _ = store.load(path)
        return Data(matrix(stored), whole(stored.labels), None)
    duplicates = "sum" if reading.sum_duplicates else "error"
    dialect = dialect_of(dtype, reading.zero_based, reading.max_features, duplicates)
    data = read_svmlight(path, dialect, dtype, reading.cache, reading.threads)
    return Data(matrix(data), whole(data.labels), None)


def kept_of(reading: Reading, file: str) -> dict[str, Any]:
    """What prediction must know of how the data were read."""
    if is_table(file):
        return {"label": reading.label, "header": reading.header}
    return {"zero_based": reading.zero_based}


def check_classes(name: str, y: Any) -> None:
    """Refuse what is no classification: one class, or as many as a regression has."""
    import numpy as np

    classes, first = np.unique(y, return_index=True)
    if len(classes) == 1:
        raise DataError(f"{name}: only one class, {classes[0]}; two or more are needed")
    if len(classes) > MAX_CLASSES or classes.dtype.kind == "f":
        seen = ", ".join(str(y[i]) for i in np.sort(first)[:5])
        raise DataError(
            f"{name}: {len(classes)} distinct labels ({seen}, …): is it a regression? "
            f"Classes are whole numbers (or text, in a table), at most {MAX_CLASSES}"
        )


def check_width(name: str, width: int, n_problems: int, say: Any) -> None:
    """Refuse a file whose weights would not fit into memory, warn if they nearly fill it."""
    need = 8 * width * (n_problems + 6)
    free = free_memory()
    if need > free:
        raise DataError(
            f"{name}: its largest index is {width}, weights would take {need / 1e9:.0f} GB of "
            f"{free / 1e9:.0f} GB free; --max-features N names the first line beyond N"
        )
    if need > 1e9:
        say(f"{name}: its largest index is {width}: weights take {need / 1e9:.0f} GB")


def refuse_same(output: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """An output must not be one of the inputs."""
    for path in inputs:
        same = os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path)
        if same:
            raise DataError(f"{os.fspath(output)}: is also the input; name another output")


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[str | Path | None]) -> None:
    """Find out before the work whether its results can be written, each to a file of its own."""
    from pegasos.data.atomic import check_writable, destination

    places: list[Path] = []
    for output in (path for path in outputs if path is not None):
        refuse_same(output, *(path for path in inputs if path is not None))
        check_writable(output)
        if destination(output) in places:
            raise DataError(f"{output}: named for two outputs, which need a file each")
        places.append(destination(output))
