"""The state of a kernel learner from a stream: to the arrays of `model.kernel_stream` and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import block_diag

from pegasos.estimators.kernel_learners import Counting, Learner, Merging
from pegasos.objective.kernel_points import Points, take
from pegasos.solvers.kernel_merge import Merged, nothing_merged
from pegasos.solvers.kernel_pegasos import Counts, Rule


def to_arrays(
    learner: Any, seen: np.ndarray, average: bool
) -> tuple[Points, np.ndarray, dict[str, np.ndarray]]:
    """Its support vectors, their coefficients in the answer (a row per problem), the arrays."""
    if isinstance(learner, Merging):
        held, coef, _ = learner.answer(False)
        sizes = np.array([one.tally[0] for one in learner.sets])
        made, late = (
            block_diag(*(getattr(one, name)[: one.tally[0], None] for one in learner.sets))
            for name in ("coef", "late")
        )
        offset = np.column_stack([one.offset for one in learner.sets])
    else:
        held, coef = learner.held, learner.coefficients(average)
        made, late, offset, _ = learner.counts
        sizes = np.zeros(0, np.int64)
    arrays = {"coef": made, "late": late, "offset": offset, "sizes": sizes, "seen": seen}
    arrays |= {"steps": np.array([learner.t]), "rule": np.array(learner.rule, np.float64)}
    return held, coef.T, arrays


def from_arrays(kernel: Any, held: Points, arrays: dict[str, np.ndarray]) -> tuple[Learner, Any]:
    """The learner, and the weights of classes that it has seen."""
    lam, constant, budget = arrays["rule"].tolist()
    rule, t = Rule(lam, constant, int(budget)), int(arrays["steps"][0])
    sizes, P = arrays["sizes"], arrays["coef"].shape[1]
    if not sizes.size:
        counting = Counting(kernel, held, P, rule, False)
        coef, late, offset = (arrays[name].copy() for name in ("coef", "late", "offset"))
        counting.held, counting.counts = held, Counts(coef, late, offset, t)
        return counting, arrays["seen"].copy()
    merging, end = Merging(kernel, held, P, rule), 0
    for p, size in enumerate(sizes.tolist()):
        merging.sets[p] = _merged(take(held, slice(end, end + size)), arrays, p, end, rule)
        merging.sets[p].tally[:] = size, t
        end += size
    return merging, arrays["seen"].copy()


def _merged(own: Points, arrays: dict[str, np.ndarray], p: int, start: int, rule: Rule) -> Merged:
    values = own.rows.values
    m, d = values.shape
    found = nothing_merged(rule.budget, d, values.dtype)
    found.T[:, :m] = values.T
    found.coef[:m] = arrays["coef"][start : start + m, p]
    found.late[:m] = arrays["late"][start : start + m, p]
    found.offset[:] = arrays["offset"][:, p]
    return found
