"""PegasosClassifier: epochs over data, and streams."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pegasos import LinearSVC, PegasosClassifier
from pegasos.data.samples import load_sample
from pegasos.estimators.online import PRESETS

pytestmark = pytest.mark.slow


def spam(n: int = 1200):
    """E-mails in random order: a stream that is sorted by class teaches one class at a time."""
    X, y = load_sample("spambase")
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return ((X - X.mean(axis=0)) / X.std(axis=0))[rows], y[rows]


def test_fit_comes_near_the_optimum_and_proves_it():
    X, y = spam()
    model = PegasosClassifier(lam=1e-2, tol=0.05, max_iter=500, random_state=0).fit(X, y)
    best = LinearSVC(loss="hinge", lam=1e-2, tol=1e-4).fit(X, y)
    assert model.stop_reason_ == "gap"
    primal, dual = model.certificate_
    assert dual <= best.certificate_.primal <= primal <= 1.06 * best.certificate_.dual


@pytest.mark.parametrize("name", PRESETS)
def test_presets_learn(name):
    X, y = spam()
    model = PegasosClassifier.preset(name, lam=1e-2, random_state=0, max_iter=60)
    with pytest.warns(ConvergenceWarning):
        model.set_params(tol=0.0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.certificate_.gap >= 0.0


def test_the_residual_of_one_row_is_refused():
    X, y = spam(300)
    model = PegasosClassifier.preset("pinball_pegasos", batch_size=1)
    with pytest.raises(ValueError, match="batch_size=0 or at least 2"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="offset='damped'"):
        model.partial_fit(X, y)


def test_an_unknown_preset_is_named():
    with pytest.raises(ValueError, match="preset must be one of 'pegasos'"):
        PegasosClassifier.preset("adam")


def test_a_schedule_of_the_user():
    X, y = spam(300)
    settings = {"lam": 0.1, "max_iter": 5, "tol": 0.0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        own = PegasosClassifier(schedule=lambda t, lam: 1.0 / (lam * t), **settings).fit(X, y)
        ours = PegasosClassifier(**settings).fit(X, y)
    assert np.array_equal(own.coef_, ours.coef_)


def streamed(model, X, y, size, **more):
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        model.partial_fit(X[rows], y[rows], **more)
    return model


def test_a_stream_learns_and_does_not_depend_on_its_batches():
    X, y = spam()
    one, other = (
        streamed(PegasosClassifier(lam=1e-3), X, y, size, classes=[0, 1]) for size in (1, 173)
    )
    assert np.array_equal(one.coef_, other.coef_)
    assert one.t_ == other.t_ == len(y)
    assert one.score(X, y) > 0.85


def test_the_first_batch_may_hold_one_class_if_all_are_named():
    X, y = spam(200)
    spam_only = X[y == 1]
    with pytest.raises(ValueError, match="name all of them by classes="):
        PegasosClassifier().partial_fit(spam_only, np.ones(len(spam_only)))
    model = PegasosClassifier().partial_fit(spam_only, np.ones(len(spam_only)), classes=[0, 1])
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("fault", ["nan", "features", "class", "weight", "classes"])
def test_a_refused_batch_leaves_the_model_as_it_was(fault):
    X, y = spam(200)
    model = PegasosClassifier(lam=1e-2).partial_fit(X[:100], y[:100], classes=[0, 1])
    before, t = model.coef_.copy(), model.t_
    bad_X, bad_y, more = X[100:].copy(), y[100:].copy(), {}
    if fault == "nan":
        bad_X[50, 3] = np.nan
    elif fault == "features":
        bad_X = bad_X[:, :-1]
    elif fault == "class":
        bad_y[7] = 5
    elif fault == "weight":
        more = {"sample_weight": -np.ones(100)}
    else:
        more = {"classes": [0, 1, 2]}
    with pytest.raises(ValueError):
        model.partial_fit(bad_X, bad_y, **more)
    assert np.array_equal(model.coef_, before) and model.t_ == t
    model.partial_fit(X[100:], y[100:])
    whole = streamed(PegasosClassifier(lam=1e-2), X, y, 100, classes=[0, 1])
    assert np.array_equal(model.coef_, whole.coef_)


def test_balanced_weights_come_from_running_counts():
    X, y = spam(400)
    balanced = streamed(PegasosClassifier(class_weight="balanced"), X, y, 400, classes=[0, 1])
    weights = [(i + 1) / (2 * np.sum(y[: i + 1] == y[i])) for i in range(400)]
    plain = PegasosClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=weights)
    assert np.allclose(balanced.coef_, plain.coef_)


def test_balanced_weights_do_not_depend_on_batches():
    X, y = spam(300)
    kinds, weight = (y + (X[:, 0] > 0)).astype(int), np.random.default_rng(2).random(300)
    models = []
    for size in (1, 7, 300):
        model = PegasosClassifier(class_weight="balanced", lam=1e-3)
        for rows in (slice(at, at + size) for at in range(0, 300, size)):
            model.partial_fit(X[rows], kinds[rows], [0, 1, 2], sample_weight=weight[rows])
        models.append(model)
    assert len({model.coef_.tobytes() for model in models}) == 1
    assert len({model.progressive_ for model in models}) == 1


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.0, 1: 2.0, 2: 1.0}], ids=str)
def test_rows_of_weight_0_are_not_there(class_weight):
    X, y = spam(300)
    kinds = (y + (X[:, 0] > 0)).astype(int)
    weight = np.arange(300) % 3.0
    there = weight > 0
    if isinstance(class_weight, dict):
        there &= kinds > 0
    settings = {"class_weight": class_weight, "lam": 1e-3, "batch_size": 4}
    model = PegasosClassifier(**settings)
    model.partial_fit(X[:1], kinds[:1], [0, 1, 2], sample_weight=[0.0])
    assert model.t_ == 0 and model.progressive_.rows == 0 and not model.coef_.any()
    model.partial_fit(X, kinds, sample_weight=weight)
    part = PegasosClassifier(**settings)
    part.partial_fit(X[there], kinds[there], [0, 1, 2], sample_weight=weight[there])
    assert np.array_equal(model.coef_, part.coef_) and model.t_ == part.t_
    assert model.progressive_ == part.progressive_


def test_the_offset_of_a_step_is_not_known_before_it():
    """Labels that depend on nothing but the time: whoever sees them first is never wrong."""
    X, _ = spam(400)
    X, y = 1e-3 * X, np.repeat(np.arange(40) % 2, 10)
    settings = {"batch_size": 10, "lam": 1.0}
    whole, parts = (
        streamed(PegasosClassifier.preset("pinball_pegasos", **settings), X, y, size)
        for size in (400, 20)
    )
    assert whole.progressive_.errors >= 390 and whole.progressive_.loss > 1.5
    assert parts.progressive_ == whole.progressive_ and np.array_equal(parts.coef_, whole.coef_)


def test_the_residual_of_a_step_of_one_row_is_left_alone():
    X, y = spam()
    model = PegasosClassifier.preset("pinball_pegasos", lam=1e-2, projection=True, loss="hinge")
    model.partial_fit(X[:100], y[:100], classes=[0, 1])
    before = model.intercept_.copy()
    streamed(model, X[100:], y[100:], 1)
    assert model.intercept_ == before and model.t_ == 1 + len(y) - 100
    assert model.progressive_.error_rate < 0.25 and model.score(X, y) > 0.8


def test_fit_and_partial_fit_leave_nothing_of_each_other(tmp_path):
    from pegasos import load_model, save_model

    X, y = spam(300)
    settings = {"lam": 1e-2, "tol": 0.5, "random_state": 0}
    fitted = PegasosClassifier(**settings).fit(X, y)
    streaming = PegasosClassifier(**settings).partial_fit(X, y)
    facts = {"certificate_", "history_", "stop_reason_", "solver_", "n_iter_", "support_"}
    assert facts <= set(vars(fitted)) and not facts & set(vars(streaming))
    model = PegasosClassifier(**settings)
    for _ in range(2):
        model.fit(X, y)
        assert set(vars(model)) == set(vars(fitted))
        save_model(model, tmp_path / "m")
        assert not hasattr(load_model(tmp_path / "m"), "t_")
        model.partial_fit(X, y)
        assert set(vars(model)) == set(vars(streaming)) and model.t_ == 300
        assert np.array_equal(model.coef_, streaming.coef_)
        save_model(model, tmp_path / "m")
        assert not facts & set(vars(load_model(tmp_path / "m")))


def test_a_stream_of_several_classes():
    X, y = spam()
    kinds = (y + (X[:, 0] > 0)).astype(int)
    model = streamed(PegasosClassifier(lam=1e-3), X, kinds, 100, classes=[0, 1, 2])
    assert model.coef_.shape == (3, 57)
    assert model.score(X, kinds) > 0.6


def test_a_model_from_a_stream_is_saved_and_loaded(tmp_path):
    from pegasos import load_model, save_model

    X, y = spam(300)
    model = PegasosClassifier(lam=1e-3, loss="perceptron").partial_fit(X, y, classes=[0, 1])
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.get_params() == model.get_params()
