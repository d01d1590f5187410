"""`pegasos threshold`: choose on a data file from which score on a model tells the second class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import say
from pegasos.cli.data import Reading, check_outputs


def threshold(
    model: opt.ModelFile,
    file: opt.DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The model file to write (default: none, only tell).",
        ),
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="At least this precision, and the highest recall.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(help="At least this recall, and the highest precision.")
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRUE:TOLD=COST",
            help="What a row of one class told the other costs; may be given for each pair.",
        ),
    ] = None,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    threads: opt.Threads = None,
    json_: opt.Json = False,
) -> None:
    """Choose the threshold of MODEL, of two classes, on FILE: rows that it has not learnt from.

    The second class is told where the score is above the threshold, by `predict` and `evaluate`
    alike. Precision and recall are those of the second class.
    """
    from pegasos.cli import apply
    from pegasos.data.errors import DataError
    from pegasos.model import file as model_file
    from pegasos.model.threshold import choose, target_of

    if output is not None:
        check_outputs([output], [file])
    loaded = model_file.load(model)
    if len(loaded.classes) != 2:
        raise ValueError(f"{model}: a threshold is for two classes, it has {len(loaded.classes)}")
    target = target_of(precision, recall, _costs(cost, loaded.classes), loaded.classes)
    reading = Reading(label, header, False, float64, sum_duplicates, threads=threads)
    reading = apply.reading_for(loaded, reading, zero_based)
    truth, scores, strangers = apply.known(loaded, file, reading)
    if strangers:
        raise DataError(f"{file}: class {strangers[0]} is unknown to the model; remove its rows")
    found = choose(scores[:, 0], truth == 1, None, target)
    if output is not None:
        decision = loaded.decision._replace(threshold=found.threshold)
        model_file.save(output, loaded._replace(decision=decision))
    facts = found._asdict() | {"class": loaded.classes.tolist()[1], "rows": len(truth)}
    facts["model"] = None if output is None else str(output)
    _report(facts, str(found), json_)


def _costs(given: list[str] | None, classes: Any) -> dict[tuple[Any, Any], float] | None:
    """Pairs of classes and their costs, from TRUE:TOLD=COST."""
    if not given:
        return None
    names = classes.tolist()
    pairs = {f"{true}:{told}": (true, told) for true in names for told in names}
    out = {}
    for text in given:
        pair, _, value = text.rpartition("=")
        try:
            out[pairs[pair]] = float(value)
        except (KeyError, ValueError):
            example = f"{names[1]}:{names[0]}=10"
            raise ValueError(f"--cost {text}: expected TRUE:TOLD=COST, as in {example}") from None
    return out


def _report(facts: dict[str, Any], words: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    say(f"class {facts['class']} from a {words} (on {facts['rows']:,} rows)")
    if facts["model"] is not None:
        say(f"model in {facts['model']}")
