"""CellSVC on all of covtype, beside scikit-learn's SVC on 40,000 rows of it.

80 % of the 581,012 rows to train with, class 2 against the rest, features to [0, 1], C = 32,
gamma = 64. Each entrant runs in a process of its own. scikit-learn takes many minutes: its row is
kept from the run that made it, unless it is removed from the results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.table import HERE, into_page, markdown, save

OURS = ("cells", "no overlap")
RIVALS = ("libsvm 40000",)


def run() -> None:
    kept = {row["who"]: row for row in _kept() if row["who"] in RIVALS}
    report([kept.get(name) or _measured(name) for name in (*OURS, *RIVALS)])


def report(rows: list[dict[str, Any]]) -> None:
    text = summary(rows)
    save("cells", text, rows)
    into_page("docs/guide/cells.md", "cells", [*text, markdown(rows)])


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """A sentence for each who made a row."""
    return [
        f"{row['who']}: {row['rows']:,} rows in {row['fit s']:.0f} s, {row['accuracy %']:.2f} % of "
        f"the test rows right, {row['predict s']:.1f} s to predict them, {row['peak MB']:.0f} MB."
        for row in rows
    ]


def _measured(name: str) -> dict[str, Any]:
    given = name.split() if name in RIVALS else [name]
    command = [sys.executable, "-m", "benchmarks.rivals.cell_worker", *given]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True)
    row = {"who": name, "cells": None, "largest gap": None} | json.loads(done.stdout)
    print(row, flush=True)
    return row


def _kept() -> list[dict[str, Any]]:
    path = HERE / "results" / "cells.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []
