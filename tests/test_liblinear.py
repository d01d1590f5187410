"""LIBLINEAR's text models, in and out."""

import numpy as np
import pytest
from fuzz_files import seed_models
from hypothesis import given
from hypothesis import strategies as st

from pegasos.data.errors import DataError
from pegasos.model import liblinear
from pegasos.model.linear import LinearModel

HEAD = b"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 2\n"
TWO = HEAD + b"w\n0.5 \n-1.25 \n3 \n"
FLOATS = st.floats(-1e300, 1e300, allow_nan=False)


def lines(**changes: str | None) -> bytes:
    """The model above with other lines; None leaves one out."""
    text = TWO.decode()
    for key, new in changes.items():
        old = next(line for line in text.splitlines() if line.split()[0] == key)
        text = text.replace(old + "\n", "" if new is None else f"{key} {new}\n", 1)
    return text.encode()


def load(tmp_path, raw: bytes) -> LinearModel:
    (tmp_path / "m").write_bytes(raw)
    return liblinear.load(tmp_path / "m")


def same(a: LinearModel, b: LinearModel) -> bool:
    equal = [np.array_equal(getattr(a, k), getattr(b, k)) for k in ("coef", "intercept", "classes")]
    return all(equal) and a.kind == b.kind


@given(st.integers(2, 4), st.integers(1, 3), st.booleans(), st.data())
def test_models_go_out_and_come_back(tmp_path_factory, K, d, biased, data):
    n = 1 if K == 2 else K
    coef = np.array(data.draw(st.lists(FLOATS, min_size=n * d, max_size=n * d))).reshape(n, d)
    intercept = np.array(data.draw(st.lists(FLOATS, min_size=n, max_size=n))) * biased
    labels = data.draw(st.lists(st.integers(-(2**31), 2**31), min_size=K, max_size=K, unique=True))
    kind, parameters = data.draw(
        st.sampled_from([("LinearSVC", {"loss": "hinge"}), ("LogisticRegression", {})])
    )
    model = LinearModel(kind, coef, intercept, np.sort(labels), None, parameters, {}, {})
    path = tmp_path_factory.mktemp("models") / "m"
    liblinear.save(path, model)
    found = liblinear.load(path)
    assert same(found, model) and found.parameters == parameters
    first = path.read_bytes()
    liblinear.save(path, found)
    assert path.read_bytes() == first


def test_a_model_written_by_hand(tmp_path):
    model = load(tmp_path, TWO)
    assert model.classes.tolist() == [-1, 1] and model.kind == "LinearSVC"
    assert model.coef.tolist() == [[0.5, -1.25]] and model.intercept.tolist() == [6.0]
    assert model.parameters == {"loss": "hinge"}


GOOD = {
    "CRLF": TWO.replace(b"\n", b"\r\n"),
    "no end": TWO.rstrip(),
    "blank lines behind": TWO + b"\n" * 100_000,
    "other order": lines(bias=None).replace(b"nr_class", b"bias 2\nnr_class"),
    "other labels first": lines(label="-1 1")
    .replace(b"0.5", b"-0.5")
    .replace(b"-1.25", b"1.25")
    .replace(b"\n3", b"\n-3"),
}


@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD.keys())
def test_the_same_model_in_another_dress(tmp_path, raw):
    assert same(load(tmp_path, raw), load(tmp_path, TWO))


def test_several_classes_are_put_in_order(tmp_path):
    raw = b"solver_type MCSVM_CS\nnr_class 3\nlabel 5 -2 0\nnr_feature 1\nbias -1\nw\n1 2 3\n"
    model = load(tmp_path, raw)
    assert model.classes.tolist() == [-2, 0, 5] and model.coef.tolist() == [[2.0], [3.0], [1.0]]
    two = raw.replace(b"3\nlabel 5 -2 0", b"2\nlabel 5 -2").replace(b"1 2 3", b"1 4")
    assert load(tmp_path, two).coef.tolist() == [[-3.0]]  # two rows of weights become one


BAD = {
    "empty": (b"", "not a LIBLINEAR model"),
    "random": (b"\x00\xff" * 50, "not a LIBLINEAR model"),
    "no w": (TWO.replace(b"\nw\n", b"\n"), "not a LIBLINEAR model"),
    "no label": (lines(label=None), "'label' is missing"),
    "empty label": (lines(label=""), "'label' is missing or empty"),
    "line twice": (TWO.replace(b"bias 2", b"bias 2\nbias 2"), ":6: expected solver_type"),
    "unknown line": (TWO.replace(b"bias 2", b"rho 2\nbias 2"), ":5: expected solver_type"),
    "regression": (lines(solver_type="L2R_L2LOSS_SVR"), "'L2R_L2LOSS_SVR' is no classifier"),
    "classes": (lines(nr_class="3"), "nr_class 3, 2 labels"),
    "one class": (lines(nr_class="1", label="1"), "nr_class 1"),
    "huge classes": (lines(nr_class="9" * 17), "do not agree"),
    "label twice": (lines(label="1 1"), "one occurs twice"),
    "text label": (lines(label="a b"), "label: 'a' is not a whole number"),
    "other digits": (lines(label="\u0661 2"), "is not a whole number"),
    "two signs": (lines(label="--1 2"), "--1"),
    "fraction": (lines(nr_feature="2.5"), "nr_feature: '2.5'"),
    "no features": (lines(nr_feature="0"), "nr_feature 0"),
    "negative": (lines(nr_feature="-2"), "nr_feature -2"),
    "huge": (lines(nr_feature="9" * 18), "3 lines of weights, expected"),
    "larger": (lines(nr_feature="9" * 400), "nr_feature: '999"),
    "bias": (lines(bias="nan"), "bias: 'nan' is not a finite number"),
    "odd bias": (lines(bias="1_0"), "bias: '1_0'"),
    "long bias": (lines(bias="x" * 9_999), "bias: 'xxx"),
    "too few": (TWO[:-4], "2 lines of weights, expected 3"),
    "too many": (TWO + b"4\n", "4 lines of weights, expected 3"),
    "blank between": (TWO.replace(b"w\n", b"w\n\n"), "4 lines of weights"),
    "two in a line": (TWO.replace(b"0.5", b"0.5 1"), ":7: expected 1 finite numbers"),
    "text": (TWO.replace(b"0.5", b"x"), ":7: expected 1 finite numbers, got 'x '"),
    "nan": (TWO.replace(b"-1.25", b"nan"), ":8: expected 1 finite"),
    "inf": (TWO.replace(b"-1.25", b"1e999"), ":8: expected 1 finite"),
    "underscore": (TWO.replace(b"-1.25", b"1_0"), ":8: expected 1 finite"),
    "NUL": (TWO.replace(b"-1.25", b"\x00"), ":8: expected 1 finite"),
    "overflow": (lines(bias="1e308"), "not finite"),
}


@pytest.mark.parametrize(("raw", "words"), BAD.values(), ids=BAD.keys())
@pytest.mark.filterwarnings("error")
def test_malformed_models_are_refused_in_one_line(tmp_path, raw, words):
    with pytest.raises(DataError) as caught:
        load(tmp_path, raw)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'm'}:") and said.isprintable() and words in said, said
    assert len(said) < 500


def test_classes_that_are_no_whole_numbers_are_refused(tmp_path):
    *_, text, fractions = seed_models()
    for model in (text, fractions):
        with pytest.raises(ValueError, match="whole numbers"):
            liblinear.save(tmp_path / "m", model)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [[1, -1], [-1, 1], [3, 1, 2]])
@pytest.mark.parametrize("bias", [-1, 1, 2])
@pytest.mark.parametrize("solver", [0, 1, 3, 4])
def test_liblinear_itself_agrees(tmp_path, labels, bias, solver):
    """A model that LIBLINEAR trained predicts the same here, and ours there."""
    util = pytest.importorskip("liblinear.liblinearutil")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.array(labels)[np.digitize(X[:, 0], [-0.3, 0.3][: len(labels) - 1])]
    trained = util.train(y, X, f"-s {solver} -B {bias} -q")
    path = str(tmp_path / "m")
    util.save_model(path, trained)
    model = liblinear.load(path)
    scores = X @ model.coef.T + model.intercept
    ours = model.classes[scores.argmax(1) if len(labels) > 2 else (scores[:, 0] > 0).astype(int)]
    theirs, _, _ = util.predict([], X, trained, "-q")
    assert np.array_equal(ours, theirs)
    liblinear.save(path, model)
    again, _, _ = util.predict([], X, util.load_model(path), "-q")
    assert np.array_equal(again, theirs)
