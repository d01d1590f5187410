"""CellSVC: laws of the cells, of the machines in them, and of the decisions they make together."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import SEEDS
from hypothesis import given, settings
from hypothesis import strategies as st

from pegasos import SVC, CellSVC
from pegasos.kernels import Function, Gaussian, Linear
from pegasos.objective.kernel_points import n_points, take
from pegasos.objective.nearest import nearest, places
from pegasos.solvers.cells import cells_of

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def rings():
    """Two classes on rings, a little noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 2))
    radius = np.hypot(*X.T) + 0.1 * rng.normal(size=240)
    return X, np.where(radius % 1.0 < 0.5, "even", "odd")


@pytest.fixture(scope="module")
def islands():
    """Three classes: of each an island, and one island of the first two."""
    rng = np.random.default_rng(4)
    where = np.repeat(np.arange(4), 40)
    X = np.array([[0, 0], [30, 0], [0, 30], [30, 30]])[where] + rng.normal(size=(160, 2))
    return X, np.where(where == 3, np.arange(160) % 2, where)


def model(**options):
    return CellSVC(**({"cell_size": 60, "random_state": 0, "gamma": 2.0} | options))


@settings(max_examples=5)
@given(seed=SEEDS, n=st.integers(1, 60), limit=st.integers(1, 20), kinds=st.integers(1, 30))
def test_every_row_is_in_one_cell_and_none_is_above_the_limit(seed, n, limit, kinds):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(kinds, 3)).astype(np.float32)[rng.integers(kinds, size=n)]
    cells = cells_of(X, limit, int(rng.integers(1, n + 1)), near=5, rng=rng)
    assert np.array_equal(np.sort(np.concatenate(cells.own)), np.arange(n))
    assert all(0 < own.size <= limit for own in cells.own)
    assert len(cells.centres) == len(cells.own) == n_points(cells.places)
    squares = ((X[:, None] - cells.centres) ** 2).sum(axis=2)
    for j, (own, near) in enumerate(zip(cells.own, cells.near, strict=True)):
        assert squares[own, j] == pytest.approx(squares[own].min(axis=1), abs=1e-4)
        assert near.size <= 5 and not np.intersect1d(own, near).size


def test_near_rows_are_those_next_to_the_border():
    X = np.linspace(0.0, 1.0, 100)[:, None]
    cells = cells_of(X, 60, 2, near=7, rng=np.random.default_rng(0))
    left, right = sorted(zip(cells.own, cells.near, strict=True), key=lambda both: both[0][0])
    assert np.array_equal(left[1], right[0][:7]) and np.array_equal(right[1], left[0][-7:])


def test_nearest_centres_come_in_order():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    rows = places(X)
    index, squares = nearest(rows, places(Z, rows), 4)
    all_squares = ((X[:, None] - Z) ** 2).sum(axis=2)
    assert np.array_equal(index, np.argsort(all_squares, axis=1)[:, :4])
    assert squares == pytest.approx(np.sort(all_squares, axis=1)[:, :4], rel=1e-4)
    first = nearest(take(rows, slice(5)), places(Z, rows))[0]
    assert np.array_equal(first[:, 0], index[:5, 0])


@pytest.mark.slow
def test_one_cell_is_svc(rings, islands):
    for X, y in (rings, islands):
        for several in ("ovo", "ovr"):
            ours = model(cell_size=1000, multi_class=several).fit(X, y)
            svc = SVC(gamma=2.0, random_state=0, multi_class=several).fit(X, y)
            assert np.array_equal(ours.decision_function(X), svc.decision_function(X))
            assert np.array_equal(ours.n_support_, svc.n_support_)
            assert ours.certificates_ == [svc.certificate_]
            assert len(ours.cells_) == 1 and ours.cells_[0].size == len(X)


def test_a_cell_is_the_svc_of_its_rows(rings):
    """With its own certificate; prediction asks the cell of the nearest centre and no other."""
    X, y = rings
    fitted = model(overlap=0.2).fit(X, y)
    assert len(fitted.cells_) > 3
    centres = np.array([cell.centre for cell in fitted.cells_])
    cell = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(np.bincount(cell), [c.size for c in fitted.cells_])
    for j, own in enumerate(fitted.cells_):
        assert own.size <= 60 and own.size < own.learnt <= own.size + 12
        assert fitted.certificates_[j].relative_gap <= 1e-3
        mine = X[cell == j]
        alone = own.machine.decision_function(mine)
        assert fitted.decision_function(X)[cell == j] == pytest.approx(alone, abs=1e-6)
        support = own.machine.support_
        assert np.array_equal(X[support], own.machine.support_vectors_)
    total = sum(c.primal for c in fitted.certificates_)
    assert fitted.certificate_.primal == pytest.approx(total)
    assert fitted.n_support_.sum() == sum(c.machine.support_.size for c in fitted.cells_)
    assert fitted.score(X, y) > 0.75


@pytest.mark.parametrize("several", ["ovo", "ovr"])
def test_cells_without_some_classes(islands, several):
    """A class that is not in a cell is never predicted there, and its score is the lowest."""
    X, y = islands
    fitted = model(overlap=0.0, n_cells=4, multi_class=several).fit(X, y)
    held = [cell.classes.tolist() for cell in fitted.cells_]
    assert sorted(held)[:1] == [[0]] and [0, 1] in held and [2] in held
    scores, predicted = fitted.decision_function(X), fitted.predict(X)
    assert scores.shape == (160, 3)
    assert np.array_equal(predicted, scores.argmax(axis=1))
    assert np.array_equal(predicted[:120], y[:120])
    assert (scores[120:, 2] < scores[120:, :2].min(axis=1)).all()
    assert not (predicted[120:] == 2).any()
    for cell, certificate in zip(fitted.cells_, fitted.certificates_, strict=True):
        assert (cell.machine is None) == (cell.classes.size == 1)
        assert certificate.relative_gap <= 1e-3


def test_a_row_that_all_classes_of_its_cell_refuse_gets_one_of_them():
    """Against the rest: noise, where each of three classes may score below -1; a fourth is far."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(150, 2)), 50.0 + rng.normal(size=(10, 2))])
    y = np.append(rng.choice(list("abc"), 150), ["d"] * 10)
    given = {"multi_class": "ovr", "C": 100.0, "gamma": 20.0, "cell_size": 160}
    fitted = model(n_cells=2, overlap=0.0, **given).fit(X, y)
    scores = fitted.decision_function(rng.normal(size=(2000, 2)))
    assert (scores[:, :3].max(axis=1) < -1.0).any()
    assert (scores[:, 3] <= scores[:, :3].min(axis=1) - 1.0).all()


def test_a_cell_of_one_class_decides_as_an_svc_would(islands):
    X, y = islands
    two = y[:80] == 1  # an island each
    fitted = model(overlap=0.0, n_cells=2).fit(X[:80], two)
    assert all(cell.machine is None for cell in fitted.cells_)
    assert np.array_equal(fitted.decision_function(X[:80]), np.where(two, 1.0, -1.0))
    assert fitted.certificate_ == (0.0, 0.0) and not fitted.n_support_.any()


def test_threads_change_no_bit(rings):
    X, y = rings
    one, many = (model(n_threads=k, select={"C": [0.5, 2]}).fit(X, y) for k in (1, 3))
    assert np.array_equal(one.decision_function(X), many.decision_function(X))
    assert one.certificates_ == many.certificates_
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(one.decision_function(X), again.decision_function(X))


def test_storage_is_no_matter():
    """Rows of few entries, as array and as CSR matrix; a cell has one class, and no SVC."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 40)) * (rng.random((80, 40)) < 0.1)
    y = np.repeat([False, True], 40)
    X[:, 0] = np.where(y, 30.0, 0.0)
    full, sparse = (model(n_cells=2, overlap=0.0).fit(Z, y) for Z in (X, sp.csr_matrix(X)))
    assert [c.size for c in full.cells_] == [c.size for c in sparse.cells_] == [40, 40]
    assert np.array_equal(sparse.predict(sp.csr_matrix(X)), y)
    found = sparse.decision_function(sp.csr_matrix(X))
    assert np.array_equal(found, full.decision_function(X))


def test_weights_count_as_c(rings):
    X, y = rings
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = model(tol=1e-7).fit(X, y, sample_weight=weight)
    kept = weight > 0
    sizes = [cell.size for cell in weighted.cells_]
    assert sum(sizes) == kept.sum()
    twice = model(tol=1e-7, C=2.0).fit(X[kept], y[kept], sample_weight=weight[kept] / 2)
    assert twice.decision_function(X) == pytest.approx(weighted.decision_function(X), abs=1e-4)
    by_class = model(class_weight={"even": 5.0}).fit(X, y)
    assert (by_class.predict(X) == "even").sum() > (model().fit(X, y).predict(X) == "even").sum()


def test_selection_is_made_in_each_cell(rings):
    X, y = rings
    values = {"C": [1e-3, 1.0], "gamma": [2.0, 500.0]}
    fitted = model(select=values, n_cells=3).fit(X, y)
    chosen = {(cell.C, cell.kernel.gamma) for cell in fitted.cells_}
    assert chosen <= {(C, gamma) for C in values["C"] for gamma in values["gamma"]}
    assert (1.0, 2.0) in chosen
    assert model(select={"C": [3.0]}).fit(X, y).cells_[0].machine.C == 3.0
    fixed = model(select={"C": [3.0]}).fit(X, y).decision_function(X)
    assert np.array_equal(fixed, model(C=3.0).fit(X, y).decision_function(X))


def test_time_ends_the_choice_too(rings):
    """No setting is tried after it; cells still learn a little, with the first."""
    X, y = rings
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = model(max_time=1e-9, tol=1e-9, select={"C": [5.0, 1.0, 0.2]}).fit(X, y)
    assert "after 0 of 3 settings" in str(told[0].message) and told[0].filename == __file__
    assert {cell.C for cell in fitted.cells_} == {5.0}


def test_each_kernel_to_choose_from_is_checked(rings):
    X, y = rings
    lowered = Gaussian() + Function(lambda A, B: np.full((len(A), len(B)), -0.03), pairs=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        values = {"C": [0.1, 1.0], "gamma": [0.01, 50.0]}
        fitted = model(kernel=lowered, select=values, max_iter=5, cell_size=200).fit(X, y)
    found = [seen for seen in told if "is no kernel" in str(seen.message)]
    assert len(found) == 1 and found[0].filename == __file__
    assert "Gaussian(gamma=50.0)" in str(found[0].message)
    sound = [cell.kernel.left.gamma < 1.0 for cell in fitted.cells_]
    assert [cell.machine._is_kernel for cell in fitted.cells_] == sound


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell_size": 0}, "cell_size must be an integer >= 1"),
        ({"n_cells": 0}, "n_cells must be an integer >= 1"),
        ({"overlap": -0.1}, "overlap must be finite and a number >= 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be below 1"),
        ({"select": {"tau": [1]}}, "select must be None or a dict with values of 'C'"),
        ({"select": {"gamma": [1]}, "kernel": Linear()}, r"Linear\(\) has no gamma"),
        ({"select": {"gamma": []}}, "select has no value of gamma"),
        ({"kernel": "precomputed"}, "use SVC"),
        ({"multi_class": "all"}, "multi_class must be one of"),
    ],
)
def test_parameters_are_refused_with_a_way_out(rings, options, message):
    X, y = rings
    with pytest.raises(ValueError, match=message):
        model(**options).fit(X[:, :1] @ X[:, :1].T, y)


def test_ctrl_c_leaves_a_model(rings, monkeypatch):
    X, y = rings
    steps = []

    def interrupt(self, problem, state):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, problem, state)

    from pegasos.solvers.working_set import WorkingSet

    step = WorkingSet.step
    monkeypatch.setattr(WorkingSet, "step", interrupt)
    broken = model(n_threads=1)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(X, y)
    monkeypatch.undo()
    assert broken.predict(X).shape == y.shape
    assert any(cell.machine.stop_reason_ == "interrupted" for cell in broken.cells_)


def test_callbacks_see_models(rings):
    X, y = rings
    names, models = [], []

    class Watch:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            names.append(context.task_name)
            models.append(fitted_estimator)

    watched = model().set_callbacks(Watch()).fit(X, y)
    assert sum(name.startswith("cell ") for name in names) == len(watched.cells_)
    assert models[0].score(X, y) < models[-2].score(X, y)
    assert np.array_equal(watched.decision_function(X), model().fit(X, y).decision_function(X))
