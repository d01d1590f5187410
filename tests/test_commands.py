"""train, predict, evaluate, inspect: what they write and say, and what the system does to them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pegasos import SVC, LinearSVC, LogisticRegression, load_model, load_svmlight, save_model
from pegasos.cli.checkpoints import Checkpoints
from pegasos.cli.main import app
from pegasos.cli.watch import Signals, Watcher
from pegasos.core.jit import user_cache

pytestmark = [pytest.mark.slow, pytest.mark.jit]

HEART = Path(__file__).resolve().parents[1] / "src/pegasos/data/samples/heart_scale.svm"
CODE = "from pegasos.cli.main import main; main()"


def invoke(*args: str, ok: bool = True, **options):
    done = CliRunner().invoke(app, [str(arg) for arg in args], **options)
    assert (done.exit_code == 0) == ok, (done.exit_code, done.output, done.exception)
    return done


def started(*args: str, cwd: Path, **options) -> subprocess.Popen:
    """`pegasos args` in a process of its own."""
    command = [sys.executable, "-c", CODE, *(str(arg) for arg in args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True, **options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    compiled = os.environ.get("NUMBA_CACHE_DIR") or str(user_cache() / "pegasos")
    monkeypatch.setenv("NUMBA_CACHE_DIR", compiled)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "pinball"])
def test_a_trained_model_is_the_estimators(loss, folder):
    model = folder / "heart.model"
    done = invoke("train", HEART, "-m", model, "--loss", loss, "-C", "0.5")
    assert "proven" in done.output
    X, y = load_svmlight(HEART)
    if loss == "logistic":
        expected = LogisticRegression(C=0.5, random_state=0).fit(X, y)
    else:
        expected = LinearSVC(C=0.5, loss=loss, random_state=0).fit(X, y)
    found = load_model(model)
    assert np.array_equal(found.coef_, expected.coef_)
    assert found.certificate_ == expected.certificate_
    assert found.classes_.tolist() == [-1, 1]


def test_the_same_command_writes_the_same_bytes_with_and_without_the_cache(folder):
    def trained(name: str, *more: str) -> bytes:
        invoke("train", HEART, "-m", folder / name, "--threads", "1", *more)
        return (folder / name).read_bytes()

    first = trained("a", "--cache")
    assert first == trained("b", "--cache") == trained("c", "--no-cache")


def test_predict_writes_a_label_per_row(folder):
    model, output = folder / "heart.model", folder / "labels"
    invoke("train", HEART, "-m", model)
    X, _ = load_svmlight(HEART)
    expected = load_model(model).predict(X)
    printed = invoke("predict", model, HEART).stdout
    invoke("predict", model, HEART, "-o", output)
    assert output.read_text() == printed
    assert np.array_equal(np.loadtxt(output, dtype=int), expected)


def test_scores_and_probabilities_follow_the_label(folder):
    model = folder / "heart.model"
    invoke("train", HEART, "-m", model, "--loss", "logistic")
    X, _ = load_svmlight(HEART)
    fitted = load_model(model)
    told = invoke("predict", model, HEART, "--scores", "--probabilities", "--names").stdout
    head, *lines = told.split("\n")[:-1]
    assert head == "label score:1 probability:-1 probability:1"
    table = np.array([[float(word) for word in line.split()] for line in lines])
    assert np.array_equal(table[:, 1], fitted.decision_function(X))
    assert np.array_equal(table[:, 2:], fitted.predict_proba(X))
    assert "log-loss" in invoke("evaluate", model, HEART).stdout
    invoke("train", HEART, "-m", model, "--loss", "hinge")
    assert "no probabilities" in invoke("predict", model, HEART, "--probabilities", ok=False).stderr


@pytest.mark.parametrize("kind", [[], ["--kernel", "gaussian"]], ids=["linear", "kernel"])
def test_a_model_trained_with_probability_tells_them(folder, kind):
    model = folder / "heart.model"
    assert "cross-fitting" in invoke("train", HEART, "-m", model, "--probability", *kind).stdout
    X, y = load_svmlight(HEART)
    estimator = SVC if kind else LinearSVC
    expected = estimator(probability=True, random_state=0).fit(X, y).predict_proba(X)
    lines = invoke("predict", model, HEART, "--probabilities").stdout.split("\n")[:-1]
    table = np.array([[float(word) for word in line.split()] for line in lines])
    assert np.array_equal(table[:, 1:], expected)
    assert np.array_equal(table[:, 0], np.where(expected[:, 1] > expected[:, 0], 1.0, -1.0))
    assert "probabilities of scores by cross-fitting: sigmoid" in invoke("inspect", model).stdout
    if not kind:
        invoke("train", HEART, "-m", folder / "i", "--isotonic")
        assert "cross-fitting: isotonic" in invoke("inspect", folder / "i").stdout
    figure = folder / "curves.png"
    done = invoke("evaluate", model, HEART, "--figure", figure)
    assert f"figure in {figure}" in done.stdout and figure.stat().st_size > 20_000
    logistic = ["--loss", "logistic", "--probability"]
    refused = invoke("train", HEART, "-m", model, *logistic, ok=False)
    assert "a logistic model has probabilities" in refused.stderr


def test_a_signal_while_probabilities_are_made_ends_them_at_once():
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)  # noted, for the next safe point of a fit
        assert signals.received == signal.SIGTERM
    with Signals() as signals, pytest.raises(KeyboardInterrupt):
        Watcher(signals, Checkpoints(None, 30.0), None).leave()
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_threshold_is_chosen_kept_and_followed(folder):
    model, careful = folder / "heart.model", folder / "careful.model"
    invoke("train", HEART, "-m", model)
    done = invoke("threshold", model, HEART, "--recall", "0.95", "-o", careful, "--json")
    found = json.loads(done.stdout)
    X, y = load_svmlight(HEART)
    expected = load_model(model)
    assert found["threshold"] == expected.choose_threshold(X, y, recall=0.95).threshold
    labels = np.array(invoke("predict", careful, HEART).stdout.split(), dtype=int)
    assert np.array_equal(labels, expected.predict(X)) and labels[y == 1].mean() > 0.9
    facts = json.loads(invoke("evaluate", careful, HEART, "--json").stdout)
    assert facts["recall"][1] == found["recall"] and facts["threshold"] == found["threshold"]
    assert "predicts 1 where the score is above" in invoke("inspect", careful).stdout
    told = invoke("threshold", model, HEART, "--cost", "1:-1=5", "--cost", "-1:1=1").stdout
    assert "cost" in told and "model in" not in told
    for options, words in (
        (["--cost", "1:2=5"], "expected TRUE:TOLD=COST, as in 1:-1=10"),
        ([], "one of precision, recall and cost"),
    ):
        assert words in invoke("threshold", model, HEART, *options, ok=False).stderr
    words = invoke("convert", careful, folder / "a.liblinear", ok=False).stderr
    assert "LIBLINEAR models have no threshold" in words


def test_standard_input_is_a_file_like_others(folder):
    model = folder / "heart.model"
    text = HEART.read_bytes()
    invoke("train", "-", "-m", model, input=text)
    from_file = invoke("predict", model, HEART).stdout
    assert invoke("predict", model, "-", input=text).stdout == from_file
    bare = b"".join(line.split(b" ", 1)[1] for line in text.splitlines(keepends=True))
    assert invoke("predict", model, "-", "--unlabelled", input=bare).stdout == from_file


def test_features_that_the_model_does_not_know_are_ignored_with_a_note(folder):
    model = folder / "heart.model"
    invoke("train", HEART, "-m", model)
    wider = HEART.read_bytes().replace(b"\n", b" 999:5\n")
    done = invoke("predict", model, "-", input=wider)
    assert "270 entries beyond the 13 features of the model ignored" in done.stderr
    assert done.stdout == invoke("predict", model, HEART).stdout


def test_the_base_of_indices_is_kept_in_the_model(folder):
    model, file = folder / "m", folder / "zero.svm"
    file.write_text("1 0:2 1:1\n-1 0:-2 1:1\n1 0:3\n-1 0:-1\n")
    assert "zero-based" in invoke("train", file, "-m", model, ok=False).stderr
    invoke("train", file, "-m", model, "--zero-based")
    assert invoke("predict", model, file).stdout == "1\n-1\n1\n-1\n"
    assert "indices start at 1" in invoke("predict", model, file, "--one-based", ok=False).stderr


def test_evaluate_and_inspect_agree_with_the_estimator(folder):
    model = folder / "heart.model"
    told = json.loads(invoke("train", HEART, "-m", model, "--json").stdout)
    X, y = load_svmlight(HEART)
    fitted = load_model(model)
    facts = json.loads(invoke("evaluate", model, HEART, "--json").stdout)
    assert facts["accuracy"] == fitted.score(X, y)
    assert np.sum(facts["confusion"]) == len(y) == told["rows"]
    shown = json.loads(invoke("inspect", model, "--json").stdout)
    assert shown["objective"] == told["objective"] == [fitted.certificate_.primal]
    assert "accuracy" in invoke("evaluate", model, HEART).stdout
    assert "proven: the best possible" in invoke("inspect", model).stdout


def test_several_classes(folder):
    file, model = folder / "three.svm", folder / "three.model"
    rng = np.random.default_rng(0)
    rows = [f"{k % 3} {k % 3 + 1}:{3 + rng.normal():.3f} 4:{rng.normal():.3f}" for k in range(90)]
    file.write_text("\n".join(rows))
    done = invoke("train", file, "-m", model)
    assert "3 problems" in done.stdout
    assert json.loads(invoke("evaluate", model, file, "--json").stdout)["accuracy"] > 0.9


def test_max_time_leaves_a_model_and_a_note(folder):
    model = folder / "m"
    options = ("--solver", "dual", "--tol", "0", "--max-time", "0.3", "--max-iter", "1000000000")
    done = invoke("train", HEART, "-m", model, "--loss", "hinge", "-C", "1e4", *options)
    assert "raise --max-time" in done.stderr and done.stderr.count("\n") == 1
    assert load_model(model).certificate_.gap >= 0.0


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("-C", "-1"), "--C must be"),
        (("--tol", "nan"), "--tol must be"),
        (("--max-iter", "0"), "--max-iter must be"),
        (("--solver", "interior"), "--solver interior is for hinge"),
        (("--tau", "7", "--loss", "pinball"), "tau"),
        (("--loss", "hing"), "hing"),
        (("--tool", "1"), "--tool"),
        (("--center", "missing"), "missing: no such file"),
    ],
)
def test_bad_options_are_refused_before_any_work(option, words, folder):
    done = invoke("train", folder / "not-read", "-m", folder / "m", *option, ok=False)
    assert done.exit_code == 2 and words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(folder.iterdir()) == []


def test_outputs_are_checked_before_any_work(folder):
    (folder / "kept").write_text("kept")
    (folder / "kept").chmod(0o444)
    file = folder / "copy.svm"
    file.write_bytes(HEART.read_bytes())
    (folder / "link").symlink_to(file)
    cases = {
        folder / "none/m": (3, "directory does not exist"),
        folder: (3, "is a directory"),
        Path("/dev/null"): (3, "device"),
        file: (2, "is also the input"),
        folder / "link": (2, "is also the input"),
    }
    if os.getuid() != 0:
        cases[folder / "kept"] = (3, "read-only")
    for model, (code, words) in cases.items():
        done = invoke("train", file, "-m", model, ok=False)
        assert (done.exit_code, len(done.stderr.splitlines())) == (code, 1)
        assert words in done.stderr
    assert file.read_bytes() == HEART.read_bytes()


def test_a_reader_that_goes_away_ends_predict_quietly(folder):
    invoke("train", HEART, "-m", folder / "m")
    big = folder / "big.svm"
    big.write_bytes(HEART.read_bytes() * 400)
    child = started("predict", folder / "m", big, cwd=folder)
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(60) == 141
    assert child.stderr.read() == ""


def test_a_closed_standard_output_is_an_error_in_one_line(folder):
    invoke("train", HEART, "-m", folder / "m")
    code = f"import os; os.close(1)\n{CODE}"
    command = [sys.executable, "-c", code, "predict", "m", str(HEART)]
    done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1


SLOW_FIT = ("--loss", "hinge", "--solver", "dual", "--tol", "1e-6", "-C", "10", "--no-cache")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_a_checkpoint_from_which_the_same_command_goes_on(number, folder):
    limit = ("--max-iter", "20000")
    args = ("train", HEART, "-m", "m", "--checkpoint", "c", *SLOW_FIT, *limit)
    invoke("train", HEART, "-m", folder / "whole", *SLOW_FIT, *limit)
    child = started(*args, "--checkpoint-every", "0", cwd=folder, preexec_fn=_hear_again)
    deadline = time.monotonic() + 60
    while not (folder / "c").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 128 + number, said
    assert "c: the same command goes on from there" in said
    assert sorted(path.name for path in folder.iterdir()) == ["c", "whole"]
    again = started(*args, cwd=folder)
    _, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["m", "whole"]


def _hear_again() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_two_runs_do_not_share_a_checkpoint(folder):
    from pegasos.cli.stop import locked

    with locked(folder / "c"):
        args = ("train", HEART, "-m", folder / "m", "--checkpoint", folder / "c")
        done = started(*args, cwd=folder)
        _, said = done.communicate(timeout=60)
        assert done.returncode == 3 and f"in use by process {os.getpid()}" in said
    invoke(*args)
    assert [path.name for path in folder.iterdir()] == ["m"]


def test_without_a_home_there_is_no_cache_and_no_complaint(folder):
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    env |= {"HOME": "/nonexistent"}
    child = started("train", HEART, "-m", "m", cwd=folder, env=env)
    out, said = child.communicate(timeout=120)
    assert child.returncode == 0, said
    assert "proven" in out


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    from pegasos.data import container

    invoke("train", HEART, "-m", folder / "m")
    before = (folder / "m").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container, "write", full)
    done = invoke("train", HEART, "-m", folder / "m", "-C", "3", "--no-cache", ok=False)
    assert done.exit_code == 3
    assert f"{folder / 'm'}: No space left on device" in done.stderr
    assert (folder / "m").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["m"]


def test_model_and_checkpoint_need_a_file_each(folder):
    done = invoke("train", HEART, "-m", folder / "x", "--checkpoint", folder / "x", ok=False)
    assert done.exit_code == 2 and "a file each" in done.stderr


def test_a_named_pipe_is_read_whole(folder):
    invoke("train", HEART, "-m", folder / "m")
    os.mkfifo(folder / "pipe")
    child = started("predict", "m", "pipe", cwd=folder)
    with open(folder / "pipe", "wb") as pipe:
        pipe.write(HEART.read_bytes())
    out, said = child.communicate(timeout=60)
    assert out == invoke("predict", folder / "m", HEART).stdout, said


def test_comments_and_blank_lines_make_no_predictions(folder):
    invoke("train", HEART, "-m", folder / "m")
    expected = invoke("predict", folder / "m", HEART).stdout
    padded = b"# head\n" * 10 + HEART.read_bytes() + b"\n" * (5 << 20) + b"# foot\n"
    assert invoke("predict", folder / "m", "-", input=padded).stdout == expected


def test_a_resumed_fit_of_many_classes(folder):
    file, rng = folder / "many.svm", np.random.default_rng(0)
    rows = [f"{k % 400} {k % 400 + 1}:1 {rng.integers(401, 500)}:1" for k in range(800)]
    file.write_text("\n".join(rows))
    args = ("train", file, "-m", folder / "m", "--max-iter", "3", "--solver", "dual")
    invoke(*args)
    whole = (folder / "m").read_bytes()
    child = started(*args, "--checkpoint", "c", "--checkpoint-every", "0", cwd=folder)
    deadline = time.monotonic() + 60
    while not (folder / "c").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    child.kill()
    child.wait(60)
    invoke(*args, "--checkpoint", folder / "c")
    assert (folder / "m").read_bytes() == whole


def test_an_ignored_signal_stays_ignored(folder):
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    args = ("train", HEART, "-m", "m", "--checkpoint", "c", "--checkpoint-every", "0", *SLOW_FIT)
    child = started(*args, "--max-iter", "2000", cwd=folder, preexec_fn=ignore)
    deadline = time.monotonic() + 60
    while not (folder / "c").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGHUP)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 0, said


def test_convert_keeps_every_bit(folder):
    text = folder / "a.svm"
    text.write_text("1 1:123456789 2:0.123456789012\n-1 3:1e-310\n")
    for ending in ("csv", "parquet", "pegasos", "svm.gz", "tsv.gz"):
        there, back = folder / f"b.{ending}", folder / "c.svm"
        invoke("convert", text, there)
        label = ("--label", "label") if ending in ("csv", "parquet", "tsv.gz") else ()
        invoke("convert", there, back, *label)
        X, y = load_svmlight(back, dtype=np.float64)
        expected, _ = load_svmlight(text, dtype=np.float64)
        assert np.array_equal(X.toarray(), expected.toarray()), ending
        assert y.tolist() == [1, -1]


def test_convert_writes_to_standard_output(folder):
    invoke("train", HEART, "-m", folder / "m")
    code = ("convert", "m", "-", "--to", "liblinear")
    out, said = started(*code, cwd=folder).communicate(timeout=60)
    assert out.startswith("solver_type L2R_L2LOSS_SVC_DUAL\n"), said
    assert [path.name for path in folder.iterdir()] == ["m"]


def test_a_model_of_many_classes_is_still_a_model(folder):
    file = folder / "many.svm"
    file.write_text("\n".join(f"{k % 60} {k % 60 + 1}:1" for k in range(120)))
    invoke("train", file, "-m", folder / "m", "--max-iter", "5")
    invoke("convert", folder / "m", folder / "m.liblinear")
    invoke("convert", folder / "m.liblinear", folder / "again")
    assert invoke("predict", folder / "again", file).stdout == (
        invoke("predict", folder / "m", file).stdout
    )
    assert (
        "can become" in invoke("convert", folder / "m.liblinear", folder / "m.csv", ok=False).stderr
    )


def test_tables_by_name_and_by_place(folder):
    X, y = load_svmlight(HEART)
    rows = [
        ",".join([f"class{int(label)}", *map(str, x)])
        for label, x in zip(y, X.toarray(), strict=True)
    ]
    named, bare = folder / "named.csv", folder / "bare.csv"
    names = [f"x{j}" for j in range(13)]
    named.write_text("\n".join([",".join(["kind", *names]), *rows]))
    bare.write_text("\n".join(rows))
    invoke("train", named, "-m", folder / "m", "--label", "kind")
    assert load_model(folder / "m").feature_names_in_.tolist() == names
    expected = invoke("predict", folder / "m", named).stdout
    assert set(expected.split()) == {"class-1", "class1"}
    turned = folder / "turned.csv"
    columns = [line.split(",") for line in named.read_text().splitlines()]
    turned.write_text("\n".join(",".join(line[:0:-1]) for line in columns))  # and no label
    assert invoke("predict", folder / "m", turned).stdout == expected
    assert json.loads(invoke("evaluate", folder / "m", named, "--json").stdout)["accuracy"] > 0.8
    assert "no labels" in invoke("evaluate", folder / "m", turned, ok=False).stderr
    invoke("train", bare, "-m", folder / "b", "--label", "0", "--no-header")
    assert invoke("predict", folder / "b", bare).stdout == expected


def test_a_centre_must_fit(folder):
    invoke("train", HEART, "-m", folder / "m")
    again = ("train", HEART, "-m", folder / "n", "--center", folder / "m")
    invoke(*again, "-C", "1e-9")
    assert np.allclose(load_model(folder / "n").coef_, load_model(folder / "m").coef_, atol=1e-4)
    other = folder / "other.svm"
    other.write_bytes(HEART.read_bytes().replace(b"+1 ", b"2 "))
    done = invoke("train", other, "-m", folder / "o", "--center", folder / "m", ok=False)
    assert f"{folder / 'm'}: its classes are [-1, 1], not the data's [-1, 2]" in done.stderr
    done = invoke(*again, "--zero-based", ok=False)
    assert "its indices start at another number" in done.stderr


@pytest.mark.parametrize("online", [(), ("--online", "--lam", "1e9")], ids=["exact", "online"])
def test_a_centre_is_matched_by_index_or_by_name(folder, online):
    """An index is a name: text with fewer or more of them has the same features."""
    no_trust = online or ("-C", "1e-9")
    lines = HEART.read_text().splitlines()
    invoke("train", HEART, "-m", folder / "m", "--intercept", "penalised")
    source = load_model(folder / "m").coef_[0]
    near = ("--intercept", "penalised", "--center", folder / "m", *no_trust)
    for last, width in (("", 13), (" 15:0.5", 15)):
        text = [" ".join(line.split(" 9:")[0].split()) + last for line in lines]
        (folder / "few.svm").write_text("\n".join(text) + "\n")
        facts = json.loads(
            invoke("train", folder / "few.svm", "-m", folder / "n", "--json", *near).stdout
        )
        counts = {"matched": 13, "unknown": width - 13, "left_out": 0, "new_classes": []}
        assert facts["center"] == counts
        assert "near a centre: |w - w0| " in invoke("inspect", folder / "n").stdout
        found = load_model(folder / "n").coef_[0]
        assert np.allclose(found, np.pad(source, (0, width - 13)), atol=1e-6)
    rows = [",".join(["kind", "x9", "new", "x1"])]
    rows += [f"{line.split()[0]},{k % 7},{k % 5},{k % 3}" for k, line in enumerate(lines)]
    (folder / "few.csv").write_text("\n".join(rows))
    model = LinearSVC(intercept="penalised").fit(*load_svmlight(HEART))
    model.feature_names_in_ = np.array([f"x{j}" for j in range(13)], dtype=object)
    save_model(model, folder / "m")
    done = invoke("train", folder / "few.csv", "--label", "kind", "-m", folder / "n", *near)
    assert "centre: 2 features matched, 1 unknown to it, 11 of its own left out" in done.stdout
    expected = [model.coef_[0, 9], 0.0, model.coef_[0, 1]]
    assert np.allclose(load_model(folder / "n").coef_[0], expected, atol=1e-6)


def test_the_cache_is_private(folder):
    invoke("train", HEART, "-m", folder / "m")
    (cached,) = (folder.parent / "cache/pegasos/data").iterdir()
    assert cached.stat().st_mode & 0o077 == 0


def test_a_poor_locale_hides_no_name(folder):
    file = folder / "a.csv"
    file.write_text("x,kind\n1,a→b\n-1,maß\n2,a→b\n-2,maß\n", encoding="utf-8")
    env = os.environ | {"PYTHONIOENCODING": "latin-1"}
    more = {"env": env, "encoding": "latin-1"}
    child = started("train", file, "-m", "m", "--label", "kind", cwd=folder, **more)
    out, said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert "a\\u2192b" in out


def test_a_limit_keeps_the_checkpoint(folder):
    args = ("train", HEART, "-m", folder / "m", "--checkpoint", folder / "c", *SLOW_FIT)
    done = invoke(*args, "--max-iter", "30")
    assert "the state is kept in" in done.stderr
    assert load_model(folder / "m").n_iter_ == 30
    invoke(*args, "--max-iter", "20000")
    assert load_model(folder / "m").certificate_.relative_gap <= 1e-6
    assert [path.name for path in folder.iterdir()] == ["m"]


def test_swapped_arguments_are_recognised(folder):
    invoke("train", HEART, "-m", folder / "m")
    text = folder / "data.svm"
    text.write_bytes(HEART.read_bytes())
    assert "are the arguments swapped?" in invoke("predict", text, folder / "m", ok=False).stderr
    assert "not a data file" in invoke("train", folder / "m", "-m", folder / "n", ok=False).stderr


def test_a_kernel_machine_is_trained_applied_and_inspected(folder):
    model = folder / "heart.model"
    options = ("--kernel", "gaussian", "--gamma", "0.125", "-C", "2")
    done = invoke("train", HEART, "-m", model, *options)
    X, y = load_svmlight(HEART)
    expected = SVC(C=2.0, gamma=0.125, random_state=0).fit(X, y)
    found = load_model(model)
    assert "proven" in done.output and f"{expected.support_.size} support vectors" in done.output
    assert np.array_equal(found.decision_function(X), expected.decision_function(X))
    printed = invoke("predict", model, HEART).stdout.split()
    assert printed == [str(int(label)) for label in expected.predict(X)]
    facts = json.loads(invoke("evaluate", model, HEART, "--json").stdout)
    assert facts["accuracy"] == expected.score(X, y)
    assert "Gaussian(gamma=0.125)" in invoke("inspect", model).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gamma", "1"), "--gamma: needs --kernel"),
        (("--kernel", "gaussian", "--gamma", "-1"), "gamma must be finite and > 0"),
        (("--kernel", "gaussian", "--loss", "logistic"), "hinge or pinball loss"),
        (("--kernel", "gaussian", "--checkpoint", "c"), "--checkpoint: not with --kernel"),
        (("--kernel", "gaussian", "--solver", "newton"), "solver must be one of"),
    ],
)
def test_options_that_do_not_fit_a_kernel_machine_are_refused(folder, options, words):
    done = invoke("train", HEART, "-m", folder / "a", *options, ok=False)
    assert done.exit_code == 2 and words in done.output and not (folder / "a").exists()
