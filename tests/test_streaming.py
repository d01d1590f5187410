"""Learning from streams: a state that goes on from files, and `pegasos train --online`."""

import copy
import json
import os
import pickle
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from kill import STREAM_BLOCK, STREAMS, kill_training, write_stream
from test_commands import _hear_again, folder, invoke, started  # noqa: F401

from pegasos import PegasosClassifier, load_model, load_svmlight, save_model
from pegasos.cli import batches, online
from pegasos.cli.data import Reading
from pegasos.cli.stop import Terminated
from pegasos.data import container
from pegasos.data.errors import DataError
from pegasos.data.samples import load_sample


def mails(n: int, kinds: int):
    X, y = load_sample("spambase")
    rows = np.random.default_rng(1).permutation(len(y))[:n]
    X, y = X[rows] / (1.0 + X[rows]), y[rows].astype(int)
    return X, y if kinds == 2 else y + (X[:, 20] > 0)


# The state of partial_fit


def through_a_file(model, path: Path):
    save_model(model, path)
    return load_model(path)


CARRIERS = {
    "file": through_a_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, _: copy.deepcopy(model),
}


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS)
@pytest.mark.parametrize("kinds", [2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"average": "none", "class_weight": "balanced"},
        {"loss": "logistic", "batch_size": 3, "schedule": "inverse_root"},
        {"loss": "perceptron", "average": "uniform", "intercept": "none", "projection": False},
    ],
    ids=str,
)
def test_a_stream_goes_on_bit_for_bit(carry, kinds, settings, tmp_path):
    X, y = mails(150, kinds)
    rng = random.Random(str(settings))
    whole = PegasosClassifier(lam=1e-2, random_state=3, **settings)
    carried = copy.deepcopy(whole)
    for rows in (slice(start, start + 9) for start in range(0, 150, 9)):
        whole.partial_fit(X[rows], y[rows], classes=range(kinds))
        carried.partial_fit(X[rows], y[rows], classes=range(kinds))
        if rng.random() < 0.3:
            carried = carry(carried, tmp_path / "m")
    for name in ("coef_", "intercept_"):
        assert getattr(whole, name).tobytes() == getattr(carried, name).tobytes()
    assert whole.progressive_ == carried.progressive_ and whole.t_ == carried.t_
    assert whole.get_params() == carried.get_params()


@pytest.mark.parametrize("kinds", [2, 3])
def test_rows_are_judged_before_they_are_learnt(kinds):
    X, y = mails(120, kinds)
    one = PegasosClassifier(lam=1e-2, average="none")
    wrong = int(y[0] != 0)  # weights of zero choose the first class
    one.partial_fit(X[:1], y[:1], classes=range(kinds))
    for i in range(1, 120):
        wrong += int(one.predict(X[i : i + 1])[0] != y[i])
        one.partial_fit(X[i : i + 1], y[i : i + 1])
    batch = PegasosClassifier(lam=1e-2).partial_fit(X, y, classes=range(kinds))
    assert one.progressive_ == batch.progressive_
    assert batch.progressive_[:2] == (120, wrong)
    assert batch.progressive_.error_rate == wrong / 120


def test_the_mean_loss_is_that_before_learning():
    X, y = mails(60, 2)
    model = PegasosClassifier(lam=1e-2, average="none")
    losses = [1.0]
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    for i in range(1, 60):
        z = (2 * y[i] - 1) * model.decision_function(X[i : i + 1])[0]
        losses.append(max(0.0, 1.0 - z))
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert model.progressive_.loss == pytest.approx(np.mean(losses))


def test_more_columns_are_as_if_they_had_been_empty():
    X, y = mails(100, 3)
    X[:50, 30:] = 0.0
    narrow = PegasosClassifier(lam=1e-2).partial_fit(X[:50, :30], y[:50], classes=[0, 1, 2])
    narrow._widen(X.shape[1])
    narrow.partial_fit(X[50:], y[50:])
    wide = PegasosClassifier(lam=1e-2).partial_fit(X, y, classes=[0, 1, 2])
    assert np.allclose(narrow.coef_, wide.coef_, rtol=1e-12)
    assert narrow.coef_.shape == wide.coef_.shape


def test_any_damage_is_found(tmp_path):
    X, y = mails(40, 2)
    save_model(PegasosClassifier().partial_fit(X, y), tmp_path / "m")
    good = (tmp_path / "m").read_bytes()
    rng = random.Random(0)
    for _ in range(60):
        bad = bytearray(good)
        bad[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
        (tmp_path / "bad").write_bytes(bad[: rng.choice([len(bad), rng.randrange(len(bad))])])
        with pytest.raises(DataError) as caught:
            load_model(tmp_path / "bad")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("stream_v", lambda a: a[:, :-1], "stream: v: float64 of shape"),
        ("stream_counts", lambda a: a[:-1], "stream: counts"),
        ("stream_past", lambda a: a * np.nan, "not finite"),
        ("stream_steps", lambda a: a - 10**6, "a count below 0"),
        ("stream_tally", lambda a: a.astype(np.float64), "stream: tally"),
        ("stream_scalars", None, "expected arrays v, past"),
    ],
)
def test_a_state_that_cannot_be_is_refused(name, change, words, tmp_path):
    X, y = mails(40, 2)
    save_model(PegasosClassifier().partial_fit(X, y), tmp_path / "m")
    description, arrays = container.read(tmp_path / "m")
    arrays[name] = change(arrays[name]) if change else arrays[name]
    if change is None:
        del arrays[name]
    with open(tmp_path / "bad", "wb") as file:
        container.write(file, description, arrays)
    with pytest.raises(DataError, match=words):
        load_model(tmp_path / "bad")


# pegasos train --online

slow = pytest.mark.slow


@pytest.fixture
def stream(folder, monkeypatch):  # noqa: F811
    """A folder with a stream of several batches."""
    monkeypatch.setattr(batches, "BLOCK", STREAM_BLOCK)
    write_stream(folder)
    return folder / "stream.svm"


def learnt(stream: Path, *more: str, ok: bool = True, **options):
    model = stream.with_name("m")
    return invoke("train", "--online", stream, "-m", model, *more, ok=ok, **options)


@slow
def test_the_model_is_the_estimators(stream):
    done = learnt(stream, "--lam", "1e-3", "--classes", "0,1,2", "--json")
    X, y = load_svmlight(stream)
    model = PegasosClassifier(lam=1e-3, random_state=0).partial_fit(X, y)
    found = load_model(stream.with_name("m"))
    assert np.array_equal(found.coef_, model.coef_)
    facts = json.loads(done.stdout.splitlines()[-1])
    assert (facts["rows"], facts["errors"], facts["loss"]) == model.progressive_
    assert facts["certificate"] is None and facts["features"] == X.shape[1]
    assert "rows/s" in done.stderr


@slow
def test_other_commands_take_the_model_and_say_that_nothing_is_proven(stream):
    done = learnt(stream)
    assert "classes 0, 1, 2 by the first" in done.stderr and "no certificate" in done.output
    model = stream.with_name("m")
    assert "no certificate" in invoke("inspect", model).output
    assert json.loads(invoke("inspect", model, "--json").stdout)["stream"][0] == 4601
    assert "accuracy" in invoke("evaluate", model, stream).output
    assert len(invoke("predict", model, stream).stdout.splitlines()) == 4601


@slow
def test_standard_input_and_tables_teach_the_same(stream):
    learnt(stream, "--classes", "0,1,2", "--features", "57")
    expected = load_model(stream.with_name("m")).coef_
    invoke(*"train --online - --classes 0,1,2 -m".split(), stream.with_name("i"),
           input=stream.read_bytes())  # fmt: skip
    assert np.array_equal(load_model(stream.with_name("i")).coef_, expected)
    for name in ("t.csv", "t.parquet"):
        table = stream.with_name(name)
        invoke("convert", stream, table)
        invoke("train", "--online", table, "--label", "label", "-m", stream.with_name("t"))
        found = load_model(stream.with_name("t"))
        assert np.allclose(found.coef_, expected, rtol=1e-10, atol=1e-12)
        assert len(found.feature_names_in_) == 57


@slow
def test_weights_grow_up_to_a_limit(stream):
    with open(stream, "a") as file:
        file.write("1 3000:1\n")
    learnt(stream)
    assert load_model(stream.with_name("m")).n_features_in_ == 3000
    with open(stream, "a") as file:
        file.write("1 2147483647:1\n")
    said = learnt(stream, ok=False).stderr
    assert "stream.svm:4603:3: field 2: the index '2147483647' is above the limit" in said
    assert "4603:3" in learnt(stream, "--max-features", "4000", ok=False).stderr
    assert "4602:3" in learnt(stream, "--features", "2999", ok=False).stderr


@slow
@pytest.mark.parametrize("name", ["s.svm", "s.pegasos", "s.csv", "s.parquet"])
def test_the_number_of_features_is_kept_in_every_format(name, stream):
    data, model = stream.with_name(name), stream.with_name("m")
    args = ("train", "--online", data, "-m", model, "--classes", "0,1,2")
    args += ("--label", "label") if name in ("s.csv", "s.parquet") else ()
    invoke("convert", stream, data)
    said = invoke(*args, "--features", "20", ok=False).stderr
    assert "features, but --features is 20" in said or "above the limit of 20" in said
    assert not model.exists()
    invoke(*args, "--features", "57")
    assert load_model(model).n_features_in_ == 57
    if name in ("s.csv", "s.parquet"):
        said = invoke(*args, "--features", "60", ok=False).stderr
        assert f"{name}: 57 features, but --features is 60" in said
    else:
        invoke(*args, "--features", "60")
        assert load_model(model).n_features_in_ == 60


@slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--classes", "1"], "expected from 2"),
        (["--classes", "1,1"], "different names"),
        (["--classes", "ham,spam"], "labels of LIBSVM text are whole numbers"),
        (["--classes", "0,1"], "row 6: class 2 is none of 0, 1"),
        (["-C", "2"], "-C: not with --online"),
        (["--max-iter", "2"], "--max-iter: not with --online"),
        (["--seed", "2"], "--seed: not with --online: a stream is seen once, in its order"),
        (["--lam", "-1"], "lam must be finite"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(options, words, stream):
    done = learnt(stream, *options, ok=False)
    last = done.stderr.strip().splitlines()[-1]
    if "row" in words:
        number = next(i for i, line in enumerate(stream.read_text().split("\n")) if line[0] == "2")
        words = f"row {number + 1}: class 2 is none of 0, 1"
    assert done.exit_code == 2 and words in last
    assert not stream.with_name("m").exists()


@slow
def test_options_of_streams_need_a_stream(stream):
    said = invoke("train", stream, "-m", stream.with_name("m"), "--classes", "0,1", ok=False).stderr
    assert "--classes: needs --online" in said


@slow
def test_the_first_rows_must_show_two_classes(stream):
    lines = sorted(stream.read_text().splitlines(keepends=True))
    stream.write_text("".join(lines))
    said = learnt(stream, ok=False).stderr
    assert "rows are all of class 0: name all of them, as in --classes 0,1" in said
    learnt(stream, "--classes", "0,1,2")


@slow
def test_what_was_learnt_before_a_bad_line_is_kept(stream):
    place = stream.with_name("c")
    learnt(stream, "--classes", "0,1,2")
    whole = stream.with_name("m").read_bytes()
    lines = stream.read_text().splitlines(keepends=True)
    stream.write_text("".join([*lines[:4000], "1 x:2\n", *lines[4000:]]))
    stream.with_name("m").unlink()
    done = learnt(stream, "--classes", "0,1,2", "--checkpoint", place, ok=False)
    assert done.exit_code == 2 and "stream.svm:4001:3: field 2" in done.stderr
    assert place.exists() and not stream.with_name("m").exists()
    stream.write_text("".join(lines))
    facts = learnt(stream, "--classes", "0,1,2", "--checkpoint", place, "--json")
    assert json.loads(facts.stdout.splitlines()[-1])["resumed"] > 3000
    assert stream.with_name("m").read_bytes() == whole and not place.exists()


@slow
@pytest.mark.parametrize("bad", ["1 x:2\n", "5 1:2\n"])
def test_what_was_learnt_is_the_model_where_there_is_no_checkpoint(bad, stream):
    lines = stream.read_text().splitlines(keepends=True)
    stream.write_text("".join([*lines[:4000], bad, *lines[4000:]]))
    done = learnt(stream, "--classes", "0,1,2", ok=False)
    assert done.exit_code == 2 and "4001" in done.stderr.splitlines()[-1]
    model = load_model(stream.with_name("m"))
    assert f"the model of the first {model.progressive_.rows:,} rows is in" in done.stderr
    assert 3000 < model.progressive_.rows <= 4000


@pytest.fixture
def learner(stream):
    """A learner of a table, before its first row, with a checkpoint."""
    table = stream.with_name("t.csv")
    invoke("convert", stream, table)
    reading, keeping = Reading(label="label"), (stream.with_name("c"), 0.0, None)
    plan = online.Plan(str(table), stream.with_name("m"), reading, {}, "0,1,2", None, *keeping)
    return online.Learner(plan, PegasosClassifier(lam=1e-3))


@slow
def test_names_of_features_outlive_a_resumption_without_new_rows(learner):
    for batch in learner.source():
        learner.learn(batch)
    learner.save(learner.plan.checkpoint)
    again = online.Learner(learner.plan, PegasosClassifier(lam=1e-3))
    assert again.place.rows == 4601 and next(again.source(), None) is None
    again.write(learner.plan.model)
    assert len(load_model(learner.plan.model).feature_names_in_) == 57


@slow
def test_a_signal_amid_a_batch_does_not_part_the_model_from_its_place(learner, monkeypatch):
    batch = next(learner.source())
    learner.learn(batch.part(slice(100)))

    def hit(self, *args, **more):
        real(self, *args, **more)
        raise Terminated(signal.SIGTERM)

    real = PegasosClassifier.partial_fit
    monkeypatch.setattr(PegasosClassifier, "partial_fit", hit)
    with pytest.raises(Terminated):
        learner.learn(batch.part(slice(100, None)))
    learner.keep()
    kept = load_model(learner.plan.checkpoint)
    assert kept.progressive_.rows == learner.place.rows == 100


@slow
def test_a_signal_while_the_checkpoint_is_written_does_not_wait_for_rows(learner, monkeypatch):
    first = next(learner.source())

    def rows_that_never_come():
        yield first
        raise AssertionError("asked for more rows")

    def signalled(self):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(learner, "source", rows_that_never_come)
    monkeypatch.setattr(online.Learner, "save_if_due", signalled)
    with online.ProgressLine() as line, pytest.raises(Terminated, match="goes on from there"):
        online._learn(learner, line)
    assert load_model(learner.plan.checkpoint).progressive_.rows == len(first.y)


@slow
def test_rows_of_a_pipe_do_not_wait_for_those_after_them(stream):
    reader, writer = os.pipe()
    found = []
    source = batches.batches(f"/dev/fd/{reader}", Reading(), False)
    thread = threading.Thread(target=lambda: [found.append(b) for b in source], daemon=True)
    thread.start()
    text = stream.read_bytes()
    text = text[: text.index(b"\n", STREAM_BLOCK) + 1]
    os.write(writer, text)
    deadline = time.monotonic() + 60.0
    while not found and time.monotonic() < deadline:
        time.sleep(0.01)
    in_time = len(found)
    os.close(writer)
    thread.join()
    os.close(reader)
    assert in_time == 1
    assert sum(len(batch.y) for batch in found) == text.count(b"\n")


@slow
def test_a_checkpoint_of_another_stream_is_refused(stream):
    place = stream.with_name("c")
    text = stream.read_text()
    stream.write_text(text + "1 x:2\n")
    often = ("--checkpoint", place, "--checkpoint-rows", "1000", "--classes", "0,1,2")
    learnt(stream, *often, ok=False)
    for other in (text.replace("1:0.", "1:1.", 1), text[: len(text) // 2].rsplit("\n", 1)[0]):
        stream.write_text(other)
        said = learnt(stream, *often, ok=False).stderr
        assert "not the stream of the checkpoint, whose first" in said
    said = learnt(stream, *often, "--lam", "0.1", ok=False).stderr
    assert "a checkpoint of another run: settings differ" in said
    stream.write_text(text)
    learnt(stream, "--classes", "0,1,2")
    said = learnt(stream, "--checkpoint", stream.with_name("m2"), "--classes", "0,1,2")
    stream.with_name("m").rename(place)
    said = learnt(stream, *often, ok=False).stderr
    assert "a model, not a checkpoint of train --online" in said


@slow
@pytest.mark.jit
def test_kills_leave_a_stream_that_goes_on_bit_for_bit(stream, capsys):
    kill_training(stream.parent, 10, random.Random(1), STREAMS[1:2])
    assert "every model has the same bytes" in capsys.readouterr().out


@slow
@pytest.mark.jit
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kept", [True, False])
def test_a_signal_while_it_waits_for_rows(number, kept, folder):  # noqa: F811
    write_stream(folder)
    text = (folder / "stream.svm").read_bytes()
    whole = 8 * text[: text.rindex(b"\n") + 1]
    more = ("--checkpoint", "c", "--checkpoint-every", "0") if kept else ()
    args = ("train", "--online", "-", "-m", "m", "--classes", "0,1,2", *more)
    child = started(*args, cwd=folder, stdin=-1, preexec_fn=_hear_again)
    child.stdin.buffer.write(whole)
    child.stdin.flush()
    line = child.stderr.readline()
    assert "rows  error" in line
    time.sleep(0.3)
    child.send_signal(number)
    said = child.stderr.read()
    assert child.wait(timeout=60) == 128 + number, said
    child.stdin.close()
    if kept:
        assert "rows is in c: the same command on the same stream goes on" in said
        assert not (folder / "m").exists()
        again = started(*args, cwd=folder, stdin=-1)
        again.stdin.buffer.write(whole)
        again.stdin.close()
        said = again.stderr.read()
        assert again.wait(timeout=60) == 0, said
        (folder / "w.svm").write_bytes(whole)
        invoke("train", "--online", folder / "w.svm", "-m", folder / "w", "--classes", "0,1,2")
        assert (folder / "m").read_bytes() == (folder / "w").read_bytes()
    else:
        assert "rows is in m" in said
        assert load_model(folder / "m").progressive_.rows > 0
