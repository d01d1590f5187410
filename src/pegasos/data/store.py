"""The binary form of a data file: parsed once, then mapped into memory at once.

A store is a `data.container` with the labels and the arrays of a CSR matrix. As the cache of a text
file it names its source (path, size, time of change) and how it was read; any difference makes
it void, and it is written anew.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from pegasos.core.jit import user_cache
from pegasos.data import container
from pegasos.data.atomic import replacing, writing
from pegasos.data.errors import DataError
from pegasos.data.svmlight import Csr, Piece

log = logging.getLogger("pegasos")

FORMAT, VERSION = "pegasos-data", 1
CACHE_BYTES = 20_000_000_000  # of all caches together


def save(path: str | os.PathLike[str], data: Csr, origin: dict[str, Any]) -> None:
    """Write a store ("-": to standard output); `origin` says what the data came from."""
    with writing(path) as file:
        _write(file, data, origin)


def _write(file: IO[bytes], data: Csr, origin: dict[str, Any]) -> None:
    description = {"format": FORMAT, "version": VERSION, "width": data.width, "origin": origin}
    arrays = {
        "labels": data.labels,
        "starts": data.starts,
        "columns": data.columns,
        "values": data.values,
    }
    container.write(file, description, arrays)


def load(path: str | os.PathLike[str]) -> tuple[Csr, dict[str, Any]]:
    """The data of a store, mapped, and its origin; every number is checked before it is used."""
    description, arrays = container.read(path, mapped=True)
    try:
        return _checked(description, arrays), description["origin"]
    except (DataError, KeyError, TypeError) as error:
        words = error if isinstance(error, DataError) else f"description: {error}"
        raise DataError(f"{os.fspath(path)}: {words}") from None


def pieces(path: str | os.PathLike[str]) -> Iterator[Piece]:
    """The rows of a store, a million entries at a time."""
    data, _ = load(path)
    row, n = 0, len(data.labels)
    while row < n:
        end = int(np.searchsorted(data.starts, data.starts[row] + (1 << 20), side="right")) - 1
        end = min(max(end, row + 1), n)
        first, last = int(data.starts[row]), int(data.starts[end])
        starts, values = data.starts[row : end + 1] - first, data.values[first:last]
        if not np.isfinite(values).all():
            raise DataError(f"{os.fspath(path)}: array values: holds numbers that are not finite")
        yield Piece(data.labels[row:end], starts, data.columns[first:last], values, 0, 0)
        row = end


def _checked(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Csr:
    if description.get("format") != FORMAT:
        raise DataError(f"not a data file but {str(description.get('format'))[:40]!r}")
    if description["version"] != VERSION:
        version = str(description["version"])[:20]
        raise DataError(f"version {version!r} of the format; readable: {VERSION}")
    labels, starts, columns, values = (
        arrays[name] for name in ("labels", "starts", "columns", "values")
    )
    width = description["width"]
    if any(a.ndim != 1 for a in arrays.values()) or type(width) is not int or width < 0:
        raise DataError("arrays of more than one dimension, or a width that is no number")
    kinds = (labels.dtype.kind, starts.dtype.kind, columns.dtype.kind, values.dtype.kind)
    if kinds != ("f", "i", "i", "f") or columns.dtype != starts.dtype:
        raise DataError(f"arrays of the wrong kind: {kinds}")
    rises = starts.size == labels.size + 1 and starts[0] == 0 and starts[-1] == columns.size
    if not rises or np.any(starts[1:] < starts[:-1]) or columns.size != values.size:
        raise DataError("array starts: does not rise from 0 to the number of entries")
    if columns.size and not 0 <= columns.min() <= columns.max() < width:
        raise DataError(f"array columns: beyond the width of {width}")
    return Csr(labels, starts, columns, values, width)


# The cache of a text file


def cache_path(source: str | os.PathLike[str], how: dict[str, Any]) -> Path | None:
    """Where the cache of a source is kept; None if there is no place for it."""
    try:
        folder = user_cache() / "pegasos" / "data"
    except RuntimeError:  # no home directory
        return None
    name = repr((os.path.realpath(source), sorted(how.items())))
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.pegasos"


def origin_of(source: str | os.PathLike[str], how: dict[str, Any]) -> dict[str, Any]:
    """What identifies the state of a source, and how it is read."""
    status = os.stat(source)
    return {
        "path": os.path.realpath(source),
        "size": status.st_size,
        "changed": status.st_mtime_ns,
        "inode": status.st_ino,
        **how,
    }


def from_cache(source: str | os.PathLike[str], how: dict[str, Any]) -> Csr | None:
    """The cached data of a source that has not changed since; None otherwise."""
    path = cache_path(source, how)
    if path is None:
        return None
    try:
        data, origin = load(path)
    except FileNotFoundError:
        return None
    except (DataError, OSError) as error:
        log.warning("cache not used: %s", error)
        return None
    return data if origin == origin_of(source, how) else None


def to_cache(source: str | os.PathLike[str], how: dict[str, Any], data: Csr, origin: Any) -> bool:
    """Keep the data of a source, if there is a place and the source is still as it was."""
    path = cache_path(source, how)
    if path is None:
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if origin_of(source, how) != origin:
            return False
        _make_room(path.parent, sum(part.nbytes for part in data[:4]))
        with replacing(path, private=True) as file:
            _write(file, data, origin)
    except OSError as error:
        log.warning("not cached: %s", error)
        return False
    return True


def _make_room(folder: Path, need: int) -> None:
    """Remove the caches that were written first until all fit into CACHE_BYTES."""
    kept = sorted(folder.glob("*.pegasos"), key=lambda path: path.stat().st_mtime)
    total = need + sum(path.stat().st_size for path in kept)
    for path in kept:
        if total <= CACHE_BYTES:
            break
        total -= path.stat().st_size
        path.unlink(missing_ok=True)
