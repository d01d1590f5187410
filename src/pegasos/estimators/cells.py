"""CellSVC: an exact kernel machine in each of many cells."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.callback import with_callbacks

from pegasos.core.deadline import until
from pegasos.core.threads import allowed, available, use_threads
from pegasos.estimators import parameters as par
from pegasos.estimators.cell_choice import choose, judges_of, settings_of
from pegasos.estimators.cell_task import (
    Cell,
    CellFit,
    CellTask,
    Setting,
    scores_by_cell,
    task_of,
)
from pegasos.estimators.classifier import Data, all_or_nothing, asked
from pegasos.estimators.kernel import SVC
from pegasos.estimators.kernel_checks import warn_unless_kernel
from pegasos.estimators.kernel_machine import KernelMachine
from pegasos.model.pairs import by_pairs
from pegasos.objective.certificate import Certificate
from pegasos.objective.kernel_points import is_given, points
from pegasos.objective.losses import Pinball
from pegasos.objective.nearest import nearest, places
from pegasos.solvers.cells import Cells, cells_of, planned
from pegasos.solvers.driver import Run, Stop

log = logging.getLogger("pegasos")

_SHARED = (  # parameters of each SVC
    *("kernel", "degree", "gamma", "coef0", "tol", "cache_size", "class_weight", "verbose"),
    *("max_iter", "loss", "tau", "multi_class", "n_threads", "max_time"),
)


class CellSVC(KernelMachine):
    """Kernel support vector classification of many rows: an exact, certified SVC in each of many
    cells.

    Rows are shared out among the cells of k-means centres. A row is predicted by the cell of its
    nearest centre.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the data against the penalty.
    kernel, degree, gamma, coef0
        As in SVC, but not "precomputed". gamma="scale" is of all rows.
    cell_size : int, default=8000
        No more rows than this belong to a cell. The kernel values of a cell grow with its square,
        those of all cells in proportion to it.
    overlap : float, default=0.25
        Each cell also learns from up to overlap * cell_size rows beyond its border, the nearest.
    n_cells : int, default=None
        Centres to begin with; cells above cell_size are split. None: so many that few need be.
    select : dict, default=None
        Values of "C", of "gamma" or of both, as in {"C": [1, 32], "gamma": [8, 64]}: each cell
        takes those that are best on some of its rows, and then learns from all of them.
    validation_fraction : float, default=0.2
        The share of a cell's rows that `select` judges by.
    probability : bool or "isotonic", default=False
        True adds `predict_proba`, as in `LinearSVC`, by five further fits of all cells.
    tol : float, default=1e-3
        Stop in a cell when its relative gap is proven to be at most this.
    cache_size : float, default=1000
        Megabytes for kernel values, for all cells that are solved at a time together.
    class_weight : dict or "balanced", default=None
        "balanced" is of all rows.
    verbose : int, default=0
    max_iter : int, default=-1
        Most rounds of a solver in a cell; -1: no limit.
    random_state : int, RandomState or None, default=None
        Seed of the centres, of the rows that `select` judges by, of the first working sets.
    loss, tau
        As in SVC.
    multi_class : {"ovo", "ovr"}, default="ovo"
        In a cell a problem per pair of its classes, or per class against the rest.
    n_threads : int, default=None
        Threads; None means all cores. The result does not depend on it.
    max_time : float, default=None
        Most seconds for the whole fit.

    Attributes
    ----------
    classes_, class_weight_, shape_fit_, n_features_in_, feature_names_in_
        As in scikit-learn.
    cells_ : list of Cell
        `centre`, `size`, `learnt`, `classes`, `C`, `kernel`, `machine` of each.
    certificates_ : list
        Of each cell a Certificate; a list of them where it has more than one problem.
    certificate_ : Certificate
        Of the sum of all problems.
    n_support_ : array of shape (n_classes,)
        Support vectors of each class, of all cells.
    n_iter_ : array
        Steps of each problem.
    kernel_ : the kernel with its numbers, where `select` has not found others

    Examples
    --------
    >>> from pegasos import CellSVC
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = CellSVC(cell_size=500, random_state=0).fit(X, y)
    >>> all(cell.size <= 500 for cell in model.cells_)
    True
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    lam = None  # C alone: it would be another number in each cell
    _pairs = False
    decision_function_shape, break_ties = "ovr", True  # equal votes go by margins

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        cell_size=8000,
        overlap=0.25,
        n_cells=None,
        select=None,
        validation_fraction=0.2,
        probability=False,
        tol=1e-3,
        cache_size=1000,
        class_weight=None,
        verbose=0,
        max_iter=-1,
        random_state=None,
        loss="hinge",
        tau=0.5,
        multi_class="ovo",
        n_threads=None,
        max_time=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.cell_size = cell_size
        self.overlap = overlap
        self.n_cells = n_cells
        self.select = select
        self.validation_fraction = validation_fraction
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state
        self.loss = loss
        self.tau = tau
        self.multi_class = multi_class
        self.n_threads = n_threads
        self.max_time = max_time

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """A cell's memory is for as many at a time as there are cores, whatever n_threads."""
        with super()._at_work(), use_threads(min(allowed(), available())):
            yield

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit to rows X and labels y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None
            A weight of k counts a row k times, but as one for `cell_size`.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self

    def _machine(self, C: float, seed: int = 0) -> SVC:
        """The SVC of a cell, as yet unfitted."""
        return SVC(C=C, random_state=seed, **{name: getattr(self, name) for name in _SHARED})

    def _check_parameters(self) -> None:
        self._machine(self.C)._check_parameters()
        self._check_probability()
        par.count("cell_size", self.cell_size)
        par.positive("overlap", self.overlap, zero=True)
        if self.n_cells is not None:
            par.count("n_cells", self.n_cells)
        if par.positive("validation_fraction", self.validation_fraction) >= 1.0:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction:g}"
            )
        settings_of(self.select, Setting(self.C, self._kernel()))

    def _stop(self) -> Stop:
        return self._machine(self.C)._stop()

    def _loss(self) -> Pinball:
        return self._machine(self.C)._loss()

    def _kernel(self) -> Any:
        kernel = super()._kernel()
        if is_given(kernel):
            raise ValueError("cells are made of rows, which a precomputed kernel has not: use SVC")
        return kernel

    # From rows to the problems of all cells

    def _task(self, data: Data, stop: Stop) -> CellTask:  # type: ignore[override]
        end = time.perf_counter() + stop.max_seconds
        seed = par.seed_of(self.random_state)
        rng = np.random.default_rng(seed)
        with until(end):
            cells = self._shared_out(data, rng)
        members = list(map(np.union1d, cells.own, cells.near))
        settings = settings_of(self.select, Setting(float(self.C), self.kernel_))
        largest = data.X[max(members, key=len)]
        kernels = dict.fromkeys(setting.kernel for setting in settings)
        sound = {kernel: warn_unless_kernel(kernel, points(kernel, largest)) for kernel in kernels}

        def left() -> Stop:
            return replace(stop, max_seconds=end - time.perf_counter())

        def fit(rows: np.ndarray, setting: Setting) -> CellFit:
            found = self._cell(data, rows, setting, seed)
            found.machine._is_kernel = sound[setting.kernel]
            return found

        chosen = settings * len(members)
        if len(settings) > 1:
            judges = judges_of(cells, self.validation_fraction, rng)
            classes = len(self.classes_), by_pairs(self.multi_class, len(self.classes_))
            chosen = choose(fit, data, settings, judges, left(), classes)
        fits = list(map(fit, members, chosen))
        self._is_kernel = all(found.machine._is_kernel for found in fits)
        return task_of(cells, fits, left())

    def _shared_out(self, data: Data, rng: Any) -> Cells:
        n, limit = len(data.label), self.cell_size
        start = planned(n, limit) if self.n_cells is None else min(n, self.n_cells)
        cells = cells_of(data.X, limit, start, round(self.overlap * limit), rng)
        sizes = [own.size for own in cells.own]
        log.info("%d cells of %d to %d rows", len(sizes), min(sizes), max(sizes))
        return cells

    def _cell(self, data: Data, rows: np.ndarray, setting: Setting, seed: int) -> CellFit:
        """The problems of one cell; its classes are those of its rows."""
        present, label = np.unique(data.label[rows], return_inverse=True)
        c = data.c[rows] * (setting.C / self.C)
        own = Data(data.X[rows], label, c, data.kept[rows])
        machine = self._machine(setting.C, seed)
        machine.kernel_, machine.classes_ = setting.kernel, self.classes_[present]
        machine.n_features_in_, machine.shape_fit_ = self.n_features_in_, own.X.shape
        machine.class_weight_ = self.class_weight_[present]
        if present.size == 1:
            return CellFit(setting, machine, present, own, None)
        share = int(1e6 * self.cache_size) // available()
        task = machine._problems(own, machine._parts(label), machine._stop(), share)
        return CellFit(setting, machine, present, own, task._replace(seed=seed))

    # Results to attributes

    def _found(self, found, task, data) -> dict[str, Any]:
        """The attributes of a model from (beta, b) per problem."""
        cells = []
        counts = np.zeros(len(self.classes_), dtype=np.int64)
        for j, (fit, mine) in enumerate(zip(task.fits, task.by_cell(found), strict=True)):
            machine = None
            if fit.task is not None:
                machine = copy(fit.machine)
                machine.__dict__.update(machine._found(mine, fit.task, fit.data))
                counts[fit.present] += machine.n_support_
            size, learnt = task.cells.own[j].size, len(fit.data.label)
            C, kernel = fit.setting
            known = task.cells.centres[j], size, learnt, self.classes_[fit.present]
            cells.append(Cell(*known, C, kernel, machine))
        pairs = by_pairs(self.multi_class, len(self.classes_))
        routes = {"_places": task.cells.places, "_pairs": pairs}
        return {"cells_": cells, "n_support_": counts, **routes}

    def _record(self, task, runs: list[Run], data: Data) -> None:
        self.certificates_ = []
        for fit, mine in zip(task.fits, task.by_cell(runs), strict=True):
            proof: Any = Certificate(0.0, 0.0)  # one class: nothing to pay
            if fit.task is not None:
                fit.machine._record(fit.task, mine, fit.data)
                proof = fit.machine.certificate_
            self.certificates_.append(proof)
        self.__dict__.update(self._found([run.best.w for run in runs], task, data))
        proofs = [run.certificate for run in runs]
        self.certificate_ = Certificate(sum(p.primal for p in proofs), sum(p.dual for p in proofs))
        self.n_iter_ = np.array([run.state.iterations for run in runs], dtype=np.int64)

    # Prediction

    def _scores(self, X) -> np.ndarray:
        """A column per problem of all classes."""
        X = asked(self, X)
        with use_threads(par.threads_of(self.n_threads)):
            cell = nearest(places(X, self._places), self._places)[0][:, 0]
            known = [np.searchsorted(self.classes_, own.classes) for own in self.cells_]
            machines = [own.machine for own in self.cells_]
            pairs = len(self.classes_), self._pairs
            return scores_by_cell(machines, known, cell, X, pairs)

    def decision_function(self, X):
        """Scores of the rows, each by the cell of its nearest centre.

        A class that is not in the cell loses against each that is: with 1 to -1, the decision of
        an SVC that knows one class only. So no row is predicted as a class that is not there.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        return super().decision_function(X)
