"""Model files of cells and of maps: the same decisions back, the same bytes, no lies let in."""

import functools
import io
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from test_kernel_files import QUICK, SIGNS, SPARSE, THREE, X, refusal
from typer.testing import CliRunner

from pegasos import CellSVC, FixedSizeSVC, PolynomialSVC, load_model, save_model
from pegasos.cli.main import app
from pegasos.data import container
from pegasos.data.errors import DataError
from pegasos.kernels import Function
from pegasos.model import file

CELLS = {"cell_size": 15, "overlap": 0.2, "gamma": 0.5, **QUICK}
FEW = {"m": 9, "random_state": 0}
WORDS = np.array(list("abc"))[THREE]
ISLANDS = np.where(THREE[:, None] == 2, 30.0 + X, X)  # of which one has a class alone
CASES = {
    "pairs": (CellSVC(**CELLS), ISLANDS, WORDS),
    "choice": (CellSVC(select={"C": [1.0, 9.0]}, multi_class="ovr", **CELLS), X, THREE),
    "cells, CSR": (CellSVC(**CELLS), SPARSE, SIGNS),
    "one class each": (CellSVC(cell_size=30, overlap=0.0, n_cells=2), ISLANDS, THREE == 2),
    "prototypes": (FixedSizeSVC(**FEW), X, WORDS),
    "prototypes, CSR": (FixedSizeSVC(prototypes="random", gamma=0.5, **FEW), SPARSE, SIGNS),
    "waves": (FixedSizeSVC(map="fourier", kernel="laplacian", **FEW), X, WORDS),
    "products": (PolynomialSVC(degree=3), X, WORDS),
    "products, hashed": (PolynomialSVC(width=8), X, SIGNS),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:degree:UserWarning"),
]


def kept(model) -> set[str]:
    """The fitted attributes that a file keeps."""
    gone = {"history_", "growth_"}
    if isinstance(model, FixedSizeSVC | PolynomialSVC):
        gone |= {"support_", "dual_coef_"}
    return {name for name in vars(model) if name.endswith("_")} - gone


def of_cases(*names):
    """To compile products of features takes long."""
    slow = pytest.mark.slow
    return [pytest.param(name, marks=slow if "products" in name else ()) for name in names]


def check_cells(model: CellSVC, found: CellSVC, A) -> None:
    assert found.certificates_ == model.certificates_ and found.kernel_ == model.kernel_
    assert np.array_equal(found.n_support_, model.n_support_)
    for a, b in zip(model.cells_, found.cells_, strict=True):
        assert (a.size, a.learnt, a.C, a.kernel) == (b.size, b.learnt, b.C, b.kernel)
        assert np.array_equal(a.centre, b.centre) and np.array_equal(a.classes, b.classes)
        assert (a.machine is None) == (b.machine is None)
        if a.machine is not None:
            before, after = a.machine.support_vectors_, b.machine.support_vectors_
            assert before.dtype == after.dtype and sp.issparse(before) == sp.issparse(after)
            assert np.array_equal(a.machine.predict(A), b.machine.predict(A))
            assert a.machine.get_params() == b.machine.get_params()
            assert kept(a.machine) == kept(b.machine)


def check_map(given, found, A) -> None:
    assert given.get_params() == found.get_params() and kept(given) == kept(found)
    before, after = (sp.csr_matrix(one.transform(A)) for one in (given, found))
    assert before.dtype == after.dtype and (before != after).nnz == 0


@pytest.mark.parametrize("case", of_cases(*CASES))
def test_a_model_comes_back_as_it_was(tmp_path, case):
    estimator, A, y = CASES[case]
    model = estimator.fit(A, y)
    save_model(model, tmp_path / "a")
    found = load_model(tmp_path / "a")
    assert np.array_equal(found.decision_function(A), model.decision_function(A))
    assert np.array_equal(found.predict(A), model.predict(A))
    assert found.get_params() == model.get_params() and kept(found) == kept(model)
    assert found.certificate_ == model.certificate_
    if isinstance(model, CellSVC):
        alone = [cell.machine is None for cell in model.cells_]
        assert any(alone) == (A is ISLANDS) and all(alone) == (case == "one class each")
        check_cells(model, found, A)
    else:
        check_map(model.map_, found.map_, A)
    save_model(found, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_only_linear_models_are_taken_for_linear_and_code_is_refused(tmp_path):
    for model in (CellSVC(**CELLS), FixedSizeSVC(**FEW)):
        save_model(model.fit(X, SIGNS), tmp_path / "a")
        with pytest.raises(DataError, match=f"a {type(model).__name__}; --center needs a linear"):
            file.load_linear(tmp_path / "a", "--center")
        model.set_params(kernel=Function(lambda a, b: a @ b.T)).fit(X, SIGNS)
        with pytest.raises(TypeError, match="is Python code"):
            save_model(model, tmp_path / "a")


@pytest.mark.parametrize("case", of_cases("pairs", "prototypes", "waves", "products"))
def test_the_command_line_predicts_the_same(tmp_path, case):
    estimator, A, y = CASES[case]
    model = estimator.fit(A, y)
    save_model(model, tmp_path / "a")
    np.savetxt(tmp_path / "new.csv", A, delimiter=",", fmt="%.17g")
    args = [str(tmp_path / "a"), str(tmp_path / "new.csv"), "--float64", "--no-header"]
    done = CliRunner().invoke(app, ["predict", *args])
    assert done.exit_code == 0 and done.stdout.split() == model.predict(A).tolist()
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "a")])
    assert done.exit_code == 0 and type(model).__name__ in done.stdout
    assert "cells of" in done.stdout if case == "pairs" else "mapped to" in done.stdout


def cell(**changed):
    """A lie about the first cell that is not of one class."""

    def lie(description):
        entry = next(e for e in description["cells"]["list"] if len(e["classes"]) > 1)
        entry.update(changed)

    return lie


def of(*path, value):
    """A lie at a place in the description."""

    def lie(description):
        for key in path[:-1]:
            description = description[key]
        description[path[-1]] = value

    return lie


PRECOMPUTED = {"kernel": "Precomputed", "fields": []}
LIES = {
    "future": ("pairs", of("required", value=["cells", "x"]), {}, "newer pegasos: .* 'x'"),
    "no list": ("pairs", of("cells", value={}), {}, "cells: expected a list"),
    "lost cell": ("pairs", lambda d: d["cells"]["list"].pop(), {}, "counts|centres"),
    "layout": ("choice", of("cells", "pairs", value=True), {}, "coef: .* numbers for the cells"),
    "classes": ("pairs", cell(classes=[0, 3]), {}, "cells: classes"),
    "order": ("pairs", cell(classes=[1, 0]), {}, "cells: classes"),
    "one class": ("cells, CSR", cell(classes=[0]), {}, "counts: .* numbers for the cells"),
    "C": ("pairs", cell(C="1"), {}, "cells: C must be"),
    "size": ("pairs", cell(size=-1), {}, "no numbers of rows"),
    "no facts": ("pairs", cell(fit={}), {}, "fit: "),
    "given": ("pairs", cell(kernel=PRECOMPUTED), {}, "vectors: "),
    "counts": ("cells, CSR", None, {"counts": lambda a: a + (1 << 62)}, "counts: "),
    "columns": ("cells, CSR", None, {"columns": lambda a: a + 4}, "columns: must rise"),
    "support": ("pairs", None, {"support": lambda a: a - 100}, "support: "),
    "centres": ("pairs", None, {"centres": lambda a: a[:, 1:].copy()}, "centres: "),
    "words": ("pairs", of("classes", "values", value=["b", "a", "c"]), {}, "classes: must rise"),
    "nan": ("pairs", None, {"centres": lambda a: a * np.nan}, "centres: "),
    "middle": ("pairs", None, {"middle": lambda a: a[1:].copy()}, "middle: "),
    "no map": ("prototypes", of("map", value=None), {}, "map: expected dict"),
    "width": ("prototypes", None, {"map_trapezoid": lambda a: a[1:].copy()}, "trapezoid: "),
    "norms": ("prototypes", None, {"map_sqnorms": lambda a: a[1:].copy()}, "sqnorms"),
    "norm": ("prototypes", None, {"map_sqnorms": lambda a: -a}, "sqnorms"),
    "no array": ("prototypes", None, {"map_center": None}, "array map_center is missing"),
    "starts": ("prototypes, CSR", None, {"map_starts": lambda a: a[::-1].copy()}, "starts: "),
    "kernel": ("prototypes", of("map", "kernel", value=PRECOMPUTED), {}, "precomputed"),
    "features": ("prototypes", of("n_features", value=3), {}, "vectors: not 9 of 3"),
    "waves": ("waves", None, {"map_frequencies": lambda a: a[1:].copy()}, "frequencies: float64"),
    "wave": ("waves", None, {"map_frequencies": lambda a: a * np.inf}, "frequencies: not finite"),
    "waves of": ("waves", of("map", "kernel", value=PRECOMPUTED), {}, "Gaussian and Laplacian"),
    "degree": ("products", of("map", "parameters", "degree", value=2), {}, "map: width: "),
    "power": ("products", of("map", "parameters", "degree", value=4), {}, "degree must be"),
    "gamma": ("products", of("map", "gamma", value="-0x1p+0"), {}, "map: "),
    "hash": ("products, hashed", of("map", "parameters", "width", value=9), {}, "map: width: "),
    "threads": ("products", of("parameters", "n_threads", value=[]), {}, "n_threads"),
}


@functools.cache
def fitted(case: str):
    estimator, A, y = CASES[case]
    return estimator.fit(A, y)


@pytest.mark.parametrize(
    ("lie", "changed", "words", "case"),
    [
        pytest.param(*rest, case, id=name, marks=pytest.mark.slow if "products" in case else ())
        for name, (case, *rest) in LIES.items()
    ],
)
def test_files_that_lie_are_refused(tmp_path, case, lie, changed, words):
    save_model(fitted(case), tmp_path / "good")
    contents = container.parse(memoryview((tmp_path / "good").read_bytes()))
    description, arrays = json.loads(json.dumps(contents.description)), dict(contents.arrays)
    if lie is not None:
        lie(description)
    for name, change in changed.items():
        array = arrays.pop(name)
        if change is not None:
            arrays[name] = change(array)
    raw = io.BytesIO()
    container.write(raw, description, arrays)
    said = refusal(tmp_path / "a", raw.getvalue())
    assert re.search(words, said), said
