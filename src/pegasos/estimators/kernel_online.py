"""KernelPegasosClassifier: kernelised Pegasos, exact or on a budget, over data or from a stream."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pegasos.core.digest import row_digests
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.core.threads import use_threads
from pegasos.data.check import as_rows, small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators.base import LinearClassifier
from pegasos.estimators.classifier import all_or_nothing, asked
from pegasos.estimators.kernel_checks import warn_unless_kernel
from pegasos.estimators.kernel_learners import Counting, Learner, Projecting, learner_of
from pegasos.estimators.one_vs_all import Task
from pegasos.estimators.online import STREAM_LAM, PegasosClassifier
from pegasos.estimators.threshold import Thresholds
from pegasos.model.decision import chosen
from pegasos.objective.kernel_names import kernel_of
from pegasos.objective.kernel_points import as_given, is_given, n_points, points, take
from pegasos.objective.kernel_sums import kernel_sums
from pegasos.objective.kernels import Gaussian, resolved
from pegasos.solvers.draws import SAMPLINGS, epochs
from pegasos.solvers.kernel_pegasos import Rule, certify

MOST_VALUES = 4e9  # kernel values that a certificate may take: about ten seconds
OF_A_FIT = ("certificate_", "support_", "n_iter_", "stop_reason_", "threshold_")
OF_A_STREAM = ("_learner", "_seen")


class KernelPegasosClassifier(Thresholds, ClassifierMixin, BaseEstimator):
    """Kernelised Pegasos: nonlinear classification by counting, from data or a stream.

    Minimises 1/2 ||f||^2 + C sum_i max(0, 1 - y_i f(x_i)) over functions f of a kernel's space by
    stochastic subgradient steps. A step looks at one row; if its margin is below 1, the row's count
    grows by one. With a `budget` no more than so many support vectors are kept, and `partial_fit`
    learns from a stream in constant memory and constant time per row.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed"}, kernel or function
        A kernel of `pegasos.kernels`, such as `Gaussian(0.5) + 1`, or f(A, B) or f(x, z) of yours.
    gamma, degree, coef0
        Of the kernels that go by a name, as in scikit-learn. On a stream gamma="scale" goes by the
        first batch.
    C : float, default=1.0
        Weight of the data, for `fit` (unless lam is given).
    lam : float, default=None
        The penalty in lam/2 ||f||^2 + mean loss. On a stream it stands for C (default 1e-4).
    budget : int, default=None
        Most support vectors (of each problem, for several classes); None keeps all.
    maintenance : {"merge", "remove"}, default="merge"
        What makes room in the budget: two support vectors become one between them, which needs a
        Gaussian kernel; or the least of them is dropped, which loses more, for any kernel.
    average : bool, default=False
        Return the average of the functions after each step, with weights t, not the last one. On a
        budget: of the second half of all steps, in which the support vectors stay where they are
        and rows are projected onto them; on a stream there it has no effect.
    sampling : {"replacement", "permuted", "order"}, default="replacement"
        Rows drawn in proportion to their weights; each different row once an epoch, in a random
        order; or as they stand.
    max_iter : int, default=5
        Epochs, each of as many steps as there are different rows.
    max_time : float, default=None
        Most seconds of a fit.
    intercept : {"none", "penalised"}, default="none"
        "penalised": K + 1 in place of K. There is no free intercept here; SVC has one.
    class_weight, n_threads, random_state
        As in `LinearSVC`.

    Attributes
    ----------
    classes_, n_features_in_ : as in scikit-learn
    kernel_ : the kernel, with numbers for gamma
    dual_coef_ : array of shape (1 or n_classes, n_support)
        Of the support vectors, which are shared by all problems.
    support_vectors_ : array or CSR matrix; not of a precomputed kernel
    support_ : their rows in X; without a budget, after `fit`
    intercept_ : array of shape (1 or n_classes,)
    certificate_ : Certificate, or a list of them for several classes
        After `fit` without a budget; None where it would take more than 4e9 kernel values (rows
        times support vectors).
    stop_reason_ : "max_iter" or "max_time"
    n_iter_, t_ : epochs begun by `fit`, steps

    Examples
    --------
    >>> from pegasos import KernelPegasosClassifier
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = KernelPegasosClassifier(gamma=2.0, budget=30, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98, model.dual_coef_.shape
    (True, (1, 30))
    """

    _encode = LinearClassifier._encode
    _row_costs = LinearClassifier._row_costs
    _refuse_missing_classes = LinearClassifier._refuse_missing_classes
    _stream_classes = PegasosClassifier._stream_classes
    _class_factors = PegasosClassifier._class_factors

    def __init__(
        self,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        C=1.0,
        lam=None,
        budget=None,
        maintenance="merge",
        average=False,
        sampling="replacement",
        max_iter=5,
        max_time=None,
        intercept="none",
        class_weight=None,
        n_threads=None,
        random_state=None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.lam = lam
        self.budget = budget
        self.maintenance = maintenance
        self.average = average
        self.sampling = sampling
        self.max_iter = max_iter
        self.max_time = max_time
        self.intercept = intercept
        self.class_weight = class_weight
        self.n_threads = n_threads
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Fit to rows X and labels y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The kernel matrix (n_samples, n_samples) if the kernel is precomputed.
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), default=None
            A weight of k counts a row k times.

        Returns
        -------
        self
        """
        self._forget()
        rule = Rule(1.0, float(self._reading() == "penalised"), self._budget())
        sampling = par.one_of("sampling", self.sampling, SAMPLINGS)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=small_dtype(X), accept_large_sparse=True
        )
        label = self._encode(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        c = self._row_costs(X, y, label, sample_weight)
        kept = np.flatnonzero(c > 0.0)
        self._refuse_missing_classes(label[kept])
        kernel = self._kernel(X, sample_weight)
        train, digests = points(kernel, X), self._digests(kernel, X)
        if kept.size < c.size:
            train, digests = take(train, kept), digests[kept]
            label, c = label[kept], c[kept]
        rule = rule._replace(lam=1.0 / c.sum())
        signs = np.where(label[:, None] == np.array(self._targets()), 1.0, -1.0)
        learner = learner_of(kernel, train, signs.shape[1], rule, self._merges(), stays=True)
        with use_threads(par.threads_of(self.n_threads)):
            seed = par.seed_of(self.random_state)
            self._run(learner, train, signs, epochs(digests, label, c, sampling, seed))
            if isinstance(learner, Counting) and learner.stays:
                self._certify(learner, train, signs, c, kept)
        return self

    def _run(self, learner: Learner, train: Any, signs: np.ndarray, drawn: Any) -> None:
        limit = np.inf if self.max_time is None else par.positive("max_time", self.max_time)
        deadline = time.perf_counter() + limit
        rounds, settles = par.count("max_iter", self.max_iter), self._settles()
        self.stop_reason_ = "max_iter"
        try:
            for self.n_iter_, (index, weight) in zip(range(1, rounds + 1), drawn):  # noqa: B020, B905
                s = 0
                while s < len(index):
                    if settles and 2 * learner.t >= rounds * len(index):
                        learner, settles = Projecting(learner), False
                    some = slice(s, s + learner.batch)
                    learner.learn(train, index[some], signs[index[some]], weight[some])
                    s += learner.batch
                    if time.perf_counter() > deadline:
                        self.stop_reason_ = "max_time"
                        return
        finally:  # after Ctrl-C too
            self._record(learner)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from the next rows of a stream, one step each, in their order.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, default=None
            All classes, at the first call; may be left out if its rows have them all.
        sample_weight : array of shape (n_samples,), default=None
            The increment of a row's count.

        Returns
        -------
        self
        """
        first = not hasattr(self, "_learner")
        lam = STREAM_LAM if self.lam is None else par.positive("lam", self.lam)
        rule = Rule(lam, float(self._reading() == "penalised"), self._budget())
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=small_dtype(X), reset=first)
        self.classes_ = self._stream_classes(y, classes, first)
        checks = {"ensure_non_negative": True, "allow_all_zero_weights": True}
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, **checks)
        label = np.searchsorted(self.classes_, y)
        seen = np.zeros(len(self.classes_) + 1) if first else self._seen  # type: ignore[has-type]
        factors, seen = self._class_factors(seen, label, weight, self.classes_)
        rows, learner = self._next_rows(X, rule, first)
        signs = np.where(label[:, None] == np.array(self._targets()), 1.0, -1.0)
        index = np.flatnonzero(weight * factors > 0.0)
        with use_threads(par.threads_of(self.n_threads)):
            for s in range(0, len(index), learner.batch):
                some = index[s : s + learner.batch]
                learner.learn(rows, some, signs[some], (weight * factors)[some])
        self._forget()
        self._learner, self._seen = learner, seen
        self._record(learner)
        return self

    def _targets(self) -> list[int]:
        return Task.targets_of(len(self.classes_))

    def _next_rows(self, X: Any, rule: Rule, first: bool) -> tuple[Any, Learner]:
        """The rows, made ready like those before, and who learns them."""
        if not first:
            return points(self.kernel_, X, like=self._learner.origin), self._learner
        kernel = self._kernel(X)
        if is_given(kernel):
            raise ValueError("a stream has no precomputed kernel: give the kernel, or use fit")
        rows = points(kernel, X)
        return rows, learner_of(kernel, rows, len(self._targets()), rule, self._merges())

    def decision_function(self, X):
        """f(x) of each row.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        X = asked(self, X)
        rows = points(self.kernel_, X, like=self._support)
        with use_threads(par.threads_of(self.n_threads)):
            scores = kernel_sums(self.kernel_, rows, self._support, self.dual_coef_.T)
        scores += self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """The class of each row: the one with the highest score (of two by `threshold_`)."""
        scores = self.decision_function(X)
        return self.classes_[chosen(scores.reshape(len(scores), -1), self.threshold_)]

    @property
    def support_vectors_(self) -> Any:
        check_is_fitted(self)
        rows = self._support.rows
        if not isinstance(rows, DenseRows | CsrRows):
            raise AttributeError(f"{self.kernel_!r} has no support vectors: see support_")
        return as_given(self._support)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_given(self.kernel)
        return tags

    # Parameters to numbers

    def _kernel(self, X: Any, weight: Any = None) -> Any:
        kernel = kernel_of(self.kernel, self.gamma, self.degree, self.coef0)
        kernel = resolved(kernel, X, weight)
        if self._merges() and not isinstance(kernel, Gaussian):
            raise ValueError(
                f"maintenance='merge' needs a Gaussian kernel, not {kernel!r}: use "
                "maintenance='remove', or kernel='rbf'"
            )
        return kernel

    def _digests(self, kernel: Any, X: Any) -> np.ndarray:
        """What tells rows apart; rows of a kernel matrix always differ."""
        return np.arange(X.shape[0]) if is_given(kernel) else row_digests(as_rows(X))

    def _settles(self) -> bool:
        return bool(self.average) and self.budget is not None

    def _merges(self) -> bool:
        way = par.one_of("maintenance", self.maintenance, ("merge", "remove"))
        return self.budget is not None and way == "merge"

    def _budget(self) -> int:
        return 0 if self.budget is None else par.count("budget", self.budget)

    def _reading(self) -> str:
        return par.one_of("intercept", self.intercept, ("none", "penalised"))

    # Results to attributes

    def _record(self, learner: Learner) -> None:
        self.kernel_, self.t_ = learner.kernel, learner.t
        of_all = bool(self.average) and (self.budget is None or isinstance(learner, Projecting))
        self._support, coef, self.intercept_ = learner.answer(of_all)
        self.dual_coef_ = coef.T

    def _certify(self, learner: Counting, train: Any, signs: Any, c: Any, kept: Any) -> None:
        coef = learner.coefficients(bool(self.average))
        used = np.flatnonzero(coef.any(axis=1))
        self.support_ = kept[used]
        if len(used) * n_points(train) > MOST_VALUES:
            self.certificate_ = None
            return
        warn_unless_kernel(learner.kernel, train)
        found = certify(learner.kernel, train, signs, c, coef, learner.rule.constant)
        self.certificate_ = found[0] if len(found) == 1 else found

    def _forget(self) -> None:
        for name in OF_A_FIT + OF_A_STREAM:
            self.__dict__.pop(name, None)
