"""Model files: the same model back, the same bytes again, and nothing wrong is let in."""

import io
import json
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import random_labels, random_matrix
from fuzz import FINDS
from fuzz_files import judge, mutated_file, opened, seed_files, seed_models
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from test_svmlight import HEART

from pegasos import LinearSVC, LogisticRegression, load_model, load_svmlight, save_model
from pegasos.data import container
from pegasos.data.errors import DataError
from pegasos.estimators.files import to_model
from pegasos.losses import Pinball, SquaredHinge
from pegasos.model import file

RNG = np.random.default_rng(0)
X = random_matrix(RNG, 40, 4)
SIGNS = random_labels(RNG, X)
THREE = np.digitize(X[:, 0] + 0.1 * RNG.normal(size=40), [-0.2, 0.2])
TEXT = np.array(["no", "yes, \u00e9", "x\ny"])
QUICK = {"max_iter": 20, "tol": 0.1, "random_state": 0}

CASES = {
    "binary": (LinearSVC(**QUICK), SIGNS),
    "whole numbers": (LinearSVC(**QUICK), SIGNS.astype(int)),
    "truths": (LinearSVC(**QUICK), SIGNS > 0),
    "text": (LinearSVC(**QUICK), TEXT[(SIGNS > 0).astype(int)]),
    "objects": (LinearSVC(**QUICK), TEXT[THREE].astype(object)),
    "three classes": (LinearSVC(**QUICK), THREE),
    "logistic": (LogisticRegression(**QUICK), SIGNS),
    "logistic, three classes of text": (LogisticRegression(**QUICK), TEXT[THREE]),
    "class_weight": (LinearSVC(class_weight={0: 2.0, 1: 1, 2: 0.5}, **QUICK), THREE),
    "balanced": (LinearSVC(class_weight="balanced", lam=np.float32(0.01), **QUICK), SIGNS),
    "pinball": (LinearSVC(loss=Pinball(0.3), **QUICK), SIGNS),
    "a loss object": (LinearSVC(loss=SquaredHinge(), n_threads=np.int64(1), **QUICK), SIGNS),
    "center": (LinearSVC(center=np.arange(4.0), **QUICK), SIGNS),
    "center of three": (LinearSVC(center=np.ones((3, 4)), **QUICK), THREE),
    "no intercept": (LinearSVC(intercept="none", **QUICK), SIGNS),
}
every_case = pytest.mark.parametrize(("estimator", "y"), CASES.values(), ids=CASES.keys())
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(estimator, y, names: bool = False):
    import pandas

    frame = pandas.DataFrame(X, columns=["a", "b c", "\u00e9", "d"]) if names else X
    return clone(estimator).fit(frame, y)


def plain(parameters: dict) -> dict:
    """Parameters as they can be compared; the centre is compared by its numbers."""
    center = parameters.pop("center")
    coef = getattr(center, "coef_", center)
    return parameters | {"center": None if coef is None else np.atleast_2d(coef).tolist()}


@every_case
def test_a_model_comes_back_as_it_was(tmp_path, estimator, y):
    model = fitted(estimator, y)
    save_model(model, tmp_path / "a")
    found = load_model(tmp_path / "a")
    assert type(found) is type(model)
    for name in ("coef_", "intercept_"):
        assert getattr(found, name).tobytes() == getattr(model, name).tobytes()
    assert found.classes_.tolist() == model.classes_.tolist()
    assert np.array_equal(found.predict(X), model.predict(X))
    assert np.array_equal(found.decision_function(X), model.decision_function(X))
    for name in ("certificate_", "stop_reason_", "solver_", "n_iter_", "n_features_in_"):
        assert getattr(found, name) == getattr(model, name)
    assert plain(found.get_params()) == plain(model.get_params())


@every_case
def test_the_same_model_has_the_same_bytes(tmp_path, estimator, y):
    for name in "ab":
        save_model(fitted(estimator, y), tmp_path / name)
    save_model(load_model(tmp_path / "a"), tmp_path / "c")
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1


@pytest.mark.parametrize("case", ["binary", "logistic, three classes of text"])
def test_names_of_features_are_kept_and_checked(tmp_path, case):
    model = fitted(*CASES[case], names=True)
    save_model(model, tmp_path / "a")
    found = load_model(tmp_path / "a")
    assert found.feature_names_in_.tolist() == ["a", "b c", "\u00e9", "d"]
    with pytest.warns(UserWarning, match="feature names"):
        found.predict(X)


def test_a_loaded_model_can_be_fitted_again_and_pickled(tmp_path):
    model = fitted(*CASES["center"])
    save_model(model, tmp_path / "a")
    found = pickle.loads(pickle.dumps(load_model(tmp_path / "a")))
    assert np.array_equal(clone(found).fit(X, SIGNS).coef_, model.coef_)


def test_what_cannot_be_saved_is_refused_and_the_old_file_kept(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.svm import LinearSVC as Other

    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(TypeError, match="cannot be saved; expected LinearSVC"):
        save_model(Other(), path)
    with pytest.raises(NotFittedError):
        save_model(LinearSVC(), path)
    model = to_model(fitted(*CASES["binary"]))
    for classes in (np.array([b"a", b"b"]), np.array([1, 2**63], np.uint64), np.array([1, 1])):
        with pytest.raises(ValueError, match="classes"):
            file.save(path, model._replace(classes=classes))
    with pytest.raises(ValueError, match="finite"):
        file.save(path, model._replace(coef=model.coef * np.inf))
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_loading_neither_imports_nor_unpickles(tmp_path, monkeypatch):
    save_model(fitted(*CASES["pinball"]), tmp_path / "a")
    load_model(tmp_path / "a")
    events: list[str] = []
    watching = [True]

    def hook(event, args):
        if watching and event in ("import", "pickle.find_class", "exec", "compile"):
            events.append(event)

    sys.addaudithook(hook)
    try:
        before = set(sys.modules)
        load_model(tmp_path / "a")
    finally:
        watching.clear()  # a hook cannot be removed
    assert "pickle.find_class" not in events and "exec" not in events and "compile" not in events
    assert set(sys.modules) == before


# Damage and lies (D1-D12)


def packed(description: dict, arrays: dict) -> bytes:
    raw = io.BytesIO()
    container.write(raw, description, arrays)
    return raw.getvalue()


def small(tmp_path: Path, k: int = 0) -> bytes:
    file.save(tmp_path / "small", seed_models()[k])
    return (tmp_path / "small").read_bytes()


def refusal(path: Path, raw: bytes) -> str:
    path.write_bytes(raw)
    with pytest.raises(DataError) as caught:
        load_model(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and said.isprintable() and len(said) < 400, said
    return said


def test_every_truncation_and_every_flip_of_a_byte_is_refused(tmp_path):
    raw = small(tmp_path)
    for size in range(0, len(raw), 3):
        refusal(tmp_path / "a", raw[:size])
    for at in range(0, len(raw), 3):
        refusal(tmp_path / "a", raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :])


def test_missing_files_and_directories_are_refused(tmp_path):
    for path, words in ((tmp_path / "missing", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(DataError, match=words):
            load_model(path)


ONE = {"type": "int", "values": [1]}
LIES = {
    "D7 data": ({"format": "pegasos-data"}, {}, "not a model but a file of kind 'pegasos-data'"),
    "D7 no format": ({"format": None}, {}, "not a model"),
    "D7 odd format": ({"format": ["\n"] * 99}, {}, "not a model"),
    "D8 newer": ({"version": 2}, {}, "version '2' of the model format; readable: 1"),
    "D8 odd version": ({"version": "\n"}, {}, "version"),
    "D9 required": ({"required": ["kind", "wings"]}, {}, "unknown field 'wings'"),
    "D9 no list": ({"required": "kind"}, {}, "required: expected list"),
    "D9 lists": ({"required": [[], {}]}, {}, "unknown field '[]'"),
    "D10 nan": ({}, {"coef": np.array([[np.nan, 1.0]])}, "coef: holds numbers"),
    "D10 inf": ({}, {"intercept": np.array([np.inf])}, "coef: holds numbers"),
    "D10 one class": ({"classes": ONE}, {}, "classes: 1, at least 2"),
    "D10 no class": ({"classes": ONE | {"values": []}}, {}, "classes: 0, at least 2"),
    "D10 class twice": ({"classes": ONE | {"values": [1, 1]}}, {}, "occurs twice"),
    "D10 three classes": ({"classes": ONE | {"values": [1, 2, 3]}}, {}, "do not fit 3 problems"),
    "D10 shape": ({}, {"coef": np.ones(2)}, "shapes (2,) and (1,)"),
    "D10 rows": ({}, {"coef": np.ones((2, 2))}, "shapes (2, 2) and (1,)"),
    "D10 no features": ({}, {"coef": np.ones((1, 0))}, "shapes (1, 0)"),
    "D10 no problems": ({}, {"coef": np.ones((0, 2)), "intercept": np.ones(0)}, "shapes (0, 2)"),
    "D10 float32": ({}, {"coef": np.ones((1, 2), np.float32)}, "not float64"),
    "D10 no coef": ({}, {"coef": None}, "arrays coef and intercept are missing"),
    "D10 names": ({"names": ["a"]}, {}, "names: 1 for 2 features"),
    "D10 name twice": ({"names": ["a", "a"]}, {}, "names"),
    "D10 names of numbers": ({"names": [1, 2]}, {}, "names: expected a list of texts"),
    "D10 class type": ({"classes": ONE | {"type": "complex"}}, {}, "type 'complex'"),
    "D10 odd type": ({"classes": ONE | {"type": []}}, {}, "type '[]'"),
    "D10 mixed": ({"classes": ONE | {"values": [1, "a"]}}, {}, "not of type int"),
    "D10 truth": ({"classes": ONE | {"values": [1, True]}}, {}, "not of type int"),
    "D10 large": ({"classes": ONE | {"values": [1, 2**64]}}, {}, "beyond 64 bits"),
    "D10 no object": ({"classes": [1, 2]}, {}, "classes: expected dict"),
    "D10 center": (
        {},
        {"center_coef": np.ones((1, 3)), "center_intercept": np.ones(1)},
        "center: not of the shape",
    ),
    "D11 classes": (
        {"classes": {"type": "str", "values": ["x" * 40_000] + ["y"] * 40_000}},
        {},
        "names too long",
    ),
    "D12 kind": ({"kind": "LinearSVR"}, {}, "kind: 'LinearSVR' is not one of LinearSVC"),
    "D12 path": ({"kind": "os.system"}, {}, "kind: 'os.system'"),
    "D12 no kind": ({"kind": 7}, {}, "kind: expected str"),
    "parameters": ({"parameters": []}, {}, "parameters: expected dict"),
    "loss": (
        {"parameters": {"loss": {"loss": "system", "fields": []}}},
        {},
        "parameters: 'system'",
    ),
    "field": ({"parameters": {"loss": {"loss": "Pinball", "fields": [10**400]}}}, {}, "parameters"),
    "items": ({"parameters": {"class_weight": {"items": [[[], 1]]}}}, {}, "parameters: unhash"),
    "fit": ({"fit": {"certificate": [["x", "y"]]}}, {}, "fit: "),
    "part of the fit": ({"fit": {"n_iter": 3}}, {}, "fit: 'certificate'"),
    "fit of two": (
        {"fit": {"certificate": [], "stop_reason": [], "solver": [], "n_iter": 1}},
        {},
        "fit: expected facts about 1 problems",
    ),
}


@pytest.mark.parametrize(("said", "changed", "words"), LIES.values(), ids=LIES.keys())
def test_descriptions_that_lie_are_refused(tmp_path, said, changed, words):
    contents = container.parse(memoryview(small(tmp_path)))
    description = {k: v for k, v in (contents.description | said).items() if v is not None}
    arrays = {k: v for k, v in (contents.arrays | changed).items() if v is not None}
    assert words in refusal(tmp_path / "a", packed(description, arrays))


def test_unknown_fields_that_are_not_required_are_ignored(tmp_path):
    description, arrays = container.parse(memoryview(small(tmp_path)))
    (tmp_path / "a").write_bytes(packed(description | {"wings": 2}, arrays))
    assert load_model(tmp_path / "a").coef_.tolist() == [[1.0, -2.5]]


@given(st.randoms(use_true_random=False))
def test_damage_with_good_checksums_is_refused_or_harmless(tmp_path_factory, rng):
    folder = tmp_path_factory.mktemp("models")
    (folder / "seeds").mkdir()
    seeds = seed_files(folder / "seeds")
    assert all(opened(raw)[0]["version"] == 1 for raw in seeds)
    for _ in range(10):
        (folder / "a").write_bytes(mutated_file(rng, seeds))
        judge(folder / "a")


def test_what_the_fuzzer_found_stays_fixed():
    for path in FINDS.glob("model-*"):
        judge(path)


def test_the_description_is_plain_json(tmp_path):
    save_model(fitted(*CASES["pinball"]), tmp_path / "a")
    description, header, _ = opened((tmp_path / "a").read_bytes())
    assert description["parameters"]["loss"] == {"loss": "Pinball", "fields": [0.3]}
    assert set(header) == {"coef", "intercept"} and json.dumps(description).isascii()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(tmp_path / "a")


def test_old_files_are_read_for_ever():
    files = Path(__file__).parent / "files"
    X, _ = load_svmlight(HEART)
    model = load_model(files / "heart-v1.model")
    expected = (files / "heart-v1.labels").read_text().split()
    assert [str(label) for label in model.predict(X)] == expected
    assert model.certificate_.relative_gap <= 1e-3 and model.loss == "hinge"
