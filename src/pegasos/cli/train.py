"""`pegasos train`: a data file in, a certified model file out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.data import Reading, check_outputs, kept_of
from pegasos.cli.methods import (
    check_options,
    given,
    kernel_machine,
    linear,
    loss_of,
    mapped,
    source_of,
)

_STOP, _STREAM, _KERNEL = "Stopping", "Streams", "Kernels and maps"


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


class MapName(StrEnum):
    nystroem = "nystroem"
    fourier = "fourier"
    polynomial = "polynomial"


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
            help="l(z); logistic of a linear classifier gives probabilities (default: "
            "squared_hinge; online: hinge).",
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
    isotonic: Annotated[
        bool,
        typer.Option(
            "--isotonic", help="The same, by isotonic regression: any shape, from many rows."
        ),
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
        typer.Option(
            min=0, max=2**32 - 1, help="Of the order of rows, and of maps.", rich_help_panel=_STOP
        ),
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
    map_: Annotated[
        MapName | None,
        typer.Option(
            "--map",
            help="Train a linear classifier behind a map: the Gaussian kernel by prototypes or by "
            "random waves (FixedSizeSVC), or products of features (PolynomialSVC); for many rows, "
            "and with --online for streams.",
            show_default=False,
            rich_help_panel=_KERNEL,
        ),
    ] = None,
    components: Annotated[
        int,
        typer.Option(min=1, help="Prototypes, or columns of waves.", rich_help_panel=_KERNEL),
    ] = 500,
    gamma: Annotated[
        str,
        typer.Option(
            help="A number, scale: 1 / (features * variance), or auto: 1 / features.",
            rich_help_panel=_KERNEL,
        ),
    ] = "scale",
    degree: Annotated[
        int, typer.Option(help="Of polynomials (of --map: 2).", rich_help_panel=_KERNEL)
    ] = 3,
    coef0: Annotated[
        float,
        typer.Option(
            help="Constant of polynomials (of --map: 1) and sigmoids.", rich_help_panel=_KERNEL
        ),
    ] = 0.0,
    cache_size: Annotated[
        float,
        typer.Option(help="Megabytes for kernel values or mapped rows.", rich_help_panel=_KERNEL),
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
    """Train a classifier on FILE and write it to MODEL: linear, or with --kernel or --map.

    Minimises 1/2 |w|^2 + C * sum_i l(y_i (w.x_i + b)) and stops when the relative duality gap,
    (objective - proven lower bound) / objective, is at most --tol. More than two classes are
    several such problems (--multi-class).
    """
    check_outputs([model, checkpoint], [file, center])
    check_options(context, online, kernel, map_)
    reading = Reading(
        label, header, bool(zero_based), float64, sum_duplicates, max_features, cache, threads
    )
    settings: dict[str, Any] = {"lam": lam, "intercept": intercept.value, "n_threads": threads}
    settings["class_weight"] = "balanced" if balanced else None
    settings |= {} if multi_class is None else {"multi_class": multi_class.value}
    loss = loss or (Loss.hinge if online or kernel else Loss.squared_hinge)
    settings["loss"] = loss.value if kernel else loss_of(loss.value, tau)
    settings |= {} if online and map_ is None else {"random_state": seed}
    if online:
        from pegasos.estimators.online import STREAM_LAM

        settings["lam"] = STREAM_LAM if lam is None else lam
    else:
        settings |= {"C": C, "tol": tol, "max_time": max_time, "max_iter": max_iter}
        settings |= {"solver": solver.value, "probability": "isotonic" if isotonic else probability}
    if kernel is not None:
        settings |= {"gamma": gamma, "degree": degree, "coef0": coef0, "cache_size": cache_size}
        settings |= {} if given(context, "max_iter") else {"max_iter": -1}
        estimator = kernel_machine(kernel.value, tau, settings)
    elif map_ is not None:
        estimator = mapped(map_.value, context, settings)
    else:
        estimator = linear(settings | {"center": source_of(center)}, online)
    if online:
        from pegasos.cli.online import Plan, train_online

        keeping = (checkpoint, checkpoint_every, checkpoint_rows)
        plan = Plan(file, model, reading, kept_of(reading, file), classes, features, *keeping)
        train_online(plan, estimator, json_)
        return
    from pegasos.cli.fitting import Outputs, report, trained

    outputs = Outputs(model, checkpoint, checkpoint_every)
    report(trained(file, reading, estimator, outputs), json_)
