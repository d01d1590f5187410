"""Model files of kernel machines: the same predictions back, the same bytes, no lies let in."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import random_labels, random_matrix

from pegasos import SVC, KernelPegasosClassifier, load_model, save_model
from pegasos.data import container
from pegasos.data.errors import DataError
from pegasos.kernels import Function, Gaussian, Laplacian, Linear, Polynomial, Sigmoid, exp
from pegasos.objective.kernel_json import from_json, to_json

RNG = np.random.default_rng(0)
X = random_matrix(RNG, 40, 4)
SIGNS = random_labels(RNG, X)
THREE = np.digitize(X[:, 0] + 0.1 * RNG.normal(size=40), [-0.2, 0.2])
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 1.2, X, 0.0), dtype=np.float32)
QUICK = {"max_iter": 20, "tol": 0.1, "random_state": 0}
COMPOSED = 2 * Gaussian(0.5) + Polynomial(2, 0.1, 1.0) * Linear() + exp(0.1 * Linear()) + 1
CASES = {
    "pairs": (SVC(**QUICK), X, THREE),
    "against the rest, text": (SVC(multi_class="ovr", **QUICK), X, np.array(list("abc"))[THREE]),
    "composed": (SVC(kernel=COMPOSED, class_weight={-1: 1.0, 1: 2.0}, **QUICK), X, SIGNS),
    "CSR, float32": (SVC(kernel=Laplacian(0.3), **QUICK), SPARSE, SIGNS),
    "sigmoid": (SVC(kernel=Sigmoid(0.1, 0.2), **QUICK), X, SIGNS),
    "precomputed": (SVC(kernel="precomputed", **QUICK), X @ X.T, THREE),
    "counts": (KernelPegasosClassifier(random_state=0), X, THREE),
    "merged": (KernelPegasosClassifier(random_state=0, budget=5), X, THREE),
    "counts, precomputed": (
        KernelPegasosClassifier(random_state=0, kernel="precomputed"),
        X @ X.T,
        SIGNS,
    ),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*is no kernel"),
]


@pytest.mark.parametrize(("estimator", "A", "y"), CASES.values(), ids=CASES.keys())
def test_a_kernel_machine_comes_back_as_it_was(tmp_path, estimator, A, y):
    model = estimator.fit(A, y)
    save_model(model, tmp_path / "a")
    found = load_model(tmp_path / "a")
    assert type(found) is type(model)
    assert np.array_equal(found.decision_function(A), model.decision_function(A))
    assert np.array_equal(found.predict(A), model.predict(A))
    assert found.kernel_ == model.kernel_ and found.get_params() == model.get_params()
    kept = {name for name in vars(model) if name.endswith("_")} - {"history_"}
    assert kept == {name for name in vars(found) if name.endswith("_")}
    for name in kept & {"certificate_", "stop_reason_", "solver_", "shape_fit_", "t_"}:
        assert getattr(found, name) == getattr(model, name)
    if estimator.kernel != "precomputed":
        before, after = model.support_vectors_, found.support_vectors_
        assert before.dtype == after.dtype and sp.issparse(before) == sp.issparse(after)
    save_model(found, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("settings", [{}, {"budget": 5}, {"average": True}])
def test_a_stream_goes_on_from_its_file_bit_for_bit(tmp_path, settings):
    model = KernelPegasosClassifier(gamma=0.5, lam=0.01, **settings)
    model.partial_fit(X[:15], THREE[:15], classes=[0, 1, 2])
    save_model(model, tmp_path / "a")
    found = load_model(tmp_path / "a")
    assert np.array_equal(found.decision_function(X), model.decision_function(X))
    for one in (model, found):
        one.partial_fit(X[15:], THREE[15:])
    assert np.array_equal(found.dual_coef_, model.dual_coef_)
    assert np.array_equal(found.support_vectors_, model.support_vectors_)


@pytest.mark.parametrize(
    ("maintenance", "budget", "asked", "words"),
    [
        ("merge", 4e8, 400_000_000, "too large for a file"),
        ("remove", 1e30, 10**30, "too large for a file"),
        ("remove", 5.0, 6, "a budget of 5, but the parameter says 6"),
        ("remove", 5.0, None, "a budget of 5, but the parameter says None"),
    ],
)
def test_a_file_has_the_budget_that_it_makes_room_for(tmp_path, maintenance, budget, asked, words):
    model = KernelPegasosClassifier(gamma=0.5, lam=0.01, budget=5, maintenance=maintenance)
    save_model(model.partial_fit(X[:15, :1], SIGNS[:15], classes=[-1, 1]), tmp_path / "a")
    contents = container.parse(memoryview((tmp_path / "a").read_bytes()))
    said = contents.description["parameters"] | {"budget": asked}
    rule = np.append(contents.arrays["stream_rule"][:2], budget)
    raw = io.BytesIO()
    arrays = contents.arrays | {"stream_rule": rule}
    container.write(raw, contents.description | {"parameters": said}, arrays)
    assert words in refusal(tmp_path / "b", raw.getvalue())


def test_code_is_refused_and_the_old_file_kept(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    for kernel in (Function(lambda a, b: a @ b.T), Linear() + Function(lambda a, b: a @ b.T)):
        with pytest.raises(TypeError, match="is Python code.*use pickle, or .*@kernel"):
            save_model(SVC(kernel=kernel, **QUICK).fit(X, SIGNS), path)
    assert path.read_text() == "old"


def raw_of(tmp_path, case: str) -> bytes:
    estimator, A, y = CASES[case]
    save_model(estimator.fit(A, y), tmp_path / "good")
    return (tmp_path / "good").read_bytes()


def refusal(path, raw: bytes) -> str:
    path.write_bytes(raw)
    with pytest.raises(DataError) as caught:
        load_model(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and said.isprintable() and len(said) < 400, said
    return said


def test_every_truncation_and_flip_is_refused(tmp_path):
    raw = raw_of(tmp_path, "CSR, float32")
    for at in range(0, len(raw), 7):
        refusal(tmp_path / "a", raw[:at])
        refusal(tmp_path / "a", raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :])


LINEAR = {"kernel": "Linear", "fields": []}


def branching(depth: int) -> dict:
    return {"kernel": "Sum", "fields": [branching(depth - 1)] * 2} if depth else LINEAR


def shifted(depth: int) -> dict:
    return {"kernel": "Shifted", "fields": [shifted(depth - 1), 1.0]} if depth else LINEAR


LIES = {
    "no kernel": ({"kernel": None}, {}, "kernel: "),
    "unknown": ({"kernel": {"kernel": "system", "fields": []}}, {}, "'system' is unknown here"),
    "code": ({"kernel": {"kernel": "Function", "fields": [1, None]}}, {}, "unknown here"),
    "fields": ({"kernel": {"kernel": "Gaussian", "fields": []}}, {}, "fields of Gaussian"),
    "gamma": ({"kernel": {"kernel": "Gaussian", "fields": [-1.0]}}, {}, "gamma must be finite"),
    "word": ({"kernel": {"kernel": "Gaussian", "fields": ["scale"]}}, {}, "must be a number"),
    "huge": ({"kernel": {"kernel": "Gaussian", "fields": [10**400]}}, {}, "gamma is not finite"),
    "threads": ({"parameters": {"n_threads": []}}, {}, "parameters: n_threads"),
    "factor": ({"kernel": {"kernel": "Scaled", "fields": [-1.0, LINEAR]}}, {}, ">= 0"),
    "part": ({"kernel": {"kernel": "Sum", "fields": [1.0, LINEAR]}}, {}, "must be a kernel"),
    "kernel for gamma": ({"kernel": {"kernel": "Gaussian", "fields": [LINEAR]}}, {}, "a number"),
    "kernel for factor": ({"kernel": {"kernel": "Scaled", "fields": [LINEAR] * 2}}, {}, "factor"),
    "many": ({"kernel": branching(6)}, {}, "more than 64 parts"),
    "deep": ({"kernel": shifted(16)}, {}, "nested more than 16 deep"),
    "ties": (
        {"parameters": {"break_ties": True, "decision_function_shape": "ovo"}},
        {},
        "parameters: break_ties",
    ),
    "precomputed": ({"kernel": {"kernel": "Precomputed", "fields": []}}, {}, "vectors: "),
    "features": ({"n_features": 10**12}, {}, "n_features"),
    "wide": ({"n_features": 3}, {}, "below 3"),
    "counts": ({}, {"counts": np.array([1, 2])}, "do not add up"),
    "coef": ({}, {"coef": np.ones((2, 3))}, "do not fit 2 classes"),
    "nan": ({}, {"intercept": np.array([np.nan])}, "not finite"),
    "starts": ({}, {"starts": np.array([0, 1], np.uint64)}, "starts: must rise"),
    "no array": ({}, {"support": None}, "array support is missing"),
    "center": ({}, {"center": np.zeros(4)}, "center: "),
    "shape": ({"fit": {"shape": [1, 4]}}, {}, "fit: "),
}


@pytest.mark.parametrize(("said", "changed", "words"), LIES.values(), ids=LIES.keys())
def test_descriptions_that_lie_are_refused(tmp_path, said, changed, words):
    contents = container.parse(memoryview(raw_of(tmp_path, "CSR, float32")))
    arrays = {k: v for k, v in (contents.arrays | changed).items() if v is not None}
    raw = io.BytesIO()
    container.write(raw, contents.description | said, arrays)
    assert words in refusal(tmp_path / "a", raw.getvalue())


def test_kernels_too_large_for_a_file_are_not_written():
    deep = Linear()
    for _ in range(16):
        assert from_json(to_json(deep)) == deep
        deep = deep + 1.0
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        to_json(deep)
    wide = [Linear()] * 64
    while len(wide) > 1:
        wide = [left + right for left, right in zip(wide[::2], wide[1::2], strict=True)]
    with pytest.raises(ValueError, match="more than 64 parts"):
        to_json(wide[0])
