"""Several classes, in every mode: scores, ties, order, limits; and a weight of k is k copies."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import _ovr_decision_function
from typer.testing import CliRunner

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
from pegasos.cli.main import app
from pegasos.estimators.kernel_layout import Layout, linear_coef
from pegasos.model.pairs import class_scores, decided, n_problems
from pegasos.stopping import Validation

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # of few steps
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

MODES = ("ovr", "ovo")
NAMES = np.array(["oak", "ash", "yew", "elm"])  # not in the order of classes_
CLASSES = np.sort(NAMES)


def clusters(n_classes: int, n: int = 120, seed: int = 3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return rng.normal(size=(n_classes, 3))[y] * 1.5 + rng.normal(size=(n, 3)), y


@pytest.fixture(scope="module")
def four():
    X, y = clusters(4)
    return X, NAMES[y]


@pytest.fixture(scope="module")
def fitted(four):
    return LinearSVC(multi_class="ovo", loss="hinge", C=0.5, tol=1e-8).fit(*four)


ESTIMATORS = {
    "LinearSVC": LinearSVC(),
    "FixedSizeSVC": FixedSizeSVC(m=10, gamma=0.3, random_state=0),
    "PolynomialSVC": PolynomialSVC(),
    "PegasosClassifier": PegasosClassifier(max_iter=3, tol=0.5, random_state=0),
}


# Scores and classes


def test_scores_of_pairs_are_scikit_learns_votes_and_margins():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.7)  # some are 0
    expected = _ovr_decision_function(scores < 0, -scores, 4)
    found = class_scores(scores, 4, pairs=True)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    clear = np.all(scores != 0.0, axis=1)
    most = np.rint(found).max(axis=1, keepdims=True) == np.rint(found)
    by_votes = decided(scores, 4, pairs=True, break_ties=False)[1]
    np.testing.assert_array_equal(by_votes[clear], most.argmax(axis=1)[clear])
    assert class_scores(scores, 4, pairs=False) is scores


def test_equal_votes_go_by_margins_and_equal_margins_by_order():
    """Each of three classes wins one pair: 0 from 1, 1 from 2, 2 from 0."""
    found = class_scores(np.array([[1.0, -2.0, 3.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0]]), 3, True)
    assert found.argmax(axis=1).tolist() == [1, 0, 0]
    np.testing.assert_allclose(found[0], [1 - 1 / 6, 1 + 2 / 9, 1 - 1 / 6])
    np.testing.assert_allclose(found[1:], [[1, 1, 1], [2, 1, 0]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_predict_is_the_class_of_the_highest_score(four, mode, name):
    X, y = four
    model = ESTIMATORS[name].set_params(multi_class=mode).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (len(y), 4)
    assert model.classes_.tolist() == CLASSES.tolist()
    assert np.array_equal(model.predict(X), CLASSES[scores.argmax(axis=1)])
    assert model.score(X, y) > 0.6
    problems = n_problems(4, mode == "ovo")
    assert len(model.coef_) == len(model.intercept_) == len(model.certificate_) == problems
    assert np.array_equal(model.predict(X[:1]), model.predict(X)[:1])


@pytest.mark.parametrize("mode", MODES)
def test_names_of_classes_do_not_matter(four, mode):
    X, y = four
    other = np.array([f"{9 - k}" for k in range(4)])[np.searchsorted(CLASSES, y)]  # turned round
    model = LinearSVC(multi_class=mode, tol=1e-9)
    scores = model.fit(X, y).decision_function(X)
    turned = model.fit(X, other).decision_function(X)
    np.testing.assert_allclose(turned[:, ::-1], scores, atol=1e-5)
    assert model.classes_.tolist() == ["6", "7", "8", "9"]


@pytest.mark.parametrize("mode", MODES)
def test_two_classes_are_one_problem_in_every_mode(four, mode):
    X, y = four
    plain = LinearSVC().fit(X, y == "yew")
    model = LinearSVC(multi_class=mode).fit(X, y == "yew")
    assert np.array_equal(model.coef_, plain.coef_) and model.decision_function(X).ndim == 1


# One-vs-one


def test_a_pair_is_the_problem_of_its_two_classes(four):
    X, y = four
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    given = {"loss": "squared_hinge", "C": 0.3, "tol": 1e-9, "class_weight": {"elm": 3.0}}
    model = LinearSVC(multi_class="ovo", **given).fit(X, y, sample_weight=weight)
    for k, (a, b) in enumerate(combinations(CLASSES, 2)):
        rows = (y == a) | (y == b)
        factors = {name: 3.0 for name in (a, b) if name == "elm"}
        alone = LinearSVC(**given | {"class_weight": factors})
        alone.fit(X[rows], y[rows], sample_weight=weight[rows])
        np.testing.assert_allclose(model.coef_[k], -alone.coef_[0], atol=1e-5)
        np.testing.assert_allclose(model.intercept_[k], -alone.intercept_[0], atol=1e-5)
        assert model.certificate_[k].primal == pytest.approx(alone.certificate_.primal, rel=1e-8)


@pytest.mark.slow
def test_it_is_svc_with_a_linear_kernel(four, fitted):
    X, y = four
    svc = SVC(kernel="linear", C=0.5, tol=1e-8, break_ties=True).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, svc.coef_, atol=1e-3)
    np.testing.assert_allclose(fitted.intercept_, svc.intercept_, atol=1e-3)
    np.testing.assert_allclose(fitted.decision_function(X), svc.decision_function(X), atol=1e-3)
    assert np.array_equal(fitted.predict(X), svc.predict(X))
    for ours, theirs in zip(fitted.certificate_, svc.certificate_, strict=True):
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-6)


def test_dual_coefficients_are_in_the_layout_of_svc(four, fitted):
    X, y = four
    label = np.searchsorted(CLASSES, y)[fitted.support_]
    assert np.array_equal(label, np.sort(label)) and fitted.dual_coef_.shape == (3, label.size)
    counts = np.bincount(label, minlength=4)
    layout = Layout(fitted.support_, counts, fitted.dual_coef_, fitted.intercept_)
    found = linear_coef(layout, X[fitted.support_], pairs=True)
    gaps = np.array([proof.gap for proof in fitted.certificate_])
    assert np.all(np.linalg.norm(found - fitted.coef_, axis=1) ** 2 <= 8.0 * gaps + 1e-12)


def test_csr_rows_are_the_same_rows(four, fitted):
    X, y = four
    found = LinearSVC(multi_class="ovo", loss="hinge", C=0.5, tol=1e-8).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(found.coef_, fitted.coef_, atol=1e-3)


def test_a_warm_start_goes_on_and_a_centre_holds(four):
    X, y = four
    model = LinearSVC(multi_class="ovo", loss="hinge", solver="dual", warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert model.fit(X[:-9], y[:-9]).stop_reason_ == ["gap"] * 6  # other rows: from the start
    held = LinearSVC(multi_class="ovo", C=1e-9, center=model, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(held.coef_, model.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="6 x 3"):
        LinearSVC(multi_class="ovo", center=np.zeros((4, 3))).fit(X, y)


def test_limits_and_interruption_hold_for_all_pairs(four, monkeypatch):
    from pegasos.estimators import one_vs_all

    X, y = four
    slow = {"multi_class": "ovo", "loss": "hinge", "solver": "dual", "C": 1e4, "tol": 0.0}
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        model = LinearSVC(max_time=1e-9, **slow).fit(X, y)
    assert model.stop_reason_ == ["max_time"] * 6
    original = one_vs_all.side_by_side
    monkeypatch.setattr(one_vs_all, "side_by_side", lambda *a: (original(*a)[0], True))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(tol=0.5).fit(X, y)
    assert "interrupted" in model.stop_reason_ and model.coef_.shape == (6, 3)


def test_callbacks_see_a_model_of_pairs(four):
    seen = []

    class Watch:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def teardown(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if " or " in str(context.task_name):
                seen.append((context.task_name, fitted_estimator.decision_function(four[0])))

    LinearSVC(multi_class="ovo").set_callbacks(Watch()).fit(*four)
    assert [name for name, _ in seen] == [f"{a} or {b}" for a, b in combinations(CLASSES, 2)]
    assert all(scores.shape == (len(four[1]), 4) for _, scores in seen)


def test_rows_kept_aside_are_those_of_the_pair(four):
    X, y = four
    model = LinearSVC(multi_class="ovo", solver="dual", tol=1e-12, stop=Validation(X, y, 2))
    assert model.fit(X, y).stop_reason_ == ["validation"] * 6
    some = y == "oak"
    model.set_params(stop=Validation(X[some], y[some]))
    with pytest.raises(ValueError, match="no row of Validation is of class ash or elm"):
        model.fit(X, y)


@pytest.mark.slow
def test_a_path_and_its_folds_are_single_fits(four):
    X, y = four
    model, Cs = LinearSVC(multi_class="ovo", tol=1e-6), [0.1, 1.0]
    for C, found in zip(Cs, model.path(X, y, Cs), strict=True):
        alone = LinearSVC(multi_class="ovo", tol=1e-6, C=C).fit(X, y)
        np.testing.assert_allclose(
            found.decision_function(X), alone.decision_function(X), atol=0.01
        )
    train, test = np.arange(0, 120, 2), np.arange(1, 120, 2)
    folds = [(train, test), (test, train)]
    scores = model.cross_validate_path(X, y, Cs, cv=folds)
    same = model.cross_validate_path(X, y, Cs, cv=folds, scoring="accuracy")
    alone = [model.set_params(C=C).fit(X[train], y[train]).score(X[test], y[test]) for C in Cs]
    assert scores.test_score[:, 0].tolist() == alone
    assert np.array_equal(scores.test_score, same.test_score)
    assert len(scores.certificates[0][0]) == 6


def test_what_has_no_pairs_says_what_works(four):
    X, y = four
    with pytest.raises(ValueError, match="multi_class must be one of 'ovr', got 'ovo'"):
        LogisticRegression(multi_class="ovo").fit(X, y)
    with pytest.raises(ValueError, match="set multi_class='ovr'"):
        PegasosClassifier(multi_class="ovo").partial_fit(X, y)
    model = PegasosClassifier(multi_class="ovo", tol=0.5).fit(X, y)
    model.set_params(multi_class="ovr").partial_fit(X, y)  # a new stream, nothing of the pairs
    assert model.coef_.shape == (4, 3)
    assert np.array_equal(model.predict(X), CLASSES[model.decision_function(X).argmax(axis=1)])


# Files and commands


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_file_knows_of_pairs(name, tmp_path):
    """Of three classes there are as many pairs: the shape of coef_ does not tell."""
    X, y = clusters(3)
    model = ESTIMATORS[name].set_params(multi_class="ovo").fit(X, y)
    expected = model.decision_function(X)
    model.set_params(multi_class="ovr")  # what is fitted stays
    assert np.array_equal(model.decision_function(X), expected)
    save_model(model, tmp_path / "m")
    found = load_model(tmp_path / "m")
    assert np.array_equal(found.decision_function(X), expected)
    assert np.array_equal(found.predict(X), model.predict(X))
    save_model(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.slow
@pytest.mark.jit
def test_the_command_line_trains_pairs(tmp_path):
    def pegasos(*args, code=0):
        done = CliRunner().invoke(app, [str(arg) for arg in args])
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    X, y = clusters(3)
    data, model = tmp_path / "data.csv", tmp_path / "model"
    np.savetxt(data, np.column_stack([X, y]), delimiter=",", header="a,b,c,class", comments="")
    common = (data, "--label", "class", "--float64")
    pegasos("train", *common, "-m", model, "--multi-class", "ovo")
    found = load_model(model)
    assert found.multi_class == "ovo" and found.certificate_[2].relative_gap <= 1e-3
    labels = pegasos("predict", model, *common).split()
    assert labels == [str(k) for k in found.predict(X)]
    scored = np.loadtxt(pegasos("predict", model, *common, "--scores").splitlines())
    np.testing.assert_allclose(scored[:, 1:], found.decision_function(X), rtol=1e-9)
    assert f"accuracy {100 * found.score(X, y):.2f} %" in pegasos("evaluate", model, *common)
    assert "for class 0 against 2: intercept" in pegasos("inspect", model)
    assert "no models of pairs" in pegasos("convert", model, tmp_path / "a.liblinear", code=2)


# A weight of k is k copies

FAST = {"tol": 1e-8, "max_iter": 100_000}
STEPS = {"batch_size": 0, "sampling": "order", "max_iter": 20, "tol": 0.0}  # all rows a step
COPIES = {
    **{
        f"LinearSVC {loss} {b}": LinearSVC(loss=loss, intercept=b, **FAST)
        for loss in ("hinge", "squared_hinge", "pinball")
        for b in ("free", "penalised")
    },
    "LinearSVC lam": LinearSVC(lam=0.01, class_weight="balanced", **FAST),
    "LogisticRegression": LogisticRegression(**FAST),
    **{
        f"PegasosClassifier {loss}": PegasosClassifier(loss=loss, lam=0.1, **STEPS)
        for loss in ("hinge", "squared_hinge", "pinball", "logistic")
    },
    "PegasosClassifier sgd": PegasosClassifier.preset("sgd", lam=0.1, **STEPS),
    "SVC hinge": SVC(gamma=0.5, tol=1e-8),
    "SVC pinball": SVC(gamma=0.5, loss="pinball", tau=0.3, tol=1e-8),
    "SVC penalised": SVC(gamma=0.5, solver="dual", intercept="penalised", tol=1e-8),
    "CellSVC of one cell": CellSVC(gamma=0.5, cell_size=10**6, tol=1e-8),
    **{
        f"FixedSizeSVC {loss}": FixedSizeSVC(m=1000, gamma=0.5, loss=loss, random_state=0, **FAST)
        for loss in ("squared_hinge", "hinge", "logistic")
    },
    "PolynomialSVC": PolynomialSVC(gamma=0.5, loss="hinge", **FAST),
}


def has_mode(model, mode: str) -> bool:
    """Whether its loss can be that of all classes in one problem, if it is to be."""
    default = isinstance(model, LinearSVC) and model.loss == "squared_hinge"
    return mode != "crammer_singer" or model.loss == "hinge" or default


def objectives(model) -> np.ndarray:
    proofs = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    return np.array([proof.primal for proof in proofs])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "mode"),
    [
        (c, mode)
        for c, model in COPIES.items()
        for mode in getattr(model, "_modes", MODES)
        if has_mode(model, mode)
    ],
)
def test_weight_k_is_k_copies(case, mode):
    """A weight of 0 is no row. Prototypes are all distinct rows; one cell has all rows."""
    X, y = clusters(3, n=36)
    model = COPIES[case]
    k = np.random.default_rng(0).integers(0, 4, len(y))
    model.set_params(multi_class=mode)
    weighted = objectives(model.fit(X, y, sample_weight=k))
    repeated = objectives(model.fit(np.repeat(X, k, axis=0), np.repeat(y, k)))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)
