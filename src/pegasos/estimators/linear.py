"""LinearSVC and LogisticRegression."""

from __future__ import annotations

from typing import Any

from pegasos.estimators import parameters as par
from pegasos.estimators.base import LinearClassifier
from pegasos.estimators.folds import cross_validate_path
from pegasos.estimators.path import fit_path
from pegasos.objective.losses import Logistic

COMMON = """C : float, default=1.0
        Weight of the data against the penalty: 1/2 ||w||^2 + C * sum of losses.
    lam : float, default=None
        The same by another name: lam/2 ||w||^2 + mean loss, lam = 1 / (C N) with N the sum of
        sample weights. If given, C is not used.
    tol : float, default=1e-3
        Stop when the relative gap (primal - dual) / primal is proven to be at most this: the best
        possible objective is then at least (1 - tol) times the one found.
    max_iter : int, default=1000
        Most epochs (passes over the data, or Newton steps).
    max_time : float, default=None
        Most seconds for the whole fit (all classes; compilation at first use included).
    stop : Validation of `pegasos.stopping`, default=None
        Another end: when the score on rows kept aside rises no more.
    intercept : {"free", "penalised", "none"}, default="free"
        Whether there is an intercept, and whether the penalty falls on it.
    fit_intercept : bool, default=True
        scikit-learn's form: False means intercept="none".
    intercept_scaling : float, default=1.0
        The constant feature behind a penalised intercept.
    class_weight : dict or "balanced", default=None
        Factors on C per class; "balanced" gives N / (K N_k).
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        Of more than two classes: a problem per class against the rest; per pair of classes; or one
        for all of them, in which a row pays for its worst violation: a hinge loss, also where
        `loss` is left at its default.
        LogisticRegression, whose probabilities are those of classes, has the first alone.
    center : fitted linear model, path of a model file, array or (coef, intercept), default=None
        The point w0 from which w is penalised: 1/2 ||w - w0||^2 (transfer from a related model).
        C is then the trust in the data: near 0 the result is w0. The intercept too begins there;
        a penalised one is drawn to it, a free one goes where the data want it. Of a model (also
        scikit-learn's) classes are matched by label and, if both sides have them, features by name;
        what the model does not know has the centre 0. Else numbers must agree, one row of
        coefficients for each problem.
    solver : {"auto", "dual", "newton", "newton_cg", "interior"}, default="auto"
        "auto" chooses and records why in `solver_`; "newton_cg" is for squared hinge and logistic
        loss, "interior" for hinge and pinball.
    n_threads : int, default=None
        Threads; None means all cores. With a fixed random_state the same number gives the same
        bits. So does another number, unless descent runs over a million entries or more:
        there threads share the rows, and the answer is another one within tol.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows in coordinate descent.
    warm_start : bool, default=False
        Start from the dual variables of the last fit, if it had as many rows.
    verbose : int, default=0
        1 logs epochs and gaps to standard error.

    Attributes
    ----------
    coef_ : array of shape (n_problems, n_features)
        Weights in float64: exactly the vector that `certificate_` speaks of. There is one problem
        for two classes, else one per class, or per pair (0, 1), (0, 2), …, the first one positive.
    intercept_ : array of shape (n_problems,)
    classes_ : array of shape (n_classes,)
    center_ : Transferred or None
        The centre that was used: `coef_` and `intercept_`, a row for each weight vector; how many
        features were `matched`, `unknown` to the source and `left_out` of it; `new_classes`.
    certificate_ : Certificate (a list of them where there are several problems)
        primal >= optimum >= dual, gap and relative_gap.
    stop_reason_ : str (or a list)
        "gap", "max_iter", "max_time", "validation", "callback", "stalled" or "interrupted".
    solver_ : Choice(name, reason) (or a list)
    history_ : list of Progress(epoch, seconds, estimate, certificate, stop) (or a list of lists)
    support_ : array
        Indices of the rows with a non-zero dual variable in any problem.
    dual_coef_ : array of shape (1 or n_classes, n_support)
        alpha_i y_i of these rows: coef_ is close to w0 + dual_coef_ @ X[support_]. With
        multi_class="ovo" rows come by class and have n_classes - 1 coefficients, as in SVC.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array, if X had names"""

PROBABILITY = """probability : bool or "isotonic", default=False
        True adds `predict_proba`: scores of rows that five further fits leave out in turn become
        probabilities, by a function that rises with the score and never contradicts `predict`."""


class ExactClassifier(LinearClassifier):
    """What is solved to a proven gap, and so for many values of C together."""

    def path(self, X, y, Cs, sample_weight=None):
        """A model for each value of C, trained together: each row is read once for many of them.

        Every model is certified to `tol` on its own; `lam` is not used, `max_time` is for all of
        them, and Ctrl-C ends the path without models.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        Cs : array of values of C

        Returns
        -------
        list of fitted estimators, in the order of Cs
        """
        return fit_path(self, X, y, Cs, sample_weight)

    def cross_validate_path(self, X, y, Cs, cv=5, scoring=None, sample_weight=None):
        """Scores of every value of C in every split, all trained together, each certified to `tol`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; scores do not use the weights.
        Cs : array of values of C
        cv : int, splitter or iterable of (train, test), default=5
            As in scikit-learn; an int makes stratified splits.
        scoring : str or callable, default=None
            As in scikit-learn; None means accuracy.

        Returns
        -------
        PathScores
            `Cs`, `test_score` of shape (n_Cs, n_splits), `mean_test_score`, `certificates`,
            `best_index` and `best_C`.
        """
        return cross_validate_path(self, X, y, Cs, cv, scoring, sample_weight)


class LinearSVC(ExactClassifier):
    __doc__ = f"""Linear support vector classification with a proof of optimality.

    Minimises 1/2 ||w - w0||^2 + sum_i C_i l(y_i (w.x_i + b)).

    Parameters
    ----------
    loss : {{"squared_hinge", "hinge", "pinball"}} or a loss object, default="squared_hinge"
        Such as `pegasos.losses.Pinball(0.1)`, or one of your own.
    {PROBABILITY}
    {COMMON}

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(loss="hinge").fit(StandardScaler().fit_transform(X), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    def __init__(
        self,
        *,
        C=1.0,
        lam=None,
        loss="squared_hinge",
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        stop=None,
        intercept="free",
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        multi_class="ovr",
        center=None,
        solver="auto",
        probability=False,
        n_threads=None,
        random_state=None,
        warm_start=False,
        verbose=0,
    ):
        self.C = C
        self.lam = lam
        self.loss = loss
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
        self.solver = solver
        self.probability = probability
        self.n_threads = n_threads
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    _modes = ("ovr", "ovo", "crammer_singer")

    def _loss(self) -> Any:
        return par.loss_in(self.multi_class, self.loss)


class LogisticRegression(ExactClassifier):
    __doc__ = f"""Logistic regression with a proof of optimality.

    Minimises 1/2 ||w - w0||^2 + sum_i C_i log(1 + exp(-y_i (w.x_i + b))); several classes by
    one problem each.

    Parameters
    ----------
    {COMMON}
    """

    _native = True

    def __init__(
        self,
        *,
        C=1.0,
        lam=None,
        tol=1e-3,
        max_iter=1000,
        max_time=None,
        stop=None,
        intercept="free",
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        multi_class="ovr",
        center=None,
        solver="auto",
        n_threads=None,
        random_state=None,
        warm_start=False,
        verbose=0,
    ):
        self.C = C
        self.lam = lam
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
        self.solver = solver
        self.n_threads = n_threads
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    _modes = ("ovr",)

    def _loss(self) -> Any:
        return Logistic()
