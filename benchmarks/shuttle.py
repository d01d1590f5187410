"""Convergence of Pegasos with hinge and pinball loss on Shuttle: docs/images/shuttle.png.

The experiment of Jumutc, Huang, Suykens (2013): their Algorithm 1, lam = 1, 100 rows a step, 1000
steps. Each step is measured by the distance of its objective (with the best intercept for its w)
from the optimum, which an exact solver proves, and by its length, on which the algorithm stops.
Beside it: the same with an offset that is found by steps of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import load
from pegasos.data.check import as_rows
from pegasos.losses import Hinge, Pinball
from pegasos.objective.certificate import Certificate, evaluate
from pegasos.objective.problem import C_from_lam, Problem, make_problem
from pegasos.report.figures import COLOURS, FAINT, PLAIN, SMALL, head, new_figure, save, style
from pegasos.solvers.auto import Auto
from pegasos.solvers.driver import Stop
from pegasos.solvers.driver import run as solve
from pegasos.solvers.subgradient import Subgradient

LAM, ROWS, STEPS = 1.0, 100, 1000
LOSSES = {"hinge": Hinge(), "pinball (tau = 0.5)": Pinball(0.5)}
OFFSETS = {"residual": "mean of y − w·x", "free": "by steps"}
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "shuttle.png"


class Descent(NamedTuple):
    """Distances from the optimum and lengths of the steps; how well the optimum is known."""

    above: np.ndarray
    lengths: np.ndarray
    accuracy: float


def run() -> None:
    """Both losses with both ways to the offset, and the figure."""
    X, y = load("shuttle")
    rows, c = as_rows(X, 1.0), np.full(len(y), C_from_lam(LAM, len(y)))
    problems = {name: make_problem(rows, y, c, loss, free=True) for name, loss in LOSSES.items()}
    descents = {
        (name, offset): descend(problem, offset)
        for name, problem in problems.items()
        for offset in OFFSETS
    }
    for (name, offset), d in descents.items():
        print(
            f"{name}, offset {OFFSETS[offset]}: {d.above[9]:.1e} above the optimum after 10 steps, "
            f"{np.median(d.above[-100:]):.1e} at the end (optimum known to {d.accuracy:.0e})"
        )
    draw(descents, len(y))


def descend(problem: Problem, offset: str) -> Descent:
    """Algorithm 1, one step at a time."""
    best: Certificate = solve(Auto(), problem, Stop(tol=1e-9, max_epochs=100_000)).certificate
    solver = Subgradient(batch=ROWS, sampling="replacement", power=None, offset=offset)
    state = solver.init(problem, seed=0)
    primal = np.empty(STEPS)
    for t in range(STEPS):
        state = solver.advance(problem, state, 1)
        primal[t] = evaluate(problem, *solver.candidate(problem, state)).certificate.primal
    accuracy = (best.primal - best.dual) / best.dual
    return Descent((primal - best.dual) / best.dual, state.vectors.lengths[:STEPS], accuracy)


def draw(descents: dict[tuple[str, str], Descent], n: int) -> None:
    note = (
        f"Class 1 against the rest, {n:,} training rows, features scaled; lam = {LAM:g}, "
        f"k = {ROWS} random rows a step, {STEPS} steps.\n"
        "The objective is taken with the best intercept for w, whatever the offset of the method."
    )
    figure = new_figure(11.5, 5.2, "Pegasos on Shuttle: hinge and pinball loss", note)
    left, right = figure.subplots(1, 2)
    t = np.arange(1, STEPS + 1)
    colours = dict(zip(LOSSES, COLOURS, strict=False))
    for (name, offset), d in descents.items():
        dashes = "solid" if offset == "residual" else (0, (2, 1))
        look = {"color": colours[name], "linestyle": dashes, "linewidth": 1.6}
        left.plot(t, d.above, label=f"{name}, offset {OFFSETS[offset]}", **look)
        if offset == "residual":
            right.plot(t, d.lengths, color=colours[name], linewidth=0.9, alpha=0.8)
    right.plot(t, 1.0 / t, color=FAINT, linestyle=(0, (1, 1.5)))
    right.annotate("1/t", (300, 1 / 300), (6, 6), textcoords="offset points", fontsize=SMALL)
    for axes in (left, right):
        style(axes)
        axes.set(xscale="log", yscale="log")
        axes.set_xlabel("steps t (logarithmic scale)", fontsize=PLAIN)
    left.set_ylabel("objective above its optimum, as a share of it", fontsize=PLAIN)
    right.set_ylabel("length of the step, ‖w(t+1) − w(t)‖", fontsize=PLAIN)
    head(left, "How far from the best possible")
    head(right, "How far a step of Algorithm 1 goes")
    left.legend(frameon=False, fontsize=SMALL, labelcolor="linecolor", loc="lower left")
    save(figure, IMAGE)
    print(f"figure in {IMAGE}")
