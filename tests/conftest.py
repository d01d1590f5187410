"""What the tests share: rows of every storage, random problems, the losses, subprocesses."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pegasos.core import jit
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.data.check import frozen
from pegasos.data.samples import load_sample
from pegasos.objective.losses import Hinge, Logistic, Pinball, SquaredHinge
from pegasos.objective.problem import Problem, make_problem

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # else scikit-learn skips one of its checks

# "laws" is the same in every run; look further with: pytest --hypothesis-profile=search
_quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "laws", deadline=None, max_examples=20, derandomize=True, suppress_health_check=_quiet
)
settings.register_profile("search", deadline=None, max_examples=400, suppress_health_check=_quiet)
settings.load_profile("laws")

LOSSES = (Hinge(), Pinball(0.3), SquaredHinge(), Logistic())
KINDS = (
    "dense-float32",
    "dense-float64",
    "csr-float32-uint32",
    "csr-float32-uint64",
    "csr-float64-uint32",
    "csr-float64-uint64",
)
INTERCEPTS = ("none", "penalised", "free")
SEEDS = st.integers(0, 2**32 - 1)

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


@pytest.fixture(autouse=True)
def no_counts():
    """Loops that are compiled as if they made no arrays do make none."""
    before = len(jit.COUNTED)
    yield
    assert not jit.COUNTED[before:]


def make_rows(kind: str, X: np.ndarray, bias: float = 0.0) -> DenseRows | CsrRows:
    """X in the storage named by `kind`: dense-dtype or csr-dtype-dtype of the columns."""
    storage, dtype, *columns = kind.split("-")
    if storage == "dense":
        return DenseRows(frozen(X.astype(dtype)), bias)
    S = sp.csr_array(X)
    S.sort_indices()
    values, starts = frozen(S.data.astype(dtype)), frozen(S.indptr.astype(np.uint64))
    return CsrRows(values, frozen(S.indices.astype(columns[0])), starts, X.shape[1], bias)


def random_matrix(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Half zeros, one row in ten empty; numbers that float32 holds exactly."""
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    X[rng.random(n) < 0.1] = 0.0
    return X.astype(np.float32).astype(np.float64)


def random_labels(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Noisy labels of a random direction, both of them present."""
    y = np.where(X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X)) > 0.0, 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return frozen(y)


def random_problem(
    seed: int,
    loss=LOSSES[0],
    kind: str = "dense-float64",
    intercept: str = "none",
    n: int = 30,
    d: int = 5,
    C: float = 1.0,
    centered: bool = False,
) -> Problem:
    """Weights between C/2 and 3C/2; `centered`: a centre w0 other than 0."""
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, n, d)
    rows = make_rows(kind, X, 0.0 if intercept == "none" else rng.uniform(0.5, 2.0))
    y, c = random_labels(rng, X), C * rng.uniform(0.5, 1.5, n)
    center = rng.normal(size=d + 1) if centered else np.zeros(d + 1)
    return make_problem(rows, y, c, loss, center, free=intercept == "free")


def any_problem(seed: int, loss, intercept: str) -> Problem:
    """All the rest at random: storage, shape, C, and whether there is a centre."""
    rng = np.random.default_rng(seed)
    return random_problem(
        int(rng.integers(2**32)),
        loss,
        kind=str(rng.choice(["dense-float64", "csr-float32-uint32"])),
        intercept=intercept,
        n=int(rng.integers(2, 26)),
        d=int(rng.integers(1, 7)),
        C=10.0 ** rng.integers(-2, 2),
        centered=bool(rng.integers(2)),
    )


def plain(rows: DenseRows | CsrRows) -> np.ndarray:
    """The rows as a float64 array, the virtual column included."""
    if isinstance(rows, DenseRows):
        X = rows.values.astype(np.float64)
    else:
        parts = (rows.values, rows.columns.astype(np.int64), rows.starts.astype(np.int64))
        X = sp.csr_array(parts, shape=(rows.starts.size - 1, rows.width)).toarray()
    return np.column_stack([X.astype(np.float64), np.full(len(X), rows.bias)])


def run_python(code: str, *args: str, cwd: Path, **env: str | None) -> subprocess.CompletedProcess:
    """Run `code` in a new interpreter, from a file in `cwd`; a variable set to None is removed."""
    (cwd / "script.py").write_text(code)
    changed = {"NUMBA_DISABLE_JIT": None} | env
    environment = {k: v for k, v in os.environ.items() if k not in changed}
    environment |= {k: v for k, v in changed.items() if v is not None}
    command = [sys.executable, str(cwd / "script.py"), *args]
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done


def sample_problem(name: str, loss, kind: str, C: float, intercept: str = "penalised") -> Problem:
    """A shipped data set, standardised."""
    X, labels = load_sample(name)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = make_rows(kind, X, 0.0 if intercept == "none" else 1.0)
    y = frozen(np.where(labels == 1, 1.0, -1.0))
    return make_problem(rows, y, np.full(y.size, C), loss, free=intercept == "free")


def turned(problem: Problem) -> Problem:
    """The same problem with every label, and the centre, of the other sign."""
    return problem._replace(y=frozen(-problem.y), center=-problem.center)
