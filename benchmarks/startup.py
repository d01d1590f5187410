"""What a second process pays: imports, and a small fit from the warm cache, beside scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.table import save

_DATA = "from pegasos.data.samples import load_sample; X, y = load_sample('pima');"
PROGRAMS = {
    "import sklearn": "import sklearn",
    "import pegasos": "import pegasos",
    "fit pima, scikit-learn": _DATA + "from sklearn.svm import LinearSVC; LinearSVC().fit(X, y)",
    "fit pima, pegasos": _DATA + "from pegasos import LinearSVC; LinearSVC().fit(X, y)",
}


def run(repeats: int = 7) -> None:
    for program in PROGRAMS.values():
        _seconds(program)
    rows = [
        {"program": name, "best_s": min(_seconds(program) for _ in range(repeats))}
        for name, program in PROGRAMS.items()
    ]
    s = {row["program"]: row["best_s"] for row in rows}
    text = [
        f"import pegasos {s['import pegasos']:.2f} s, import sklearn {s['import sklearn']:.2f} s; "
        f"a second process that fits pima: {s['fit pima, pegasos']:.2f} s, "
        f"with scikit-learn's LinearSVC {s['fit pima, scikit-learn']:.2f} s."
    ]
    save("startup", text, rows)


def _seconds(program: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
    return time.perf_counter() - start
