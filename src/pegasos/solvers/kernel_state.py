"""The state of kernel solvers: beta, the gradient f = K beta - p, and what they say of the gap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.jit import hot
from pegasos.objective.certificate import Evaluation
from pegasos.objective.kernel_certificate import extremes, feasible
from pegasos.objective.kernel_problem import KernelProblem
from pegasos.solvers.kernel_rows import KernelRows

_PATIENCE = 3  # rounds without a higher dual value
_SINGLE = 1e-6  # of the dual value: a rise that rounding to float32 may feign


class KernelState(NamedTuple):
    """`rows` of the kernel matrix, in float64 if `wide`; `bounds`: the least f that can grow and
    the greatest that can shrink; `dual` and `lowest`: the best value and violation, `waited`:
    rounds since one of them improved.

    `matrix` is of the working set, `tour` of coordinate descent, `rng` of both.
    """

    beta: np.ndarray
    f: np.ndarray
    rows: KernelRows
    wide: bool
    matrix: Any = None
    rng: Any = None
    tour: Any = None
    bounds: tuple[float, float] = (0.0, 0.0)
    violation: float = np.inf
    dual: float = -np.inf
    lowest: float = np.inf
    waited: int = 0
    iterations: int = 0
    estimate: float = np.inf
    objective: float = np.inf
    epoch: int = 0
    exhausted: bool = False


def begun(problem: KernelProblem, beta: Any, budget: int, wide: bool = True) -> KernelState:
    """The state at beta (None: 0), with `budget` bytes for rows."""
    f, rows = -problem.p, KernelRows(problem, budget, wide)
    if beta is None:
        beta = np.zeros(len(f))
    else:
        beta = feasible(problem, beta)
        used = np.flatnonzero(beta)
        rows.add(used, beta[used], f)
    return measured(problem, KernelState(beta, f, rows, wide))


def gauged(problem: KernelProblem, state: KernelState, steps: int) -> KernelState:
    """The state after a round of `steps` steps."""
    before, lowest = state.dual, state.lowest
    state = measured(problem, state)
    rose = state.dual > before + (1e-14 if state.wide else _SINGLE) * abs(before)
    waited = 0 if rose or state.violation < 0.9 * lowest else state.waited + 1
    return state._replace(
        dual=max(before, state.dual),
        lowest=min(lowest, state.violation),
        waited=waited,
        iterations=state.iterations + steps,
        epoch=state.epoch + 1,
        exhausted=state.wide and (waited >= _PATIENCE or steps == 0),
    )


def refreshed(problem: KernelProblem, state: KernelState, seen: Evaluation) -> KernelState:
    """The state with exact scores; what they show to be untrue is tried again.

    Float32 whose dual value was off by as much as is left to gain has waited long enough.
    """
    violation, claimed = state.violation, state.dual
    state.f[:] = problem.y * seen.margins - seen.w[-1] - problem.p
    state.beta[:] = seen.alpha
    state = measured(problem, state)
    reopened = state.violation > 2.0 * violation
    lost = not state.wide and claimed - state.dual > 0.5 * state.estimate
    waited = _PATIENCE if lost else state.waited
    return state._replace(exhausted=state.exhausted and not reopened, waited=waited)


def measured(problem: KernelProblem, state: KernelState) -> KernelState:
    """The state with the gap, the objective and the violation by its f."""
    least, most = extremes(state.f, state.beta, problem.low, problem.high)
    b = -0.5 * (least + most) if problem.free else 0.0
    square, linear, losses = _sums(problem.y, problem.c, problem.loss, state.beta, state.f, b)
    violation = most - least if problem.free else max(most, -least)
    dual = linear - 0.5 * square
    primal = 0.5 * square + losses
    return state._replace(
        bounds=(least, most),
        violation=max(0.0, violation),
        dual=dual,
        estimate=primal - dual,
        objective=primal,
    )


@hot
def _sums(y, c, loss, beta, f, b):
    """beta'K beta, p'beta and the sum of losses at offset b, for p = y."""
    square, linear, losses = 0.0, 0.0, 0.0
    for i in range(f.shape[0]):
        score = f[i] + y[i]
        square += beta[i] * score
        linear += beta[i] * y[i]
        z = y[i] * (score + b)
        losses += c[i] * max(1.0 - z, loss.tau * (z - 1.0))
    return square, linear, losses
