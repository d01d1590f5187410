"""Tables and the figure of the race."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.datasets import TEXT
from benchmarks.rivals.entrants import ENTRANTS, OURS
from benchmarks.table import markdown
from pegasos.report.figures import COLOURS, save

KEYS = ("set", "loss", "C", "eps", "solver")
BOTH, EITHER = ("liblinear", "sklearn"), "either"
LABELS = {name: entrant.label for name, entrant in ENTRANTS.items()}
LABELS[EITHER] = "the faster of LIBLINEAR and scikit-learn, where both ran"


def _cases(rows: list[dict]) -> list[dict[str, dict]]:
    """Rows of one problem together, by solver."""
    cases: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        cases.setdefault(tuple(row[k] for k in KEYS[:-1]), {})[row["solver"]] = row
    return list(cases.values())


def summary(rows: list[dict]) -> list[str]:
    """For each loss and eps one sentence per rival."""
    head = (
        "Geometric means of time / time of pegasos on two threads, over the cases solved; over all "
        "cases, the longest run of a rival that did not get there stands for one that did."
    )
    parts = [head]
    for loss, eps in sorted({(row["loss"], row["eps"]) for row in rows}):
        chosen = [row for row in rows if (row["loss"], row["eps"]) == (loss, eps)]
        lines = "\n".join(_sentences(chosen))
        parts.append(f"{loss.replace('_', ' ').capitalize()}, within {eps:g}:\n\n{lines}")
    return parts


def _sentences(rows: list[dict]) -> list[str]:
    """How often each rival gets there, and its time as a multiple of ours."""
    cases = [_with_either(c) for c in _cases(rows) if c["pegasos"]["ms"] is not None]
    lines = []
    for solver in LABELS:
        own = [case for case in cases if solver in case]
        there = [case for case in own if case[solver]["ms"] is not None]
        if solver in ("pegasos", *OURS[1:]) or not own:
            continue
        parts = [f"reaches the goal in {len(there)} of {len(own)} cases"]
        for kind, chosen in (("text", True), ("tall sets", False)):
            times = [_ratio(c, solver) for c in there if (c[solver]["set"] in TEXT) == chosen]
            if times:
                parts.append(f"{np.exp(np.log(times).mean()):.2g} times ours on {kind}")
        bounds = [_at_least(case, solver) for case in own]
        if None not in bounds:
            parts.append(f"{np.exp(np.log(bounds).mean()):.2g} times over all, so counted")
        ahead = sum(_ratio(case, solver) < 1.0 for case in there)
        lines.append(f"- {LABELS[solver]}: {', '.join(parts)}; faster in {ahead}.")
    return lines


def overall(rows: list[dict]) -> list[str]:
    """A table with a line for each loss and eps: how often LIBLINEAR and the faster of both get
    there, their time as a multiple of ours, that over all cases; and who is ahead of us where."""
    lines, ahead = [], []
    for loss, eps in sorted({(row["loss"], row["eps"]) for row in rows}):
        chosen = [row for row in rows if (row["loss"], row["eps"]) == (loss, eps)]
        cases = [_with_either(case) for case in _cases(chosen) if set(BOTH) <= set(case)]
        proven = sum(case["proven"]["ms"] is not None for case in cases)
        what = f"{loss.replace('_', ' ')}, within {eps:g}"
        line = {"": what, "proven by ours": f"{proven} of {len(cases)}"}
        line |= {"LIBLINEAR": _times(cases, BOTH[0]), "over all": _bounded(cases, BOTH[0])}
        both = {_FASTER: _times(cases, EITHER), "of both, over all": _bounded(cases, EITHER)}
        lines.append(line | both)
        ahead += [f"{what}: {place}" for place in _ahead(cases)]
    told = f"Ahead of ours: {'; '.join(ahead) or 'neither of the two in any case'}."
    return [markdown(lines), told]


_FASTER = "the faster of LIBLINEAR and scikit-learn"


def _mean(ratios: list[float]) -> str:
    return f"{np.exp(np.log(ratios).mean()):.2g}" if ratios else "-"


def _times(cases: list[dict], solver: str) -> str:
    there = [case for case in cases if case[solver]["ms"] is not None]
    kinds = [
        _mean([_ratio(c, solver) for c in there if (c[solver]["set"] in TEXT) == text])
        for text in (True, False)
    ]
    mean = _mean([_ratio(case, solver) for case in there])
    return f"{len(there)} of {len(cases)}, {mean} ({', '.join(kinds)})"


def _bounded(cases: list[dict], solver: str) -> str:
    bounds = [_at_least(case, solver) for case in cases]
    return "-" if None in bounds else _mean([bound for bound in bounds if bound is not None])


def _ahead(cases: list[dict]) -> list[str]:
    """Where the faster of both needs less time than ours."""
    found = []
    for case in cases:
        row, ours = case[EITHER], case["pegasos"]["ms"]
        if row["ms"] is not None and row["ms"] < ours:
            found.append(f"{row['set']} at C = {row['C']:g} ({row['ms']:.2g} ms, ours {ours:.2g})")
    return found


def _with_either(case: dict[str, dict]) -> dict[str, dict]:
    """With a row for the faster of both; where neither got there, it takes as long as either."""
    if not set(BOTH) <= set(case):
        return case
    both = [case[solver] for solver in BOTH]
    times = [row["ms"] for row in both if row["ms"] is not None]
    failed = [row.get("failed_s") for row in both]
    found = {"ms": min(times, default=None), "failed_s": min(failed) if all(failed) else None}
    return case | {EITHER: both[0] | found}


def _ratio(case: dict[str, dict], solver: str) -> float:
    return case[solver]["ms"] / case["pegasos"]["ms"]


def _at_least(case: dict[str, dict], solver: str) -> float | None:
    """The ratio, or a bound of it where the rival did not get there; None: not known."""
    if case[solver]["ms"] is not None:
        return _ratio(case, solver)
    failed = case[solver].get("failed_s")
    return 1e3 * failed / case["pegasos"]["ms"] if failed else None


def wide(rows: list[dict]) -> list[dict]:
    """A line per data set, a column per solver: milliseconds, the fastest in bold."""
    cases = _cases(rows)
    solvers = [name for name in ENTRANTS if any(name in case for case in cases)]
    lines = []
    for case in cases:
        times = {name: case[name]["ms"] if name in case else None for name in solvers}
        fastest = min((ms for ms in times.values() if ms is not None), default=None)
        cells = {ENTRANTS[n].label: _cell(ms, fastest) for n, ms in times.items()}
        lines.append({"ms": next(iter(case.values()))["set"]} | cells)
    return lines


def _cell(ms: float | None, fastest: float | None) -> str:
    if ms is None:
        return "-"
    text = f"{ms:.0f}" if ms >= 10 else f"{ms:.1f}"
    return f"**{text}**" if ms == fastest else text


def tables(rows: list[dict]) -> list[str]:
    """A wide table for each loss, C and eps; "-" is: not reached."""
    parts = []
    for loss, C, eps in sorted({(row["loss"], row["C"], row["eps"]) for row in rows}):
        chosen = [row for row in rows if (row["loss"], row["C"], row["eps"]) == (loss, C, eps)]
        parts += [f"{loss}, C = {C:g}, within {eps:g} (- not reached)", markdown(wide(chosen))]
    return parts


def draw(rows: list[dict], path: Path) -> None:
    """A strip per solver: its time as a multiple of ours in every case, and where it failed."""
    cases = [case for case in _cases(rows) if case["pegasos"]["ms"] is not None]
    solvers = [n for n in reversed(ENTRANTS) if n != "pegasos" and any(n in c for c in cases)]
    figure = Figure(figsize=(10.0, 1.6 + 0.45 * len(solvers)), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    times = [_ratio(c, n) for c in cases for n in solvers if n in c and c[n]["ms"] is not None]
    most = max(times, default=1.0)
    for height, solver in enumerate(solvers):
        _strip(axes, height, [case for case in cases if solver in case], solver, 3.0 * most)
    axes.axvline(1.0, color="#222222", linewidth=1.2)
    axes.set_yticks(range(len(solvers)), [ENTRANTS[name].label for name in solvers])
    axes.set_ylim(-0.6, len(solvers) - 0.4)
    _dress(axes, 3.0 * most)
    axes.set_title(_title(rows, len(cases)), loc="left", fontsize=11)
    save(figure, path)


def _strip(axes: Any, height: int, cases: list[dict], solver: str, edge: float) -> None:
    """Dots where the goal was reached, a bar at their mean, at the edge how often it was not."""
    for kind, colour, shift in (("text", COLOURS[0], 0.12), ("tall", COLOURS[1], -0.12)):
        own = [case for case in cases if (case[solver]["set"] in TEXT) == (kind == "text")]
        times = [_ratio(case, solver) for case in own if case[solver]["ms"] is not None]
        missed = len(own) - len(times)
        label = {"label": f"{kind}, one dot per case"} if height == 0 else {}
        dots = {"color": colour, "s": 26, "alpha": 0.75, "linewidths": 0.0}
        axes.scatter(times, [height + shift] * len(times), **dots, **label)
        if times:
            mean = np.exp(np.log(times).mean())
            axes.plot([mean] * 2, [height + shift - 0.1, height + shift + 0.1], color=colour, lw=3)
        if missed:
            axes.text(edge, height + shift, f"{missed} not reached", color=colour, fontsize=8,
                      ha="right", va="center")  # fmt: skip


def _dress(axes: Any, edge: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(right=1.2 * edge)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(
        "time / time of pegasos on two threads (bar: geometric mean); right of 1: slower"
    )
    axes.grid(axis="x", color="#e8e8e8")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.legend(loc="outside lower center", ncols=2, frameon=False)


def _title(rows: list[dict], n: int) -> str:
    eps = ", ".join(f"{e:g}" for e in sorted({row["eps"] for row in rows}))
    losses = ", ".join(sorted({row["loss"].replace("_", " ") for row in rows}))
    return f"Whole fits to within {eps} of the optimum: {n} cases ({losses})"
