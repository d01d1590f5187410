"""`pegasos train --map`: the models of the estimators, from files and from streams."""

import json
import os
import signal

import numpy as np
import pytest
from test_commands import HEART, folder, invoke  # noqa: F401
from test_streaming import learnt, stream  # noqa: F401

from pegasos import FixedSizeSVC, PolynomialMap, PolynomialSVC, load_model, load_svmlight
from pegasos.cli import batches, online
from pegasos.cli.data import Reading

NYSTROEM = ("--map", "nystroem", "--components", "30")
CLASSES = ("--classes", "0,1,2")
CASES = {
    NYSTROEM: FixedSizeSVC(m=30, random_state=0),
    ("--map", "fourier", "--components", "30", "--gamma", "0.1"): FixedSizeSVC(
        m=30, map="fourier", gamma=0.1, random_state=0
    ),
    ("--map", "polynomial", "--degree", "3", "--gamma", "auto"): PolynomialSVC(
        degree=3, gamma="auto", random_state=0
    ),
}


def of_estimators(*cases):
    return pytest.mark.parametrize(("options", "estimator"), cases, ids=lambda x: str(x)[:20])


@pytest.mark.slow
@pytest.mark.jit
@of_estimators(*CASES.items())
def test_a_model_behind_a_map_is_the_estimators(options, estimator, folder):  # noqa: F811
    model = folder / "m"
    done = invoke("train", HEART, "-m", model, *options, "-C", "2")
    assert "proven" in done.output and "mapped to" in done.output
    X, y = load_svmlight(HEART)
    expected, found = estimator.set_params(C=2.0).fit(X, y), load_model(model)
    assert np.array_equal(found.coef_, expected.coef_)
    assert found.certificate_ == expected.certificate_
    labels = np.array(invoke("predict", model, HEART).stdout.split(), dtype=int)
    assert np.array_equal(labels, expected.predict(X))
    assert "accuracy" in invoke("evaluate", model, HEART).output
    said = invoke("inspect", model).output
    assert type(estimator).__name__ in said
    if isinstance(estimator, PolynomialSVC):
        names = (
            PolynomialMap(3).fit(X).get_feature_names_out([f"x{j + 1}" for j in range(X.shape[1])])
        )
        assert f"largest {names[np.abs(found.coef_[0]).argmax()]}: " in said


@pytest.mark.slow
@pytest.mark.jit
@of_estimators(*CASES.items())
def test_a_stream_behind_a_map_is_the_estimators(options, estimator, stream):  # noqa: F811
    done = learnt(stream, *options, *CLASSES, "--lam", "1e-3", "--json")
    expected = estimator.set_params(lam=1e-3, loss="hinge")
    X, _ = load_svmlight(stream)
    expected.fit_map(X)
    for batch in batches.batches(str(stream), Reading(), False):
        batch.X.resize((batch.X.shape[0], X.shape[1]))
        expected.partial_fit(batch.X, batch.y, [0, 1, 2])
    found, facts = load_model(stream.with_name("m")), json.loads(done.stdout.splitlines()[-1])
    assert np.array_equal(found.coef_, expected.coef_)
    assert found.progressive_ == expected.progressive_ and facts["rows"] == 4601
    assert facts["map"]["columns"] == expected.coef_.shape[1] and facts["certificate"] is None
    assert "no certificate" in invoke("inspect", stream.with_name("m")).output


@pytest.mark.slow
@pytest.mark.jit
def test_a_stopped_stream_goes_on_to_the_same_bytes(stream, monkeypatch):  # noqa: F811
    model, place = stream.with_name("m"), stream.with_name("c")
    learnt(stream, *NYSTROEM, *CLASSES)
    whole = model.read_bytes()
    model.unlink()

    def signalled(self):
        if self.place.rows > 1000:
            os.kill(os.getpid(), signal.SIGTERM)

    kept = (*NYSTROEM, *CLASSES, "--checkpoint", place)
    with monkeypatch.context() as patched:
        patched.setattr(online.Learner, "save_if_due", signalled)
        done = learnt(stream, *kept, ok=False)
    assert done.exit_code == 143 and "goes on from there" in done.stderr
    assert not model.exists() and load_model(place).t_ > 1000
    said = learnt(stream, *kept, "--seed", "1", ok=False).stderr
    assert "a checkpoint of another run: settings differ" in said
    said = learnt(stream, *CLASSES, "--checkpoint", place, ok=False).stderr
    assert "a checkpoint of another run: settings differ" in said
    with monkeypatch.context() as patched:
        patched.setattr(FixedSizeSVC, "fit_map", None)  # the map is in the checkpoint
        done = learnt(stream, *kept, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["resumed"] > 1000
    assert model.read_bytes() == whole and not place.exists()


@pytest.mark.slow
@pytest.mark.jit
def test_the_first_rows_of_a_pipe_make_the_map(stream):  # noqa: F811
    model, args = stream.with_name("m"), ("train", "--online", "-", *NYSTROEM, *CLASSES)
    text = stream.read_bytes()
    said = invoke(*args, "-m", model, input=text, ok=False).stderr
    assert "the map is fitted to its first rows, since it is read once" in said
    assert "but the map was fitted to 40: name their number with --features" in said
    assert 0 < load_model(model).progressive_.rows < 4601  # what was learnt before is kept
    invoke(*args, "-m", model, "--features", "57", input=text)
    first = next(batches.batches(str(stream), Reading(), False)).X
    first.resize((first.shape[0], 57))
    expected = FixedSizeSVC(m=30, random_state=0).fit_map(first)
    assert load_model(model).map_.kernel_ == expected.map_.kernel_
    assert load_model(model).progressive_.rows == 4601


@pytest.mark.slow
@pytest.mark.jit
def test_tables_have_maps_too(stream):  # noqa: F811
    model = stream.with_name("m")
    learnt(stream, *NYSTROEM, *CLASSES)
    expected = load_model(model)
    table = stream.with_name("t.csv")
    invoke("convert", stream, table)
    invoke("train", "--online", table, "--label", "label", "-m", model, *NYSTROEM)
    found = load_model(model)
    assert found.map_.kernel_.gamma == pytest.approx(expected.map_.kernel_.gamma, rel=1e-6)
    assert abs(found.progressive_.errors - expected.progressive_.errors) < 100
    assert len(found.feature_names_in_) == 57
    assert len(invoke("predict", model, table).stdout.splitlines()) == 4601


@pytest.mark.slow
@pytest.mark.jit
def test_a_fit_behind_a_map_goes_on_from_its_checkpoint(folder):  # noqa: F811
    model, place = folder / "m", folder / "c"
    blocks = ("--cache-size", "1e-6", "--float64", "--tol", "1e-5")
    args = ("train", HEART, "-m", model, *NYSTROEM, *blocks)
    invoke(*args)
    whole = model.read_bytes()
    invoke(*args, "--checkpoint", place, "--max-iter", "2")
    assert place.exists() and model.read_bytes() != whole
    other = invoke(*args, "--checkpoint", place, "--seed", "1", ok=False).stderr
    assert "a checkpoint of another run" in other
    found = json.loads(invoke(*args, "--checkpoint", place, "--json").stdout.splitlines()[-1])
    assert found["resumed"] and not place.exists()
    assert max(found["gap"]) <= 1e-5


@pytest.mark.slow
def test_a_checkpoint_behind_products_is_of_their_coefficients(folder):  # noqa: F811
    place = folder / "c"
    args = ("train", HEART, "-m", folder / "m", "--map", "polynomial", "--checkpoint", place)
    invoke(*args, "--gamma", "0.1", "--max-iter", "1", "--tol", "1e-8")
    for other in (("--gamma", "5"), ("--gamma", "0.1", "--coef0", "0.01")):
        refused = invoke(*args, *other, "--tol", "1e-8", ok=False).stderr
        assert "a checkpoint of another run" in refused
    others = ("--gamma", "0.1", "--tol", "1e-8", "--intercept", "none")
    assert "intercepts differ" in invoke(*args, *others, ok=False).stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--map", "nystroem", "--kernel", "gaussian"), "--kernel: not with --map"),
        (("--map", "nystroem", "--center", "x.model"), "--center: not with --map"),
        (("--map", "nystroem", "--degree", "2"), "--degree: not with --map nystroem"),
        (("--map", "fourier", "--coef0", "2"), "--coef0: not with --map fourier"),
        (("--map", "polynomial", "--components", "9"), "--components: not with --map polynomial"),
        (("--map", "polynomial", "--degree", "4"), "degree must be 2 or 3, got 4"),
        (("--map", "nystroem", "--gamma", "wide"), "gamma must be 'scale', 'auto' or a number"),
        (("--map", "nystroem", "--solver", "smo"), "solver must be one of"),
        (("--components", "9"), "--components: needs --map"),
        (("--map", "nystroem", "--online", "-C", "1"), "-C: not with --online"),
        (("--map", "nystroem", "--online", "--cache-size", "1"), "--cache-size: not with --online"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(options, words, tmp_path):
    (tmp_path / "x.model").touch()
    done = invoke("train", HEART, "-m", tmp_path / "m", *options, ok=False)
    assert done.exit_code == 2 and words in done.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "m").exists()
