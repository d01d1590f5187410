"""Kernelised Pegasos equals, step for step, a slow reference; on a budget too."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import SEEDS, random_labels, random_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from pegasos import KernelPegasosClassifier
from pegasos.core.digest import row_digests
from pegasos.data.check import as_rows
from pegasos.data.samples import load_sample
from pegasos.estimators import kernel_online
from pegasos.kernels import Gaussian, Laplacian, Linear, Polynomial
from pegasos.objective.kernel_points import points, take
from pegasos.solvers import kernel_merge, kernel_pegasos
from pegasos.solvers.draws import epochs
from pegasos.solvers.kernel_merge import learn_merging, nothing_merged
from pegasos.solvers.kernel_pegasos import Rule

KERNELS = (Gaussian(0.5), Polynomial(2, 0.3, 1.0), Linear(), Laplacian(0.4), 2 * Gaussian(0.5) + 1)


def matrix(kernel, A, B):
    """K of rows in float64, by definition."""
    if isinstance(kernel, Gaussian):
        return np.exp(-kernel.gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))
    if isinstance(kernel, Laplacian):
        return np.exp(-kernel.gamma * np.abs(A[:, None] - B[None]).sum(axis=2))
    if isinstance(kernel, Polynomial):
        return (kernel.gamma * A @ B.T + kernel.coef0) ** kernel.degree
    if isinstance(kernel, Linear):
        return A @ B.T
    return 2.0 * matrix(Gaussian(0.5), A, B) + 1.0


def reference(K, y, index, weight, lam, constant=0.0):
    """Algorithm 2 of the lecture, line by line; counts, and the average of the functions."""
    beta, average, total = np.zeros(len(y)), np.zeros(len(y)), 0.0
    for t, (j, r) in enumerate(zip(index, weight, strict=True), 1):
        z = 0.0 if t == 1 else y[j] / (lam * (t - 1)) * ((beta * y) @ (K[:, j] + constant))
        if z < 1.0:
            beta[j] += r
        average += t * (beta / (lam * t))
        total += t
    return beta, average / total


def problem(seed, n=20, d=3):
    rng = np.random.default_rng(seed)
    X = random_matrix(rng, n, d)
    return X, np.array(random_labels(rng, X)), rng


def drawn(X, y, c, model):
    """The draws of a fit."""
    seed = int(np.random.RandomState(model.random_state).randint(2**31 - 1))
    source = epochs(row_digests(as_rows(X)), (y > 0).astype(int), c, model.sampling, seed)
    parts = [next(source) for _ in range(model.max_iter)]
    return (np.concatenate(part) for part in zip(*parts, strict=True))


@given(
    seed=SEEDS,
    kernel=st.sampled_from(KERNELS),
    sampling=st.sampled_from(["replacement", "permuted", "order"]),
    intercept=st.sampled_from(["none", "penalised"]),
    average=st.booleans(),
    batch=st.sampled_from([1, 7, 256]),
)
@settings(max_examples=30)
@pytest.mark.bounds
def test_equal_to_the_reference(seed, kernel, sampling, intercept, average, batch):
    X, y, rng = problem(seed)
    weight = rng.integers(1, 4, len(y)).astype(float)
    model = KernelPegasosClassifier(
        kernel=kernel, lam=0.05, sampling=sampling, intercept=intercept, average=average,
        max_iter=3, random_state=seed % 1000,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_online.Counting, "batch", batch)
        model.fit(X, y, sample_weight=weight)
    c = weight / (0.05 * weight.sum())
    index, r = drawn(X, y, c, model)
    K, constant = matrix(kernel, X, X), float(intercept == "penalised")
    beta, mean = reference(K, y, index, r, 1.0 / c.sum(), constant)
    alpha = mean if average else beta / (len(index) / c.sum())
    assert model.t_ == len(index)
    assert np.array_equal(model.support_, np.flatnonzero(beta))
    assert np.allclose(model.dual_coef_[0], (alpha * y)[model.support_], rtol=1e-9)
    assert model.intercept_[0] == pytest.approx(constant * (alpha * y).sum(), rel=1e-9, abs=1e-12)
    scores = (K + constant) @ (alpha * y)
    assert np.allclose(model.decision_function(X), scores, atol=1e-8 * np.abs(scores).max())


def test_several_classes_are_each_against_the_rest():
    X, _, rng = problem(3, n=30)
    y = rng.integers(0, 3, 30)
    model = KernelPegasosClassifier(lam=0.02, gamma=1.0, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (30, 3) and len(model.certificate_) == 3
    index, _ = drawn_of_classes(X, y, model)
    for k in range(3):
        sign = np.where(y == k, 1.0, -1.0)
        beta, _ = reference(matrix(Gaussian(1.0), X, X), sign, index, np.ones(len(index)), 0.02)
        f = matrix(Gaussian(1.0), X, X) @ (beta * sign) / (0.02 * len(index))
        assert np.allclose(scores[:, k], f)


def drawn_of_classes(X, y, model):
    seed = int(np.random.RandomState(model.random_state).randint(2**31 - 1))
    source = epochs(row_digests(as_rows(X)), y, np.ones(len(y)), model.sampling, seed)
    parts = [next(source) for _ in range(model.max_iter)]
    return (np.concatenate(part) for part in zip(*parts, strict=True))


@given(seed=SEEDS, sampling=st.sampled_from(["replacement", "permuted"]), budget=st.booleans())
def test_weights_are_repetition_in_any_order(seed, sampling, budget):
    X, y, rng = problem(seed)
    weight = rng.integers(0, 4, len(y))
    weight[[0, -1]] = 1
    given = {"gamma": 0.3, "budget": 5 if budget else None}  # merges turn on gamma's last digit
    model = KernelPegasosClassifier(sampling=sampling, max_iter=2, random_state=1, **given)
    order = rng.permutation(len(y))
    weighted = clone(model).fit(X[order], y[order], sample_weight=weight[order])
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    scores = weighted.decision_function(X)
    assert np.allclose(scores, repeated.decision_function(X), atol=1e-9 * np.abs(scores).max())


def dropping(K, y, budget, lam):
    """The stream reference that drops the least and first; K with K(x, x) = 1."""
    coef, t = {}, 0
    for j in range(len(y)):
        t += 1
        z = 0.0 if t == 1 else y[j] / (lam * (t - 1)) * sum(a * K[i, j] for i, a in coef.items())
        if z < 1.0:
            coef[j] = y[j]
            if len(coef) > budget:
                del coef[min(coef, key=lambda i: (abs(coef[i]), i))]
    return coef, t


@given(seed=SEEDS, size=st.integers(1, 30), budget=st.integers(1, 9), laplacian=st.booleans())
@pytest.mark.bounds
def test_removal_on_a_stream_is_the_reference(seed, size, budget, laplacian):
    X, y, _ = problem(seed, n=40)
    kernel = Laplacian(0.4) if laplacian else Gaussian(0.5)
    model = KernelPegasosClassifier(kernel=kernel, lam=0.1, budget=budget, maintenance="remove")
    for s in range(0, 40, size):
        model.partial_fit(X[s : s + size], y[s : s + size], classes=[-1.0, 1.0])
    coef, t = dropping(matrix(kernel, X, X), y, budget, 0.1)
    assert model.t_ == t == 40
    assert np.array_equal(np.sort(model.dual_coef_[0]), np.sort(list(coef.values())) / (0.1 * t))
    kept = np.array(sorted(coef))
    assert np.allclose(np.sort(model.support_vectors_, axis=0), np.sort(X[kept], axis=0))
    scores = matrix(kernel, X, X[kept]) @ np.array([coef[j] for j in kept]) / (0.1 * t)
    assert np.allclose(model.decision_function(X), scores)


def merging(X, y, weight, gamma, budget, lam):
    """The slow reference: one row after the other, the place by search on a fine grid."""
    V, coef = np.zeros((0, X.shape[1])), np.zeros(0)
    for t, (x, label, r) in enumerate(zip(X, y, weight, strict=True), 1):
        f = coef @ matrix(Gaussian(gamma), V, x[None])[:, 0]
        if t == 1 or label * f / (lam * (t - 1)) < 1.0:
            V, coef = np.vstack([V, x]), np.append(coef, r * label)
            if len(coef) > budget:
                V, coef = merged(V, coef, gamma)
    return V, coef


def merged(V, coef, gamma):
    i = int(np.argmin(np.abs(coef)))
    k = matrix(Gaussian(gamma), V, V[i][None])[:, 0]
    least, j = math.inf, None
    for q in np.flatnonzero((coef * coef[i] > 0) & (np.arange(len(coef)) != i)):
        total = coef[i] + coef[q]
        lost = total**2 * kernel_merge._looked_up(kernel_merge._losses(), coef[i] / total, k[q])
        least, j = (lost, q) if lost < least else (least, j)
    if j is not None:
        h = np.linspace(0.0, 1.0, 100_001)
        kept = np.abs(coef[i] * k[j] ** ((1 - h) ** 2) + coef[j] * k[j] ** (h**2))
        h = h[kept.argmax()]
        coef[j] = coef[i] * k[j] ** ((1 - h) ** 2) + coef[j] * k[j] ** (h**2)
        V[j] = h * V[i] + (1 - h) * V[j]
    V[i], coef[i] = V[-1], coef[-1]
    return V[:-1], coef[:-1]


@given(seed=SEEDS, size=st.integers(1, 40), budget=st.integers(1, 15))
@pytest.mark.bounds
def test_merging_is_the_reference(seed, size, budget):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    weight = rng.uniform(0.5, 1.5, 40)  # equal ones would leave open who is the least
    model = KernelPegasosClassifier(gamma=0.5, lam=0.05, budget=budget)
    for s in range(0, 40, size):
        some = slice(s, s + size)
        model.partial_fit(X[some], y[some], classes=[-1.0, 1.0], sample_weight=weight[some])
    V, coef = merging(X, y, weight, 0.5, budget, 0.05)
    scores = matrix(Gaussian(0.5), X, V) @ coef / (0.05 * 40)
    assert np.allclose(model.decision_function(X), scores, atol=1e-3 * np.abs(scores).max())


@given(m=st.floats(0.0, 1.0), k=st.floats(0.0, 1.0))
def test_the_table_is_the_loss(m, k):
    h = np.linspace(0.0, 1.0, 2001)
    kept = kernel_merge._kept(m, k, h).max()
    lost = m**2 + (1.0 - m) ** 2 + 2.0 * m * (1.0 - m) * k - kept**2
    table = kernel_merge._losses()
    assert kernel_merge._looked_up(table, m, k) == pytest.approx(lost, abs=2e-3)


def test_merging_keeps_what_it_can():
    """Of a table of losses: none at k = 1, that of dropping the smaller at k = 0."""
    table = kernel_merge._losses()
    m = np.linspace(0.0, 1.0, len(table))
    assert np.allclose(table[:, -1], 0.0)
    assert np.allclose(table[:, 0], np.minimum(m, 1.0 - m) ** 2)
    assert np.all(np.diff(table, axis=1) <= 1e-12)
    for a, b, k in ((1.0, 3.0, 0.9), (2.0, 2.0, 0.01), (1.0, 1.0, 0.5)):
        h = np.linspace(0.0, 1.0, 100_001)
        kept = kernel_merge._kept(a / (a + b), k, h)
        assert kernel_merge._kept(a / (a + b), k, kernel_merge._place(a, b, k)) >= kept.max() - 1e-9


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
@pytest.mark.parametrize("intercept", ["none", "penalised"])
def test_batches_of_a_stream_make_no_difference(maintenance, intercept):
    X, _, rng = problem(5, n=90)
    y = rng.integers(0, 3, 90)
    weight = rng.uniform(0.0, 2.0, 90) * (rng.random(90) < 0.8)
    model = KernelPegasosClassifier(
        gamma=0.7, lam=0.01, budget=8, maintenance=maintenance, intercept=intercept,
        class_weight="balanced",
    )  # fmt: skip
    scores = []
    for size in (1, 13, 90):
        learner = clone(model)
        for s in range(0, 90, size):
            some = slice(s, s + size)
            learner.partial_fit(X[some], y[some], classes=[0, 1, 2], sample_weight=weight[some])
        assert learner.t_ == np.count_nonzero(weight)
        assert learner.dual_coef_.shape[0] == 3 and learner.dual_coef_.shape[1] <= 24
        scores.append(learner.decision_function(X))
    assert np.allclose(scores[0], scores[1], rtol=1e-7, atol=1e-7)
    assert np.allclose(scores[0], scores[2], rtol=1e-7, atol=1e-7)


def test_a_stream_without_a_budget_is_a_fit_in_order():
    X, y, _ = problem(6)
    fitted = KernelPegasosClassifier(lam=0.05, gamma=1.0, sampling="order", max_iter=1).fit(X, y)
    stream = KernelPegasosClassifier(lam=0.05, gamma=1.0)
    for s in range(0, 20, 6):
        stream.partial_fit(X[s : s + 6], y[s : s + 6], classes=[-1, 1])
    assert np.allclose(stream.decision_function(X), fitted.decision_function(X))
    assert not hasattr(stream, "certificate_") and not hasattr(stream, "support_")
    again = stream.fit(X, y)
    assert again.certificate_.gap >= 0.0 and not hasattr(again, "_learner")


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_a_stream_on_a_budget_answers_with_its_last_function(maintenance):
    X, y, _ = problem(6)
    last, mean = (
        KernelPegasosClassifier(gamma=1.0, budget=4, maintenance=maintenance, average=average)
        for average in (False, True)
    )
    scores = last.partial_fit(X, y).decision_function(X)
    assert np.array_equal(mean.partial_fit(X, y).decision_function(X), scores)


def test_memory_on_a_budget_is_constant():
    rng = np.random.default_rng(0)
    held = nothing_merged(10, 2, np.float32)
    kernel = Gaussian(1.0)
    for _ in range(5):
        X = rng.normal(size=(64, 2)).astype(np.float32)
        y = np.where((X**2).sum(axis=1) > 1.3, 1.0, -1.0)
        rows = points(kernel, sp.csr_array(X))
        learn_merging(kernel, held, take(rows, np.arange(64)), y, np.ones(64), Rule(0.01, 0.0, 10))
        assert held.tally[0] <= 10 and held.T.shape == (2, 11)
    assert held.tally[1] == 320 and np.all(np.isfinite(held.T))


@given(SEEDS, st.sampled_from([2, 3]), st.sampled_from(["none", "penalised"]))
@settings(max_examples=8)
@pytest.mark.slow
def test_certificates_bracket_the_optimum(seed, n_classes, intercept):
    X, y, rng = problem(seed)
    if n_classes == 3:
        y = np.concatenate([[0, 1, 2], rng.integers(0, 3, 17)])
    K = matrix(Gaussian(0.5), X, X) + float(intercept == "penalised")
    model = KernelPegasosClassifier(gamma=0.5, C=2.0, intercept=intercept, random_state=0)
    proofs = []
    for rounds in (1, 300):
        found = clone(model).set_params(max_iter=rounds).fit(X, y).certificate_
        proofs.append(found if n_classes == 3 else [found])
    for k in range(len(proofs[0])):
        sign = np.where(y == (k if n_classes == 3 else 1), 1.0, -1.0)
        best = box_optimum(K, sign, 2.0)
        for proof in proofs:
            assert proof[k].dual <= best + 1e-6 and best <= proof[k].primal + 1e-6
        assert proofs[1][k].relative_gap < 0.1


def box_optimum(K, y, C):
    """max sum a - 1/2 a'Qa over the box, by coordinate descent."""
    Q, a = K * np.outer(y, y), np.zeros(len(y))
    for _ in range(2000):
        for i in range(len(y)):
            a[i] = min(C, max(0.0, a[i] + (1.0 - Q[i] @ a) / max(Q[i, i], 1e-12)))
    return a.sum() - 0.5 * a @ Q @ a


def test_storages_precisions_and_kernels_agree():
    X, y = make_moons(200, noise=0.2, random_state=0)
    X[np.abs(X) < 0.3] = 0.0
    options = {"gamma": 1.0, "random_state": 0}
    dense = KernelPegasosClassifier(**options).fit(X, y)
    csr = KernelPegasosClassifier(**options).fit(sp.csr_array(X), y)
    single = KernelPegasosClassifier(**options).fit(X.astype(np.float32), y)
    own = KernelPegasosClassifier(kernel=lambda A, B: matrix(Gaussian(1.0), A, B), **options)
    own.fit(X, y)
    scores = dense.decision_function(X)
    for other, Z in ((csr, sp.csr_array(X)), (own, X), (dense, sp.csr_array(X))):
        assert np.allclose(other.decision_function(Z), scores, rtol=1e-6, atol=1e-6)
    assert np.mean(single.predict(X.astype(np.float32)) == dense.predict(X)) > 0.97
    assert single.support_vectors_.dtype == np.float32
    assert np.allclose(dense.support_vectors_, X[dense.support_])


@pytest.mark.parametrize("options", [{}, {"budget": 20, "maintenance": "remove"}])
def test_precomputed(options):
    X, y = make_moons(100, noise=0.2, random_state=0)
    K = matrix(Gaussian(1.0), X, X)
    model = KernelPegasosClassifier(kernel="precomputed", sampling="order", **options).fit(K, y)
    plain = KernelPegasosClassifier(gamma=1.0, sampling="order", **options).fit(X, y)
    assert np.allclose(model.decision_function(K[:7]), plain.decision_function(X[:7]))
    assert model._support.rows.matrix.size == 0
    with pytest.raises(AttributeError, match="support_"):
        model.support_vectors_  # noqa: B018
    with pytest.raises(ValueError, match="stream"):
        clone(model).partial_fit(K, y)


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_an_average_on_a_budget_is_of_functions_of_the_same_vectors(maintenance):
    """With a budget for all rows projection loses nothing: the exact steps from the middle on."""
    X, y, _ = problem(8, n=24, d=2)
    X += 1e-3 * np.arange(24)[:, None]  # all different
    model = KernelPegasosClassifier(
        gamma=2.0, lam=0.05, budget=24 * 10, maintenance=maintenance, average=True,
        sampling="permuted", max_iter=8, random_state=0,
    )  # fmt: skip
    model.fit(X, y)
    index, _ = drawn(X, y, np.ones(24), model)
    K, beta, total, weights = matrix(Gaussian(2.0), X, X), np.zeros(24), np.zeros(24), 0.0
    half = next(s for s in range(0, 192, 24) if 2 * s >= 192)
    for t, j in enumerate(index, 1):
        z = 0.0 if t == 1 else y[j] / (0.05 * (t - 1)) * ((beta * y) @ K[:, j])
        beta[j] += z < 1.0
        if t > half:
            total, weights = total + beta / 0.05, weights + t
    scores = K @ (total * y) / weights
    assert np.allclose(model.decision_function(X), scores, atol=0.02 * np.abs(scores).max())


def test_close_to_the_exact_svc_on_a_budget():
    X, y = load_sample("pima")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    exact = SVC(C=1.0, gamma=0.1).fit(X[:500], y[:500])
    model = KernelPegasosClassifier(gamma=0.1, budget=50, average=True, max_iter=10, random_state=0)
    model.fit(X[:500], y[:500])
    assert model.dual_coef_.shape == (1, 50)
    assert model.score(X[500:], y[500:]) > exact.score(X[500:], y[500:]) - 0.02


def test_limits_and_interruption(monkeypatch):
    X, y = make_moons(200, noise=0.2, random_state=0)
    quick = KernelPegasosClassifier(max_time=1e-9, max_iter=1000).fit(X, y)
    assert quick.stop_reason_ == "max_time" and quick.n_iter_ == 1
    assert KernelPegasosClassifier(max_iter=2).fit(X, y).stop_reason_ == "max_iter"
    monkeypatch.setattr(kernel_online, "MOST_VALUES", 10)
    assert KernelPegasosClassifier().fit(X, y).certificate_ is None
    learn = kernel_pegasos.learn

    def interrupted(kernel, rows, counts, draws, rule):
        if counts.t > 300:
            raise KeyboardInterrupt
        return learn(kernel, rows, counts, draws, rule)

    monkeypatch.setattr(kernel_pegasos, "learn", interrupted)
    model = KernelPegasosClassifier(gamma=1.0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.t_ > 300 and model.score(X, y) > 0.8


@pytest.mark.parametrize(
    "options, message",
    [
        ({"budget": 5, "kernel": "linear"}, "maintenance='merge' needs a Gaussian kernel"),
        ({"budget": 0}, "budget"),
        ({"maintenance": "forget"}, "maintenance must be one of"),
        ({"sampling": "random"}, "sampling must be one of"),
        ({"intercept": "free"}, "intercept must be one of"),
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"C": 0.0}, "C must be"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_time": 0.0}, "max_time"),
    ],
)
def test_what_is_refused(options, message):
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match=message):
        KernelPegasosClassifier(**options).fit(X, y)


def test_what_a_stream_refuses():
    X, y, _ = problem(0)
    with pytest.raises(ValueError, match="one class"):
        KernelPegasosClassifier().partial_fit(X, np.ones(20))
    model = KernelPegasosClassifier(budget=5).partial_fit(X, y)
    with pytest.raises(ValueError, match="not among"):
        model.partial_fit(X, np.full(20, 7.0))
