"""Checkpoints: a run between two steps as a file, from which it goes on bit for bit.

Solver states are trees of NamedTuples, arrays and numbers. They are written field by field into a
`data.container` and rebuilt from a closed list of types. What a checkpoint belongs to (data,
settings, version) is written with it and compared before anything is used.
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.rows import n_columns, n_rows
from pegasos.data import container
from pegasos.data.atomic import replacing
from pegasos.data.errors import DataError
from pegasos.objective.certificate import Certificate, Evaluation
from pegasos.objective.multiclass import MulticlassProblem
from pegasos.objective.problem import Problem
from pegasos.solvers import (
    auto,
    driver,
    dual,
    dual_state,
    excerpt,
    intercept,
    interior,
    linalg,
    moves,
    newton,
    newton_cg,
    newton_cg_state,
    stops,
)

FORMAT, VERSION = "pegasos-checkpoint", 11


class Finished(NamedTuple):
    """What is kept of the state of a solved problem."""

    epoch: int
    choice: auto.Choice | None


class Solved(NamedTuple):
    """What is kept of the run of a solved problem."""

    best: Evaluation
    history: tuple[driver.Progress, ...]
    stop_reason: str
    state: Finished


_TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(auto.Auto, auto.AutoState, auto.Choice, dual.Dual, dual_state.DualState),
        *(intercept.FreeIntercept, intercept.InterceptState, newton.Newton, newton.NewtonState),
        *(newton.Curvature, interior.Interior, interior.InteriorState, interior.Point),
        *(newton_cg.NewtonCG, newton_cg_state.NewtonCGState, newton_cg_state.Response),
        *(newton_cg_state.Preconditioner, linalg.Factor),
        *(driver.Snapshot, driver.Progress, Certificate, Evaluation, Finished, Solved),
        *(stops.Scored, moves.Moves),
    )
}
_KEPT_OF_PROBLEM = ("q", "center", "free")
# arrays that compiled loops index without a look at their lengths: by rows, by weights
_BY_ROW = frozenset(
    "a alpha h listed lo order over q response s S scores slopes stays u under up".split()
)
_INDICES = frozenset(("order", "listed", "excerpt", "columns"))
_OF_COLUMNS = frozenset(("columns",))
_BY_WEIGHT = frozenset(("w", "v", "center", "gradient", "diagonal"))
_BY_CLASS = frozenset(("alpha", "S", *_BY_WEIGHT))  # besides, if the problem is of several classes


def save(
    path: str | os.PathLike[str],
    owner: dict[str, Any],
    solved: list[Solved | driver.Snapshot],
    current: driver.Snapshot | None,
) -> None:
    """Write the problems solved so far and the run of the next one, which belong to `owner`."""
    writer = _Writer()
    description = {
        "format": FORMAT,
        "version": VERSION,
        "owner": owner,
        "solved": [writer.encode(one) for one in solved],
        "current": writer.encode(current),
    }
    with replacing(path) as file:
        container.write(file, description, writer.arrays)


class Saved:
    """A checkpoint of the owner, read and compared; its parts are rebuilt when asked for."""

    def __init__(self, path: str | os.PathLike[str], owner: dict[str, Any]):
        self._name = os.fspath(path)
        self._description, self._arrays = container.read(path)
        found, version = self._description.get("format"), self._description.get("version")
        if found != FORMAT:
            raise DataError(f"{self._name}: not a checkpoint but {str(found)[:40]!r}")
        if version != VERSION:
            words = f"version {str(version)[:20]} of the checkpoint format; readable: {VERSION}"
            raise DataError(f"{self._name}: {words}")
        check_owner(self._name, self._description.get("owner"), owner)
        solved = self._description.get("solved")
        if not isinstance(solved, list):
            raise DataError(f"{self._name}: solved: expected a list")
        self._solved = solved

    @property
    def n_solved(self) -> int:
        return len(self._solved)

    def solved(self, k: int, problem: Problem) -> Solved | driver.Snapshot:
        """The run of problem k, which was solved (or, whole, where a limit stopped it)."""
        return self._decoded(self._solved[k], problem, (Solved, driver.Snapshot))

    def current(self, problem: Problem) -> driver.Snapshot:
        """The run of the first problem that was not."""
        return self._decoded(self._description.get("current"), problem, (driver.Snapshot,))

    def _decoded(self, tree: Any, problem: Problem, expected: tuple[type, ...]) -> Any:
        try:
            value = _Reader(self._arrays, problem).decode(tree)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            words = f"content: {type(error).__name__}: {error}"
            raise DataError(f"{self._name}: {words}") from None
        if type(value) not in expected:
            raise DataError(f"{self._name}: content: expected {expected[0].__name__}")
        return value


def check_owner(name: str, found: Any, owner: dict[str, Any]) -> None:
    """Refuse a checkpoint that belongs to something else, and say in what it differs."""
    if not isinstance(found, dict):
        raise DataError(f"{name}: it does not say what it belongs to")
    for key, value in owner.items():
        if found.get(key) != value:
            both = f" (was {str(found.get(key))[:60]}, is {str(value)[:60]})"
            words = f"{key} differ{'' if isinstance(value, dict) else both}"
            raise DataError(
                f"{name}: a checkpoint of another run: {words}; remove it or name another file"
            )


class _Writer:
    """Trees to JSON; arrays aside, each once however often it occurs."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._seen: dict[int, str] = {}

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, np.ndarray):
            return {"array": self._name(value)}
        if isinstance(value, float | np.floating):
            return {"float": float(value).hex()}
        if isinstance(value, np.bool_ | np.integer):
            return value.item()
        if isinstance(value, type) and issubclass(value, np.floating):
            return {"dtype": np.dtype(value).name}
        if isinstance(value, Problem | MulticlassProblem):
            parts = {key: self.encode(getattr(value, key)) for key in _KEPT_OF_PROBLEM}
            return {"type": "Problem", "bias": self.encode(float(value.rows.bias)), **parts}
        if isinstance(value, dual_state.DualState):
            value = excerpt.kept(value)
        if isinstance(value, newton.NewtonState | newton_cg_state.NewtonCGState):
            value = value._replace(room=None)  # which is only to work in
        if type(value).__name__ in _TYPES:
            return {"type": type(value).__name__, "fields": self._fields(value)}
        if isinstance(value, list | tuple):
            return {"list": [self.encode(item) for item in value]}
        raise TypeError(f"a checkpoint cannot hold {type(value).__name__}")

    def _fields(self, value: Any) -> dict[str, Any]:
        names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        return {name: self.encode(getattr(value, name)) for name in names}

    def _name(self, array: np.ndarray) -> str:
        known = self._seen.get(id(array))
        if known is None:
            known = self._seen[id(array)] = f"a{len(self.arrays)}"
            self.arrays[known] = array
        return known


class _Reader:
    """JSON to trees; arrays are copies that a solver may write."""

    def __init__(self, arrays: dict[str, np.ndarray], problem: Problem):
        self.problem, self._stored = problem, arrays
        self.arrays: dict[str, np.ndarray] = {}

    def decode(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, bool | int | str):
            return tree
        if "array" in tree:
            name = tree["array"]
            if name not in self.arrays:
                self.arrays[name] = self._stored[name].copy()
            return self.arrays[name]
        if "float" in tree:
            return float.fromhex(tree["float"])
        if "dtype" in tree:
            return {"float32": np.float32, "float64": np.float64}[tree["dtype"]]
        if "list" in tree:
            return tuple(self.decode(item) for item in tree["list"])
        if tree["type"] == "Problem":
            parts = self._parts({key: tree[key] for key in _KEPT_OF_PROBLEM})
            rows = self.problem.rows._replace(bias=self.decode(tree["bias"]))
            return self.problem._replace(rows=rows, **parts)
        value = _TYPES[tree["type"]](**self._parts(tree["fields"]))
        if isinstance(value, newton.NewtonState | newton_cg_state.NewtonCGState):
            value = value._replace(room=None)
        if isinstance(value, moves.Moves):
            moves.check(value)
        if isinstance(value, dual_state.DualState):
            excerpt.check(self.problem, value)
        return value

    def _parts(self, trees: dict[str, Any]) -> dict[str, Any]:
        parts = {name: self.decode(part) for name, part in trees.items()}
        for name, part in parts.items():
            if isinstance(part, np.ndarray):
                self._check_length(name, part)
        return parts

    def _check_length(self, name: str, array: np.ndarray) -> None:
        n, width = n_rows(self.problem.rows), n_columns(self.problem.rows) + 1
        wanted = {**dict.fromkeys(_BY_ROW, (n,)), **dict.fromkeys(_BY_WEIGHT, (width,))}
        if name in wanted:
            shape = wanted[name] + (self.problem.center.shape[1:] if name in _BY_CLASS else ())
            if array.shape[: len(shape)] != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
        most, what = (width, "columns") if name in _OF_COLUMNS else (n, "rows")
        if name in _INDICES and not np.all((array >= 0) & (array < most)):
            raise ValueError(f"{name}: not one of {most} {what}")
        if name in ("excerpt", "columns") and np.any(array[1:] <= array[:-1]):
            raise ValueError(f"{name}: {what} do not ascend")
