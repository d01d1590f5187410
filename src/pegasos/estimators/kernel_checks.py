"""What SVC says before it starts: a function that is no kernel, a fit that will take long."""

from __future__ import annotations

from typing import Any

from pegasos.core.logs import warn
from pegasos.core.memory import total_memory
from pegasos.core.rows import CsrRows, DenseRows, n_entries, n_rows
from pegasos.core.threads import allowed
from pegasos.objective.kernel_check import check_points
from pegasos.objective.kernel_points import Points
from pegasos.objective.kernels import (
    Exp,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Product,
    Scaled,
    Shifted,
    Sum,
)

_SAMPLE = 200  # rows on which a doubtful kernel is tried
_LONG = 300.0  # seconds that are told of
WAYS = (
    "CellSVC, LinearSVC on a Nystroem map of the features, or KernelPegasosClassifier(budget=1000) "
    "is for so many rows"
)


def is_doubtful(kernel: Any) -> bool:
    """Whether it may be no kernel: all are but those that are known to be, by what they are."""
    match kernel:
        case Linear() | Gaussian() | Laplacian():
            return False
        case Polynomial(coef0=number):
            return number < 0.0
        case Sum(left, right) | Product(left, right):
            return is_doubtful(left) or is_doubtful(right)
        case Scaled(number, inner) | Shifted(inner, number):
            return number < 0.0 or is_doubtful(inner)
        case Exp(inner):
            return is_doubtful(inner)
    return True


def warn_unless_kernel(kernel: Any, points: Points) -> bool:
    """Whether K is positive semidefinite as far as a sample tells; if not, a warning says so."""
    if not is_doubtful(kernel):
        return True
    found = check_points(kernel, points, _SAMPLE)
    if not found.is_kernel:
        warn(
            f"{kernel!r} is no kernel on these rows (smallest eigenvalue {found.smallest:.2g}, "
            f"largest {found.largest:.2g}): the answer is a stationary point and its certificate "
            "proves nothing. See pegasos.kernels.check_kernel.",
        )
    return found.is_kernel


def seconds_of(n: int, entries: float, budget: int, moved: float) -> float:
    """About how long a problem takes in which a share of the rows moves: within a factor of three
    on the sets of the kernel race, where 1 % to 50 % do. Rows without room are computed anew."""
    rows = moved * n
    again = 1.0 if 4.0 * rows * n <= budget else 5.0
    return rows * n * again * (9e-9 + 1.3e-10 * entries) / allowed()


def foretell(sizes: list[int], train: Points, budget: int, limit: float) -> None:
    """A warning if a fit of problems with so many rows each may take long, or beyond the limit."""
    rows = train.rows
    stored = n_entries(rows) / n_rows(rows) if isinstance(rows, DenseRows | CsrRows) else 0.0
    likely = sum(seconds_of(n, stored, budget, moved=0.3) for n in sizes)
    if likely > min(limit, _LONG):
        warn(
            f"an exact kernel machine on {n_rows(rows)} rows may take about {likely:.2g} s here"
            + (f" (max_time: {limit:g} s)" if limit < likely else "")
            + f". {WAYS}.",
        )


def refuse_beyond_memory(budget: int) -> None:
    """No more bytes for kernel values than there are."""
    memory = total_memory()
    if budget > memory:
        raise ValueError(
            f"cache_size={budget / 1e6:.0f} MB is more than this machine has "
            f"({memory / 1e6:.0f} MB): lower it"
        )
