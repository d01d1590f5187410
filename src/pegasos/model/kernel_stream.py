"""What a kernel learner from a stream needs to go on, as arrays of a model file.

For m support vectors and P problems: coef and late (m, P), increments (see `kernel_pegasos.Counts`)
and offset (2, P), their sums; sizes (P,), how many of the vectors are of each problem, if the
learner merges, else empty; steps (1,); seen, the weight of each class and of all; rule: lam,
constant, budget.
"""

from __future__ import annotations

import numpy as np

_INTEGERS = {"sizes": np.int64, "steps": np.int64}
_MOST_BYTES = 1 << 32  # of the vectors that the budget makes room for, coef and late
_MOST_VECTORS = 1 << 31


def check(stream: dict[str, np.ndarray], vectors: tuple[int, int], P: int, n_classes: int) -> None:
    """A ValueError that says why the state of a stream cannot be used; None if it can.

    `vectors`: how many, and their features.
    """
    m, d = vectors
    shapes: dict[str, tuple[int, ...]] = {"coef": (m, P), "late": (m, P), "offset": (2, P)}
    shapes |= {"steps": (1,), "seen": (n_classes + 1,), "rule": (3,), "sizes": (P,)}
    if set(stream) != set(shapes):
        raise ValueError(f"stream: expected arrays {', '.join(shapes)}")
    if not stream["sizes"].size:
        shapes["sizes"] = (0,)
    for name, array in stream.items():
        if array.dtype != _INTEGERS.get(name, np.float64) or array.shape != shapes[name]:
            found = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"stream: {name}: {found} does not fit {m} vectors, {P} problems")
    if not all(np.isfinite(array).all() for array in stream.values()):
        raise ValueError("stream: holds numbers that are not finite")
    if any((stream[name] < 0).any() for name in ("steps", "seen", "sizes", "rule")):
        raise ValueError("stream: a count below 0")
    lam, constant, budget = stream["rule"].tolist()
    if not lam > 0.0 or constant not in (0.0, 1.0) or budget != round(budget):
        raise ValueError(f"stream: rule: {lam}, {constant}, {budget} are out of range")
    sizes = stream["sizes"]
    if sizes.size and (sizes.sum() != m or sizes.max() > budget):
        raise ValueError(f"stream: sizes: they do not add up to {m} vectors, or exceed the budget")
    room = 8.0 * (d + 2) * (budget + 1.0) * P if sizes.size else 0.0
    if room > _MOST_BYTES or budget >= _MOST_VECTORS:
        raise ValueError(f"stream: rule: a budget of {budget:.0f} is too large for a file")
