"""What a learner from a stream needs to go on, as arrays of a model file.

For K problems and d features: v and past (K, d + 1), scalars (K, 8), lengths of the last steps
(K, any), rng (K, 2), steps (K,); counts, the weight seen of each class; tally: rows learnt, and how
many of them were mistaken before they were learnt.
"""

from __future__ import annotations

import numpy as np

SCALARS = 8
_INTEGERS = {"rng": np.uint64, "steps": np.int64, "tally": np.int64}
NAMES = ("v", "past", "scalars", "lengths", "rng", "steps", "counts", "tally")


def check(stream: dict[str, np.ndarray], K: int, d: int, n_classes: int) -> None:
    """A ValueError that says why the state of a stream cannot be used; None if it can."""
    if set(stream) != set(NAMES):
        raise ValueError(f"stream: expected arrays {', '.join(NAMES)}")
    kept = stream["lengths"].shape[-1] if stream["lengths"].ndim == 2 else 0
    shapes: dict[str, tuple[int, ...]] = {}
    shapes |= {"v": (K, d + 1), "past": (K, d + 1), "scalars": (K, SCALARS), "rng": (K, 2)}
    shapes |= {"lengths": (K, max(1, kept)), "steps": (K,), "counts": (n_classes,), "tally": (2,)}
    for name, array in stream.items():
        if array.dtype != _INTEGERS.get(name, np.float64) or array.shape != shapes[name]:
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"stream: {name}: {found} does not fit {K} problems")
    finite = all(np.isfinite(stream[name]).all() for name in ("v", "past", "scalars", "counts"))
    if not finite or np.isnan(stream["lengths"]).any():
        raise ValueError("stream: holds numbers that are not finite")
    if any(stream[name].min() < 0 for name in ("steps", "counts", "tally")):
        raise ValueError("stream: a count below 0")
