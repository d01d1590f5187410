"""FixedSizeSVC: a kernel machine of m prototypes, trained as a linear one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pegasos.core.deadline import until
from pegasos.core.rows import n_rows
from pegasos.data.check import as_rows
from pegasos.estimators import parameters as par
from pegasos.estimators.classifier import Data, kept_weights
from pegasos.estimators.growth import FIRST, grown
from pegasos.estimators.mapped import MappedClassifier
from pegasos.estimators.online import PegasosClassifier
from pegasos.maps.fourier import FourierMap
from pegasos.maps.image import in_dtype, n_raw, width
from pegasos.maps.mapped_rows import MappedRows, image_of
from pegasos.maps.nystrom import NystroemMap
from pegasos.objective.kernel_names import kernel_of
from pegasos.objective.kernels import resolved

MAPS = ("nystroem", "fourier")
SOLVERS = (*par.SOLVERS, "pegasos")
ROW_BY_ROW = ("dual", "pegasos")  # these meet one row after the other, in any order


class FixedSizeSVC(MappedClassifier):
    """Support vector classification through a map: kernels for very many rows.

    Minimises 1/2 ||w||^2 + sum_i C_i l(y_i (w.phi(x_i) + b)) with the map phi of `NystroemMap` or
    `FourierMap`, and proves how close it came. The image of all rows need not exist: where it does
    not fit into `cache_size`, it is computed block by block whenever it is used. Predictions need
    the map alone (Algorithm 2 of Jumutc, Huang, Suykens 2013, with any linear solver).
    `partial_fit` learns from a stream, with a map that `fit_map` fits to a sample of it.

    Parameters
    ----------
    m : int or "auto", default=500
        Prototypes. "auto" doubles them from 64 on while that lowers the error on a fifth of the
        rows kept aside by more than half of its standard error, and time and memory allow it; then
        all rows are fitted. Of each class a row is learnt from; if that leaves none aside, m is 64.
    map : {"nystroem", "fourier"}, default="nystroem"
        "fourier": m columns of waves, for the kernels of `FourierMap`, in place of prototypes.
    kernel, gamma, degree, coef0, prototypes, threshold
        As in `NystroemMap`.
    lam : float, default=None
        As in `LinearSVC`; on a stream 1e-4 by default, in place of C.
    C, tol, max_iter, max_time, stop, intercept, fit_intercept, intercept_scaling,
    class_weight, multi_class, n_threads, random_state, verbose
        As in `LinearSVC`; max_time counts all of the fit, and ends the choice of prototypes.
    loss : {"squared_hinge", "hinge", "pinball", "logistic"} or a loss object, default=None
        None: "squared_hinge", and "hinge" on a stream.
    solver : {"auto", "dual", "newton", "newton_cg", "interior", "pegasos"}, default="auto"
        As in `LinearSVC`; "pegasos" takes the steps of `PegasosClassifier`, and like "dual" it
        needs the image in memory.
    cache_size : float, default=1000
        Megabytes for the image of all rows; beyond, it is computed block by block.
    probability : bool or "isotonic", default=False
        As in `LinearSVC`; the further fits share the map.

    Attributes
    ----------
    map_ : NystroemMap or FourierMap
        The fitted map.
    m_ : int
        Prototypes, or columns of waves: where rows are few, fewer than were asked for.
    growth_ : list of (m, score, seconds)
        What m="auto" tried.
    in_memory_ : bool
        Whether the image was held.
    coef_ : array of shape (n_problems, map_.n_components_)
    intercept_, classes_, certificate_, stop_reason_, solver_, history_, support_, dual_coef_,
    n_iter_, n_features_in_
        As of `LinearSVC`, for the mapped problem.
    t_, progressive_
        After `partial_fit`, in place of what is of a fit: as of `PegasosClassifier`.

    Examples
    --------
    >>> from pegasos import FixedSizeSVC
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = FixedSizeSVC(m=200, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99, max(proof.relative_gap for proof in model.certificate_) <= 1e-3
    (True, True)
    """

    def __init__(
        self,
        *,
        m=500,
        map="nystroem",
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        prototypes="kmeans",
        threshold=1e-6,
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
        solver="auto",
        cache_size=1000,
        probability=False,
        n_threads=None,
        random_state=None,
        verbose=0,
    ):
        self.m = m
        self.map = map
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.prototypes = prototypes
        self.threshold = threshold
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
        self.solver = solver
        self.cache_size = cache_size
        self.probability = probability
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    warm_start = False
    center = None
    map_: NystroemMap | FourierMap

    def _read(self, X, y, sample_weight) -> Data:
        """The data, and the map that is fitted to them."""
        began = time.perf_counter()
        data = super()._read(X, y, sample_weight)
        kernel = kernel_of(self.kernel, self.gamma, self.degree, self.coef0)
        kernel = resolved(kernel, data.X, kept_weights(data, y, sample_weight))
        grows = self.m == "auto"
        growth = grown(self, data, kernel, self._most(data)) if grows else []
        best = max(growth, key=lambda tried: tried.score).m if growth else FIRST
        with until(began + self._stop().max_seconds):
            found = self._map_of(kernel, best if grows else self.m).fit(data.X)
        self._adopt(found)
        self.growth_ = growth
        return data

    def _map_of(self, kernel: Any, m: Any) -> NystroemMap | FourierMap:
        seed = par.seed_of(self.random_state)
        if isinstance(m, str):
            raise ValueError(f"m must be an integer >= 1 or 'auto', got {m!r}")
        common = {"m": par.count("m", m), "random_state": seed, "n_threads": self.n_threads}
        if par.one_of("map", self.map, MAPS) == "fourier":
            return FourierMap(kernel, **common)
        return NystroemMap(kernel, prototypes=self.prototypes, threshold=self.threshold, **common)

    def _new_map(self) -> NystroemMap | FourierMap:
        if self.m == "auto":
            raise ValueError(
                "m='auto' is for fit: no rows of a stream can be kept aside to judge m by, so give "
                "a number"
            )
        return self._map_of(kernel_of(self.kernel, self.gamma, self.degree, self.coef0), self.m)

    def _adopt(self, found: NystroemMap | FourierMap) -> None:
        super()._adopt(found)
        self.growth_, self.in_memory_ = [], False

    @property
    def m_(self) -> int:
        return n_raw(self.map_._image.features)

    def _most(self, data: Data) -> int:
        """Prototypes that the solver has room for."""
        if self.solver not in ROW_BY_ROW:
            return len(data.label)
        room = 1e6 * par.positive("cache_size", self.cache_size)
        most = max(1, int(room / (len(data.label) * data.X.dtype.itemsize)))
        return max(2, most - most % 2) if self.map == "fourier" else most  # waves come in pairs

    def _rows(self, X: Any, bias: float, sort: bool = True) -> Any:
        """Rows of X under the map, never written out."""
        image = in_dtype(self.map_._image, X.dtype)
        return MappedRows(image, as_rows(X, sort=sort), bias)

    def _to_train(self, X: Any, bias: float) -> Any:
        """Rows to train with: written out if there is room for their image."""
        lazy = self._rows(X, bias)
        self.in_memory_ = self._has_room(n_rows(lazy) * width(lazy.image) * X.dtype.itemsize)
        return as_rows(image_of(lazy.image, lazy.rows), bias) if self.in_memory_ else lazy

    def _has_room(self, size: int) -> bool:
        """Whether an image of so many bytes is held; an error if the solver needs it."""
        held = 1e-6 * size <= par.positive("cache_size", self.cache_size)
        if not held and self.solver in ROW_BY_ROW:
            raise ValueError(
                f"solver={self.solver!r} needs the image of all rows in memory, "
                f"{1e-6 * size:.0f} MB (cache_size={self.cache_size:g}): raise cache_size, or use "
                "solver='auto'"
            )
        return held

    def _left_out(self, task: Any, data: Data, folds: np.ndarray, deadline: float) -> np.ndarray:
        kept = self.in_memory_  # which is said of all rows
        scores = super()._left_out(task, data, folds, deadline)
        self.in_memory_ = kept
        return scores

    def _solver(self) -> Any:
        if par.one_of("solver", self.solver, SOLVERS) != "pegasos":
            return self.solver
        known = {"intercept": self.intercept, "fit_intercept": self.fit_intercept}
        return PegasosClassifier(loss=self._loss(), max_iter=self.max_iter, **known)._solver()
