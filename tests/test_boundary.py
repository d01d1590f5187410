"""The picture of a classifier of two features shows what the classifier says."""

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.contour import ContourSet
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

import pegasos
from pegasos import KernelPegasosClassifier, LinearSVC
from pegasos.report.boundary import DecisionDisplay
from pegasos.report.figures import new_figure


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(80, noise=0.2, random_state=0)
    return KernelPegasosClassifier(gamma=2.0, budget=12, random_state=0).fit(X, y), X, y


def drawn(display, kind):
    return [part for part in display.ax_.get_children() if isinstance(part, kind)]


def test_regions_are_the_predictions(moons):
    model, X, y = moons
    display = DecisionDisplay.from_estimator(model, X, y, grid=40)
    where = np.stack(np.meshgrid(display.axis0, display.axis1), axis=-1).reshape(-1, 2)
    shown = np.asarray(drawn(display, QuadMesh)[0].get_array()).ravel()
    assert np.array_equal(model.classes_[shown.astype(int)], model.predict(where))
    assert display.axis0[0] < X[:, 0].min() and display.axis1[-1] > X[:, 1].max()


def test_boundary_margins_and_rings(moons):
    model, X, y = moons
    display = DecisionDisplay.from_estimator(model, X, y, grid=120)
    boundary, margins = drawn(display, ContourSet)
    for contours, levels in ((boundary, [0.0]), (margins, [-1.0, 1.0])):
        assert list(contours.levels) == levels
        for level, path in zip(levels, contours.get_paths(), strict=True):
            assert np.allclose(model.decision_function(path.vertices), level, atol=0.1)
    *rows, rings = drawn(display, PathCollection)
    assert sum(len(part.get_offsets()) for part in rows) == 80
    assert (
        np.allclose(rings.get_offsets(), model.support_vectors_) and len(rings.get_offsets()) == 12
    )
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["0", "1", "12 support vectors", "f = ±1"]


def test_what_is_left_out_if_asked(moons):
    model, X, y = moons
    display = DecisionDisplay.from_estimator(
        model, sp.csr_array(X), y, grid=20, margins=False, support=False, legend=False
    )
    assert len(drawn(display, ContourSet)) == 1 and len(drawn(display, PathCollection)) == 2
    assert display.ax_.get_legend() is None


def test_several_classes_and_other_models(tmp_path):
    X, y = make_blobs(90, centers=3, random_state=0)
    ax = new_figure(4, 3).subplots()
    display = DecisionDisplay.from_estimator(SVC().fit(X, y), X, y, ax=ax, grid=30)
    assert display.ax_ is ax and len(drawn(display, ContourSet)) == 3
    shown = np.asarray(drawn(display, QuadMesh)[0].get_array())
    assert set(np.unique(shown)) == {0.0, 1.0, 2.0}
    plain = DecisionDisplay.from_estimator(LinearSVC(loss="hinge").fit(X, y), X, y, grid=30)
    assert plain.vectors is None
    plain.figure_.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


@pytest.mark.parametrize("kind", [SVC, pegasos.SVC])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_pairs_are_not_taken_for_classes(kind, n_classes):
    X, y = make_blobs(80, centers=n_classes, random_state=0)
    model = kind(decision_function_shape="ovo").fit(X, y)
    display = DecisionDisplay.from_estimator(model, X, y, grid=30)
    where = np.stack(np.meshgrid(display.axis0, display.axis1), axis=-1).reshape(-1, 2)
    shown = np.asarray(drawn(display, QuadMesh)[0].get_array()).ravel()
    assert np.array_equal(shown, model.predict(where))
    assert len(drawn(display, ContourSet)) == n_classes


def test_the_grid_of_integers_is_finer_than_they_are():
    X, y = make_blobs(60, centers=2, random_state=0)
    X = np.rint(X).astype(int)
    model = LinearSVC(loss="hinge").fit(X, y)
    display = DecisionDisplay.from_estimator(model, X, y, grid=30)
    where = np.stack(np.meshgrid(display.axis0, display.axis1), axis=-1).reshape(-1, 2)
    assert np.allclose(display.scores.ravel(), model.decision_function(where))


def test_what_is_refused(moons):
    model, X, y = moons
    with pytest.raises(ValueError, match="two features"):
        DecisionDisplay.from_estimator(model, np.ones((3, 3)), np.ones(3))
    with pytest.raises(NotFittedError):
        DecisionDisplay.from_estimator(KernelPegasosClassifier(), X, y)
