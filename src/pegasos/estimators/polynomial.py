"""PolynomialSVC: a linear machine on products of features, none of them written down."""

from __future__ import annotations

from typing import Any

from pegasos.estimators.classifier import Data, kept_weights
from pegasos.estimators.linear import COMMON, PROBABILITY, LinearSVC
from pegasos.estimators.mapped import MappedClassifier
from pegasos.maps.polynomial import PolynomialMap

_OF_MAP = ("degree", "gamma", "coef0", "coefficients", "interaction_only", "width", "n_threads")


class PolynomialSVC(MappedClassifier, LinearSVC):
    __doc__ = f"""Polynomial support vector classification, trained linearly, with a proof.

    Minimises 1/2 ||w - w0||^2 + sum_i C_i l(y_i (w.phi(x_i) + b)), where phi holds the products of
    up to `degree` features: phi(x).phi(z) = (gamma x.z + coef0)^degree. Rows of phi are expanded
    while they are read. Without an intercept this is SVC(kernel="poly") with the same parameters.

    Parameters
    ----------
    degree : {{2, 3}}, default=2
    gamma : "scale", "auto" or float, default="scale"
    coef0 : float, default=1.0
        At least 0; 0 leaves only the products of the highest degree.
    coefficients : {{"kernel", "plain"}}, default="kernel"
        "plain": all are 1; gamma and coef0 are not used.
    interaction_only : bool, default=False
        Only products of different features.
    width : int, default=2**22
        Most columns; if phi has more they are hashed to this number, with a warning.
    loss : {{"squared_hinge", "hinge", "pinball", "logistic"}} or a loss object, default=None
        None: "squared_hinge", and "hinge" on a stream (`fit_map`, `partial_fit`), where lam takes
        the place of C (default 1e-4).
    {PROBABILITY}
    {COMMON}
    map_ : PolynomialMap
        The map, fitted: it names the columns of `coef_`, which are those of phi.

    Examples
    --------
    >>> import numpy as np
    >>> from pegasos import PolynomialSVC
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> PolynomialSVC().fit(X, y).score(X, y) > 0.95
    True
    """

    _of_reading = (*LinearSVC._of_reading, "map_")

    def __init__(
        self,
        *,
        degree=2,
        gamma="scale",
        coef0=1.0,
        coefficients="kernel",
        interaction_only=False,
        width=2**22,
        C=1.0,
        lam=None,
        loss=None,
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
        super().__init__(
            C=C,
            lam=lam,
            loss=loss,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            stop=stop,
            intercept=intercept,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            multi_class=multi_class,
            center=center,
            solver=solver,
            probability=probability,
            n_threads=n_threads,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.coefficients = coefficients
        self.interaction_only = interaction_only
        self.width = width

    def _read(self, X, y, sample_weight) -> Data:
        data = super()._read(X, y, sample_weight)
        self._adopt(self._new_map().settle(data.X, kept_weights(data, y, sample_weight)))
        return data

    def _new_map(self) -> PolynomialMap:
        made = PolynomialMap(**{name: getattr(self, name) for name in _OF_MAP})
        made.check()
        return made

    def _adopt(self, found: PolynomialMap) -> None:
        super()._adopt(found)
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_

    def _rows(self, X: Any, bias: float, sort: bool = True) -> Any:
        return self.map_.rows(X, bias)
