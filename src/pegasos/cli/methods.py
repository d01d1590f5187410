"""Which estimator the options of `pegasos train` ask for; its parameters are checked before any
data is read.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import typer

NEVER_ONLINE = ("C", "tol", "max_time", "max_iter", "solver", "kernel", "probability", "isotonic")
ONLY_ONLINE = ("classes", "features", "checkpoint_rows")
SEEN_ONCE = "not with --online: a stream is seen once, in its order, and weighs losses by --lam"
OF_KERNELS = ("gamma", "degree", "coef0", "cache_size")
NEVER_KERNELS = ("center", "checkpoint", "checkpoint_every")
OF_MAPS = {
    "nystroem": ("components", "gamma", "cache_size"),
    "fourier": ("components", "gamma", "cache_size"),
    "polynomial": ("gamma", "degree", "coef0"),
}
_PARAMETERS = {"components": "m"}


def check_options(
    context: typer.Context, online: bool, kernel: str | None, map_: str | None
) -> None:
    """Refuse options that do not go together."""
    if online:
        _refuse(context, NEVER_ONLINE, SEEN_ONCE)
    else:
        _refuse(context, ONLY_ONLINE, "needs --online")
    if online and map_ is None:
        _refuse(context, ("seed",), SEEN_ONCE)
    elif online:
        _refuse(context, ("cache_size",), "not with --online, which maps block by block")
    if map_ is not None:
        _refuse(context, ("kernel",), "not with --map, which has a kernel of its own")
        _refuse(context, ("center",), "not with --map: weights of two maps are not comparable")
        others = {name for names in OF_MAPS.values() for name in names} - set(OF_MAPS[map_])
        _refuse(context, tuple(sorted(others)), f"not with --map {map_}")
        return
    _refuse(context, ("components",), "needs --map")
    if kernel is None:
        _refuse(context, OF_KERNELS, "needs --kernel or --map")
    else:
        _refuse(context, NEVER_KERNELS, "not with --kernel, but for linear classifiers")


def given(context: typer.Context, name: str) -> bool:
    """Whether an option is there, not its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse(context: typer.Context, names: tuple[str, ...], why: str) -> None:
    """Options of another way to train."""
    for name in names:
        if given(context, name):
            option = "-C" if name == "C" else "--" + name.replace("_", "-")
            raise ValueError(f"{option}: {why}")


def loss_of(name: str, tau: float) -> Any:
    """A loss as estimators know it."""
    from pegasos.losses import Pinball

    return Pinball(tau) if name == "pinball" else name


def source_of(center: Path | None) -> Any:
    """The model of --center, read before any data is."""
    from pegasos.estimators.transfer import source_of

    return None if center is None else source_of(center)


def kernel_machine(kernel: str, tau: float, settings: dict[str, Any]) -> Any:
    from pegasos import SVC

    known = {"gaussian": "rbf", "polynomial": "poly"}
    if settings["loss"] not in ("hinge", "pinball"):
        raise ValueError(f"--loss {settings['loss']}: kernel machines have hinge or pinball loss")
    settings |= {"kernel": known.get(kernel, kernel), "tau": tau}
    return _checked(SVC(**settings | {"gamma": number_or_name(settings["gamma"])}))


def mapped(map_: str, context: typer.Context, settings: dict[str, Any]) -> Any:
    """A linear classifier behind a map; of the map what is not given is the estimator's default."""
    from pegasos import FixedSizeSVC, PolynomialSVC

    own: dict[str, Any] = {
        name: context.params[name] for name in OF_MAPS[map_] if given(context, name)
    }
    if "gamma" in own:
        own["gamma"] = number_or_name(own["gamma"])
    own = {_PARAMETERS.get(name, name): value for name, value in own.items()}
    if map_ == "polynomial":
        model: Any = PolynomialSVC(**settings, **own)
    else:
        model = FixedSizeSVC(map=map_, **settings, **own)
    model._new_map()
    return _checked(model)


def linear(settings: dict[str, Any], online: bool) -> Any:
    from pegasos import LinearSVC, LogisticRegression, PegasosClassifier

    if online:
        return _checked(PegasosClassifier(**settings))
    if settings["loss"] != "logistic":
        return _checked(LinearSVC(**settings))
    if settings.pop("probability"):
        raise ValueError("a logistic model has probabilities: drop --probability and --isotonic")
    return _checked(LogisticRegression(**{k: v for k, v in settings.items() if k != "loss"}))


def number_or_name(value: str) -> float | str:
    with contextlib.suppress(ValueError):
        return float(value)
    return value


def _checked(model: Any) -> Any:
    model._check_parameters()
    return model
