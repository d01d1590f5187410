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


class Format(StrEnum):
    svmlight = "svmlight"
    csv = "csv"
    parquet = "parquet"
    pegasos = "pegasos"
    liblinear = "liblinear"


_ENDINGS = {
    ".csv": Format.csv,
    ".csv.gz": Format.csv,
    ".tsv": Format.csv,
    ".parquet": Format.parquet,
    ".pegasos": Format.pegasos,
    ".liblinear": Format.liblinear,
}


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
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    threads: opt.Threads = None,
) -> None:
    """Convert data between LIBSVM text, CSV, Parquet and the binary form, or a model from and to
    LIBLINEAR's text.

    The binary form (.pegasos) is memory-mapped: it is read at once however large it is.
    """
    from pegasos.data.atomic import check_writable

    if output != "-":
        refuse_same(output, file)
        check_writable(output)
    kind = to or _format_of(output)
    if _is_model(file):
        _convert_model(file, output, kind)
        return
    if kind is Format.liblinear:
        raise DataError(f"{file}: not a model: only models can become LIBLINEAR models")
    first = bool(zero_based)
    reading = Reading(label, header, first, float64, sum_duplicates, threads=threads)
    _write(read(file, reading), output, kind, label or "label", first)


def _format_of(output: str) -> Format:
    found = [kind for ending, kind in _ENDINGS.items() if output.lower().endswith(ending)]
    return found[0] if found else Format.svmlight


def _is_model(file: str) -> bool:
    """Whether a file is a model, ours or LIBLINEAR's, by its first bytes."""
    if file == "-" or not os.path.isfile(file):
        return False
    with open(file, "rb") as opened:
        start = opened.read(4096)
    ours = start[8:].startswith(b'{"__metadata__":{"pegasos":') and b"pegasos-model" in start
    return ours or start.startswith(b"solver_type")


def _convert_model(file: str, output: str, kind: Format) -> None:
    from pegasos.model import file as model_file
    from pegasos.model import liblinear

    with open(file, "rb") as opened:
        foreign = opened.read(11) == b"solver_type"
    if foreign:
        if kind is Format.liblinear:
            raise DataError(f"{file}: is a LIBLINEAR model already")
        model_file.save(output, liblinear.load(file))
        return
    if kind is not Format.liblinear:
        raise DataError(f"{file}: is a model; it can become a .liblinear file (--to liblinear)")
    liblinear.save(output, model_file.load(file))


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

    if np.asarray(data.y).dtype.kind not in "iuf":
        raise DataError(f"{output}: the binary form holds labels that are numbers")
    X: Any = sp.csr_array(data.X)
    labels = np.asarray(data.y, dtype=np.float64)
    store.save(output, Csr(labels, X.indptr, X.indices, X.data, X.shape[1]), {})
