"""`pegasos warmup`: compile the common loops now rather than in the first fits."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pegasos.core.logs import listening

STORAGES = ("array", "CSR matrix")
DTYPES = ("float32", "float64")
LOSSES = {
    "hinge": ("dual", "newton", "interior"),
    "squared_hinge": ("dual", "newton", "newton_cg"),
    "logistic": ("dual", "newton", "newton_cg"),
}

KERNEL = "Gaussian kernel"
_WIDE = 300  # columns: of fewer the steps of Newton's method are compiled as one


def warmup() -> None:
    """Compile the common loops and keep them on disk.

    Arrays and CSR matrices, float32 and float64; hinge, squared hinge and logistic loss; all
    solvers; kernel machines with the Gaussian kernel; Pegasos with hinge loss on float32 CSR; the
    reader of LIBSVM text. Without this the first fit of each kind takes some seconds longer. What
    sweeps over several classes or values of C need is compiled by the first of them.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(highlight=False)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        console.print("NUMBA_DISABLE_JIT is set: there is nothing to compile.")
        return
    directory = cache_to_write()
    compiled: list[str] = []
    start = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
        heard(compiled.append),
    ):
        common = list(itertools.product(STORAGES, DTYPES, (*LOSSES, KERNEL)))
        bar = progress.add_task("compiling", total=len(common))
        for storage, dtype, what in common:
            progress.update(bar, description=f"{what} on a {dtype} {storage}")
            if what == KERNEL:
                _kernels(storage, dtype)
            else:
                _fit(storage, dtype, what)
            progress.advance(bar)
        progress.update(bar, description="streams")
        _learn()
        progress.update(bar, description="readers")
        _read()
        progress.update(bar, description="compiled")
    seconds = time.perf_counter() - start
    if compiled:
        console.print(f"Compiled {len(compiled)} loops in {seconds:.0f} s, for every later fit.")
    else:
        console.print(f"All of them had been compiled before ({seconds:.1f} s to see that).")
    console.print(f"They are kept in {directory}", soft_wrap=True, markup=False)


def _fit(storage: str, dtype: str, loss: str) -> None:
    """Fit and predict with each solver and each reading of the intercept."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from pegasos import LinearSVC, LogisticRegression
    from pegasos.solvers.intercept import rehearse

    def fit(X: Any, y: Any, solver: str, intercept: str) -> None:
        model: Any = LogisticRegression() if loss == "logistic" else LinearSVC(loss=loss)
        model.set_params(solver=solver, intercept=intercept, max_iter=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y).predict(X)

    for X, y in _tiny(storage, dtype):
        rehearse(_problem(X, y, loss))
        for solver, intercept in itertools.product(LOSSES[loss], ("free", "penalised")):
            fit(X, y, solver, intercept)
    for X, y in _tiny(storage, dtype, d=_WIDE):
        fit(X, y, "newton", "penalised")


def _problem(X: Any, y: Any, loss: str) -> Any:
    """As a fit would make it."""
    import numpy as np

    from pegasos.data.check import as_rows
    from pegasos.objective.losses import Hinge, Logistic, SquaredHinge
    from pegasos.objective.problem import make_problem

    kinds = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "logistic": Logistic()}
    signs = np.where(y == y[0], 1.0, -1.0)
    return make_problem(as_rows(X, 1.0), signs, np.ones(len(signs)), kinds[loss])


def _kernels(storage: str, dtype: str) -> None:
    """Fit and predict with all rows and with a part of them in a working set, with kernel values in
    float32 and, for a small tol, in float64."""
    from pegasos import SVC

    for n, tol in itertools.product((60, 1200), (1e-3, 1e-6)):
        for X, _ in _tiny(storage, dtype, n):
            SVC(gamma=0.01, tol=tol).fit(X, X[:, [0]].sum(axis=1) > 0).predict(X)


def _learn() -> None:
    """Pegasos, in epochs and from a stream."""
    from pegasos import PegasosClassifier

    for X, y in _tiny("CSR matrix", "float32"):
        model = PegasosClassifier(lam=0.1, tol=1.0).fit(X, y)
        model.partial_fit(X, y).predict(X)


def _read() -> None:
    """Read LIBSVM text in each dtype."""
    import numpy as np

    from pegasos.data.grammar import Dialect
    from pegasos.data.stream import Block
    from pegasos.data.svmlight import parse_block

    text = bytearray(b"1 1:2\n")
    for dtype in DTYPES:
        parse_block(Block(text, len(text)), Dialect(), np.dtype(dtype))


def _tiny(storage: str, dtype: str, n: int = 60, d: int = 20) -> Iterator[tuple[Any, Any]]:
    """Random rows: full ones and, in CSR, ones with few entries, whose products go another way."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)).astype(dtype), np.arange(n) % 2
    if storage == "array":
        yield X, y
        return
    yield sp.csr_array(X), y
    yield sp.csr_array(X * (rng.random(X.shape) < 0.1)), y


def cache_to_write() -> Path:
    """The directory of compiled loops, made if need be; an OSError if it cannot be written."""
    from pegasos.core.jit import cache_directory

    directory = cache_directory()
    if directory is None:
        raise OSError("no home directory for compiled loops: set NUMBA_CACHE_DIR to a directory")
    directory.mkdir(parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK):
        raise PermissionError(f"{directory}: cannot be written; set NUMBA_CACHE_DIR to another")
    return directory


@contextmanager
def heard(compiling: Callable[[str], Any]) -> Iterator[None]:
    """Call `compiling` with the name of each loop that is compiled meanwhile."""

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            compiling(str(record.args[0]) if record.args else record.getMessage())  # type: ignore[index]

    with listening("pegasos.jit", Ear()):
        yield
