"""Formats of data files by their names."""

from __future__ import annotations

import os
import re

_ENDINGS = {
    "csv": "csv",
    "tsv": "csv",
    "parquet": "parquet",
    "pegasos": "pegasos",
    "liblinear": "liblinear",
}


def format_of_name(path: str | os.PathLike[str]) -> str:
    """csv (also .tsv), parquet, pegasos or liblinear by the ending, else svmlight.

    An ending .gz, .bz2 or .xz says how text is packed, not what it is.
    """
    stem = re.sub(r"\.(gz|bz2|xz)$", "", os.fspath(path).lower())
    return _ENDINGS.get(stem.rpartition(".")[2] if "." in stem else "", "svmlight")


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is CSV or Parquet."""
    return format_of_name(path) in ("csv", "parquet")


def delimiter_of(path: str | os.PathLike[str]) -> str:
    """Between the fields of a CSV file."""
    stem = re.sub(r"\.(gz|bz2|xz)$", "", os.fspath(path).lower())
    return "\t" if stem.endswith(".tsv") else ","
