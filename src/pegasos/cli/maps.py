"""`--map`: a map fitted to a sample of the file, and what is said of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pegasos.cli.batches import batches
from pegasos.cli.console import note
from pegasos.cli.data import Reading
from pegasos.data.formats import is_table
from pegasos.data.stream import name_of


def fit_map(estimator: Any, file: str, reading: Reading, features: int | None) -> None:
    """Fit the map of an estimator, if it wants one: a pass over the file before rows are learnt.

    What cannot be read twice leaves it to the first rows.
    """
    if not hasattr(estimator, "fit_map") or hasattr(estimator, "map_"):
        return
    if os.path.isfile(file):
        estimator.fit_map(_blocks(file, reading, features))
    elif file == "-" or os.path.exists(file):
        note(f"{name_of(file)}: the map is fitted to its first rows, since it is read once")


def _blocks(file: str, reading: Reading, features: int | None) -> Iterator[Any]:
    for batch in batches(file, reading, text_labels=False):
        if features is not None and not is_table(file):
            batch.X.resize((batch.X.shape[0], features))
        yield batch.X
        del batch


def facts_of(estimator: Any) -> dict[str, Any] | None:
    """What there is to say of a map, for a report; None if there is none."""
    made = getattr(estimator, "map_", None)
    if made is None:
        return None
    facts = {"kind": type(made).__name__, "columns": int(estimator.coef_.shape[1])}
    if hasattr(made, "gamma_"):
        return facts | {"degree": made.degree, "gamma": made.gamma_}
    facts["kernel"] = repr(made.kernel_)
    return facts | ({"prototypes": len(made.eigenvalues_)} if hasattr(made, "eigenvalues_") else {})


def in_words(facts: dict[str, Any]) -> str:
    """The same as a line of text."""
    if "degree" in facts:
        by = f"products of up to {facts['degree']} features, gamma {facts['gamma']:.4g}"
    else:
        made_of = f"{facts['prototypes']:,} prototypes" if "prototypes" in facts else "waves"
        by = f"{made_of} of {facts['kernel']}"
    return f"mapped to {facts['columns']:,} columns: {by}"
