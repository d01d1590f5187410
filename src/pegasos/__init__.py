"""pegasos: large-margin learning that proves how good its answer is."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "LinearSVC": "pegasos.estimators.linear",
    "LogisticRegression": "pegasos.estimators.linear",
    "SVC": "pegasos.estimators.kernel",
    "PolynomialSVC": "pegasos.estimators.polynomial",
    "PolynomialMap": "pegasos.maps.polynomial",
    "CellSVC": "pegasos.estimators.cells",
    "PegasosClassifier": "pegasos.estimators.online",
    "KernelPegasosClassifier": "pegasos.estimators.kernel_online",
    "FixedSizeSVC": "pegasos.estimators.fixed_size",
    "load_svmlight": "pegasos.data.files",
    "save_model": "pegasos.estimators.files",
    "load_model": "pegasos.estimators.files",
    "NystroemMap": "pegasos.maps.nystrom",
    "FourierMap": "pegasos.maps.fourier",
    "Certificate": "pegasos.objective.certificate",
}
__all__ = [*_HOMES, "kernels", "losses", "stopping"]


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that `import pegasos` costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in ("kernels", "losses", "stopping"):
        return import_module(f"pegasos.{name}")
    raise AttributeError(f"module 'pegasos' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
