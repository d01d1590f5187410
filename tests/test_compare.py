"""pegasos compare: what it measures, draws and writes, and how it fails."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import random_problem
from typer.testing import CliRunner

from pegasos.cli.main import app
from pegasos.losses import Hinge, Pinball, SquaredHinge
from pegasos.objective.certificate import evaluate
from pegasos.report.comparison import (
    NAMES,
    Holdout,
    Limit,
    Method,
    compare,
    curve,
    method_named,
)
from pegasos.report.comparison_figure import comparison_figure
from pegasos.solvers.auto import solver_named
from pegasos.solvers.schedules import Constant
from pegasos.solvers.subgradient import Subgradient

HEART = Path(__file__).resolve().parents[1] / "src/pegasos/data/samples/heart_scale.svm"
LIMIT = Limit(epochs=12, seconds=600.0)


def invoke(*args):
    return CliRunner().invoke(app, ["compare", *(str(arg) for arg in args)])


def comparison(intercept="free", loss=None, **options):
    problem = random_problem(5, loss or Hinge(), intercept=intercept, n=40, d=4)
    other = "newton_cg" if isinstance(problem.loss, Pinball) else "interior"
    names = [name for name in NAMES if name != other]
    methods = {name: method_named(name, problem, LIMIT.epochs) for name in names}
    return problem, compare(problem, methods, LIMIT, **options)


@pytest.mark.parametrize("intercept", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Pinball(0.3)], ids=repr)
def test_no_curve_is_nearer_than_the_optimum_is_known(intercept, loss):
    _, found = comparison(intercept, loss)
    assert 0.0 <= found.accuracy <= 1e-7
    for name, moments in found.curves.items():
        epochs = [m.epoch for m in moments]
        assert epochs == sorted(set(epochs)) and epochs[-1] <= LIMIT.epochs, name
        assert all(a.seconds < b.seconds for a, b in zip(moments, moments[1:], strict=False))
        assert all(found.above(m.primal) >= found.accuracy for m in moments), name
        assert all(m.dual <= found.best.dual for m in moments), name
    assert found.above(found.curves["newton"][-1].primal) < 1e-2
    assert found.above(found.curves["perceptron"][-1].primal) > 1e-2


def test_a_moment_is_the_objective_of_the_point_that_the_solver_returns():
    problem = random_problem(5, Hinge(), intercept="free", n=40, d=4)
    solver = Subgradient(epochs=3)
    state = solver.init(problem, 7)
    for moment in curve(problem, Method(solver), Limit(3, 600.0), seed=7):
        state = solver.step(problem, state)
        assert moment.epoch == state.epoch
        assert moment.primal == evaluate(problem, *solver.candidate(problem, state))[3].primal


def test_the_clock_stands_still_while_a_point_is_evaluated(monkeypatch):
    def slow(*args):
        time.sleep(0.2)
        return evaluate(*args)

    problem = random_problem(5, Hinge(), intercept="none", n=40, d=4)
    method = Method(solver_named("dual", problem))
    curve(problem, method, Limit(3, 600.0))  # what is compiled is compiled now
    monkeypatch.setattr("pegasos.report.comparison.evaluate", slow)
    moments = curve(problem, method, Limit(3, 600.0))
    assert len(moments) == 3 and moments[-1].seconds < 0.2


def test_the_limit_of_seconds_ends_a_solver():
    problem = random_problem(5, Hinge(), intercept="none", n=40, d=4)
    moments = curve(problem, method_named("pegasos", problem), Limit(10**9, 0.05))
    assert moments[-1].seconds >= 0.05 and moments[-1].epoch < 10**9


def test_test_errors_are_those_of_the_points():
    problem, _ = comparison()
    wrong = Holdout(problem.rows, -problem.y)
    _, right = comparison(test=Holdout(problem.rows, problem.y))
    _, turned = comparison(test=wrong)
    for name, moments in right.curves.items():
        for m, other in zip(moments, turned.curves[name], strict=True):
            assert m.test_error + other.test_error == pytest.approx(1.0)


def test_a_method_that_overflows_is_drawn_as_far_away():
    problem = random_problem(5, SquaredHinge(), intercept="none", n=40, d=4)
    steps = Constant(1e200)
    wild = Subgradient(schedule=steps, projection=False, offset="none")
    methods = {"wild": Method(wild), "newton": method_named("newton", problem)}
    found = compare(problem, methods, LIMIT)
    assert not np.isfinite(found.above(found.curves["wild"][-1].primal))
    assert found.accuracy <= 1e-7
    comparison_figure(found).canvas.draw()


def test_ctrl_c_in_a_solver_ends_the_comparison():
    class Interrupted(Subgradient):
        def step(self, problem, state):
            raise KeyboardInterrupt

    problem = random_problem(5, Hinge(), n=40, d=4)
    with pytest.raises(KeyboardInterrupt):
        compare(problem, {"a": Method(Interrupted())}, LIMIT)


SMALL = ("--max-epochs", 5, "--no-cache", "--threads", 1)


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_table_figure_and_curves(tmp_path, ending):
    figure, curves = tmp_path / f"figure.{ending}", tmp_path / "curves.json"
    names = "dual,newton,interior,pegasos,sgd,batch,perceptron"
    done = invoke(
        *(HEART, "--solvers", names, "--test", HEART, "-o", figure, "--json", curves), *SMALL
    )
    assert done.exit_code == 0, done.output
    assert figure.stat().st_size > 10_000
    assert sorted(tmp_path.iterdir()) == sorted([figure, curves])
    facts = json.loads(curves.read_text())
    assert list(facts["curves"]) == names.split(",")
    assert facts["optimum"]["accuracy"] <= 1e-8
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    for name, moments in facts["curves"].items():
        epochs = [m["epoch"] for m in moments]
        assert epochs == sorted(set(epochs))
        assert all(m["above"] >= -facts["optimum"]["accuracy"] for m in moments)
        assert all(0.0 <= m["test_error"] <= 1.0 for m in moments)
        assert lines[name][1] == str(epochs[-1])
        assert lines[name][3] == f"{moments[-1]['above']:.1e}"
        assert lines[name][5] == f"{100 * moments[-1]['test_error']:.2f}"
    assert "The perceptron does not minimise this objective" in done.stdout
    assert "the optimum lies between" in done.stdout


def test_what_an_epoch_is_of_auto_depends_on_its_choice():
    from pegasos.cli.compare import _remarks

    steps, chosen = _remarks({"curves": {"dual": [], "newton": [], "auto": []}})
    assert steps.startswith("An epoch of newton is a step") and "that it chooses" in chosen


@pytest.mark.slow
@pytest.mark.jit
def test_lam_is_another_name_and_json_goes_to_the_output(tmp_path):
    def bound(*args):
        output = ("-o", tmp_path / "f.svg", "--json", "-")
        done = invoke(HEART, "--solvers", "newton", *args, *output, *SMALL)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)["optimum"]["dual"]

    assert bound("-C", 0.5) == pytest.approx(bound("--lam", 1 / (0.5 * 270)), rel=1e-7)


@pytest.mark.slow
@pytest.mark.jit
def test_one_class_against_the_rest_and_a_narrower_test_file(tmp_path):
    rows = [f"{k} 1:{k}.5 2:{5 * (k == 2) + i} 3:1\n" for i in range(20) for k in (1, 2, 3)]
    (tmp_path / "three.svm").write_text("".join(rows))
    (tmp_path / "narrow.svm").write_text("2 1:2.5 2:6\n1 1:1.5\n")
    (tmp_path / "wide.svm").write_text("2 1:2.5 9:6\n1 1:1.5\n")
    args = (tmp_path / "three.svm", "-o", tmp_path / "f.png", "--solvers", "dual", *SMALL)
    done = invoke(*args)
    assert done.exit_code == 2 and "3 classes: name one with --positive" in done.stderr
    done = invoke(*args, "--positive", "4")
    assert done.exit_code == 2 and "the classes are 1, 2, 3" in done.stderr
    for test in ("narrow", "wide"):
        done = invoke(*args, "--positive", "2", "--test", tmp_path / f"{test}.svm")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--solvers", "dual,simplex"], "no solver is named 'simplex'; the solvers are auto, dual"),
        (["--solvers", ","], "--solvers names none"),
        (["--solvers", "interior", "--loss", "logistic"], "interior is for hinge and pinball"),
        (["--loss", "zero_one"], "zero_one"),
        (["--loss", "pinball", "--tau", "2"], "0 <= tau <= 1"),
        (["-C", "-1"], "C must be finite and a number > 0"),
        (["--lam", "0"], "--lam must be finite and a number > 0"),
        (["--max-epochs", "0"], "--max-epochs"),
        (["--max-time", "nan"], "--max-time must be finite"),
        (["--seed", "-1"], "--seed"),
        (["--output", "figure.bmp"], ".png, .svg, .pdf"),
        (["--json", "comparison.png"], "need a file each"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(args, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke(HEART, *args)
    assert done.exit_code == 2, done.output
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--output", "--json"])
def test_an_output_that_cannot_be_written_is_found_before_the_work(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("missing.svm", option, "nowhere/out.png")
    assert done.exit_code == 3
    assert "nowhere/out.png" in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_input_is_not_overwritten(tmp_path):
    data = tmp_path / "data.png"
    data.write_bytes(HEART.read_bytes())
    assert invoke(data, "-o", data).exit_code == 2
    assert data.read_bytes() == HEART.read_bytes()


@pytest.mark.slow
@pytest.mark.jit
def test_ctrl_c_leaves_what_was_there_and_exits_with_130(tmp_path):
    (tmp_path / "f.png").write_text("old")
    endless = ("--max-epochs", "1000000000", "--max-time", "600", "--no-cache")
    args = ("compare", HEART, "-o", "f.png", "--json", "f.json", "--solvers", "pegasos", *endless)
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from pegasos.report import comparison\n"
    code += "inner = comparison.compare\n"
    code += "def compare(*args, **how):\n    print('begins', flush=True)\n"
    code += "    return inner(*args, **how)\n"
    code += "comparison.compare = compare\nfrom pegasos.cli.main import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *(str(arg) for arg in args)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "begins\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert said.splitlines()[-1] == "pegasos: interrupted"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("f.png", "old")]


def test_solvers_with_too_large_a_matrix_are_left_out(capsys):
    from pegasos.cli.compare import _possible

    assert _possible(["newton", "dual"], 100) == ["newton", "dual"]
    assert _possible(["newton", "dual", "interior"], 20_000) == ["dual"]
    assert "newton, interior left out" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ValueError, match="try dual,pegasos"):
        _possible(["newton"], 20_000)
