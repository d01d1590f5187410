"""A sample of a stream, to fit a map to before the rows are met again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from pegasos.core.parameters import count


def sample_rows(blocks: Iterable[Any], size: int, random_state: Any = None) -> Any:
    """Rows drawn at random from a stream, each subset as likely as any other (a reservoir).

    Parameters
    ----------
    blocks : iterable of arrays or CSR matrices
        Rows of the same columns; each block is met once and not kept.
    size : int
        Rows to draw; all, if there are fewer.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    array or CSR matrix of shape (size, n_features)
    """
    size = count("size", size)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    kept: dict[int, Any] = {}
    seen = 0
    for block in blocks:
        X = block.tocsr() if sp.issparse(block) else np.asarray(block)
        places = np.arange(seen, seen + X.shape[0])
        late = places >= size
        places[late] = rng.integers(0, places[late] + 1)
        for i in np.flatnonzero(places < size):
            kept[int(places[i])] = X[i : i + 1].copy()
        seen += X.shape[0]
    if not kept:
        raise ValueError("the stream has no rows to draw from")
    rows = [kept[place] for place in range(len(kept))]
    return sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows)
