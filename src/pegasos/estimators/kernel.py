"""SVC: kernel machines with a proof of optimality."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.callback import with_callbacks

from pegasos.estimators import parameters as par
from pegasos.estimators.classifier import all_or_nothing
from pegasos.estimators.kernel_machine import KernelMachine
from pegasos.objective.losses import Pinball
from pegasos.solvers.auto import Choice
from pegasos.solvers.driver import Stop
from pegasos.solvers.kernel_dual import KernelDual
from pegasos.solvers.smo import Smo
from pegasos.solvers.stops import Optimality
from pegasos.solvers.working_set import WorkingSet

SOLVERS = ("auto", "working_set", "smo", "dual")
UNLIMITED = 1 << 40


class SVC(KernelMachine):
    """Support vector classification with kernels and a proof of optimality.

    Minimises 1/2 ||w||^2 + sum_i C_i l(y_i (w.phi(x_i) + b)) with phi(x).phi(z) = K(x, z), exactly.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the data against the penalty.
    kernel : str, kernel of `pegasos.kernels` or function, default="rbf"
        "linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"; a kernel such as
        `Gaussian(0.5) + 1`; or a function of two arrays of rows that gives the matrix.
    degree, gamma, coef0
        Parameters of the kernels named by a string, as in scikit-learn.
    shrinking : bool, default=True
        Accepted for scikit-learn's sake; the method has nothing to shrink.
    tol : float, default=1e-3
        Stop when the relative gap (primal - dual) / primal is proven to be at most this.
    kkt_tol : float, default=None
        If given, it decides instead: stop when the optimality conditions hold up to this, computed
        in float64. It is what `tol` means in LIBSVM and scikit-learn, where 1e-3 is the default.
    cache_size : float, default=1000
        Megabytes for kernel values. More is not used; what was used is kept for the next fit.
    class_weight : dict or "balanced", default=None
    verbose : int, default=0
    max_iter : int, default=-1
        Most rounds of a solver (working sets, or passes over the rows); -1: no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of `decision_function` for one-vs-one problems.
    break_ties : bool, default=False
        Predict by the decision function where pairs give equal votes to several classes.
    probability : bool or "isotonic", default=False
        True adds `predict_proba`, as in `LinearSVC`, by five further fits.
    random_state : int, RandomState or None, default=None
        Seed of the first working set and of the folds of `probability`.
    lam : float, default=None
        lam/2 ||w||^2 + mean loss, lam = 1 / (C N). If given, C is not used.
    loss : {"hinge", "pinball"} or a loss object, default="hinge"
    tau : float, default=0.5
        Of the pinball loss.
    solver : {"auto", "working_set", "smo", "dual"}, default="auto"
        "dual" (coordinate descent) is for an offset that is penalised or absent.
    intercept : {"free", "penalised", "none"}, default="free"
        Penalised means the kernel K + 1.
    multi_class : {"ovo", "ovr"}, default="ovo"
        A problem per pair of classes, or per class against the rest.
    n_threads : int, default=None
        Threads; None means all cores. The result does not depend on it, unless problems of
        several classes share a cache that is too small for them: then it is another one within tol.
    max_time : float, default=None
        Most seconds for the whole fit.
    warm_start : bool, default=False
        Start from the dual variables of the last fit, if it had the same problems.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), classes_,
    class_weight_, fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.
    kernel_ : the kernel with its numbers
    certificate_ : Certificate (a list of them for more than one problem)
    stop_reason_, solver_, history_
        As in LinearSVC; a stop by `kkt_tol` is called "kkt".

    Examples
    --------
    >>> from pegasos import SVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC().fit(StandardScaler().fit_transform(X), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        kkt_tol=None,
        cache_size=1000,
        class_weight=None,
        verbose=0,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        probability=False,
        random_state=None,
        lam=None,
        loss="hinge",
        tau=0.5,
        solver="auto",
        intercept="free",
        multi_class="ovo",
        n_threads=None,
        max_time=None,
        warm_start=False,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.kkt_tol = kkt_tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.probability = probability
        self.random_state = random_state
        self.lam = lam
        self.loss = loss
        self.tau = tau
        self.solver = solver
        self.intercept = intercept
        self.multi_class = multi_class
        self.n_threads = n_threads
        self.max_time = max_time
        self.warm_start = warm_start

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit to rows X and labels y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features); (n_samples, n_samples) of kernel
            values for kernel="precomputed"
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None
            A weight of k counts a row k times.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self

    def _stop(self) -> Stop:
        limit = np.inf if self.max_time is None else par.positive("max_time", self.max_time)
        rounds = UNLIMITED if self.max_iter == -1 else par.count("max_iter", self.max_iter)
        stop = Stop(
            tol=par.positive("tol", self.tol, zero=True),
            max_epochs=rounds,
            max_seconds=limit,
            first_check=UNLIMITED,
        )
        if self.kkt_tol is None:
            return stop
        return replace(stop, tol=0.0, rules=(Optimality(par.positive("kkt_tol", self.kkt_tol)),))

    def _loss(self) -> Pinball:
        pinball = par.loss_of(Pinball(par.positive("tau", self.tau, zero=True)))
        if self.loss == "pinball":
            return pinball
        if isinstance(self.loss, str):
            par.one_of("loss", self.loss, ("hinge", "pinball"))
        return par.loss_of(self.loss)

    def _solver(self, reading: str, budget: int) -> tuple[Any, Choice]:
        name = par.one_of("solver", self.solver, SOLVERS)
        if name == "dual" and reading == "free":
            raise ValueError(
                "solver='dual' has no free offset: use intercept='penalised' or 'none', "
                "or solver='working_set'"
            )
        if name == "smo" and reading != "free":
            raise ValueError(
                f"solver='smo' moves pairs to keep a free offset, but intercept={reading!r}: "
                "use solver='dual' or 'working_set'"
            )
        if name == "smo":
            return Smo(budget), Choice("smo", "asked for")
        if name == "dual":
            return KernelDual(budget), Choice("dual", "asked for")
        reason = "asked for" if name == "working_set" else "the method for exact kernel machines"
        kkt = self.kkt_tol is not None
        goals = {"floor": self.kkt_tol} if kkt else {"share": self.tol}
        return WorkingSet(budget, **goals), Choice("working_set", reason)
