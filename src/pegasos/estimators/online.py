"""PegasosClassifier: the stochastic family, in epochs over data or from a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from pegasos.data.check import as_rows, small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators import streams
from pegasos.estimators.base import LinearClassifier
from pegasos.estimators.streams import Batch, OnStream, steps_of_all, steps_of_each
from pegasos.estimators.transfer import centers_of, transferred
from pegasos.objective.losses import Logistic, Perceptron
from pegasos.solvers.draws import SAMPLINGS
from pegasos.solvers.multiclass_steps import MulticlassSteps
from pegasos.solvers.schedules import Constant, InverseRoot, pegasos_steps
from pegasos.solvers.subgradient import Subgradient

LOSSES = {**par.LOSSES, "logistic": Logistic, "perceptron": Perceptron}
STREAM_LAM = 1e-4  # of partial_fit, where the number of rows behind C is not known
PRESETS: dict[str, dict[str, Any]] = {
    "pegasos": {},
    "sgd": {"schedule": "inverse_root", "projection": False},
    "batch": {"batch_size": 0, "sampling": "order", "average": "none"},
    "perceptron": {
        "loss": "perceptron",
        "schedule": "constant",
        "eta0": 1.0,
        "projection": False,
        "average": "none",
        "sampling": "order",
        "offset": "steps",
    },
    "pinball_pegasos": {
        "loss": "pinball",
        "batch_size": 100,
        "average": "none",
        "sampling": "replacement",
        "offset": "residual",
    },
}


class PegasosClassifier(OnStream, LinearClassifier):
    """Linear classification by subgradient steps: Pegasos and its relatives.

    Minimises lam/2 ||w - w0||^2 + mean of l(y_i (w.x_i + b)), the objective of `LinearSVC` with
    lam = 1 / (C N), by one step after another on few rows. `fit` passes over the data in epochs and
    certifies the answer; `partial_fit` learns from a stream in constant memory.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "pinball", "logistic", "perceptron"} or a loss object
    C : float, default=1.0
        Weight of the data, for `fit` (unless lam is given).
    lam : float, default=None
        The penalty. On a stream, where N is not known, it takes the place of C (default 1e-4).
    batch_size : int, default=1
        Rows of a step; 0 means all.
    schedule : {"pegasos", "constant", "inverse_root"} or callable, default="pegasos"
        Step t has the length 1/(lam t), eta0, eta0/sqrt(t), or schedule(t, lam) for an array of t.
    eta0 : float, default=1.0
    projection : bool, default=True
        Whether w is kept in the ball around w0 in which the optimum lies. On a stream with a
        centre, where its radius depends on rows to come, it is not.
    average : {"weighted", "tail", "uniform", "none"}, default="weighted"
        Of the iterates: with weights t; over the second half of `max_iter` epochs; over all; the
        last one.
    sampling : {"permuted", "replacement", "order"}, default="permuted"
        Epochs in a fresh random order, random draws, or the order of the data.
    offset : {"damped", "steps", "residual"}, default="damped"
        How a free intercept is found: by the steps of w, at most 1/sqrt(t) long, since no penalty
        calls it back from a first step of 1/lam; by these steps as they are; or as the mean of
        y - w.x over the rows of a step (Algorithm 1 of the pinball paper; a step of one row leaves
        it as it is).
    stop : rule of `pegasos.stopping` or a list of them, default=None
        Other ends of `fit` besides tol: Window, Displacement, Validation.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        As in `LinearSVC`; in one problem for all classes a row acts on its own class and on the one
        that violates its margin most (hinge loss, no residual offset). Pairs are for `fit` alone.
    probability : bool or "isotonic", default=False
        As in `LinearSVC`, for `fit` alone: a stream is seen once.
    tol, max_iter, max_time, intercept, fit_intercept, intercept_scaling, class_weight, center,
    n_threads, random_state, verbose
        As in `LinearSVC`, but tol=1e-2 and max_iter=100: these methods are for fair answers soon.

    Attributes
    ----------
    As of `LinearSVC`; after `partial_fit`, which proves nothing, in place of what is of a fit
    t_ : int
        Steps taken.
    progressive_ : Progressive(rows, errors, loss)
        Each row judged by the last weights before it was learnt; `error_rate` is errors / rows.

    Examples
    --------
    >>> from pegasos import PegasosClassifier
    >>> from pegasos.data.samples import load_sample
    >>> X, y = load_sample("spambase")
    >>> model = PegasosClassifier(lam=1e-3, random_state=0)
    >>> for start in range(0, len(y), 500):
    ...     rows = slice(start, start + 500)
    ...     _ = model.partial_fit(X[rows] / (1.0 + X[rows]), y[rows], classes=[0, 1])
    >>> model.t_ == len(y)
    True
    """

    def __init__(
        self,
        *,
        loss="hinge",
        C=1.0,
        lam=None,
        batch_size=1,
        schedule="pegasos",
        eta0=1.0,
        projection=True,
        average="weighted",
        sampling="permuted",
        offset="damped",
        tol=1e-2,
        max_iter=100,
        max_time=None,
        stop=None,
        intercept="free",
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        multi_class="ovr",
        center=None,
        probability=False,
        n_threads=None,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.C = C
        self.lam = lam
        self.batch_size = batch_size
        self.schedule = schedule
        self.eta0 = eta0
        self.projection = projection
        self.average = average
        self.sampling = sampling
        self.offset = offset
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.stop = stop
        self.intercept = intercept
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.center = center
        self.probability = probability
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    warm_start = False
    _modes = ("ovr", "ovo", "crammer_singer")
    n_features_in_: int

    @classmethod
    def preset(cls, name: str, **parameters: Any) -> PegasosClassifier:
        """A method by its name: pegasos, sgd, batch, perceptron or pinball_pegasos."""
        par.one_of("preset", name, tuple(PRESETS))
        return cls(**{**PRESETS[name], **parameters})

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from some rows of a stream: one pass over them.

        Rows that are refused leave the model as it was. After `fit` a new stream begins.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, default=None
            All classes of the stream, at the first call (default: those of y).
        sample_weight : array of shape (n_samples,), default=None
            Rows of weight 0 are not there.

        Returns
        -------
        self
        """
        if par.one_of("multi_class", self.multi_class, self._modes) == "ovo":
            raise ValueError(
                "multi_class='ovo' is for fit: partial_fit learns each class against the rest, set "
                "multi_class='ovr'"
            )
        if self._check_probability():
            raise ValueError(
                "probability=True needs rows that can be left out and seen again, which a stream "
                "has not: use fit, or probability=False"
            )
        first = not hasattr(self, "_stream")
        lam = STREAM_LAM if self.lam is None else par.positive("lam", self.lam)
        method, loss = replace(self._method(), lam=lam), self._loss()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=small_dtype(X), reset=first)
        all_classes = self._stream_classes(y, classes, first)
        checks = {"ensure_non_negative": True, "allow_all_zero_weights": True}
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, **checks)
        label = np.searchsorted(all_classes, y)
        stream = streams.begin(len(all_classes), X.shape[1]) if first else self._stream
        factors, counts = self._class_factors(stream.counts, label, weight, all_classes)
        c = weight * factors
        kept = np.flatnonzero(c > 0.0)
        if kept.size < c.size:
            X, label, c = X[kept], label[kept], c[kept]
        bias, free = self._bias()
        rows, d = as_rows(X, bias), X.shape[1]
        states: list[Any] = stream.states
        scores: list[np.ndarray] = []
        center = transferred(self.center, self._wanted(all_classes, d)) if first else self.center_
        centers = centers_of(center, (len(states), d), bias)
        if kept.size:
            learn = steps_of_all if self.multi_class == "crammer_singer" else steps_of_each
            states, scores = learn(method, Batch(rows, label, c, loss, centers, free), states)
        self.classes_, self.center_ = all_classes, center
        self._carry(streams.after(stream._replace(states=states, counts=counts), scores, label))
        moved = np.array([method.point(state, state.vectors.past, bias) for state in states])
        weights = centers + moved
        self.coef_, self.intercept_ = weights[:, :-1].copy(), bias * weights[:, -1]
        return self

    def _widen(self, n_features: int) -> None:
        """Have room for more columns, which were empty so far."""
        more = n_features - self.n_features_in_
        self._carry(streams.widened(self._stream, n_features))
        self.center_ = self.center_ and self.center_.widened(n_features)
        self.coef_ = np.pad(self.coef_, ((0, 0), (0, more)))
        self.n_features_in_ = n_features

    def _stream_classes(self, y, classes, first: bool) -> np.ndarray:
        known = np.unique(y if classes is None else classes) if first else self.classes_
        if first and len(known) < 2:
            only = par.shown(known[0])
            raise ValueError(f"the first batch has one class, {only}: name all of them by classes=")
        if not first and classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(
                f"classes={par.shown(classes)} are not those of the first call, {par.shown(known)}"
            )
        unknown = np.setdiff1d(y, known)
        if unknown.size:
            raise ValueError(
                f"class {par.shown(unknown[0])} was not among the classes {par.shown(known)}"
            )
        return known

    def _class_factors(
        self, counts: np.ndarray, label: np.ndarray, weight: np.ndarray, classes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The class weight of each row, and the counts after them all."""
        balanced, counts = streams.balanced(counts, label, weight)
        if self.class_weight is None:
            return np.ones(len(label)), counts
        if isinstance(self.class_weight, str):
            par.one_of("class_weight", self.class_weight, ("balanced",))
            return balanced, counts
        given = np.array([float(self.class_weight.get(k, 1.0)) for k in classes.tolist()])
        return par.class_factors(given, classes)[label], counts

    def _loss(self) -> Any:
        loss = par.loss_of(self.loss, LOSSES)
        several = self.multi_class == "crammer_singer"
        return par.loss_of_all_classes(self.loss, loss) if several else loss

    def _solver(self) -> Subgradient | MulticlassSteps:
        method = self._method()
        return MulticlassSteps(method) if self.multi_class == "crammer_singer" else method

    def _method(self) -> Subgradient:
        reading = par.intercept_of(self.intercept, self.fit_intercept)
        steps = par.one_of("offset", self.offset, ("damped", "steps", "residual"))
        offset = {"steps": "free"}.get(steps, steps) if reading == "free" else "none"
        if offset == "residual" and self.multi_class == "crammer_singer":
            raise ValueError(
                "offset='residual' is of two classes: with multi_class='crammer_singer' use "
                "offset='damped' or 'steps'"
            )
        if offset == "residual" and self.batch_size == 1:
            raise ValueError(
                "offset='residual' needs batch_size=0 or at least 2: the residual of one row makes "
                "its margin 1 whatever w is, so no step learns; or use offset='damped'"
            )
        average = par.one_of("average", self.average, ("weighted", "tail", "uniform", "none"))
        return Subgradient(
            batch=0 if self.batch_size == 0 else par.count("batch_size", self.batch_size),
            schedule=self._schedule(),
            sampling=par.one_of("sampling", self.sampling, SAMPLINGS),
            projection=bool(self.projection),
            power={"weighted": 1.0, "none": None}.get(average, 0.0),
            tail=average == "tail",
            epochs=par.count("max_iter", self.max_iter),
            offset=offset,
            shrink=not isinstance(self._loss(), Perceptron),
            lam=None,
        )

    def _schedule(self) -> Any:
        if callable(self.schedule):
            return self.schedule
        par.one_of("schedule", self.schedule, ("pegasos", "constant", "inverse_root"))
        if self.schedule == "pegasos":
            return pegasos_steps
        eta0 = par.positive("eta0", self.eta0)
        return Constant(eta0) if self.schedule == "constant" else InverseRoot(eta0)
