"""`pegasos evaluate`: how often a model is right on a data file, and how it errs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import note, say
from pegasos.cli.data import Reading, check_outputs


def evaluate(
    model: opt.ModelFile,
    file: opt.DataFile,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    threads: opt.Threads = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw ROC and precision-recall curves (two classes), and how well probabilities "
            "hold (if the model has them): png, svg or pdf.",
        ),
    ] = None,
    json_: opt.Json = False,
) -> None:
    """Compare predictions of MODEL with the labels of FILE.

    Accuracy, precision and recall of each class, who is taken for whom, for two classes the area
    under the ROC curve, and the log-loss of probabilities.
    """
    from pegasos.cli import apply
    from pegasos.model import file as model_file

    loaded = model_file.load(model)
    if figure is not None:
        check_outputs([figure], [str(model), file])
        _check_figure(loaded, figure)
    reading = Reading(label, header, False, float64, sum_duplicates, threads=threads)
    reading = apply.reading_for(loaded, reading, zero_based)
    known = apply.known(loaded, file, reading)
    if known.strangers:
        names = ", ".join(known.strangers[:5])
        note(f"{file}: classes unknown to the model count as errors: {names}")
    facts = _facts(loaded, known)
    if figure is not None:
        _draw(loaded, known, figure, f"{model} on {file}")
        facts["figure"] = str(figure)
    if json_:
        typer.echo(json.dumps(facts))
    else:
        _report(facts)


def _facts(model: Any, found: Any) -> dict[str, Any]:
    import numpy as np
    from sklearn.metrics import log_loss, roc_auc_score

    from pegasos.cli import apply

    truth, scores, _ = found
    k = len(model.classes)
    confusion = np.zeros((k, k), dtype=int)
    known = truth >= 0
    np.add.at(confusion, (truth[known], apply.classes_of(model, scores)[known]), 1)
    right, actual, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    facts: dict[str, Any] = {
        "rows": len(truth),
        "correct": int(right.sum()),
        "accuracy": float(right.sum() / len(truth)),
        "classes": model.classes.tolist(),
        "rows_of_class": actual.tolist(),
        "precision": (right / np.maximum(said, 1)).tolist(),
        "recall": (right / np.maximum(actual, 1)).tolist(),
        "confusion": confusion.tolist(),
    }
    if k == 2:
        facts["threshold"] = model.decision.threshold
    if k == 2 and known.all() and 0 < truth.sum() < len(truth):
        facts["roc_auc"] = float(roc_auc_score(truth, scores[:, 0]))
    if known.all() and apply.has_probabilities(model):
        p = apply.probabilities_of(model, scores)
        facts["log_loss"] = float(log_loss(truth, p, labels=np.arange(k)))
    return facts


def _report(facts: dict[str, Any]) -> None:
    say(f"accuracy {100 * facts['accuracy']:.2f} % ({facts['correct']:,} of {facts['rows']:,})")
    if "roc_auc" in facts:
        say(f"area under the ROC curve {facts['roc_auc']:.4f}")
    if "log_loss" in facts:
        say(f"log-loss of the probabilities {facts['log_loss']:.4f}")
    if facts.get("threshold"):
        name = facts["classes"][1]
        say(f"class {name} is told where the score is above {facts['threshold']:.6g}")
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
    if "figure" in facts:
        say(f"figure in {facts['figure']}")


def _check_figure(model: Any, figure: Path) -> None:
    """What speaks against a figure, before any work."""
    from pegasos.cli.apply import has_probabilities
    from pegasos.report.figures import check_writable

    check_writable(figure)
    if len(model.classes) > 2 and not has_probabilities(model):
        raise ValueError(
            f"--figure {figure}: of {len(model.classes)} classes probabilities are drawn, which "
            "this model has not; train with --probability"
        )


def _draw(model: Any, found: Any, figure: Path, title: str) -> None:
    import numpy as np

    from pegasos.cli import apply
    from pegasos.report.decisions import decision_figure

    known = found.truth >= 0
    truth, scores = found.truth[known], found.scores[known]
    p = apply.probabilities_of(model, scores) if apply.has_probabilities(model) else None
    if len(model.classes) == 2:
        told = None if p is None else p[:, 1]
        y, threshold = model.classes[truth], model.decision.threshold
        decision_figure(y, scores[:, 0], told, threshold=threshold, path=figure, title=title)
        return
    assert p is not None
    right = p.argmax(axis=1) == truth
    decision_figure(right, p=np.max(p, axis=1), path=figure, title=title)
