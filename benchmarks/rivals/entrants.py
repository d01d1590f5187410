"""Who takes part, from which pinned packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.rivals import liblinear, ours, scikit, skglm, snapml, vowpal

_ARRAYS = ("numpy==2.4.6", "scipy==1.17.1")
_SKLEARN = ("scikit-learn==1.9.1", *_ARRAYS)
_NUMBA = "numba==0.68.1"  # LIBLINEAR's conversion from SciPy is several times faster with it


class Entrant(NamedTuple):
    """A solver; without packages it runs in the environment of the harness."""

    label: str
    fit: Callable
    ways: Callable[[str, float], list[list[dict]]]
    environment: str = ""
    packages: tuple[str, ...] = ()


ENTRANTS = {
    "pegasos": Entrant("pegasos", ours.fit, ours.two_threads),
    "pegasos-1": Entrant("pegasos, 1 thread", ours.fit, ours.one_thread),
    "proven": Entrant("pegasos, proven", ours.fit, ours.proven),
    "liblinear": Entrant(
        "LIBLINEAR",
        liblinear.fit,
        liblinear.ways,
        "liblinear",
        ("liblinear-official==2.50.0", *_ARRAYS, _NUMBA),
    ),
    "multicore": Entrant(
        "LIBLINEAR, 2 threads",
        liblinear.fit,
        liblinear.ways_multicore,
        "liblinear-multicore",
        ("liblinear-multicore==2.50.0", *_ARRAYS, _NUMBA),
    ),
    "sklearn": Entrant("scikit-learn", scikit.fit, scikit.ways, "scikit-learn", _SKLEARN),
    "sgd": Entrant("SGDClassifier", scikit.fit_sgd, scikit.ways_sgd, "scikit-learn", _SKLEARN),
    "skglm": Entrant("skglm", skglm.fit, skglm.ways, "skglm", ("skglm==0.5", *_SKLEARN, _NUMBA)),
    "snapml": Entrant("snapml", snapml.fit, snapml.ways, "snapml", ("snapml==1.17.2", *_SKLEARN)),
    "vw": Entrant(
        "Vowpal Wabbit", vowpal.fit, vowpal.ways, "vw", ("vowpalwabbit==9.11.9", *_SKLEARN)
    ),
}
OURS = tuple(name for name, entrant in ENTRANTS.items() if not entrant.packages)
RIVALS = tuple(name for name, entrant in ENTRANTS.items() if entrant.packages)


def pins(names: tuple[str, ...]) -> dict[str, str]:
    """Versions of the rivals' own packages."""
    return dict(ENTRANTS[n].packages[0].split("==") for n in names if n in RIVALS)
