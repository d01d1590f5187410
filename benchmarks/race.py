"""Time to within eps of the optimum, pegasos against its rivals, whole fits, on two cores.

The optimum is the value that pegasos reaches at a thousandth of eps (`known_to` is how far it is
proven), eps is a share of the objective, no intercept anywhere. `pegasos` and `pegasos, 1 thread`
stop by the loosest tolerance that gets there, as every rival does; `pegasos, proven` has tol=eps,
so that its answer is not only true but proven. Data are handed over in memory as float32 (SciPy's
CSR or NumPy); conversions into a package's own format are part of its fit, compilation is not.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contest import Outcome, contest
from benchmarks.datasets import ALL, load
from benchmarks.racereport import KEYS, draw, overall, summary, tables, wide
from benchmarks.rivals.entrants import OURS, RIVALS, pins
from benchmarks.rivals.environments import UnavailableError
from benchmarks.rivals.process import Problem, Worker, store
from benchmarks.table import HERE, into_page, markdown, merged, save

SHORT = ("a9a", "spambase", "magic04", "reuters_r8", "20news", "rcv1")
README = ("hinge", 1.0, 1e-3)  # the problems of the README's table: loss, C, eps


class Plan(NamedTuple):
    """What to run; the defaults are the short version of about ten minutes."""

    sets: tuple[str, ...] = SHORT
    Cs: tuple[float, ...] = (1.0,)
    losses: tuple[str, ...] = ("hinge",)
    eps: float = 1e-3
    rivals: tuple[str, ...] = RIVALS
    repeats: int = 3
    patience: float = 5.0


FULL = Plan(ALL, (0.1, 1.0, 10.0, 100.0), ("hinge", "squared_hinge", "logistic"), patience=10.0)


def run(plan: Plan) -> None:
    with _workers((*OURS, *plan.rivals)) as (workers, missing):
        for name in plan.sets:
            rows = merged("race", _set(name, plan, workers, missing), KEYS, order=ALL)
            save("race", summary(rows), rows, tables(rows), pins(RIVALS))
    drawn = [row for row in rows if (row["loss"], row["eps"]) == (README[0], README[2])]
    draw(drawn or rows, HERE.parent / "docs" / "images" / "race.png")
    into_page("README.md", "sets", overall(rows))
    short = [row for row in rows if row["set"] in SHORT]
    chosen = [row for row in short if (row["loss"], row["C"], row["eps"]) == README]
    if {row["set"] for row in chosen} >= set(SHORT):
        picture = "![time of the rivals as a multiple of ours](docs/images/race.png)"
        into_page("README.md", "race", [*summary(chosen), markdown(wide(chosen)), picture])


@contextlib.contextmanager
def _workers(names: tuple[str, ...]) -> Iterator[tuple[dict[str, Worker], dict[str, str]]]:
    """Processes by name, and the reasons of those that cannot be had."""
    workers, missing = {}, {}
    for name in names:
        try:
            workers[name] = Worker(name)
        except UnavailableError as error:
            missing[name] = f"not available: {error}"
            print(f"{name}: {missing[name]}", flush=True)
    try:
        yield workers, missing
    finally:
        for worker in workers.values():
            worker.stop()


def _set(name: str, plan: Plan, workers: dict, missing: dict) -> list[dict]:
    X, y = load(name)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        store(X, y, folder)
        for loss, C in itertools.product(plan.losses, plan.Cs):
            case = {"set": name, "loss": loss, "C": C, "eps": plan.eps}
            best = best_known(X, y, C, loss, max(1e-8, 1e-3 * plan.eps))
            goal = best.primal / (1.0 - plan.eps)
            problem = Problem(X, y, folder, C, loss)
            effort = (plan.repeats, plan.patience)
            outcomes = contest(workers, problem, plan.eps, goal, *effort)
            nothing = {n: Outcome(None, np.inf, {}, 0.0, why) for n, why in missing.items()}
            for solver, outcome in (outcomes | nothing).items():
                rows.append(case | {"solver": solver} | _figures(outcome, best))
                print(" ".join(f"{k}={_short(v)}" for k, v in rows[-1].items()), flush=True)
    return rows


def best_known(X: Any, y: np.ndarray, C: float, loss: str, tol: float = 1e-8) -> Any:
    """The certificate of our best answer."""
    from pegasos import LinearSVC, LogisticRegression

    model: Any = LogisticRegression() if loss == "logistic" else LinearSVC(loss=loss)
    model.set_params(C=C, intercept="none", tol=tol, max_iter=100_000, max_time=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `known_to` says how far it got
        return model.fit(X, y).certificate_


def _figures(outcome: Outcome, best: Any) -> dict:
    """Times in milliseconds; `above` is the distance to the optimum as a share of the objective."""
    ms = None if outcome.seconds is None else 1e3 * outcome.seconds
    above = 1.0 - best.primal / outcome.primal if np.isfinite(outcome.primal) else None
    setting = ", ".join(f"{key}={_short(value)}" for key, value in outcome.setting.items())
    return {
        "ms": ms,
        "above": above,
        "setting": setting,
        "spent_s": outcome.spent,
        "failed_s": outcome.failed,
        "known_to": best.relative_gap,
        "note": outcome.note,
    }


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
