"""Checkpoints: a fit that goes on from a file ends with the same bits as one that never stopped."""

from pathlib import Path

import numpy as np
import pytest

from pegasos import LinearSVC, LogisticRegression
from pegasos.cli.checkpoints import Checkpoints
from pegasos.data import container
from pegasos.data.atomic import replacing
from pegasos.data.errors import DataError
from pegasos.data.samples import load_sample
from pegasos.estimators.one_vs_all import Task


class Killed(BaseException):
    """Stands for the end of the process."""


class Keeper:
    """Saves after each step, and dies after some of them."""

    def __init__(self, path: Path, lifetime: float = np.inf, every: float = 0.0):
        self.checkpoints, self.lifetime = Checkpoints(path, every), lifetime

    def begin(self, task: Task, k, driver):
        return self.checkpoints.begin(task, k, driver)

    def step(self, driver, progress) -> bool:
        if self.lifetime <= 0:
            raise Killed
        self.lifetime -= 1
        if progress.stop is None:
            self.checkpoints.step(driver, now=False)
        return False

    def end(self, run) -> None:
        self.checkpoints.end(run)


def data(n_classes: int):
    X, y = load_sample("pima")
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:300]
    return X, (y[:300] if n_classes == 2 else (np.arange(300) * 7 + (X[:, 0] > 0)) % n_classes)


def fitted(estimator, n_classes: int, watch=None):
    estimator._watch = watch
    return estimator.fit(*data(n_classes))


def bits(model) -> list:
    proofs = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    return [model.coef_.tobytes(), model.intercept_.tobytes(), model.n_iter_, *proofs]


SOLVERS = [
    (LinearSVC, {"loss": "hinge", "solver": "dual", "tol": 1e-6, "max_iter": 20_000}),
    (LinearSVC, {"loss": "hinge", "solver": "newton", "tol": 1e-9}),
    (LinearSVC, {"loss": "hinge", "solver": "interior", "tol": 1e-9}),
    (LinearSVC, {"loss": "hinge", "solver": "auto", "tol": 1e-9, "C": 0.3}),
    (LogisticRegression, {"solver": "newton", "tol": 1e-12}),
    (LogisticRegression, {"solver": "newton_cg", "tol": 1e-12}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("intercept", "n_classes"), [("free", 3), ("penalised", 2), ("none", 2)])
@pytest.mark.parametrize(("cls", "settings"), SOLVERS, ids=lambda s: str(s)[:40])
def test_a_fit_that_dies_again_and_again_ends_with_the_same_bits(
    cls, settings, intercept, n_classes, tmp_path
):
    def make():
        return cls(**settings, intercept=intercept, random_state=0)

    whole = fitted(make(), n_classes, Keeper(tmp_path / "whole.ckpt"))
    file = tmp_path / "fit.ckpt"
    deaths = 0
    for lifetime in (1, 2, 3, 5, 9, 17, 40, 200, np.inf):
        estimator = make()
        try:
            fitted(estimator, n_classes, Keeper(file, lifetime))
            break
        except Killed:
            deaths += 1
    assert deaths > 0
    assert bits(estimator) == bits(whole)


def test_slices_of_an_epoch_are_safe_points_too(tmp_path, monkeypatch):
    from pegasos.solvers import dual_verbs

    monkeypatch.setattr(dual_verbs, "SLICE", 800)  # of 2,400 entries
    settings = {"loss": "hinge", "solver": "dual", "intercept": "free", "random_state": 0}
    whole, file = fitted(LinearSVC(**settings), 2), tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(**settings), 2, Keeper(file, 10))
    resumed = Keeper(file)
    assert bits(fitted(LinearSVC(**settings), 2, resumed)) == bits(whole)
    assert resumed.checkpoints.resumed


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"C": 2.0}, "C or weights"),
        ({"loss": "squared_hinge"}, "losses"),
        ({"intercept": "none"}, "intercepts"),
        ({"solver": "newton"}, "solvers"),
        ({"tol": 1e-4}, "values of tol"),
        ({"random_state": 1}, "seeds"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(changed, named, tmp_path):
    settings = {"loss": "hinge", "solver": "dual", "random_state": 0}
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(**settings), 2, Keeper(file, 3))
    before = file.read_bytes()
    with pytest.raises(DataError, match=f"fit.ckpt: a checkpoint of another run: {named} differ"):
        fitted(LinearSVC(**{**settings, **changed}), 2, Keeper(file))
    assert file.read_bytes() == before


def test_more_epochs_may_be_allowed_to_a_run_that_goes_on(tmp_path):
    settings = {"loss": "hinge", "solver": "dual", "tol": 1e-6, "random_state": 0}
    whole, file = fitted(LinearSVC(max_iter=20_000, **settings), 2), tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(max_iter=50, **settings), 2, Keeper(file, 20))
    again = fitted(LinearSVC(max_iter=20_000, **settings), 2, Keeper(file))
    assert bits(again) == bits(whole)


@pytest.mark.parametrize("damage", ["cut", "flip", "other"])
def test_a_damaged_checkpoint_is_refused(damage, tmp_path):
    settings = {"loss": "hinge", "solver": "dual", "random_state": 0}
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(**settings), 2, Keeper(file, 3))
    raw = bytearray(file.read_bytes())
    if damage == "cut":
        del raw[len(raw) // 2 :]
    elif damage == "flip":
        raw[len(raw) // 2] ^= 1
    else:
        from pegasos import save_model

        save_model(fitted(LinearSVC(**settings), 2), file)
        raw = bytearray(file.read_bytes())
    file.write_bytes(raw)
    with pytest.raises(DataError, match=r"fit\.ckpt: "):
        fitted(LinearSVC(**settings), 2, Keeper(file))


@pytest.mark.parametrize("name", ["alpha", "order", "stays", "S", "w"])
def test_arrays_of_another_length_are_refused(name, tmp_path):
    settings = {"loss": "hinge", "solver": "dual", "random_state": 0, "tol": 1e-9}
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(**settings, intercept="none"), 2, Keeper(file, 25))
    description, arrays = container.read(file)
    state = description["current"]["fields"]["state"]["fields"]
    held = (state["past"]["fields"] if name == "S" else state)[name]["array"]
    arrays[held] = arrays[held][:-1]
    with replacing(file) as out:
        container.write(out, description, arrays)
    with pytest.raises(DataError, match=rf"fit\.ckpt: content: ValueError: {name}: expected"):
        fitted(LinearSVC(**settings, intercept="none"), 2, Keeper(file))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(lambda a: a + 1, "not one of"), (lambda a: a[::-1], "do not ascend")],
    ids=["beyond", "backwards"],
)
def test_columns_of_other_data_are_refused(tmp_path, wrong, words):
    settings = {"loss": "hinge", "solver": "newton", "random_state": 0}
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(**settings), 2, Keeper(file, 3))
    description, arrays = container.read(file)
    held = description["current"]["fields"]["state"]["fields"]["columns"]["array"]
    arrays[held] = np.ascontiguousarray(wrong(arrays[held]))
    with replacing(file) as out:
        container.write(out, description, arrays)
    with pytest.raises(DataError, match=rf"fit\.ckpt: content: ValueError: columns: .*{words}"):
        fitted(LinearSVC(**settings), 2, Keeper(file))


def test_an_order_of_other_rows_is_refused(tmp_path):
    settings = {"loss": "hinge", "solver": "dual", "random_state": 0}
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        fitted(LinearSVC(**settings, intercept="none"), 2, Keeper(file, 3))
    description, arrays = container.read(file)
    held = description["current"]["fields"]["state"]["fields"]["order"]["array"]
    arrays[held] = arrays[held] + 1
    with replacing(file) as out:
        container.write(out, description, arrays)
    with pytest.raises(DataError, match=r"fit\.ckpt: content: ValueError: order: not one of 300"):
        fitted(LinearSVC(**settings, intercept="none"), 2, Keeper(file))
