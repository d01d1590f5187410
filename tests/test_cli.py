"""The command line: what it prints, what it writes, how it fails."""

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import pegasos
from pegasos.cli import console
from pegasos.cli.console import counted, percent
from pegasos.cli.main import app
from pegasos.cli.warmup import heard
from pegasos.data.samples import load_sample
from pegasos.objective.certificate import Certificate
from pegasos.report.figures import convergence_figure
from pegasos.solvers.driver import Progress

HEAVY = ("numba", "sklearn", "matplotlib", "scipy", "numpy", "pandas")
PNG = b"\x89PNG\r\n\x1a\n"


def command(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`pegasos args` in a process of its own."""
    code = "from pegasos.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=cwd,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=300,
    )


def invoke(*args: str):
    return CliRunner().invoke(app, list(args))


def numbers_after(words: str, text: str) -> list[float]:
    return [float(number) for number in re.findall(rf"{words}\s+([\d.]+)", text)]


@pytest.mark.slow
@pytest.mark.jit
def test_demo_prints_the_certificate_and_writes_the_figure(tmp_path):
    output = tmp_path / "figure.png"
    output.write_text("old")
    done = invoke("demo", "--output", str(output))
    assert done.exit_code == 0, done.output
    assert output.read_bytes()[:8] == PNG
    assert list(tmp_path.iterdir()) == [output]
    (primal,), (dual,) = (
        numbers_after(words, done.output) for words in ("objective found", "proven lower bound")
    )
    assert dual <= primal <= dual * 1.00101
    text = " ".join(done.output.split())
    assert f"can have an objective lower than {dual:.4f}" in text
    assert "4,601 e-mails described by 57 word and character frequencies" in text
    assert "Stopped because the proven gap is below tol = 0.1 %" in text
    assert "kept aside are told apart correctly" in text
    assert "scikit-learn warned at C = " in text
    assert text.replace(" ", "").endswith(str(output).replace(" ", ""))


@pytest.mark.slow
@pytest.mark.jit
def test_contrast_is_on_one_objective():
    from pegasos.cli import demo

    names: list[str] = []
    data = demo._spambase(quiet_console())
    demo._compile(quiet_console(), data)
    with heard(names.append):
        trials = demo._trials(data)
        model, _ = demo._fit(data, C=1.0, intercept="penalised")
    assert names == []  # nothing is compiled while the clock runs
    assert demo._objective(data, 1.0, model) == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert all(trial.objective >= trial.bound for trial in trials)
    assert {trial.by for trial in trials} == {"pegasos", "scikit-learn"}
    ours = [t.objective / t.bound - 1.0 for t in trials if t.by == "pegasos"]
    assert max(ours) <= 1.001e-3


def test_demo_on_few_rows(tmp_path, monkeypatch):
    """All of the demo, small enough to run without the compiler."""
    X, y = load_sample("spambase")
    few = slice(None, None, 60)
    monkeypatch.setattr("pegasos.data.samples.load_sample", lambda name: (X[few, :8], y[few]))
    monkeypatch.setattr("pegasos.cli.demo.CONTRAST", (0.1,))
    monkeypatch.setattr("pegasos.cli.demo.CURVES", {"Newton's method": "newton"})
    done = invoke("demo", "--output", str(tmp_path / "figure.svg"))
    assert done.exit_code == 0, done.output
    assert "above the best possible" in " ".join(done.output.split())
    assert (tmp_path / "figure.svg").read_text().rstrip().endswith("</svg>")


def quiet_console():
    from rich.console import Console

    return Console(file=io.StringIO(), highlight=False)


def history(n: int, start: float = 1e-3) -> list[Progress]:
    """Objective and bound closing in on 10, by half at each moment."""
    gaps = [8.0 * 0.5**k for k in range(n)]
    proofs = [Certificate(10.0 + gap, 10.0 - gap) for gap in gaps]
    return [Progress(k, start * 1.5**k, 0.0, proof, None) for k, proof in enumerate(proofs)]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_of_short_and_long_runs(tmp_path, ending):
    runs = {"one": history(1), "two": history(2, start=0.1), "many": history(30)}
    for k in (1, 3):
        path = tmp_path / f"{k}.{ending}"
        figure = convergence_figure(dict(list(runs.items())[:k]), path, title="a", note="b")
        assert path.stat().st_size > 1000
        assert len(figure.axes) == k + 1
    assert len(list(tmp_path.iterdir())) == 2


def test_figures_without_anything_to_draw_are_refused():
    with pytest.raises(ValueError, match="no run"):
        convergence_figure({})
    with pytest.raises(ValueError, match="without a certificate"):
        convergence_figure({"a": [Progress(1, 1.0, 1.0, None, None)]})


def test_a_figure_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path, link = tmp_path / "figure.png", tmp_path / "link.png"
    path.write_text("old")
    link.symlink_to(path)

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", full_disk)
        with pytest.raises(OSError, match="No space left"):
            convergence_figure({"a": history(5)}, link)
    assert path.read_text() == "old"
    convergence_figure({"a": history(5)}, link)
    assert path.read_bytes()[:8] == PNG and link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [path, link]


@pytest.mark.parametrize("name", ["missing/figure.png", "file/figure.png", "folder.png"])
def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    before = sorted(tmp_path.rglob("*"))
    done = invoke("demo", "--output", str(tmp_path / name))
    assert done.exit_code == 3
    assert one_line(done.stderr).startswith(f"pegasos: {tmp_path / name}: ")
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user without all permissions"
)
def test_permissions_are_respected(tmp_path):
    (tmp_path / "figure.png").write_text("old")
    (tmp_path / "figure.png").chmod(0o444)
    assert invoke("demo", "--output", str(tmp_path / "figure.png")).exit_code == 3
    (tmp_path / "closed").mkdir(mode=0o555)
    assert invoke("demo", "--output", str(tmp_path / "closed" / "figure.png")).exit_code == 3


def one_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["dmeo"], "dmeo"),
        (["--nonsense"], "--nonsense"),
        (["demo", "--nonsense"], "--nonsense"),
        (["demo", "--output"], "--output"),
        (["demo", "extra"], "extra"),
        (["demo", "--output", "figure.bmp"], ".png, .svg, .pdf"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(args, words):
    done = invoke(*args)
    assert done.exit_code == 2
    assert words in one_line(done.stderr)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("line 3:\n  no label"), 2, "line 3: no label"),
        (FileNotFoundError(2, "No such file", "a.svm"), 3, "a.svm: No such file"),
        (MemoryError("8 GB"), 3, "out of memory: 8 GB"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("division by zero"), 1, "ZeroDivisionError"),
    ],
)
def test_errors_of_commands(monkeypatch, error, code, words):
    def fail(path):
        raise error

    monkeypatch.setattr("pegasos.report.figures.check_writable", fail)
    done = invoke("demo")
    assert done.exit_code == code
    assert words in one_line(done.stderr)
    debugged = invoke("--debug", "demo")
    assert debugged.exit_code == code
    assert code == 130 or "Traceback" in debugged.stderr


def test_version_and_help():
    assert invoke("--version").stdout == f"pegasos {pegasos.__version__}\n"
    for args in ([], ["--help"], ["-h"]):
        done = invoke(*args)
        assert done.exit_code == 0
        assert "demo" in done.stdout and "warmup" in done.stdout


def test_help_is_light(tmp_path):
    code = f"""
import sys
from pegasos.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("HEAVY", *[name for name in {HEAVY!r} if name in sys.modules])
"""
    for args in (["--help"], ["demo", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *args], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "HEAVY"


def test_help_is_quick(tmp_path):
    def seconds() -> float:
        start = time.perf_counter()
        assert command("--help", cwd=tmp_path).returncode == 0
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.5


@pytest.mark.slow
@pytest.mark.jit
def test_warmup_compiles_the_common_set():
    import numpy as np
    import scipy.sparse as sp

    from pegasos import SVC, LinearSVC, LogisticRegression, PegasosClassifier

    done = invoke("warmup")
    assert done.exit_code == 0, done.output
    assert "They are kept in " in done.stdout
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 40)), rng.random(300) < 0.5
    names: list[str] = []
    with heard(names.append):
        for dtype in (np.float32, np.float64):
            for rows in (X.astype(dtype), sp.csr_array(X.astype(dtype) * (X > 1.5))):
                for model in (LinearSVC(loss="hinge"), LinearSVC(), LogisticRegression(C=0.1)):
                    model.fit(rows, y).predict(rows)
                SVC().fit(rows, y).predict(rows)
        rows = sp.csr_array(X.astype(np.float32) * (X > 1.5))
        PegasosClassifier(lam=0.1, tol=1.0).fit(rows, y).partial_fit(rows, y).predict(rows)
    assert names == []


def test_warmup_without_compiler_or_place(tmp_path):
    done = command("warmup", cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0 and "nothing to compile" in done.stdout
    (tmp_path / "file").write_text("")
    env = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    done = command("warmup", cwd=tmp_path, **env)
    assert done.returncode == 3
    assert str(tmp_path / "file") in one_line(done.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("raise max_iter (now 3). More max_iter.", "raise --max-iter (now 3). More --max-iter."),
        ("solver='dual' is slow", "--solver dual is slow"),
        ("tol=0.1, or so", "--tol 0.1, or so"),
        ("tol must be above 0", "--tol must be above 0"),
        ("no file 'max_iter=3.svm', label 'tol=0.1'", "no file 'max_iter=3.svm', label 'tol=0.1'"),
    ],
)
def test_words_of_the_library_name_the_options(words, said):
    console.speak_of(get_command(app).commands["train"].params)
    assert console.as_typed(words) == said


@pytest.mark.parametrize(
    ("share", "words"),
    [(8.6e-4, "0.086"), (0.5, "50"), (0.994, "99"), (0.996, "100"), (1.0, "100"), (12.3, "1230")],
)
def test_shares_in_words(share, words):
    """Never 1e+02."""
    assert percent(share) == words


def test_one_thing_is_not_several():
    assert counted(1, "loop") == "1 loop" and counted(14_000, "loop") == "14,000 loops"
