"""A sample of a stream, to fit a map to before the rows are met again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from pegasos.core.parameters import count, seed_of


def sample_rows(blocks: Iterable[Any], size: int, random_state: Any = None) -> Any:
    """Rows drawn at random from a stream, each subset as likely as any other (a reservoir).

    Parameters
    ----------
    blocks : iterable of arrays or CSR matrices, or of pairs (X, y) with such an X
        Rows of the same columns; each block is met once and not kept.
    size : int
        Rows to draw; all, if there are fewer.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    array or CSR matrix of shape (size, n_features)
    """
    size = count("size", size)
    rng = np.random.default_rng(seed_of(random_state))
    drawn: list[Any] = []
    where = np.zeros(0, dtype=np.int64)  # of each place the row of `drawn` that has it
    seen = held = 0
    for block in blocks:
        X = block[0] if isinstance(block, tuple) else block
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        places = np.arange(seen, seen + X.shape[0])
        late = places >= size
        places[late] = rng.integers(0, places[late] + 1)
        seen += X.shape[0]
        chosen = np.flatnonzero(places < size)
        if chosen.size == 0:
            continue
        where = np.append(where, np.zeros(min(seen, size) - where.size, dtype=np.int64))
        np.maximum.at(where, places[chosen], held + np.arange(chosen.size))  # the last one stays
        drawn.append(X[chosen])
        held += chosen.size
        if held > 2 * size:
            drawn, where, held = [_stacked(drawn)[where]], np.arange(where.size), where.size
    if not drawn:
        raise ValueError("the stream has no rows to draw from")
    return _stacked(drawn)[where]


def _stacked(parts: list[Any]) -> Any:
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
