"""Transfer: the limits of the penalty from a centre, and what is matched with what."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import random_labels, random_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from pegasos import (
    LinearSVC,
    LogisticRegression,
    PegasosClassifier,
    PolynomialSVC,
    load_model,
    save_model,
)

RNG = np.random.default_rng(3)
X = random_matrix(RNG, 40, 4)
TWO = random_labels(RNG, X)
THREE = np.array(["ash", "beech", "cedar"])[np.digitize(X[:, 0] + 0.1 * TWO, [-0.2, 0.2])]
W, B = RNG.normal(size=(3, 4)), RNG.normal(size=3)
NAMES = ["a", "b", "c", "d"]
SEEDED = {"random_state": 0, "tol": 1e-2}
EVERY = {
    "auto": LinearSVC(**SEEDED),
    "dual": LinearSVC(solver="dual", loss="hinge", **SEEDED),
    "newton": LinearSVC(solver="newton", **SEEDED),
    "newton_cg": LinearSVC(solver="newton_cg", **SEEDED),
    "interior": LinearSVC(solver="interior", loss="hinge", **SEEDED),
    "logistic": LogisticRegression(**SEEDED),
    "polynomial": PolynomialSVC(gamma=0.5, **SEEDED),
    "pegasos": PegasosClassifier(max_iter=5, **SEEDED),
}
every = pytest.mark.parametrize("model", EVERY.values(), ids=EVERY)
both = pytest.mark.parametrize("intercept", ["free", "penalised"])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(columns, names):
    import pandas

    return pandas.DataFrame(columns, columns=names)


def model_of(coef, intercept, classes, names=None):
    """A linear model of no library in particular."""
    found = SimpleNamespace(coef_=coef, intercept_=intercept, classes_=np.array(classes))
    if names is not None:
        found.feature_names_in_ = np.array(names, dtype=object)
    return found


def bits(model) -> bytes:
    return model.coef_.tobytes() + model.intercept_.tobytes()


@every
@both
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_a_centre_of_zeros_is_the_plain_model(model, intercept, y):
    plain = clone(model).set_params(intercept=intercept).fit(X, y)
    zeros = np.zeros(plain.coef_.shape)
    for center in (zeros, (zeros, 0.0), model_of(zeros, np.zeros(len(zeros)), plain.classes_)):
        assert bits(clone(plain).set_params(center=center).fit(X, y)) == bits(plain)


@both
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_on_a_stream_too(intercept, y):
    plain = PegasosClassifier(lam=0.1, intercept=intercept).partial_fit(X, y)
    zeros = np.zeros(plain.coef_.shape)
    assert bits(clone(plain).set_params(center=zeros).partial_fit(X, y)) == bits(plain)


@every
@both
def test_without_trust_in_the_data_it_is_the_source(model, intercept):
    """A free intercept is where the data want it; those of the source want it where it was."""
    source = clone(model).set_params(intercept=intercept, C=0.1, tol=1e-6, max_iter=100)
    source.fit(X, THREE)
    rows = slice(None, None, 1 if intercept == "free" else 2)
    near = clone(source).set_params(center=source, C=1e-12).fit(X[rows], THREE[rows])
    np.testing.assert_allclose(near.coef_, source.coef_, atol=1e-8)
    exact = intercept == "penalised" or not isinstance(model, PegasosClassifier)
    if exact and getattr(model, "loss", "") != "hinge":  # whose best offset need not be one point
        np.testing.assert_allclose(near.intercept_, source.intercept_, atol=1e-3)


def test_with_full_trust_it_is_the_plain_model():
    plain, moved = (
        LinearSVC(C=1e6, loss="squared_hinge", tol=1e-9, center=center).fit(X, TWO)
        for center in (None, W[0])
    )
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-4)


@pytest.mark.parametrize("model", [LinearSVC(**SEEDED), PegasosClassifier(lam=0.5, **SEEDED)])
def test_features_are_matched_by_name(model):
    """Whatever their order: what the source lacks has the centre 0, what the data lack is not."""
    source = model_of(W[:1], B[:1], [-1.0, 1.0], ["d", "x", "b", "a"])
    rows, fit = table(X, NAMES), "partial_fit" if model.__class__ is PegasosClassifier else "fit"
    found = getattr(clone(model).set_params(center=source), fit)(rows, TWO)
    center = (W[0, [3, 2, 0, 0]] * [1, 1, 0, 1], B[:1])
    assert bits(getattr(clone(model).set_params(center=center), fit)(X, TWO)) == bits(found)
    counts = found.center_.matched, found.center_.unknown, found.center_.left_out
    assert counts == (3, 1, 1) and found.center_.new_classes == []


def test_a_permuted_source_gives_the_permuted_model():
    order = [2, 0, 3, 1]
    source = LinearSVC(**SEEDED).fit(table(X, NAMES), TWO)
    turned = LinearSVC(**SEEDED).fit(table(X[:, order], np.array(NAMES)[order]), TWO)
    few = table(X[:12], NAMES)
    one, two = (LinearSVC(center=s, **SEEDED).fit(few, TWO[:12]) for s in (source, turned))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-9)


def center_of(y, source) -> tuple[np.ndarray, np.ndarray]:
    found = LinearSVC(center=source, **SEEDED).fit(X, y).center_
    return found.coef_, found.intercept_


def test_classes_are_matched_by_label():
    source = model_of(W, B, ["cedar", "oak", "ash"])
    coef, intercept = center_of(THREE, source)
    assert np.array_equal(coef, [W[2], np.zeros(4), W[0]])
    assert np.array_equal(intercept, [B[2], 0.0, B[0]])
    model = LinearSVC(center=source, **SEEDED).fit(X, THREE)
    assert model.center_.new_classes == ["beech"]
    assert np.array_equal(
        model.coef_, LinearSVC(center=(coef, intercept), **SEEDED).fit(X, THREE).coef_
    )


def test_two_classes_have_a_sign():
    words = np.where(TWO > 0, "spam", "ham")
    source = LinearSVC(**SEEDED).fit(X, words)
    for given, sign in ((["ham", "spam"], 1.0), (["spam", "ham"], -1.0)):
        coef, intercept = center_of(words, model_of(source.coef_, source.intercept_, given))
        assert np.array_equal(coef, sign * source.coef_)
        assert np.array_equal(intercept, sign * source.intercept_)
    coef, intercept = center_of(words, model_of(W, B, ["ham", "news", "spam"]))
    assert np.array_equal(coef[0], (W[2] - W[0]) / 2.0) and intercept[0] == (B[2] - B[0]) / 2.0
    coef, _ = center_of(THREE, model_of(W[:1], B[:1], ["ash", "cedar"]))
    assert np.array_equal(coef, [-W[0], np.zeros(4), W[0]])


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_a_file_a_model_and_its_coefficients_are_the_same(tmp_path, y):
    from sklearn.svm import LinearSVC as Other

    source = LogisticRegression(**SEEDED).fit(table(X, NAMES), y)
    save_model(source, tmp_path / "source")
    other = Other().fit(table(X, NAMES), y)
    other.coef_, other.intercept_ = source.coef_, source.intercept_
    pair = source.coef_, source.intercept_
    forms = [tmp_path / "source", str(tmp_path / "source"), other, pair, FrozenEstimator(source)]
    expected = LinearSVC(center=source, **SEEDED).fit(table(X, NAMES), y)
    for form in forms:
        assert bits(LinearSVC(center=form, **SEEDED).fit(table(X, NAMES), y)) == bits(expected)
    save_model(expected, tmp_path / "kept")
    kept = load_model(tmp_path / "kept")
    assert bits(kept.fit(table(X[:, ::-1], NAMES[::-1]), y)) != b""
    assert np.allclose(kept.coef_[:, ::-1], expected.coef_)


def test_a_copy_keeps_its_centre():
    source = LinearSVC(**SEEDED).fit(X, TWO)
    search = GridSearchCV(LinearSVC(center=source, **SEEDED), {"C": [1e-9, 1.0]}, cv=2)
    assert search.fit(X, TWO).best_estimator_.center is source


@pytest.mark.parametrize("intercept", ["penalised", "none"])
def test_a_stream_from_a_centre_takes_the_steps_of_an_epoch(tmp_path, intercept):
    """In any batches, and across a file."""
    settings = {"intercept": intercept, "lam": 0.3, "center": (W[0], B[0]), "random_state": 0}
    epoch = PegasosClassifier(sampling="order", projection=False, max_iter=1, **settings)
    epoch.fit(X, TWO)
    whole, parts = (PegasosClassifier(**settings) for _ in range(2))
    whole.partial_fit(X, TWO)
    np.testing.assert_allclose(whole.coef_, epoch.coef_, rtol=1e-12)
    np.testing.assert_allclose(whole.intercept_, epoch.intercept_, rtol=1e-12)
    parts.partial_fit(X[:7], TWO[:7])
    save_model(parts, tmp_path / "parts")
    again = load_model(tmp_path / "parts").partial_fit(X[7:], TWO[7:])
    assert bits(again) == bits(parts.partial_fit(X[7:], TWO[7:])) == bits(whole)
    assert again.progressive_ == whole.progressive_


def test_a_stream_that_widens_has_more_of_the_centre_at_zero():
    narrow, wide = (PegasosClassifier(lam=0.3, center=c) for c in (W[0, :3], [*W[0, :3], 0.0]))
    narrow.partial_fit(X[:9, :3], TWO[:9])._widen(4)
    wide.partial_fit(X[:9] * [1, 1, 1, 0], TWO[:9])
    assert bits(narrow.partial_fit(X[9:], TWO[9:])) == bits(wide.partial_fit(X[9:], TWO[9:]))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_ball_around_a_bad_centre_holds_the_optimum(loss):
    """The ball of a model without a centre would be too small: the loss at w0 is far above 1."""
    away = -20.0 * LinearSVC(intercept="none").fit(X, TWO).coef_
    model = PegasosClassifier(loss=loss, C=0.01, center=away, intercept="none", random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.set_params(tol=0.0, max_iter=300).fit(X, TWO)
    assert model.certificate_.relative_gap < 0.02


def test_the_same_map_or_none():
    source = PolynomialSVC(gamma=0.5, **SEEDED).fit(X, TWO)
    near = PolynomialSVC(gamma=0.5, center=source, C=1e-12).fit(X[:20], TWO[:20])
    np.testing.assert_allclose(near.coef_, source.coef_, atol=1e-8)
    for model in (PolynomialSVC(gamma=0.4, center=source), LinearSVC(center=source)):
        with pytest.raises(ValueError, match="center: its coefficients are of rows that went"):
            model.fit(X, TWO)


MESSAGES = {
    "unfitted": (LinearSVC(), "this LinearSVC has no coef_: fit it"),
    "no linear model": ({}, "center must be a fitted linear model, the path of a model file"),
    "other numbers": (np.zeros(3), "center must have 1 x 4 coefficients .* got 1 x 3"),
    "other problems": (np.zeros((2, 4)), "center must have 1 x 4 coefficients .* got 2 x 4"),
    "a triple": ((W[0], 0.0, 0.0), "center must be .* this tuple has no coef_"),
    "intercepts": ((W[0], [1.0, 2.0]), r"shape \(1, 4\) and 2 intercepts"),
    "not finite": ((W[0], np.nan), "center holds values that are not finite"),
    "other classes": (model_of(W[:1], B[:1], [0, 1]), r"its classes are \[0, 1\], not the data's"),
    "pairs": (
        SimpleNamespace(coef_=W, intercept_=B, classes_=[0, 1, 2], support_vectors_=X),
        "its coefficients are of pairs of its classes",
    ),
    "names of others": (
        model_of(W[:1], B[:1], [-1.0, 1.0], ["e", "f", "g", "h"]),
        "none of its features is in the data, whose first is 'a'; its own first is 'e'",
    ),
    "no file": ("nowhere.model", "nowhere.model: no such file"),
}


@pytest.mark.parametrize(("center", "message"), MESSAGES.values(), ids=MESSAGES)
def test_what_does_not_fit_is_named(center, message):
    for model in (LinearSVC(center=center), PegasosClassifier(center=center)):
        with pytest.raises(ValueError, match=message):
            model.fit(table(X, NAMES), TWO)
    with pytest.raises(ValueError, match=message):
        PegasosClassifier(center=center).partial_fit(table(X, NAMES), TWO)
