"""choose_threshold: the best threshold for a target, and predictions that follow it."""

import numpy as np
import pytest
from conftest import SEEDS, random_labels, random_matrix
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from pegasos import (
    SVC,
    KernelPegasosClassifier,
    LinearSVC,
    LogisticRegression,
    PegasosClassifier,
    load_model,
    save_model,
)
from pegasos.model.threshold import Target, choose
from pegasos.report.decisions import decision_figure

RNG = np.random.default_rng(0)
X = random_matrix(RNG, 60, 4)
Y = np.where(random_labels(RNG, X) > 0, "yes", "no")
QUICK = {"max_iter": 20, "tol": 0.1, "random_state": 0}
ESTIMATORS = {
    "LinearSVC": LinearSVC(**QUICK),
    "logistic": LogisticRegression(**QUICK),
    "Pegasos": PegasosClassifier(**QUICK),
    "kernel Pegasos": KernelPegasosClassifier(random_state=0),
    "SVC": SVC(),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def reached(scores, truth, weight, threshold):
    """True positives, false positives, false negatives, true negatives."""
    told = scores > threshold
    pairs = (told & truth, told & ~truth, ~told & truth, ~told & ~truth)
    return [float(weight[pair].sum()) for pair in pairs]


@given(
    seed=SEEDS, name=st.sampled_from(["precision", "recall", "cost"]), level=st.floats(0.05, 1.0)
)
def test_no_other_threshold_is_better(seed, name, level):
    rng = np.random.default_rng(seed)
    scores = rng.choice([rng.normal(size=25), rng.integers(-2, 3, size=25).astype(float)])
    truth = rng.random(25) < 1.0 / (1.0 + np.exp(-scores))
    truth[0] = True
    weight = rng.integers(0, 3, size=25).astype(float)
    weight[0] = 1.0
    costs = rng.integers(0, 5, size=(2, 2)).astype(float)
    target = Target(name, costs if name == "cost" else level)
    every = [reached(scores, truth, weight, t) for t in (-np.inf, *scores)]

    def worth(tp, fp, fn, tn):
        if name == "cost":
            return (-(costs[0, 0] * tn + costs[0, 1] * fp + costs[1, 0] * fn + costs[1, 1] * tp),)
        precision, recall = tp / max(tp + fp, 1e-300), tp / (tp + fn)
        if name == "precision":
            return (recall, precision) if precision >= level - 1e-12 else (-1.0, precision)
        return (precision, recall) if recall >= level - 1e-12 else (-1.0, recall)

    best = max(worth(*part) for part in every)
    if best[0] == -1.0:
        with pytest.raises(ValueError, match=f"the best possible is {best[1]:.4f}"):
            choose(scores, truth, weight, target)
        return
    found = choose(scores, truth, weight, target)
    tp, fp, fn, tn = reached(scores, truth, weight, found.threshold)
    assert worth(tp, fp, fn, tn) == pytest.approx(best)
    assert found.recall == pytest.approx(tp / (tp + fn))
    assert found.precision == pytest.approx(tp / max(tp + fp, 1e-300))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_predictions_follow_the_threshold_until_the_next_fit(name, tmp_path):
    model = clone(ESTIMATORS[name]).fit(X, Y)
    plain = model.predict(X)
    scores = model.decision_function(X)
    found = model.choose_threshold(X, Y, recall=1.0)
    assert model.threshold_ == found.threshold and found.recall == 1.0
    told = model.predict(X)
    assert np.array_equal(told == "yes", scores > found.threshold)
    assert np.all(told[Y == "yes"] == "yes")
    save_model(model, tmp_path / "model")
    kept = load_model(tmp_path / "model")
    assert kept.threshold_ == found.threshold
    assert np.array_equal(kept.predict(X), told)
    assert np.array_equal(model.decision_function(X), scores)
    assert np.array_equal(model.fit(X, Y).predict(X), plain) and model.threshold_ == 0.0


def test_a_stream_that_goes_on_forgets_the_threshold():
    model = PegasosClassifier(random_state=0).partial_fit(X, Y)
    model.choose_threshold(X, Y, recall=0.9)
    assert model.partial_fit(X, Y).threshold_ == 0.0


def test_costs_are_of_pairs_of_classes_and_weights_are_copies():
    model = LinearSVC(**QUICK).fit(X, Y)
    costs = {("yes", "no"): 10.0, ("no", "yes"): 1.0}
    times = RNG.integers(1, 4, size=60)
    weighted = model.choose_threshold(X, Y, cost=costs, sample_weight=times)
    copies = model.choose_threshold(np.repeat(X, times, axis=0), np.repeat(Y, times), cost=costs)
    assert weighted == pytest.approx(copies)
    told = model.predict(X)
    paid = 10.0 * times[(Y == "yes") & (told == "no")].sum()
    assert weighted.cost == paid + times[(Y == "no") & (told == "yes")].sum()
    assert "cost" in str(weighted) and "recall" in str(weighted)


def test_messages():
    model = LinearSVC(**QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="one of precision, recall and cost, got none"):
        model.choose_threshold(X, Y)
    with pytest.raises(ValueError, match="got precision, recall"):
        model.choose_threshold(X, Y, precision=0.5, recall=0.5)
    with pytest.raises(ValueError, match="recall must be at most 1"):
        model.choose_threshold(X, Y, recall=90)
    with pytest.raises(ValueError, match=r"cost: \('yes', 'maybe'\) is not a pair"):
        model.choose_threshold(X, Y, cost={("yes", "maybe"): 1.0})
    with pytest.raises(TypeError, match="cost must be a dict"):
        model.choose_threshold(X, Y, cost=3.0)
    with pytest.raises(ValueError, match="class 'maybe' is not one of the model's"):
        model.choose_threshold(X, np.where(Y == "yes", "maybe", "no"), recall=0.9)
    with pytest.raises(ValueError, match="no row of the second class"):
        model.choose_threshold(X[Y == "no"], Y[Y == "no"], recall=0.9)
    three = LinearSVC(**QUICK).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="for two classes, this model has 3"):
        three.choose_threshold(X, np.arange(60) % 3, recall=0.9)


@pytest.mark.parametrize("parts", ["scores", "p", "both"])
def test_the_figure_marks_the_threshold(parts, tmp_path):
    truth = Y == "yes"
    scores = np.where(truth, 0.5, -0.5) + RNG.normal(size=60)
    p = 1.0 / (1.0 + np.exp(-scores))
    given = {"scores": {"scores": scores}, "p": {"p": p}, "both": {"scores": scores, "p": p}}
    path = tmp_path / "curves.png"
    figure = decision_figure(Y, **given[parts], threshold=0.7, path=path, title="curves")
    assert len(figure.axes) == {"scores": 2, "p": 1, "both": 3}[parts]
    assert path.stat().st_size > 10_000
    if parts != "p":
        told = scores > 0.7
        marked = [line.get_xydata() for line in figure.axes[1].lines if line.get_marker() == "o"]
        place = [np.mean(told[truth]), np.mean(truth[told])]
        assert np.allclose(marked, [[place]])
        assert figure.axes[0].get_ylabel() == "share of class yes found"
    with pytest.raises(ValueError, match="nothing to draw"):
        decision_figure(truth)
    with pytest.raises(ValueError, match="rows of two classes"):
        decision_figure(np.ones(60), scores)
