"""probability=True: probabilities that rise with the score and never contradict predict."""

import numpy as np
import pytest
from conftest import SEEDS, random_matrix
from hypothesis import given
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pegasos import (
    SVC,
    CellSVC,
    FixedSizeSVC,
    LinearSVC,
    LogisticRegression,
    PegasosClassifier,
    PolynomialSVC,
    load_model,
    save_model,
)
from pegasos.core.digest import row_digests
from pegasos.data.check import as_rows
from pegasos.data.errors import DataError
from pegasos.estimators.calibration import FOLDS, calibrated, folds_of
from pegasos.model.decision import Calibration, Decision, from_json, probabilities, risen, to_json

RNG = np.random.default_rng(0)
X = random_matrix(RNG, 60, 4)
NAMES = np.array(["no", "perhaps", "yes"])
NOISY = X[:, 0] - X[:, 1] + 0.5 * RNG.normal(size=60)
LABELS = {2: NAMES[[0, 2]][(NOISY > 0.3).astype(int)], 3: NAMES[np.digitize(NOISY, [-0.4, 0.4])]}
WEIGHT = RNG.integers(1, 4, size=60).astype(float)
FAR = np.vstack([X, np.zeros((2, 4)), 1e6 * X, -1e6 * X, 1e-12 * X])
QUICK = {"max_iter": 20, "tol": 0.1, "random_state": 0}
ESTIMATORS = {
    "LinearSVC": LinearSVC(probability=True, **QUICK),
    "isotonic": LinearSVC(probability="isotonic", loss="hinge", class_weight="balanced", **QUICK),
    "lam": LinearSVC(probability=True, lam=0.02, intercept="none", **QUICK),
    "logistic": LogisticRegression(**QUICK),
    "Pegasos": PegasosClassifier(probability=True, **QUICK),
    "SVC": SVC(probability=True, random_state=0),
    "SVC, ties": SVC(probability=True, kernel="linear", C=1e-6, random_state=0),
    "SVC, ties broken": SVC(probability=True, C=1e-6, break_ties=True, random_state=0),
    "SVC, rest": SVC(probability="isotonic", multi_class="ovr", random_state=0),
    "FixedSizeSVC": FixedSizeSVC(probability=True, m=8, **QUICK),
    "PolynomialSVC": PolynomialSVC(probability=True, **QUICK),
    "CellSVC": CellSVC(probability=True, cell_size=40, random_state=0),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_highest_probability_is_of_the_class_that_is_predicted(name, n_classes, tmp_path):
    model = clone(ESTIMATORS[name]).fit(X, LABELS[n_classes], sample_weight=WEIGHT)
    p = model.predict_proba(FAR)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(FAR))
    assert np.allclose(p.sum(axis=1), 1.0, atol=1e-14) and np.all(p >= 0.0)
    assert np.allclose(np.exp(model.predict_log_proba(FAR)), p, atol=1e-14)
    if n_classes == 2:
        rising = p[np.argsort(model.decision_function(FAR)), 1]
        assert np.all(np.diff(rising) >= -1e-15)
    save_model(model, tmp_path / "model")
    found = load_model(tmp_path / "model")
    assert np.array_equal(found.predict_proba(FAR), p)
    save_model(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def scores_of(rng, n_classes):
    """Scores with ties, of every size: rounding makes many probabilities equal."""
    few = rng.normal(size=4) * 10.0 ** rng.integers(-300, 300, size=4)
    shape = 40, 1 if n_classes == 2 else n_classes
    near = 1.0 + 1e-16 * rng.integers(0, 3, size=shape)
    values = np.array([0.0, 1.0, -1.0, 40.0, 50.0, *few])
    return rng.choice(values, size=shape) * rng.choice([np.ones(shape), near])


@given(seed=SEEDS)
def test_rounding_never_decides(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 5))
    scores = scores_of(rng, K)
    number = scores.argmax(axis=1) if K > 2 else (scores[:, 0] > 0.0).astype(int)
    x = np.array([-1.0, 0.0, 1.0]) * 10.0 ** rng.integers(-5, 5)
    h = np.array([-1.0, 0.0, 1.0]) * rng.integers(0, 3)
    found = Calibration("sigmoid", tuple(x), tuple(h), (0.0, float(rng.integers(0, 3))))
    for calibration in (None, found):
        p = probabilities(scores, number, calibration)
        assert np.array_equal(p.argmax(axis=1), number)
        assert np.allclose(p.sum(axis=1), 1.0, atol=1e-14)
        same, place = np.unique(scores, axis=0, return_inverse=True)
        assert len(np.unique(p, axis=0)) <= len(same), place


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_the_map_is_the_likeliest_and_goes_by_weights_as_by_copies(kind):
    rng = np.random.default_rng(1)
    scores = 3.0 * rng.normal(size=(400, 1))
    label = (rng.random(400) < 1.0 / (1.0 + np.exp(-2.0 * scores[:, 0]))).astype(int)
    times = rng.integers(1, 4, size=400)
    found = calibrated(kind, scores, label, times.astype(float), 2)
    assert to_json(Decision(0.0, found)) and from_json(to_json(Decision(0.0, found)), 2)
    copies = calibrated(
        kind, np.repeat(scores, times, axis=0), np.repeat(label, times), np.ones(times.sum()), 2
    )
    grid = np.linspace(-4.0, 4.0, 81)
    assert np.allclose(risen(found, grid), risen(copies, grid), rtol=1e-8, atol=1e-10)
    assert np.all(np.diff(risen(found, grid)) >= 0.0) and risen(found, np.zeros(1))[0] == 0.0
    n = np.bincount(label, times)
    target = np.where(label == 1, (n[1] + 1.0) / (n[1] + 2.0), 1.0 / (n[0] + 2.0))

    def loss(h):
        return times @ (np.logaddexp(0.0, h) - target * h)

    h = risen(found, scores[:, 0])
    assert loss(h) < loss(2.0 * scores[:, 0])
    for factor in (0.9, 1.1):
        low, high = found.slopes
        others = [found._replace(h=tuple(v * factor for v in found.h), slopes=(low, high))]
        others.append(found._replace(slopes=(low * factor, high * factor)))
        assert all(loss(h) <= loss(risen(other, scores[:, 0])) + 1e-6 for other in others)


def test_several_classes_share_one_function_of_the_largest_likelihood():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(2000, 3))
    p = np.exp(1.5 * scores) / np.exp(1.5 * scores).sum(axis=1, keepdims=True)
    label = (rng.random(2000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    found = calibrated("sigmoid", scores, label, np.ones(2000), 3)
    assert np.allclose(np.diff(risen(found, np.array([-1.0, 0.0, 1.0]))), 1.5, atol=0.25)


def test_folds_keep_copies_together_and_have_every_class_on_both_sides():
    label = np.repeat([0, 1, 2, 3], [39, 15, 2, 1])
    rows = random_matrix(RNG, 57, 3) + np.arange(57)[:, None]
    some = RNG.permutation(np.repeat(np.arange(57), 3))
    digests = row_digests(as_rows(rows))
    folds = folds_of(digests[some], label[some], 7)
    assert not np.array_equal(folds, folds_of(digests[some], label[some], 8))
    assert set(folds) == {-1, *range(FOLDS)} and set(label[some][folds < 0]) == {3}
    for f in range(FOLDS):
        assert set(label[some][folds != f]) == {0, 1, 2, 3}
        assert not set(some[folds == f]) & set(some[folds != f])
    assert np.array_equal(folds_of(digests, label, 7)[some], folds)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_same_seed_gives_the_same_bits_and_a_weight_counts_as_copies(n_classes):
    y, times = LABELS[n_classes], WEIGHT.astype(int)
    model = LinearSVC(probability=True, tol=1e-10, random_state=3)
    p = clone(model).fit(X, y, sample_weight=WEIGHT).predict_proba(X)
    assert np.array_equal(clone(model).fit(X, y, sample_weight=WEIGHT).predict_proba(X), p)
    copies = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.allclose(copies.predict_proba(X), p, atol=1e-6)


@pytest.mark.parametrize("estimator", [LinearSVC, SVC])
@pytest.mark.filterwarnings("always")
def test_warnings_say_whose_they_are(estimator):
    """Those of the fit itself, and of the further ones."""
    model = estimator(probability=True, tol=1e-12, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning) as heard:
        model.fit(X, LABELS[2])
    own, *others = (str(warning.message) for warning in heard)
    assert own.startswith(f"{estimator.__name__} stopped") and len(others) == FOLDS
    for f, words in enumerate(others):
        assert words.startswith(f"for probabilities, without part {f + 1} of {FOLDS}: {own[:12]}")


def test_a_precomputed_kernel_leaves_rows_and_columns_out():
    y, K, folds = LABELS[3], X @ X.T, np.arange(60) % 5
    scores = []
    for kernel, rows in (("precomputed", K), ("linear", X)):
        model = SVC(kernel=kernel, probability=True, tol=1e-9, random_state=0).fit(rows, y)
        p = model.predict_proba(rows)
        assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(rows))
        scores.append(model._left_out(None, model._read(rows, y, None), folds, np.inf))
    assert np.allclose(*scores, atol=1e-4)


def test_a_path_has_the_probabilities_of_its_fits():
    y = LABELS[2]
    (model,) = LinearSVC(probability=True, tol=1e-10, random_state=0).path(X, y, [0.5])
    alone = LinearSVC(probability=True, tol=1e-10, random_state=0, C=0.5).fit(X, y)
    assert np.allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)


def test_messages():
    y = LABELS[2]
    plain = LinearSVC(**QUICK).fit(X, y)
    assert not hasattr(plain, "predict_proba") and not hasattr(plain, "predict_log_proba")
    with pytest.raises(NotFittedError, match="fit it with probability=True"):
        plain.set_params(probability=True).predict_proba(X)
    with pytest.raises(ValueError, match="False, True .* or 'isotonic', got 'platt'"):
        LinearSVC(probability="platt").fit(X, y)
    with pytest.raises(ValueError, match="no class has two different rows.* or use"):
        LinearSVC(probability=True, **QUICK).fit(X[:2], ["a", "b"])
    with pytest.raises(ValueError, match="use fit, or probability=False"):
        PegasosClassifier(probability=True).partial_fit(X, y)


def test_a_fit_without_probabilities_forgets_those_of_the_last():
    model = LinearSVC(probability=True, **QUICK).fit(X, LABELS[2])
    assert model.calibration_.kind == "sigmoid"
    model.set_params(probability=False).fit(X, LABELS[2])
    assert not hasattr(model, "calibration_")


GOOD = {"kind": "sigmoid", "x": [-1.0, 0.0, 1.0], "h": [-2.0, 0.0, 1.0], "slopes": [1.0, 0.5]}


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ([], "expected dict"),
        ({"more": 1}, "needs a newer pegasos"),
        ({"threshold": "1"}, "finite number"),
        ({"threshold": 10**400}, "finite number"),
        ({"calibration": {}}, "expected kind, x, h, slopes"),
        ({"calibration": GOOD | {"kind": "cubic"}}, "not one of"),
        ({"calibration": GOOD | {"x": []}}, "lists of numbers"),
        ({"calibration": GOOD | {"x": [0.0, 0.0, 1.0]}}, "does not rise"),
        ({"calibration": GOOD | {"h": [-2.0, 0.0, -1.0]}}, "does not rise"),
        ({"calibration": GOOD | {"slopes": [-1.0, 1.0]}}, "does not rise"),
        ({"calibration": GOOD | {"h": [-2.0, 0.5, 1.0]}}, "probability of 1/2"),
        ({"calibration": GOOD | {"h": [-2.0, float("nan"), 1.0]}}, "lists of numbers"),
    ],
)
def test_what_no_model_says_is_refused(kept, words):
    assert from_json({"calibration": GOOD}, 2).calibration.h == (-2.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=words):
        from_json(kept, 2)


def test_a_file_with_a_threshold_for_three_classes_is_refused(tmp_path):
    model = LinearSVC(**QUICK).fit(X, LABELS[3])
    model.threshold_ = 1.0
    with pytest.raises((DataError, ValueError), match="threshold '1.0' of 3 classes"):
        save_model(model, tmp_path / "model")
