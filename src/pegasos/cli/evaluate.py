"""`pegasos evaluate`: how often a model is right on a data file, and how it errs."""

from __future__ import annotations

import json
from typing import Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import note, say
from pegasos.cli.data import Reading


def evaluate(
    model: opt.ModelFile,
    file: opt.DataFile,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    threads: opt.Threads = None,
    json_: opt.Json = False,
) -> None:
    """Compare predictions of MODEL with the labels of FILE.

    Accuracy, precision and recall of each class, who is taken for whom, and for two classes the
    area under the ROC curve.
    """
    from pegasos.cli import apply
    from pegasos.model import file as model_file

    loaded = model_file.load(model)
    reading = Reading(label, header, False, float64, sum_duplicates, threads=threads)
    reading = apply.reading_for(loaded, reading, zero_based)
    facts = _facts(loaded, list(apply.scored(loaded, file, reading)), file)
    if json_:
        typer.echo(json.dumps(facts))
    else:
        _report(facts)


def _facts(model: Any, blocks: list[Any], file: str) -> dict[str, Any]:
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from pegasos.cli.apply import classes_of
    from pegasos.data.errors import DataError
    from pegasos.data.tables import whole

    if blocks[0].labels is None:
        raise DataError(f"{file}: no labels to compare with; name their column with --label")
    y = np.concatenate([block.labels for block in blocks])
    y = y if y.dtype.kind in "OU" else whole(y)
    scores = np.concatenate([block.scores for block in blocks])
    number = {name: k for k, name in enumerate(model.classes.tolist())}
    truth = np.array([number.get(name, -1) for name in y.tolist()])
    strangers = sorted({str(name) for name in y[truth < 0].tolist()})
    if strangers:
        note(f"{file}: classes unknown to the model count as errors: {', '.join(strangers[:5])}")
    k = len(model.classes)
    confusion = np.zeros((k, k), dtype=int)
    known = truth >= 0
    np.add.at(confusion, (truth[known], classes_of(model, scores)[known]), 1)
    right, actual, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    facts: dict[str, Any] = {
        "rows": len(y),
        "correct": int(right.sum()),
        "accuracy": float(right.sum() / len(y)),
        "classes": model.classes.tolist(),
        "rows_of_class": actual.tolist(),
        "precision": (right / np.maximum(said, 1)).tolist(),
        "recall": (right / np.maximum(actual, 1)).tolist(),
        "confusion": confusion.tolist(),
    }
    if k == 2 and not strangers and 0 < truth.sum() < len(truth):
        facts["roc_auc"] = float(roc_auc_score(truth, scores[:, 0]))
    return facts


def _report(facts: dict[str, Any]) -> None:
    say(f"accuracy {100 * facts['accuracy']:.2f} % ({facts['correct']:,} of {facts['rows']:,})")
    if "roc_auc" in facts:
        say(f"area under the ROC curve {facts['roc_auc']:.4f}")
    width = max(5, *(len(str(name)) for name in facts["classes"]))
    say(f"{'class':>{width}}  {'rows':>9}  precision  recall")
    for k, name in enumerate(facts["classes"]):
        rows, precision, recall = (facts[c][k] for c in ("rows_of_class", "precision", "recall"))
        say(f"{name!s:>{width}}  {rows:>9,}  {precision:9.4f}  {recall:6.4f}")
    wrong = [
        (count, facts["classes"][i], facts["classes"][j])
        for i, row in enumerate(facts["confusion"])
        for j, count in enumerate(row)
        if i != j and count
    ]
    for count, true, said in sorted(wrong, key=lambda item: -item[0])[:5]:
        say(f"{count:,} of class {true} taken for {said}")
