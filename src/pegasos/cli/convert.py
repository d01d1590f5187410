"""`pegasos convert`: data files and models from one format to another."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import note
from pegasos.cli.data import Data, Reading, read, refuse_same
from pegasos.data.errors import DataError
from pegasos.data.formats import format_of_name


class Format(StrEnum):
    svmlight = "svmlight"
    csv = "csv"
    parquet = "parquet"
    pegasos = "pegasos"
    liblinear = "liblinear"


def convert(
    file: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="A data file of any format (- is LIBSVM text from standard input), a model, or a "
            "model of LIBLINEAR.",
        ),
    ],
    output: Annotated[
        str, typer.Argument(metavar="OUT", help="The file to write; - is standard output.")
    ],
    to: Annotated[
        Format | None,
        typer.Option(
            help="Format of OUT (default: by its ending, .csv, .tsv, .parquet, .pegasos or "
            ".liblinear, else svmlight).",
            show_default=False,
        ),
    ] = None,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Round values to float32 (default: float64).")
    ] = False,
    sum_duplicates: opt.SumDuplicates = False,
    threads: opt.Threads = None,
) -> None:
    """Convert a data file or a model to another format.

    Data: LIBSVM text, CSV, Parquet, binary. Models: ours, LIBLINEAR's.

    The binary form (.pegasos) is memory-mapped: it is read at once however large it is.
    """
    from pegasos.data import container
    from pegasos.data.atomic import check_writable

    if output != "-":
        refuse_same(output, file)
        check_writable(output)
    kind = to or Format(format_of_name(output))
    foreign = _is_liblinear(file)
    if foreign or container.kind_of(file) == "pegasos-model":
        if foreign and to is None and kind is Format.svmlight:  # any name will do for a model
            kind = Format.pegasos
        _convert_model(file, output, kind, foreign)
        return
    if kind is Format.liblinear:
        raise DataError(f"{file}: not a model: only models can become LIBLINEAR models")
    first = bool(zero_based)
    reading = Reading(label, header, first, not float32, sum_duplicates, threads=threads)
    _write(read(file, reading), output, kind, label or "label", first)


def _convert_model(file: str, output: str, kind: Format, foreign: bool) -> None:
    from pegasos.model import file as model_file
    from pegasos.model import liblinear

    if foreign:
        if kind is not Format.pegasos:
            raise DataError(f"{file}: a LIBLINEAR model can become a .pegasos file (--to pegasos)")
        model_file.save(output, liblinear.load(file))
        return
    if kind is not Format.liblinear:
        raise DataError(f"{file}: a model can become a .liblinear file (--to liblinear)")
    liblinear.save(output, model_file.load_linear(file, "the LIBLINEAR format"))


def _is_liblinear(file: str) -> bool:
    if file == "-" or not os.path.isfile(file):
        return False
    with open(file, "rb") as opened:
        return opened.read(11) == b"solver_type"


def _write(data: Data, output: str, kind: Format, label: str, zero_based: bool) -> None:
    from pegasos.data import writers

    if kind is Format.csv:
        writers.write_csv(output, data.X, data.y, data.names, label)
    elif kind is Format.parquet:
        writers.write_parquet(output, data.X, data.y, data.names, label)
    elif kind is Format.svmlight:
        if data.names:
            note(f"{output}: LIBSVM text has no names; columns are numbered in their order")
        writers.write_svmlight(output, data.X, data.y, 0 if zero_based else 1)
    else:
        _write_store(data, output)


def _write_store(data: Data, output: str) -> None:
    import numpy as np
    import scipy.sparse as sp

    from pegasos.data import store
    from pegasos.data.svmlight import Csr

    labels = np.asarray(data.y)
    if labels.dtype.kind not in "iuf" or np.any(labels != labels.astype(np.float64)):
        raise DataError(f"{output}: the binary form holds labels that are float64 numbers")
    if data.names:
        note(f"{output}: the binary form has no names; columns are numbered in their order")
    X: Any = sp.csr_array(data.X)
    store.save(output, Csr(labels.astype(np.float64), X.indptr, X.indices, X.data, X.shape[1]), {})
