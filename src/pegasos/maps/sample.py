"""A sample of a stream, for a map to be fitted to before the rows are met again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


def is_stream(X: Any) -> bool:
    """Whether X is an iterable of blocks of rows, or of pairs (rows, labels), not rows itself."""
    if hasattr(X, "shape") or hasattr(X, "__array__") or not isinstance(X, Iterable):
        return False
    if not isinstance(X, list | tuple):
        return not isinstance(X, str | bytes)
    return len(X) > 0 and getattr(_rows_of(X[0]), "ndim", 0) == 2


def sample_rows(blocks: Iterable[Any], size: int, rng: np.random.Generator) -> Any:
    """So many rows drawn at random from a stream, each subset as likely as any other (a reservoir).

    All of them, in their order, if there are no more. A block is met once and not kept. CSR blocks
    may differ in width, as those of LIBSVM text do; the sample is as wide as the widest.
    """
    drawn: list[Any] = []
    where = np.zeros(0, dtype=np.int64)  # of each place the row of `drawn` that has it
    seen = held = width = 0
    for block in blocks:
        X = _checked(_rows_of(block), width, drawn)
        width = max(width, X.shape[1])
        places = np.arange(seen, seen + X.shape[0])
        late = places >= size
        places[late] = rng.integers(0, places[late] + 1)
        seen += X.shape[0]
        chosen = np.flatnonzero(places < size)
        if chosen.size:
            where = np.append(where, np.zeros(min(seen, size) - where.size, dtype=np.int64))
            np.maximum.at(where, places[chosen], held + np.arange(chosen.size))  # the last stays
            drawn.append(X[chosen])
            held += chosen.size
        if held > 2 * size:
            drawn, where, held = [_stacked(drawn)[where]], np.arange(where.size), where.size
        del block, X  # before the next one is made
    if not drawn:
        raise ValueError("the stream has no rows to draw from")
    sample = _stacked(drawn)[where]
    if sample.shape[1] < width:
        sample.resize((sample.shape[0], width))
    return sample


def named(blocks: Iterable[Any], names: list[Any]) -> Iterator[Any]:
    """The same blocks; the columns of tables among them, which must not change, go into `names`."""
    for block in blocks:
        columns = getattr(_rows_of(block), "columns", None)
        if columns is not None:
            if names and list(columns) != names:
                raise ValueError(
                    f"a block of the stream has the columns {list(columns)}, expected {names}: "
                    "give them the same order"
                )
            names[:] = list(columns)
        yield block
        del block  # before the next one is made


def _rows_of(block: Any) -> Any:
    return block[0] if isinstance(block, tuple) else block


def _checked(X: Any, width: int, drawn: list[Any]) -> Any:
    """A block as an array or a CSR matrix; of an array the width is that of all before."""
    if drawn and sp.issparse(X) != sp.issparse(drawn[0]):
        raise ValueError("the stream has both arrays and CSR matrices: make its blocks one of them")
    if sp.issparse(X):
        return X.tocsr()
    X = np.asarray(X)
    if X.ndim != 2 or width not in (0, X.shape[1]):
        columns = f" of {width} columns" if width else ""
        raise ValueError(f"a block of the stream has shape {X.shape}, expected rows{columns}")
    return X


def _stacked(parts: list[Any]) -> Any:
    if not sp.issparse(parts[0]):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize((part.shape[0], width))
    return sp.vstack(parts, format="csr")
