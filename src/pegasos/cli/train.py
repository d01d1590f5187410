"""`pegasos train`: a data file in, a certified model file out."""

from __future__ import annotations

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.data import Reading, check_outputs, kept_of

_STOP, _STREAM, _KERNEL = "Stopping", "Streams", "Kernels"
ONLY_KERNELS = ("gamma", "degree", "coef0", "cache_size")
NEVER_KERNELS = ("center", "checkpoint", "checkpoint_every")
NEVER_ONLINE = ("C", "tol", "max_time", "max_iter", "solver", "seed", "kernel", "probability")
ONLY_ONLINE = ("classes", "features", "checkpoint_rows")
SEEN_ONCE = "not with --online: a stream is seen once, in its order, and weighs losses by --lam"


class Loss(StrEnum):
    squared_hinge = "squared_hinge"
    hinge = "hinge"
    pinball = "pinball"
    logistic = "logistic"


class Intercept(StrEnum):
    free = "free"
    penalised = "penalised"
    none = "none"


class SolverName(StrEnum):
    auto = "auto"
    dual = "dual"
    newton = "newton"
    newton_cg = "newton_cg"
    interior = "interior"
    working_set = "working_set"
    smo = "smo"


class MultiClass(StrEnum):
    ovr = "ovr"
    ovo = "ovo"
    crammer_singer = "crammer_singer"


class KernelName(StrEnum):
    gaussian = "gaussian"
    polynomial = "polynomial"
    linear = "linear"
    laplacian = "laplacian"
    sigmoid = "sigmoid"


def train(
    context: typer.Context,
    file: opt.DataFile,
    model: Annotated[
        Path,
        typer.Option("-m", "--model", help="The model file to write; an old one is replaced."),
    ],
    loss: Annotated[
        Loss | None,
        typer.Option(
            help="l(z); logistic gives probabilities (default: squared_hinge; online: hinge).",
            show_default=False,
        ),
    ] = None,
    C: Annotated[float, typer.Option("-C", "--C", help="Weight of the losses.")] = 1.0,
    lam: Annotated[
        float | None,
        typer.Option(
            "--lam",
            help="In place of C: lam/2 |w|^2 + mean loss, lam = 1 / (C rows); online: 1e-4.",
        ),
    ] = None,
    tau: Annotated[float, typer.Option(help="Of the pinball loss, from 0 to 1.")] = 0.5,
    intercept: Annotated[
        Intercept, typer.Option(help="b without a penalty, with one, or none.")
    ] = Intercept.free,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Weight classes by 1 / their frequency.")
    ] = False,
    multi_class: Annotated[
        MultiClass | None,
        typer.Option(
            help="Of more than two classes: each against the rest (ovr, the default), each pair "
            "(ovo, the default with --kernel), or all in one problem (crammer_singer).",
            show_default=False,
        ),
    ] = None,
    probability: Annotated[
        bool,
        typer.Option("--probability", help="Add probabilities, by five further fits of parts."),
    ] = False,
    center: Annotated[
        Path | None,
        typer.Option(
            help="A model file w0: the penalty is 1/2 |w - w0|^2 (transfer); features are matched "
            "by name, classes by label."
        ),
    ] = None,
    tol: Annotated[
        float,
        typer.Option(
            help="Stop when it is proven that the best possible objective is at most this share "
            "lower.",
            rich_help_panel=_STOP,
        ),
    ] = 1e-3,
    max_time: Annotated[
        float | None,
        typer.Option(help="Most seconds for the fit (default: no limit).", rich_help_panel=_STOP),
    ] = None,
    max_iter: Annotated[int, typer.Option(help="Most epochs.", rich_help_panel=_STOP)] = 1000,
    solver: Annotated[
        SolverName, typer.Option(help="auto chooses and says why.", rich_help_panel=_STOP)
    ] = SolverName.auto,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**32 - 1, help="Of the order of rows.", rich_help_panel=_STOP),
    ] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep the state of the fit in this file; if it is there, go on from it.",
            rich_help_panel=_STOP,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=_STOP)
    ] = 30.0,
    online: Annotated[
        bool,
        typer.Option(
            "--online",
            help="Learn from a stream by Pegasos: one pass, in constant memory.",
            rich_help_panel=_STREAM,
        ),
    ] = False,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="All classes of the stream (default: those of its first block).",
            rich_help_panel=_STREAM,
        ),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Features of the stream (default: weights grow as indices appear).",
            rich_help_panel=_STREAM,
        ),
    ] = None,
    checkpoint_rows: Annotated[
        int | None,
        typer.Option(
            min=1, help="Also write the checkpoint after so many rows.", rich_help_panel=_STREAM
        ),
    ] = None,
    kernel: Annotated[
        KernelName | None,
        typer.Option(
            help="Train an exact kernel machine (SVC), not a linear classifier.",
            show_default=False,
            rich_help_panel=_KERNEL,
        ),
    ] = None,
    gamma: Annotated[
        str,
        typer.Option(
            help="A number, scale: 1 / (features * variance), or auto: 1 / features.",
            rich_help_panel=_KERNEL,
        ),
    ] = "scale",
    degree: Annotated[int, typer.Option(help="Of polynomials.", rich_help_panel=_KERNEL)] = 3,
    coef0: Annotated[
        float, typer.Option(help="Constant of polynomials and sigmoids.", rich_help_panel=_KERNEL)
    ] = 0.0,
    cache_size: Annotated[
        float, typer.Option(help="Megabytes for kernel values.", rich_help_panel=_KERNEL)
    ] = 1000.0,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    max_features: opt.MaxFeatures = None,
    cache: opt.Cache = True,
    threads: opt.Threads = None,
    json_: opt.Json = False,
) -> None:
    """Train a classifier on FILE and write it to MODEL: linear, or with --kernel.

    Minimises 1/2 |w|^2 + C * sum_i l(y_i (w.x_i + b)) and stops when the relative duality gap,
    (objective - proven lower bound) / objective, is at most --tol. More than two classes are
    several such problems (--multi-class).
    """
    check_outputs([model, checkpoint], [file, center])
    if online:
        _refuse(context, NEVER_ONLINE, SEEN_ONCE)
    else:
        _refuse(context, ONLY_ONLINE, "needs --online")
    if kernel is None:
        _refuse(context, ONLY_KERNELS, "needs --kernel")
    else:
        _refuse(context, NEVER_KERNELS, "not with --kernel, but for linear classifiers")
    reading = Reading(
        label, header, bool(zero_based), float64, sum_duplicates, max_features, cache, threads
    )
    settings: dict[str, Any] = {"lam": lam, "intercept": intercept.value, "n_threads": threads}
    settings["class_weight"] = "balanced" if balanced else None
    settings |= {} if multi_class is None else {"multi_class": multi_class.value}
    if online:
        from pegasos.cli.online import Plan, train_online
        from pegasos.estimators.online import STREAM_LAM

        settings["lam"] = STREAM_LAM if lam is None else lam
        settings["loss"] = _loss_object(loss or Loss.hinge, tau)
        keeping = (checkpoint, checkpoint_every, checkpoint_rows)
        settings["center"] = _source(center)
        plan = Plan(file, model, reading, kept_of(reading, file), classes, features, *keeping)
        train_online(plan, _online_estimator(settings), json_)
        return
    settings |= {"C": C, "tol": tol, "max_time": max_time, "max_iter": max_iter}
    settings |= {"solver": solver.value, "random_state": seed, "probability": probability}
    if kernel is not None:
        settings |= {"gamma": gamma, "degree": degree, "coef0": coef0, "cache_size": cache_size}
        if not _given(context, "max_iter"):
            settings["max_iter"] = -1
        estimator = _kernel_machine(kernel, loss or Loss.hinge, tau, settings)
    else:
        settings["center"] = _source(center)
        estimator = _estimator(loss or Loss.squared_hinge, tau, settings)
    from pegasos.cli.fitting import Outputs, report, trained

    outputs = Outputs(model, checkpoint, checkpoint_every)
    report(trained(file, reading, estimator, outputs), json_)


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse(context: typer.Context, names: tuple[str, ...], why: str) -> None:
    """Options of another way to train."""
    for name in names:
        if _given(context, name):
            option = "-C" if name == "C" else "--" + name.replace("_", "-")
            raise ValueError(f"{option}: {why}")


def _kernel_machine(kernel: KernelName, loss: Loss, tau: float, settings: dict[str, Any]) -> Any:
    from pegasos import SVC

    known = {KernelName.gaussian: "rbf", KernelName.polynomial: "poly"}
    if loss not in (Loss.hinge, Loss.pinball):
        raise ValueError(f"--loss {loss.value}: kernel machines have hinge or pinball loss")
    with contextlib.suppress(ValueError):
        settings["gamma"] = float(settings["gamma"])
    settings |= {"kernel": known.get(kernel, kernel.value), "loss": loss.value, "tau": tau}
    model = SVC(**settings)
    model._check_parameters()
    return model


def _source(center: Path | None) -> Any:
    """The model of --center, read before any data is."""
    from pegasos.estimators.transfer import source_of

    return None if center is None else source_of(center)


def _estimator(loss: Loss, tau: float, settings: dict[str, Any]) -> Any:
    """The estimator of the command; its parameters are checked before any data is read."""
    from pegasos import LinearSVC, LogisticRegression

    if loss is Loss.logistic:
        if settings.pop("probability"):
            raise ValueError("--probability: a logistic model has probabilities without it")
        model: Any = LogisticRegression(**settings)
    else:
        model = LinearSVC(loss=_loss_object(loss, tau), **settings)
    model._check_parameters()
    return model


def _loss_object(loss: Loss, tau: float) -> Any:
    """The loss as estimators know it."""
    from pegasos.losses import Pinball

    return Pinball(tau) if loss is Loss.pinball else loss.value


def _online_estimator(settings: dict[str, Any]) -> Any:
    from pegasos import PegasosClassifier

    model = PegasosClassifier(**settings)
    model._check_parameters()
    return model
