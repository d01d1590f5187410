"""Streams through maps: a map of a sample, then the steps of PegasosClassifier on mapped blocks."""

import pickle
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from pegasos import (
    FixedSizeSVC,
    FourierMap,
    NystroemMap,
    PegasosClassifier,
    PolynomialMap,
    PolynomialSVC,
    load_model,
    save_model,
)
from pegasos.data.samples import load_sample
from pegasos.estimators import mapped

SIZE = 60
FEW = {"m": 20, "random_state": 0}
MAPPED = {
    "prototypes": FixedSizeSVC(lam=1e-3, **FEW),
    "waves": FixedSizeSVC(lam=1e-3, map="fourier", **FEW),
    "products": PolynomialSVC(lam=1e-3),
}
POLYNOMIALS_COMPILE = {"products": pytest.mark.slow}


def cases(*names):
    return [pytest.param(name, marks=POLYNOMIALS_COMPILE.get(name, ())) for name in names]


@pytest.fixture(scope="module", name="data")
def spambase():
    X, y = load_sample("spambase")
    some = np.random.default_rng(2).permutation(len(y))[:300]
    return np.log1p(X[some]).astype(np.float64), y[some].astype(int)


def blocks(X, y, size=SIZE):
    return ((X[s : s + size], y[s : s + size]) for s in range(0, len(y), size))


def fresh(case):
    return MAPPED[case].__class__(**MAPPED[case].get_params())


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("seed", [int, np.random.RandomState])
def test_a_map_of_a_stream_that_fits_into_the_sample_is_that_of_its_rows(data, storage, seed):
    X, y = storage(data[0]), data[1]
    for made in (NystroemMap(m=20), FourierMap(m=30), PolynomialMap(gamma="scale")):
        if "random_state" in made.get_params():
            made.set_params(random_state=seed(3))
        whole = made.fit(X)
        images = [whole.transform(X[:9])]
        for stream in (blocks(X, y), [part for part, _ in blocks(X, y)]):
            if "random_state" in made.get_params():
                made.set_params(random_state=seed(3))
            images.append(made.fit(stream).transform(X[:9]))
        for found in images[1:]:
            assert abs(found - images[0]).max() == 0.0


def test_rows_that_look_like_a_stream_are_rows(data):
    X = data[0][:40]
    image = NystroemMap(**FEW).fit_transform(X)
    for rows in (X.tolist(), list(X), tuple(map(tuple, X))):
        assert np.array_equal(NystroemMap(**FEW).fit(rows).transform(X), image)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (iter([]), "no rows to draw from"),
        ([np.ones((3, 2)), np.ones((3, 4))], r"shape \(3, 4\), expected rows of 2 columns"),
        (iter([np.ones(3)]), r"shape \(3,\), expected rows"),
        ([np.ones((3, 2)), sp.csr_matrix(np.ones((3, 2)))], "both arrays and CSR matrices"),
        ([np.full((3, 2), np.nan)], "NaN"),
    ],
)
def test_streams_that_cannot_be_are_refused(stream, words):
    with pytest.raises(ValueError, match=words):
        NystroemMap(m=2).fit(stream)


@pytest.mark.slow
def test_of_a_stream_no_more_is_held_than_its_sample_and_a_block(monkeypatch):
    sample, n, d, rng = 100, 300, 100, np.random.default_rng(0)
    monkeypatch.setattr("pegasos.maps.nystrom.SAMPLE", sample)
    monkeypatch.setattr("pegasos.maps.nystrom._PER_PROTOTYPE", 1)
    alive, seen = [], []

    def stream(number):
        for _ in range(number):
            block = rng.normal(size=(n, d))
            alive.append(weakref.ref(block))
            yield block, np.arange(n) % 2
            del block
            seen.append(sum(one() is not None for one in alive))

    model = FixedSizeSVC(**FEW).fit_map(stream(2))
    for X, y in stream(2):
        model.partial_fit(X, y)
        del X
    tracemalloc.start()
    try:
        model.fit_map(stream(20))
        assert tracemalloc.get_traced_memory()[1] < 8 * d * (n + 6 * sample)
        tracemalloc.reset_peak()
        for X, y in stream(20):
            model.partial_fit(X, y)
            del X
        assert tracemalloc.get_traced_memory()[1] < 8 * d * 4 * n
    finally:
        tracemalloc.stop()
    assert max(seen) == 0 and model.t_ == 20 * n


@pytest.mark.parametrize("case", cases(*MAPPED))
@pytest.mark.parametrize("kinds", [2, 3])
def test_a_stream_is_learnt_like_its_image(data, case, kinds):
    X, y = data
    y = y if kinds == 2 else y + (X[:, 20] > 0)
    weight = 0.5 + np.arange(len(y)) % 3
    model = fresh(case).set_params(class_weight="balanced").fit_map(blocks(X, y))
    linear = PegasosClassifier(lam=1e-3, class_weight="balanced")
    for s in range(0, len(y), SIZE):
        some = slice(s, s + SIZE)
        given = y[some], range(kinds), weight[some]
        model.partial_fit(X[some], *given)
        linear.partial_fit(model.map_.transform(X[some]), *given)
    assert model.coef_.tobytes() == linear.coef_.tobytes()
    assert model.intercept_.tobytes() == linear.intercept_.tobytes()
    assert model.progressive_ == linear.progressive_ and model.t_ == linear.t_ == len(y)
    image = model.map_.transform(X)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(image))
    assert model.score(X, y) > (0.8 if kinds == 2 else 0.6)


def test_without_a_map_the_first_block_makes_it(data):
    X, y = data
    one, two = fresh("prototypes"), fresh("prototypes").fit_map(data[0][:SIZE])
    assert two.n_features_in_ == X.shape[1] and not hasattr(two, "coef_")
    for rows, labels in blocks(X, y):
        one.partial_fit(rows, labels)
        two.partial_fit(rows, labels)
    assert one.coef_.tobytes() == two.coef_.tobytes()
    again = one.fit_map(X)  # and a new map makes a new model
    assert not hasattr(again, "coef_") and not hasattr(again, "t_")


@pytest.mark.parametrize("case", cases(*MAPPED))
def test_a_stream_goes_on_from_a_file_bit_for_bit(data, case, tmp_path):
    X, y = data
    whole = fresh(case)
    carried = fresh(case)
    for k, (rows, labels) in enumerate(blocks(X, y)):
        whole.partial_fit(rows, labels)
        carried.partial_fit(rows, labels)
        if k == 1:
            save_model(carried, tmp_path / "m")
            carried = load_model(tmp_path / "m")
        if k == 3:
            carried = pickle.loads(pickle.dumps(carried))
    save_model(whole, tmp_path / "a")
    save_model(carried, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert whole.progressive_ == carried.progressive_
    names = {name for name in vars(whole) if name.endswith("_")}
    assert names == {name for name in vars(carried) if name.endswith("_")} | {"growth_"} & names


@pytest.mark.parametrize("fault", ["nan", "features", "class", "weight", "names"])
def test_refused_rows_leave_the_model_as_it_was(data, fault):
    X, y = data
    bad, labels, more = X[SIZE:].copy(), y[SIZE:].copy(), {}
    if fault == "nan":
        bad[7, 3] = np.nan
    elif fault == "features":
        bad = bad[:, 1:]
    elif fault == "names":
        bad = pytest.importorskip("pandas").DataFrame(bad[:, 1:]).add_prefix("f")
    elif fault == "class":
        labels[7] = 5
    else:
        more = {"sample_weight": -np.ones(len(bad))}
    for begun in (False, True):
        model = fresh("prototypes").fit_map(X[:SIZE])
        if begun:
            model.partial_fit(X[:SIZE], y[:SIZE])
        before = {name: value for name, value in vars(model).items() if name != "n_features_in_"}
        with pytest.raises(ValueError):
            model.partial_fit(bad, labels, [0, 1], **more)
        after = {name: value for name, value in vars(model).items() if name != "n_features_in_"}
        assert before.keys() == after.keys() and model.n_features_in_ == X.shape[1]
        assert all(after[name] is value for name, value in before.items())


def test_fit_and_a_stream_leave_nothing_of_each_other(data):
    X, y = data
    fitted, streamed = fresh("prototypes").fit(X, y), fresh("prototypes").partial_fit(X, y)
    model = fresh("prototypes")
    for _ in range(2):
        model.fit(X, y)
        assert vars(model).keys() == vars(fitted).keys()
        model.partial_fit(X, y)
        assert vars(model).keys() == vars(streamed).keys()
        assert np.array_equal(model.coef_, streamed.coef_)  # for a map of the same rows


def test_names_of_features_are_those_of_the_first_block(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    parts = ((frame[s : s + SIZE], y[s : s + SIZE]) for s in range(0, len(y), SIZE))
    model = fresh("prototypes").fit_map(parts)
    model.partial_fit(frame[:SIZE], y[:SIZE]).partial_fit(frame[SIZE:], y[SIZE:])
    assert list(model.feature_names_in_) == list(frame.columns)
    turned = frame[frame.columns[::-1]]
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(turned, y)
    made = NystroemMap(m=20).fit(iter([frame]))
    assert list(made.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="give them the same order"):
        made.fit([frame, turned])


def test_parts_of_a_block_are_learnt_like_the_whole(data, monkeypatch):
    X, y = data
    y = np.append(y[:-1], 2)  # a class of which no row is learnt
    weight = np.append(np.arange(len(y) - 1) % 3.0, 0.0)
    known = {"lam": 1e-3, "gamma": 0.1, "class_weight": "balanced"}
    model = PolynomialSVC(**known).partial_fit(X, y, sample_weight=weight)
    monkeypatch.setattr(mapped, "_VALUES", 7 * model.map_.longest_image(X))
    parts = PolynomialSVC(**known).partial_fit(X, y, sample_weight=weight)
    assert np.array_equal(model.coef_, parts.coef_) and model.t_ == parts.t_
    assert np.array_equal(model.classes_, parts.classes_) and len(model.classes_) == 3
    assert model.progressive_ == parts.progressive_


def test_a_map_of_few_rows_is_told(data):
    X, y = data
    with pytest.warns(UserWarning, match="call fit_map with a sample of the stream before"):
        fresh("prototypes").partial_fit(X[:9], y[:9], [0, 1])
    with pytest.warns(UserWarning, match="begin with 100 rows or more"):
        fresh("waves").partial_fit(X[:9], y[:9], [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh("waves").set_params(gamma=0.1).partial_fit(X[:9], y[:9], [0, 1])  # no rows to ask


def test_a_refused_fit_leaves_the_model_as_it_was(data):
    X, y = data
    model = fresh("prototypes").fit(X, y)
    scores = model.decision_function(X)
    model.set_params(solver="dual", cache_size=1e-6, random_state=1)
    before = vars(model).copy()
    for new, words in ((X[:, 1:], "needs the image of all rows"), (X[:1], "only one class")):
        with pytest.raises(ValueError, match=words):
            model.fit(new, y[: len(new)])
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
    assert np.array_equal(model.decision_function(X), scores)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (FixedSizeSVC(m="auto"), "m='auto' is for fit"),
        (FixedSizeSVC(m=5, multi_class="ovo"), "multi_class='ovo' is for fit"),
        (FixedSizeSVC(m=5, probability=True), "probability=True needs rows"),
        (FixedSizeSVC(map="cosine"), "map must be one of 'nystroem', 'fourier'"),
        (PolynomialSVC(center=np.ones(3)), "center= is for fit"),
        (FixedSizeSVC(m=5, multi_class="crammer_singer"), "must be one of 'ovr', 'ovo'"),
        (PolynomialSVC(multi_class="crammer_singer", loss="logistic"), "a hinge loss of its own"),
        (PolynomialSVC(gamma=1e300), "are too large for degree 2"),
    ],
)
def test_what_is_for_fit_alone_is_refused(data, model, words):
    with pytest.raises(ValueError, match=words):
        model.partial_fit(*data)
