"""The examples and the pages of the documentation, run; the loss from outside obeys the laws."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import random_problem
from hypothesis import given
from hypothesis import strategies as st

from pegasos.losses import conjugate, dual_step, slope, value
from pegasos.objective.losses import check_loss, domain
from pegasos.objective.problem import make_problem
from pegasos.solvers.auto import solver_named
from pegasos.solvers.driver import Stop, run

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import cells as cell_guide  # noqa: E402
import from_perceptron_to_pegasos as guide  # noqa: E402
import kernels as kernel_guide  # noqa: E402
import maps as map_guide  # noqa: E402
import own_loss  # noqa: E402
from own_loss import SmoothedHinge  # noqa: E402

PAGES = [
    "index.md",
    "guide/linear.md",
    "guide/multiclass.md",
    "guide/transfer.md",
    "guide/svc.md",
    "guide/polynomial.md",
    "guide/cells.md",
    "guide/own-loss.md",
    "guide/stochastic.md",
    "guide/kernels.md",
    "guide/maps.md",
    "guide/probabilities.md",
    "guide/imbalance.md",
    "guide/from-perceptron-to-pegasos.md",
]
GUIDE = ROOT / "docs" / PAGES[-1]
GAMMAS = st.sampled_from((0.1, 0.5, 1.0, 2.0)).map(SmoothedHinge)
MARGINS = st.floats(-10.0, 10.0)
SHARES = st.floats(0.0, 1.0)
POSITIVE = st.floats(1e-2, 1e2)


@given(loss=GAMMAS, z=MARGINS, a=SHARES)
def test_fenchel_young(loss, z, a):
    assert value(loss, z) + conjugate(loss, a) + a * z >= -1e-12
    a = -slope(loss, z)
    assert value(loss, z) + conjugate(loss, a) + a * z == pytest.approx(0.0, abs=1e-12)


@given(loss=GAMMAS, share=SHARES, z=MARGINS, q=st.just(0.0) | POSITIVE, c=POSITIVE)
def test_dual_step_is_the_best_of_a_grid(loss, share, z, q, c):
    alpha = share * c

    def gain(new):
        return -z * (new - alpha) - 0.5 * q * (new - alpha) ** 2 - c * conjugate(loss, new / c)

    new = dual_step(loss, alpha, z, q, c)
    assert 0.0 <= new <= c
    best = max(gain(share * c) for share in np.linspace(0.0, 1.0, 201))
    assert gain(new) >= best - 1e-12 * (c + q * c * c)


@given(loss=GAMMAS, z=MARGINS, c=POSITIVE)
def test_dual_step_without_proximal_term_is_the_slope(loss, z, c):
    assert dual_step(loss, 0.3 * c, z, 0.0, c) == pytest.approx(-c * slope(loss, z), abs=1e-9 * c)


def test_domain_and_limits():
    loss = check_loss(SmoothedHinge(0.5))
    assert domain(loss) == (0.0, 1.0)
    assert value(SmoothedHinge(1e-9), -2.0) == pytest.approx(3.0)  # the hinge
    assert value(loss, 1.0) == 0.0 and value(loss, 0.5) == 0.25


@pytest.mark.parametrize("kind", ["dense-float32", "dense-float64", "csr-float32-uint32"])
@pytest.mark.parametrize("intercept", ["free", "penalised"])
def test_solvers_agree_and_reach_the_gap(kind, intercept):
    problem = random_problem(7, SmoothedHinge(0.5), kind, intercept, n=60, d=6)
    stop = Stop(tol=1e-6, max_epochs=20_000)
    dual, newton = (run(solver_named(s, problem), problem, stop) for s in ("dual", "newton"))
    for found in (dual, newton):
        assert found.stop_reason == "gap"
        assert found.certificate.relative_gap <= 1e-6
    assert np.allclose(dual.best.w, newton.best.w, atol=0.02)
    best = max(dual.certificate.dual, newton.certificate.dual)
    assert min(dual.certificate.primal, newton.certificate.primal) >= best - 1e-9


def test_it_lies_between_the_hinge_and_the_hinge_less_half_gamma():
    """l <= hinge <= l + gamma/2, so the optima are as close as that."""
    from pegasos.losses import Hinge

    smooth = random_problem(3, SmoothedHinge(0.2), n=40)
    sharp = make_problem(smooth.rows, smooth.y, smooth.c, Hinge(), smooth.center)
    stop = Stop(tol=1e-8, max_epochs=20_000)
    rounded, plain = (
        run(solver_named("newton", p), p, stop).certificate.primal for p in (smooth, sharp)
    )
    assert rounded <= plain + 1e-6
    assert plain <= rounded + 0.1 * float(smooth.c.sum()) + 1e-6


@pytest.mark.slow
@pytest.mark.jit
def test_own_loss_prints_its_certificates(capsys):
    own_loss.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["dual", "newton"]
    assert all(float(line.split()[-1]) <= 1e-3 for line in lines)


@pytest.mark.slow
@pytest.mark.jit
def test_the_figures_of_the_guide_show_what_it_says(tmp_path):
    errors = guide.lines(tmp_path)
    assert errors["worst"] - errors["best"] > 0.2 and errors["svm"] < 0.25
    steps, batches, exact = (draw(tmp_path) for draw in (guide.steps, guide.batches, guide.exact))
    last, plain, weighted = (above(steps, label) for label in steps.curves)
    assert np.mean(weighted < last) > 0.8 and plain[-1] > 3.0 * weighted[-1]
    rises = last[1:] / last[:-1]
    assert rises.max() > 2.0 and np.all(weighted[1:] < weighted[:-1])
    everything, some, one = (above(batches, label)[9] for label in batches.curves)
    assert everything > 5.0 and max(some, one) < 0.35
    ends = {label: above(exact, label)[-1] for label in exact.curves}
    assert 5.0 * ends["dual coordinate descent"] < ends["Pegasos"] < 1e-3
    turned, wrong = np.array(list(guide.noise(tmp_path, repeats=2).values())).transpose(2, 0, 1)
    assert np.all(turned[0, 1:] > 1.5 * turned[2, 1:]) and np.all(wrong[0] < wrong[2])
    assert guide.proof(tmp_path) <= 1e-2
    names = set(re.findall(r"images/(guide-.*?png)", GUIDE.read_text("utf-8")))
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.slow
@pytest.mark.jit
def test_the_figures_of_the_kernel_guide_show_what_it_says(tmp_path):
    errors = kernel_guide.kernels(tmp_path)
    assert errors["linear"] > 0.1 and max(list(errors.values())[1:]) < 0.06
    every, few = kernel_guide.budget(tmp_path)
    assert every > 300 and few == 30
    assert kernel_guide.classes(tmp_path) > 0.95
    page = (ROOT / "docs/guide/kernels.md").read_text("utf-8")
    names = set(re.findall(r"images/(kernel.*?png)", page))
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.slow
@pytest.mark.jit
def test_the_figure_of_cells_shows_that_overlap_mends_borders(tmp_path):
    whole, apart, mended = cell_guide.cells(tmp_path).values()
    assert apart < mended <= whole + 0.002
    assert (tmp_path / "cells.png").exists()


def test_the_verdicts_of_the_kernel_guide_are_those_of_its_code(tmp_path, capsys):
    page = (ROOT / "docs/guide/kernels.md").read_text("utf-8")
    code = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "words" in b)
    exec("import numpy as np\n" + code, {"__name__": "page"})
    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"\| (no kernel: .*?) \|", page)


def above(comparison, label):
    return np.array([comparison.above(m.primal) for m in comparison.curves[label]])


def test_the_page_shows_the_example_as_it_is():
    page = (ROOT / "docs/guide/own-loss.md").read_text("utf-8")
    assert f"```python\n{(ROOT / 'examples/own_loss.py').read_text('utf-8')}```" in page


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / "docs" / page
    text = path.read_text("utf-8")
    names = {"__name__": "page"}
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        lines_before = text[: block.start()].count("\n") + 1
        exec(compile("\n" * lines_before + block[1], str(path), "exec"), names)


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.slow
def test_the_figure_of_the_map_guide_shows_what_it_says(tmp_path):
    errors = map_guide.maps(tmp_path, sizes=(20, 200), seeds=1)
    assert all(many < few for few, many in errors.values())
    assert errors["Nyström, k-means"][1] < errors["Fourier"][1]
    assert (tmp_path / "maps.png").exists()
