"""`pegasos predict`: a model and a data file in, labels out."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.data import Reading, refuse_same


def predict(
    model: opt.ModelFile,
    file: opt.DataFile,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Where the labels go; - is standard output.")
    ] = "-",
    scores: Annotated[
        bool, typer.Option("--scores", help="Add the scores of the row to the label.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Add the probability of each class (of models trained with --probability, and "
            "of linear ones with --loss logistic).",
        ),
    ] = False,
    names: Annotated[
        bool,
        typer.Option(
            "--names",
            help="Begin with a line of names: label, score:CLASS (or FIRST:SECOND of a pair), "
            "probability:CLASS.",
        ),
    ] = False,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="The lines of LIBSVM text begin with no label.")
    ] = False,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    threads: opt.Threads = None,
) -> None:
    """Predict the class of each row of FILE, in bounded memory.

    One line per row, in order. Features of LIBSVM text that the model has never seen are ignored,
    and counted in a note; the columns of a table must be those of the model.
    """
    from pegasos.cli import apply
    from pegasos.data.atomic import check_writable, writing
    from pegasos.model import file as model_file

    if output != "-":
        refuse_same(output, model, file)
        check_writable(output)
    loaded = model_file.load(model)
    if probabilities and not apply.has_probabilities(loaded):
        how = "train with --probability, or without --map by --loss logistic; not --online"
        raise ValueError(f"{model}: a {loaded.kind} has no probabilities; {how}")
    reading = Reading(label, header, False, float64, sum_duplicates, threads=threads)
    reading = apply.reading_for(loaded, reading, zero_based)
    labels = [str(name).encode() for name in loaded.classes.tolist()]
    with writing(output) as out:
        if names:
            head = [f"score:{name}" for name in apply.score_names(loaded) if scores]
            head += [f"probability:{name}" for name in loaded.classes.tolist() if probabilities]
            out.write(" ".join(["label", *head]).encode() + b"\n")
        for block in apply.scored(loaded, file, reading, not unlabelled):
            numbers = apply.classes_of(loaded, block.scores).tolist()
            columns: list[Any] = [[labels[k] for k in numbers]]
            if scores:
                columns += _texts(block.scores)
            if probabilities:
                columns += _texts(apply.probabilities_of(loaded, block.scores))
            lines = columns[0] if len(columns) == 1 else map(b" ".join, zip(*columns, strict=True))
            out.write(b"\n".join(lines) + b"\n")


def _texts(numbers: Any) -> list[list[bytes]]:
    """Columns of numbers as text that reads back to the same bits."""
    return [[repr(value).encode() for value in column] for column in numbers.T.tolist()]
