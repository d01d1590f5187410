"""Exact kernel machines side by side: pegasos, LIBSVM (scikit-learn's SVC), scikit-learn-intelex.

The same problem (Gaussian kernel, hinge, free offset) to a KKT violation of 1e-3 and with 2 GB for
kernel values, each in a process of its own. Cold is the first fit there, warm the fastest of those
after it. Every answer is judged here, in float64: dual value, KKT violation, accuracy. A rival's
answer is kept in the results and not computed again unless its row is removed.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.kernel_sets import SETS, Task, load
from benchmarks.rivals.environments import interpreter
from benchmarks.table import HERE, into_page, markdown, save

_SKLEARN = ("scikit-learn==1.9.1", "numpy==2.4.6", "scipy==1.17.1")
ENTRANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "pegasos": ("", ()),
    "pegasos-1": ("", ()),
    "pegasos-gap": ("", ()),
    "libsvm": ("scikit-learn", _SKLEARN),
    "intelex": ("intelex", ("scikit-learn-intelex==2026.2.0", *_SKLEARN)),
}
RIVALS = ("libsvm", "intelex")
KEPT = (
    "Ratios are of times in the table. A rival's rows are kept from the run that made them, so "
    "they may come from another run than ours."
)
SLOW = 8.0  # seconds after which a fit is not repeated


def run(names: tuple[str, ...] = SETS, entrants: tuple[str, ...] = tuple(ENTRANTS)) -> None:
    for name in names:
        known = {(row["set"], row["who"]): row for row in _kept()}
        task = load(name)
        with tempfile.TemporaryDirectory() as folder:
            _store(task, folder)
            for who in entrants:
                if who in RIVALS and (name, who) in known:
                    continue
                known[name, who] = {"set": name, "who": who, **_judged(task, folder, who)}
                print(known[name, who], flush=True)
                order = {key: k for k, key in enumerate((s, e) for s in SETS for e in ENTRANTS)}
                rows = [known[key] for key in sorted(known, key=lambda key: order[key])]
                save("kernels", _summary(rows), rows, rivals={"scikit-learn-intelex": "2026.2.0"})
                into_page("docs/guide/svc.md", "kernels", [*_summary(rows), markdown(_short(rows))])


def _kept() -> list[dict]:
    path = HERE / "results" / "kernels.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def _store(task: Task, folder: str) -> None:
    for name, X in (("X", task.X), ("Z", task.X_test)):
        if sp.issparse(X):
            sp.save_npz(Path(folder, f"{name}.npz"), X, compressed=False)
        else:
            np.save(Path(folder, f"{name}.npy"), X)
    np.save(Path(folder, "y.npy"), task.y)


def _judged(task: Task, folder: str, who: str) -> dict[str, Any]:
    """Times of an entrant, and its answer in float64."""
    from pegasos.core.threads import use_threads
    from pegasos.objective.certificate import evaluate
    from pegasos.objective.kernel_certificate import violation
    from pegasos.objective.kernel_points import points
    from pegasos.objective.kernel_problem import make_kernel_problem
    from pegasos.objective.kernels import Gaussian
    from pegasos.objective.losses import Hinge

    out = str(Path(folder, "answer.npz"))
    times = _asked(task, folder, who, out)
    found = np.load(out)
    kernel = Gaussian(task.gamma)
    with use_threads(2):
        c = np.full(len(task.y), task.C)
        problem = make_kernel_problem(kernel, points(kernel, task.X), task.y, c, Hinge(), True)
        seen = evaluate(problem, found["beta"])
    f = task.y * seen.margins - seen.w[-1] - task.y
    return {
        **times,
        "dual": seen.certificate.dual,
        "gap": seen.certificate.relative_gap,
        "kkt": violation(problem, found["beta"], f),
        "support": int(np.count_nonzero(found["beta"])),
        "accuracy": float(np.mean(np.sign(found["values"]) == task.y_test)),
    }


def _asked(task: Task, folder: str, who: str, out: str) -> dict[str, Any]:
    """A process for one request; where a fit takes long it is not repeated."""
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    request = {"name": who, "folder": folder, "C": task.C, "gamma": task.gamma, "out": out}
    answer: dict[str, Any] = {}
    for repeats in (1, 4):
        if answer and answer["cold"] > SLOW:
            break
        done = subprocess.run(
            [interpreter(*ENTRANTS[who]), "-m", "benchmarks.rivals.kernel_worker"],
            input=json.dumps(request | {"repeats": repeats}) + "\n",
            capture_output=True,
            text=True,
            env=environment,
        )
        if done.returncode or not done.stdout:
            raise RuntimeError(f"{who}: {(done.stderr.splitlines() or ['no answer'])[-1]}")
        answer = json.loads(done.stdout)
    return answer


def _summary(rows: list[dict]) -> list[str]:
    by = {(row["set"], row["who"]): row for row in rows}
    text: list[str] = []
    for rival in RIVALS:
        for kind in ("cold", "warm"):
            pairs = [
                (s, _time(by[s, rival], kind) / _time(by[s, "pegasos"], kind))
                for s in SETS
                if (s, rival) in by and (s, "pegasos") in by
            ]
            if pairs:
                worst = min(pairs, key=lambda pair: pair[1])
                mean = float(np.exp(np.mean([np.log(ratio) for _, ratio in pairs])))
                text.append(
                    f"{rival} / pegasos, {kind}: {mean:.1f} in geometric mean over {len(pairs)} "
                    f"sets, least {worst[1]:.1f} ({worst[0]})."
                )
    return [*text, KEPT] if text else ["No rival yet."]


def _short(rows: list[dict]) -> list[dict]:
    """A line per set: seconds of all, cold, and how the answers differ."""
    by = {(row["set"], row["who"]): row for row in rows}
    table = []
    for s in SETS:
        ours, theirs = by.get((s, "pegasos")), by.get((s, "libsvm"))
        if ours is None:
            continue
        times = {who: by[s, who]["cold"] if (s, who) in by else None for who in ENTRANTS}
        difference = (ours["dual"] - theirs["dual"]) / abs(theirs["dual"]) if theirs else None
        table.append({"set": s, **times, "dual value above LIBSVM's": difference})
    return table


def _time(row: dict, kind: str) -> float:
    return row[kind] or row["cold"]
