"""scikit-learn's own checks: every estimator, every solver; none skipped.

None is expected to fail but, for random steps, that weights equal repetition to seven digits.

The checks compare fits to 1e-7, so the fits are asked for all that float64 can give.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pegasos import (
    SVC,
    CellSVC,
    FixedSizeSVC,
    FourierMap,
    KernelPegasosClassifier,
    LinearSVC,
    LogisticRegression,
    NystroemMap,
    PegasosClassifier,
    PolynomialMap,
    PolynomialSVC,
)
from pegasos.losses import Pinball

EXACT = {"tol": 1e-14, "max_iter": 200}
DESCENT = {"tol": 0.0, "max_iter": 1000, "solver": "dual"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@parametrize_with_checks(
    [
        LinearSVC(**EXACT),
        LinearSVC(loss=Pinball(0.3), solver="interior", **EXACT),
        LinearSVC(solver="newton", intercept="penalised", multi_class="ovo", **EXACT),
        LinearSVC(probability=True, **EXACT),
        LinearSVC(loss="hinge", **DESCENT),
        LogisticRegression(**EXACT),
        LogisticRegression(**DESCENT),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        SVC(tol=1e-12),
        SVC(tol=1e-12, solver="smo", kernel="linear", multi_class="ovr"),
        SVC(tol=1e-12, max_iter=2000, solver="dual", intercept="penalised", loss="pinball"),
        CellSVC(tol=1e-12, cell_size=100),
    ]
)
def test_scikit_learn_check_of_kernel_machines(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [PolynomialMap(), PolynomialMap(3), PolynomialSVC(tol=1e-14, max_iter=20_000)]
)
def test_scikit_learn_check_of_polynomials(estimator, check):
    check(estimator)


BATCH = {"batch_size": 0, "sampling": "order", "average": "none", "max_iter": 300, "tol": 0.0}
CHANCE = "rows drawn at random: weights equal repetition on average, not draw by draw"


@parametrize_with_checks([PegasosClassifier(**BATCH)])
def test_scikit_learn_check_of_whole_batches(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [PegasosClassifier(random_state=0), PegasosClassifier(batch_size=5)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": CHANCE,
        "check_sample_weight_equivalence_on_sparse_data": CHANCE,
    },
)
def test_scikit_learn_check_of_random_steps(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        KernelPegasosClassifier(),
        KernelPegasosClassifier(kernel="poly", coef0=1.0, average=True, intercept="penalised"),
        KernelPegasosClassifier(budget=40),
    ]
)
def test_scikit_learn_check_of_kernel_pegasos(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        NystroemMap(),
        FourierMap(),
        FixedSizeSVC(**EXACT),
        FixedSizeSVC(m=60, loss="hinge", kernel="poly", coef0=1.0, cache_size=1e-6, **EXACT),
    ]
)
def test_scikit_learn_check_of_maps(estimator, check):
    check(estimator)
