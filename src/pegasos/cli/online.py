"""`pegasos train --online`: one pass over a stream in constant memory, from which a run goes on.

The checkpoint is a model file (one can predict with it) that also says how many rows were learnt
and what they were, so that the same command on the same stream skips them.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from pegasos import __version__
from pegasos.cli import center, maps
from pegasos.cli.batches import Batch, Place, batches, beyond
from pegasos.cli.checkpoints import sums_of
from pegasos.cli.console import listed, note, say
from pegasos.cli.data import MAX_CLASSES, Reading, check_classes, check_width
from pegasos.cli.stop import Terminated, locked
from pegasos.cli.warmup import heard
from pegasos.cli.watch import ProgressLine, Signals, Teller
from pegasos.data.atomic import destination
from pegasos.data.errors import DataError
from pegasos.data.formats import is_table
from pegasos.data.stream import name_of
from pegasos.data.tables import whole
from pegasos.estimators.files import from_model, to_model
from pegasos.model import file as model_file
from pegasos.model.checkpoint import check_owner

MAX_WIDTH = 1 << 24  # columns to which the weights grow, unless --max-features says more


class Plan(NamedTuple):
    """What the command is asked for; `kept` is what prediction must know of the reading."""

    file: str
    model: Path
    reading: Reading
    kept: dict[str, Any]
    classes: str | None
    features: int | None
    checkpoint: Path | None
    every: float
    rows: int | None


def train_online(plan: Plan, estimator: Any, as_json: bool) -> None:
    """Learn the stream and write the model."""
    started = time.perf_counter()
    with locked(plan.checkpoint), ProgressLine() as line, heard(line.compiling):
        learner = Learner(plan, estimator)
        before = learner.place.rows
        _learn(learner, line)
        learner.write(plan.model)
        if plan.checkpoint is not None:
            destination(plan.checkpoint).unlink(missing_ok=True)
    facts = _facts(learner, time.perf_counter() - started)
    facts |= {"resumed": before, "compiled": line.compiled}
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        _report(facts)


def _learn(learner: Learner, line: ProgressLine) -> None:
    """To the end of the stream. Whatever ends it before, what was learnt is kept."""
    teller = Teller(line, learner.place.rows)
    with Signals() as signals:
        try:
            signals.waiting = True
            learner.fit_map(line)
            source = learner.source()
            while True:
                signals.waiting = True
                if signals.received is not None:  # it came during work
                    raise Terminated(signals.received)
                batch = next(source, None)
                signals.waiting = False
                if batch is None:
                    break
                learner.learn(batch)
                teller.tell(learner.learnt.estimator.progressive_)
                learner.save_if_due()
        except Terminated:
            signals.waiting = False
            line.close()
            assert signals.received is not None
            raise Terminated(signals.received, learner.keep()) from None
        except Exception:
            signals.waiting = False
            line.close()
            if learner.place.rows > learner.begun:
                note(learner.keep())
            raise
    line.close()


class Learnt(NamedTuple):
    """A model, the place in the stream up to which it has learnt, the names of its features."""

    estimator: Any
    place: Place
    names: list[str] | None


class Learner:
    """The model on its way through the stream.

    All that belongs together is replaced at once: whatever ends the work, what is kept fits.
    """

    def __init__(self, plan: Plan, estimator: Any):
        self.plan, self.learnt = plan, Learnt(estimator, Place(), None)
        self.name = name_of(plan.file)
        self.classes = None if plan.classes is None else named_classes(plan.classes, plan.file)
        self._owner = self._settings()
        if plan.checkpoint is not None and plan.checkpoint.exists():
            self._resume(plan.checkpoint)
        self.begun = self._saved = self.place.rows
        self._last = time.monotonic()

    def _settings(self) -> dict[str, Any]:
        """What shapes the run besides the rows."""
        parameters = self.learnt.estimator.get_params(deep=False)
        source = parameters.pop("center", None)
        shown = {name: repr(value) for name, value in parameters.items() if name != "n_threads"}
        reading = self.plan.reading._replace(threads=None, cache=False)
        return {
            "versions": __version__,
            "settings": shown,
            "centres": source and sums_of({"coef": source.coef_, "intercept": source.intercept_}),
            "classes": self.plan.classes,
            "numbers of features": self.plan.features,
            "ways of reading": list(reading),
        }

    def _resume(self, path: Path) -> None:
        model = model_file.load(path)
        found = model.reading.get("stream")
        if model.stream is None or not isinstance(found, dict):
            raise DataError(f"{path}: a model, not a checkpoint of train --online; name another")
        check_owner(str(path), found.get("owner"), self._owner)
        sums = [found.get("rows"), *found["sums"]] if isinstance(found.get("sums"), list) else [0]
        if not all(type(number) is int for number in sums) or sums[0] < 1:
            raise DataError(f"{path}: stream: expected a number of rows and checksums")
        try:
            estimator = from_model(model._replace(names=None))
        except ValueError as error:
            raise DataError(f"{path}: {error}") from None
        self.learnt = Learnt(estimator, Place(sums[0], tuple(sums[1:])), model.names)
        self.classes = estimator.classes_

    @property
    def place(self) -> Place:
        return self.learnt.place

    @property
    def limit(self) -> int:
        """The most columns."""
        return self.plan.features or self.plan.reading.max_features or MAX_WIDTH

    @property
    def _reading(self) -> Reading:
        return self.plan.reading._replace(max_features=self.limit)

    def fit_map(self, line: ProgressLine) -> None:
        """Have a map, if the model wants one."""
        line.say(f"reading {self.name}")
        maps.fit_map(self.learnt.estimator, self.plan.file, self._reading, self.plan.features)

    def source(self) -> Iterator[Batch]:
        """The rows that are still to be learnt."""
        text = self.classes is not None and self.classes.dtype.kind == "U"
        return beyond(batches(self.plan.file, self._reading, text), self.place, self.name)

    def learn(self, batch: Batch) -> None:
        """One batch, whole or not at all."""
        if self.classes is None:
            self.classes = self._first_classes(batch.y)
        self._check_labels(batch.y)
        place, estimator = self.place.after(batch), copy.copy(self.learnt.estimator)
        estimator._names = batch.names
        estimator.partial_fit(self._fitting(batch.X, estimator), batch.y, classes=self.classes)
        self.learnt = Learnt(estimator, place, batch.names)

    def _first_classes(self, y: np.ndarray) -> np.ndarray:
        labels = y if y.dtype.kind in "OU" else whole(y)
        classes = np.unique(labels)
        if len(classes) == 1:
            seen = f"the first {len(y)} rows are all of class {classes[0]}"
            raise DataError(f"{self.name}: {seen}: name all of them, as in --classes 0,1")
        check_classes(self.name, labels)
        by = f"by the first {len(y)} rows (else name them: --classes)"
        note(f"{self.name}: classes {listed(classes)} {by}")
        return classes

    def _check_labels(self, y: np.ndarray) -> None:
        assert self.classes is not None
        text, named = y.dtype.kind in "OU", self.classes.dtype.kind in "OU"
        known = np.isin(y, self.classes) if text == named else np.zeros(len(y), dtype=bool)
        if not known.all():
            at = int(np.argmin(known))
            names = listed(self.classes)
            where = f"{self.name}: row {self.place.rows + at + 1}"
            shown = y[at] if text else whole(y[at : at + 1])[0]
            raise DataError(f"{where}: class {shown} is none of {names} (--classes names all)")

    def _fitting(self, X: Any, estimator: Any) -> Any:
        """The rows as wide as the weights, which grow if need be."""
        assert self.classes is not None
        begun, found = hasattr(estimator, "n_features_in_"), X.shape[1]
        width = estimator.n_features_in_ if begun else self.plan.features or 1
        if not begun:
            found = center.width_with(estimator, self.plan.file, self.plan.reading, found)
        self._check_features(found)
        if is_table(self.plan.file):
            return X
        if found > width:
            problems = 1 if len(self.classes) == 2 else len(self.classes)
            check_width(self.name, found, 6 * problems, note)
            width = found
        if begun and width > estimator.n_features_in_:
            self._widen(estimator, width)
        X.resize((X.shape[0], width))
        return X

    def _widen(self, estimator: Any, width: int) -> None:
        if hasattr(estimator, "map_"):
            raise DataError(
                f"{self.name}: {width} features after row {self.place.rows}, but the map was "
                f"fitted to {estimator.n_features_in_}: name their number with --features"
            )
        estimator._widen(width)

    def _check_features(self, found: int) -> None:
        """Refuse too many columns, and of a table, which shows all, any other number."""
        fixed = self.plan.features if is_table(self.plan.file) else None
        if found > self.limit or found != (fixed or found):
            option = "--features" if self.plan.features else "--max-features"
            raise DataError(f"{self.name}: {found} features, but {option} is {self.limit}")

    def save_if_due(self) -> None:
        """Write the checkpoint if it is time, or after so many rows."""
        if self.plan.checkpoint is None:
            return
        rows = self.plan.rows is not None and self.place.rows - self._saved >= self.plan.rows
        if rows or time.monotonic() - self._last >= self.plan.every:
            self.save(self.plan.checkpoint)

    def save(self, checkpoint: Path) -> None:
        stream = {"rows": self.place.rows, "sums": self.place.sums, "owner": self._owner}
        self.write(checkpoint, {"stream": stream})
        self._saved, self._last = self.place.rows, time.monotonic()

    def write(self, path: Path, more: dict[str, Any] | None = None) -> None:
        """The model as it is."""
        model = to_model(self.learnt.estimator, self.plan.kept | (more or {}))
        model_file.save(path, model._replace(names=self.learnt.names))

    def keep(self) -> str:
        """Before the end of the stream: keep what was learnt, and say where."""
        rows, checkpoint = self.place.rows, self.plan.checkpoint
        if rows == 0:
            return "no row was learnt yet"
        if checkpoint is None:
            self.write(self.plan.model)
            return f"the model of the first {rows:,} rows is in {self.plan.model}"
        if rows > self._saved:
            self.save(checkpoint)
        return (
            f"the state after {rows:,} rows is in {checkpoint}: the same command on the same "
            "stream goes on from there"
        )


def named_classes(text: str, file: str) -> np.ndarray:
    """The classes of `--classes a,b`: whole numbers if all are, else text."""
    words = [word.strip() for word in text.split(",")]
    try:
        classes = np.array([int(word) for word in words], dtype=np.int64)
    except (ValueError, OverflowError):
        classes = np.array(words)
        if not is_table(file):
            raise ValueError(f"--classes {text}: labels of LIBSVM text are whole numbers") from None
    found = np.unique(classes)
    if not 2 <= len(found) <= MAX_CLASSES or len(found) < len(words) or "" in words:
        raise ValueError(f"--classes {text}: expected from 2 to {MAX_CLASSES} different names")
    return found


def _facts(learner: Learner, seconds: float) -> dict[str, Any]:
    estimator = learner.learnt.estimator
    met = estimator.progressive_
    return {
        "data": learner.plan.file,
        "model": os.fspath(learner.plan.model),
        "rows": met.rows,
        "features": int(estimator.n_features_in_),
        "classes": estimator.classes_.tolist(),
        "errors": met.errors,
        "error": met.error_rate,
        "loss": met.loss,
        "certificate": None,
        "center": center.facts_of(estimator),
        "map": maps.facts_of(estimator),
        "seconds": seconds,
    }


def _report(facts: dict[str, Any]) -> None:
    classes = ", ".join(str(name) for name in facts["classes"][:6])
    more = ", …" if len(facts["classes"]) > 6 else ""
    words = f"{facts['rows']:,} rows, {facts['features']:,} features, classes {classes}{more}"
    say(f"{name_of(facts['data'])}: {words} (one pass, {facts['seconds']:.2f} s)")
    if facts["resumed"]:
        say(f"went on from a checkpoint after {facts['resumed']:,} rows")
    say(
        f"before they were learnt, {100 * facts['error']:.2f} % of the rows were mistaken "
        f"({facts['errors']:,}); mean loss {facts['loss']:.4f}"
    )
    if facts["center"]:
        say(center.in_words(facts["center"]))
    if facts["map"]:
        say(maps.in_words(facts["map"]))
    say("no certificate: a stream is seen once (train without --online proves its answer)")
    say(f"model in {facts['model']}")
