"""Options that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_DATA = "Data file"

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Data: LIBSVM text (also .gz, .bz2, .xz), .csv, .parquet or .pegasos; - reads LIBSVM "
        "text from standard input.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="The column that holds the class, for CSV and Parquet.",
        rich_help_panel=_DATA,
    ),
]
Header = Annotated[
    bool,
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV file begins with names; without, columns are named f0, f1, …",
        rich_help_panel=_DATA,
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether the first feature of LIBSVM text has index 0 (default: 1; to predict, as "
        "in training).",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
Float64 = Annotated[
    bool,
    typer.Option("--float64", help="Keep values in float64, not float32.", rich_help_panel=_DATA),
]
SumDuplicates = Annotated[
    bool,
    typer.Option(
        "--sum-duplicates",
        help="Sum the values of an index that occurs twice in a line (default: an error).",
        rich_help_panel=_DATA,
    ),
]
MaxFeatures = Annotated[
    int | None,
    typer.Option(
        "--max-features",
        min=1,
        help="Refuse lines of LIBSVM text with more features.",
        rich_help_panel=_DATA,
    ),
]
Cache = Annotated[
    bool,
    typer.Option(
        "--cache/--no-cache",
        help="Keep parsed text in the user's cache directory, so that the next run starts at once.",
        rich_help_panel=_DATA,
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads (default: all cores).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
