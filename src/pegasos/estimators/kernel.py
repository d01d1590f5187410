"""SVC: kernel machines with a proof of optimality."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted, validate_data

from pegasos.core.threads import use_threads
from pegasos.data.check import small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators.callbacks import FitTasks
from pegasos.estimators.classifier import Classifier, Data
from pegasos.estimators.kernel_checks import foretell, warn_unless_kernel
from pegasos.estimators.kernel_layout import Layout, assembled, linear_coef, with_scale
from pegasos.estimators.one_vs_all import solve
from pegasos.estimators.pairs import KernelTask, one_vs_one, one_vs_rest, share_of
from pegasos.model.kernel import KernelModel, scores_of, votes
from pegasos.objective.kernel_points import given_columns, points
from pegasos.objective.kernels import Linear, Precomputed, kernel_of, resolved
from pegasos.objective.losses import Pinball
from pegasos.solvers.auto import Choice
from pegasos.solvers.driver import Run, Stop
from pegasos.solvers.kernel_dual import KernelDual
from pegasos.solvers.smo import Smo
from pegasos.solvers.stops import Optimality
from pegasos.solvers.working_set import WorkingSet

SOLVERS = ("auto", "working_set", "smo", "dual")
UNLIMITED = 1 << 40


class SVC(Classifier):
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
    random_state : int, RandomState or None, default=None
        Seed of the first working set.
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
        Threads; None means all cores. The result does not depend on it.
    max_time : float, default=None
        Most seconds for the whole fit.
    warm_start : bool, default=False
        Start from the dual variables of the last fit, if it had the same problems.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), classes_,
    fit_status_, shape_fit_, n_iter_, n_features_in_, feature_names_in_
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
        with self._at_work():
            stop = self._stop()
            data = self._read(X, y, sample_weight)
            task = self._task(data, stop)
            tasks = FitTasks(
                self,
                len(task.parts),
                {"X": data.X, "y": self.classes_[data.label]},
                lambda found: self._found(found, task, data),
            )
            runs = solve(task, tasks)
            self._record(task, runs, data)
            tasks.end()
        self._close(runs)
        return self

    # Parameters to numbers

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
        if self.loss == "pinball":
            return par.loss_of(Pinball(par.positive("tau", self.tau, zero=True)))
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

    def _task(self, data: Data, stop: Stop) -> KernelTask:
        par.one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        several = par.one_of("multi_class", self.multi_class, ("ovo", "ovr"))
        reading = par.intercept_of(self.intercept, True)
        pairs = several == "ovo" and len(self.classes_) > 2
        parts = (one_vs_one if pairs else one_vs_rest)(data.label, self.classes_)
        budget = int(1e6 * par.positive("cache_size", self.cache_size))
        largest = max(part.rows.size for part in parts)
        foretell(largest, data.X.shape[1], budget, stop.max_seconds)
        solver, choice = self._solver(reading, share_of(budget, len(parts)))
        if not warn_unless_kernel(self.kernel_, data.X) and not stop.rules:
            stop = replace(stop, rules=(Optimality(1e-3),))  # its gap may mean nothing
        kernel = self.kernel_ + 1.0 if reading == "penalised" else self.kernel_
        return KernelTask(
            kernel=kernel,
            points=points(kernel, data.X),
            c=data.c,
            parts=parts,
            starts=self._warm_starts(parts),
            loss=self._loss(),
            free=reading == "free",
            solver=solver,
            choice=choice,
            stop=stop,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    def _kernel(self) -> Any:
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0)

    def _warm_starts(self, parts: list[Any]) -> list[np.ndarray] | None:
        """beta / c of the last fit, if warm_start is on and the problems are as large."""
        last = getattr(self, "_dual_share", None) if self.warm_start else None
        sizes = [part.rows.size for part in parts]
        return last if last is not None and [len(b) for b in last] == sizes else None

    def _read(self, X, y, sample_weight) -> Data:
        given = self._kernel()
        data = super()._read(X, y, sample_weight)
        n = len(np.asarray(y))
        if isinstance(given, Precomputed):
            if sp.issparse(data.X) or data.X.shape[1] != n:
                raise ValueError(
                    "Precomputed matrix must be a square matrix. Input is a "
                    f"{n}x{data.X.shape[1]} {'sparse ' if sp.issparse(data.X) else ''}matrix: pass "
                    "the kernel values of all rows of X with all rows"
                )
            data = data._replace(X=data.X[:, data.kept])
        self.shape_fit_ = (n, self.n_features_in_)
        if sample_weight is not None:
            weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)[data.kept]
            given = with_scale(given, data.X, weight)
        self.kernel_ = resolved(given, data.X)
        return data

    # Results to attributes

    @property
    def _pairs(self) -> bool:
        return self.multi_class == "ovo" and len(self.classes_) > 2

    def _found(self, found: list[np.ndarray], task: KernelTask, data: Data) -> dict[str, Any]:
        """The attributes of a model from (beta, b) per problem."""
        if task.kernel is not self.kernel_:  # K + 1: its constant is the offset
            found = [np.append(w[:-1], w[:-1].sum()) for w in found]
        layout = assembled(task.parts, found, data.label, self._pairs)
        vectors = data.X[layout.support]
        attributes = {
            "support_": data.kept[layout.support].astype(np.int32),
            "support_vectors_": vectors,
            "n_support_": layout.counts.astype(np.int32),
            "dual_coef_": layout.dual_coef,
            "intercept_": layout.intercept,
        }
        if isinstance(self.kernel_, Precomputed):
            attributes["support_vectors_"] = np.empty((0, 0))
        return attributes

    def _record(self, task: KernelTask, runs: list[Run], data: Data) -> None:
        self.__dict__.update(self._found([run.best.w for run in runs], task, data))
        self._dual_share = [
            run.best.alpha / task.c[part.rows] for run, part in zip(runs, task.parts, strict=True)
        ]
        self.n_iter_ = np.array([run.state.iterations for run in runs])
        short = [run.stop_reason in ("max_iter", "max_time", "stalled") for run in runs]
        self.fit_status_ = int(any(short))
        records: dict[str, list[Any]] = {
            "certificate_": [run.certificate for run in runs],
            "history_": [run.history for run in runs],
            "stop_reason_": [run.stop_reason for run in runs],
            "solver_": [task.choice for _ in runs],
        }
        for name, values in records.items():
            setattr(self, name, values[0] if len(runs) == 1 else values)

    @property
    def coef_(self):
        """w of each problem, for the linear kernel."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        layout = Layout(None, self.n_support_, self.dual_coef_, self.intercept_)
        return linear_coef(layout, self.support_vectors_, self._pairs)

    # Prediction

    def _scores(self, X) -> np.ndarray:
        """A column per problem."""
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=small_dtype(X),
            accept_large_sparse=True,
        )
        with use_threads(par.threads_of(self.n_threads)):
            return scores_of(self._kernel_model(), X)

    def _kernel_model(self) -> KernelModel:
        if isinstance(self.kernel_, Precomputed):
            support = given_columns(self.n_features_in_, self.support_)
        else:
            support = points(self.kernel_, self.support_vectors_)
        return KernelModel(
            self.kernel_, support, self.dual_coef_, self.n_support_, self.intercept_, self._pairs
        )

    def decision_function(self, X):
        """Scores of the rows.

        Returns
        -------
        array of shape (n_samples,) for two classes; (n_samples, n_classes), or with
        decision_function_shape="ovo" a column per pair of classes
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        if self._pairs and self.decision_function_shape == "ovr":
            return _ovr_decision_function(scores < 0, -scores, len(self.classes_))
        return scores

    def predict(self, X):
        """The class of each row."""
        if self.break_ties and self._pairs:
            if self.decision_function_shape == "ovo":
                raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
            return self.classes_[self.decision_function(X).argmax(axis=1)]
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0.0).astype(int)]
        if self._pairs:
            return self.classes_[votes(scores, len(self.classes_))]
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
