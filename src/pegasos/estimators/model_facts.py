"""Parameters and facts about a fit, as plain JSON for model files and back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from pegasos.objective.certificate import Certificate
from pegasos.objective.kernel_json import from_json, to_json
from pegasos.objective.kernels import is_kernel
from pegasos.objective.losses import NEVER_NEGATIVE as OUR_LOSSES
from pegasos.solvers.auto import Choice

_LOSSES: dict[str, type] = {cls.__name__: cls for cls in OUR_LOSSES}


def facts(estimator: Any) -> dict[str, Any]:
    """Facts about the fit that are the same whenever it is repeated: no times."""
    if not hasattr(estimator, "certificate_"):
        return {}
    return {
        "certificate": proofs(estimator.certificate_),
        "stop_reason": _listed(estimator.stop_reason_),
        "solver": [list(solver) for solver in _listed(estimator.solver_)],
        "n_iter": np.asarray(estimator.n_iter_).tolist(),
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def proofs(certificate: Any) -> list[list[str]]:
    """Primal and dual values of a certificate or a list of them, to the last bit."""
    return [[float(c.primal).hex(), float(c.dual).hex()] for c in _listed(certificate)]


def certificates(values: Any) -> list[Certificate]:
    return [Certificate(float.fromhex(p), float.fromhex(d)) for p, d in values]


def attributes(fit: dict[str, Any], vectors: int) -> dict[str, Any]:
    """Fitted attributes from the facts of a file (all or none); a ValueError if malformed.

    There is a problem for each weight vector, or one for all of them.
    """
    if not fit:
        return {}
    with facts_of_a_file():
        lists: dict[str, list[Any]] = {
            "certificate_": certificates(fit["certificate"]),
            "stop_reason_": [str(reason) for reason in fit["stop_reason"]],
            "solver_": [Choice(str(name), str(why)) for name, why in fit["solver"]],
        }
        n_iter = fit["n_iter"]
        several = isinstance(n_iter, list)
        n_iter = np.array([int(n) for n in n_iter], np.int64) if several else int(n_iter)
    problems = len(lists["certificate_"])
    if problems not in (1, vectors) or any(len(values) != problems for values in lists.values()):
        raise ValueError(f"fit: expected facts about {vectors} problems")
    one = {name: values[0] if problems == 1 else values for name, values in lists.items()}
    return {**one, "n_iter_": n_iter}


@contextlib.contextmanager
def facts_of_a_file(part: str = "fit") -> Iterator[None]:
    """What goes wrong with them is wrong with the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        words = f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{part}: {words[:100]}") from None


def plain(value: Any) -> Any:
    """A parameter as JSON; a loss of the user's own only by its name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, dict):
        return {"items": [[plain(k), plain(v)] for k, v in value.items()]}
    if isinstance(value, list | tuple | np.ndarray) and not hasattr(value, "_fields"):
        return [plain(part) for part in value]
    if isinstance(value, OUR_LOSSES):
        return {"loss": type(value).__name__, "fields": list(value)}
    if is_kernel(value):
        return to_json(value)
    if isinstance(value, np.random.RandomState):
        return None
    return f"{type(value).__name__} (not kept in the file: pass it again)"


def rebuilt(value: Any) -> Any:
    """A parameter from JSON."""
    if not isinstance(value, dict):
        return value
    with facts_of_a_file("parameters"):
        if "items" in value:
            return {k: v for k, v in value["items"]}
        if "kernel" in value:
            return from_json(value)
        return _LOSSES[value["loss"]](*(float(field) for field in value["fields"]))
