"""Tables: JSON and Markdown under benchmarks/results, and the blocks of pages between markers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def save(
    name: str,
    text: list[str],
    rows: list[dict],
    tables: Sequence[str] = (),
    rivals: Mapping[str, str] | None = None,
) -> None:
    """Write results/NAME.json and results/NAME.md, and print the summary.

    `tables` stand between summary and rows, `rivals` are versions of packages from elsewhere.
    """
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    about = {"python": platform.python_version(), "machine": platform.machine()} | {
        package: version(package)
        for package in ("pegasos", "numpy", "scipy", "scikit-learn", "numba")
    }
    about |= rivals or {}
    (folder / f"{name}.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1))
    (folder / f"{name}.md").write_text("\n\n".join([*text, *tables, markdown(rows)]) + "\n")
    print("\n".join(text))


def merged(
    name: str, rows: list[dict], keys: tuple[str, ...], order: tuple[str, ...]
) -> list[dict]:
    """`rows` with the saved ones that they do not replace: a partial run keeps the rest."""
    path = HERE / "results" / f"{name}.json"
    old = json.loads(path.read_text())["rows"] if path.exists() else []
    table = {tuple(row[k] for k in keys): row for row in [*old, *rows]}
    rank = [key for key in keys if key != "set"]
    return sorted(table.values(), key=lambda r: (order.index(r["set"]), *(r[k] for k in rank)))


def into_page(page: str, name: str, parts: list[str]) -> None:
    """Replace what stands between <!-- NAME --> and <!-- /NAME --> in a page of the project."""
    path = HERE.parent / page
    before, rest = path.read_text().split(f"<!-- {name} -->")
    _, after = rest.split(f"<!-- /{name} -->")
    block = "\n\n".join(["", *parts, ""])
    path.write_text(f"{before}<!-- {name} -->{block}<!-- /{name} -->{after}")


def markdown(rows: list[dict]) -> str:
    """Rows as a Markdown table; those of an earlier form may lack a key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(cell(row.get(key)) for key in keys) + " |" for row in rows]
    return "\n".join(lines)


def cell(value) -> str:
    """A value as the tables show it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):  # of repetitions
        return f"{np.mean(value):.4f} ± {np.std(value, ddof=1):.4f}"
    if isinstance(value, int) or (isinstance(value, float) and abs(value) >= 999.5):
        return f"{value:,.0f}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
