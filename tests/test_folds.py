"""Cross-validation of a path: each fold and value is the fit on the other rows, certified."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_score

from pegasos import LinearSVC, LogisticRegression

CS = [0.01, 0.1, 1.0, 5.0]


def text(n_classes=2, n=150):
    """Rows with more columns than a d x d matrix is made for, so that descent is the method."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, n)
    X = sp.random(n, 3000, density=0.02, random_state=0, format="csr", dtype=np.float32)
    topic = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), y)), shape=(n, 3000))
    return sp.csr_matrix(X + 0.7 * topic), y


def tall(n_classes=2):
    return make_classification(
        150, 12, n_informative=6, n_classes=n_classes, random_state=0, flip_y=0.1
    )


def proofs_of(model):
    found = model.certificate_
    return [found] if hasattr(found, "primal") else found


@pytest.mark.slow
@pytest.mark.parametrize("data", [text, tall])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [LinearSVC(loss="hinge"), LogisticRegression()], ids=repr)
def test_a_fold_is_the_fit_on_the_other_rows(data, n_classes, model):
    X, y = data(n_classes)
    model.set_params(tol=1e-4, random_state=0)
    splits = list(StratifiedKFold(3).split(X, y))
    found = model.cross_validate_path(X, y, CS, cv=3)
    assert found.test_score.shape == (4, 3) and found.Cs.tolist() == CS
    for j, C in enumerate(CS):
        for f, (train, test) in enumerate(splits):
            alone = type(model)(**model.get_params()).set_params(C=C).fit(X[train], y[train])
            proofs = found.certificates[j][f]
            for ours, other in zip(
                [proofs] if n_classes == 2 else proofs, proofs_of(alone), strict=True
            ):
                assert ours.relative_gap <= 1e-4
                assert ours.primal == pytest.approx(other.primal, rel=2e-4)
            assert found.test_score[j, f] == pytest.approx(alone.score(X[test], y[test]), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["none", "penalised", "free"])
def test_scorers_and_splitters_of_scikit_learn(intercept):
    X, y = text()
    model = LinearSVC(loss="hinge", intercept=intercept, tol=1e-4, random_state=0)
    cv = ShuffleSplit(2, random_state=0)
    found = model.cross_validate_path(X, y, CS, cv=cv, scoring="roc_auc")
    for j, C in enumerate(CS):
        expected = cross_val_score(model.set_params(C=C), X, y, cv=cv, scoring="roc_auc")
        assert np.allclose(found.test_score[j], expected, atol=0.03)

    def auc(fitted, X, y):
        return roc_auc_score(y, fitted.decision_function(X))

    again = model.cross_validate_path(X, y, CS, cv=list(cv.split(X)), scoring=auc)
    assert np.allclose(again.test_score, found.test_score)


def test_the_best_is_the_smallest_of_the_best():
    X, y = text()
    found = LinearSVC(loss="hinge").cross_validate_path(X, y, [1.0, 1e-9, 2e-9])
    mean = found.mean_test_score
    assert np.allclose(mean, found.test_score.mean(axis=1))
    assert found.best_C == found.Cs[found.best_index]
    assert mean[found.best_index] == mean.max()
    assert found.best_C == min(found.Cs[mean == mean.max()])


def test_repeated_rows_and_weights_count_as_often():
    X, y = text()
    train = np.r_[0:100, 0:50]
    model = LinearSVC(loss="hinge", tol=1e-5, class_weight="balanced")
    found = model.cross_validate_path(X, y, CS, cv=[(train, np.arange(100, 150))])
    weight = np.where(np.arange(150) < 50, 2.0, 1.0)
    same = [(np.arange(100), np.arange(100, 150))]
    weighted = model.cross_validate_path(X, y, CS, cv=same, sample_weight=weight)
    for j, C in enumerate(CS):
        alone = model.set_params(C=C).fit(X[train], y[train]).certificate_.primal
        assert found.certificates[j][0].primal == pytest.approx(alone, rel=1e-4)
        assert weighted.certificates[j][0].primal == pytest.approx(alone, rel=1e-4)


def test_rows_of_weight_zero_are_tested_but_not_learnt_from():
    X, y = text()
    weight = np.where(np.arange(150) % 10 == 0, 0.0, 1.0)
    model = LinearSVC(loss="hinge", tol=1e-5)
    found = model.cross_validate_path(X, y, CS, cv=KFold(3), sample_weight=weight)
    train, test = next(KFold(3).split(X))
    alone = model.set_params(C=1.0).fit(X[train], y[train], sample_weight=weight[train])
    assert found.certificates[2][0].primal == pytest.approx(alone.certificate_.primal, rel=1e-4)
    assert found.test_score[2, 0] == pytest.approx(alone.score(X[test], y[test]), abs=0.03)


def test_data_frames_keep_their_names():
    import pandas as pd

    X, y = tall()
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    names = []

    def scorer(fitted, X, y):
        names.append(list(X.columns))
        return fitted.score(X, y)

    found = LinearSVC().cross_validate_path(frame, y, CS, cv=2, scoring=scorer)
    assert names[0] == list(frame.columns)
    assert np.allclose(found.test_score, LinearSVC().cross_validate_path(X, y, CS, cv=2).test_score)


def test_a_fold_without_a_class_is_named():
    X, y = text()
    y = np.sort(y)
    with pytest.raises(ValueError, match="class 0 has no training row in split 0"):
        LinearSVC().cross_validate_path(X, y, CS, cv=[(np.flatnonzero(y), np.flatnonzero(y == 0))])
    with pytest.raises(ValueError, match="Cs is empty"):
        LinearSVC().cross_validate_path(X, y, [])
