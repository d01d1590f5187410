"""What a learner from a stream needs to go on, as arrays of a model file.

For K problems and d features: v and past (K, d + 1), scalars (K, 8), steps (K,); counts, the weight
seen of each class and of all; tally: rows learnt, and how many of them were mistaken before they
were learnt.
"""

from __future__ import annotations

import numpy as np

SCALARS = 8
_INTEGERS = {"steps": np.int64, "tally": np.int64}
NAMES = ("v", "past", "scalars", "steps", "counts", "tally")


def check(stream: dict[str, np.ndarray], K: int, d: int, n_classes: int) -> None:
    """A ValueError that says why the state of a stream cannot be used; None if it can."""
    if set(stream) != set(NAMES):
        raise ValueError(f"stream: expected arrays {', '.join(NAMES)}")
    shapes: dict[str, tuple[int, ...]] = {"v": (K, d + 1), "past": (K, d + 1)}
    shapes |= {"scalars": (K, SCALARS), "steps": (K,), "counts": (n_classes + 1,), "tally": (2,)}
    for name, array in stream.items():
        if array.dtype != _INTEGERS.get(name, np.float64) or array.shape != shapes[name]:
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"stream: {name}: {found} does not fit {K} problems")
    if not all(np.isfinite(array).all() for array in stream.values()):
        raise ValueError("stream: holds numbers that are not finite")
    if any(stream[name].min() < 0 for name in ("steps", "counts", "tally")):
        raise ValueError("stream: a count below 0")
