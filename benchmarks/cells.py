"""CellSVC on all of covtype, beside scikit-learn's SVC on 40,000 rows of it.

80 % of the 581,012 rows to train with, class 2 against the rest, features to [0, 1], C = 32,
gamma = 64. Each entrant runs in a process of its own. The row of scikit-learn takes minutes: it is
kept from the run that made it, unless it is removed from the results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.table import HERE, save

OURS = ("cells", "no overlap", "selected")


def run() -> None:
    rows = [{"who": name, **_measured(name)} for name in OURS]
    theirs = next((row for row in _kept() if row["who"] == "libsvm"), None)
    rows.append(theirs or {"who": "libsvm", **_measured("libsvm")})
    save("cells", summary(rows), rows)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    of = {row["who"]: row for row in rows}
    ours, theirs = of["cells"], of["libsvm"]
    return [
        f"CellSVC, {ours['rows']:,} rows: {ours['accuracy %']:.2f} % of the test rows right after "
        f"{ours['fit s']:.0f} s, {ours['predict s']:.1f} s to predict them, {ours['peak MB']:.0f} "
        f"MB. scikit-learn's SVC, {theirs['rows']:,} rows: {theirs['accuracy %']:.2f} % after "
        f"{theirs['fit s']:.0f} s, {theirs['predict s']:.0f} s to predict."
    ]


def _measured(name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.rivals.cell_worker", name]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True)
    row = {"cells": None, "largest gap": None} | json.loads(done.stdout)
    print(name, row, flush=True)
    return row


def _kept() -> list[dict[str, Any]]:
    path = HERE / "results" / "cells.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []
