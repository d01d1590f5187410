"""python -m benchmarks [WHAT] [options]

race: time to within eps of the optimum against every rival, a short version of some minutes or,
with --full, every set, C and loss (--loss and --eps choose; one of each takes about ten minutes
when the machine is quiet). certify: proven gaps on every tall set. startup: what a second process
pays. files: reading and predicting from a large text. shuttle, uci: figure and table of the
pinball paper.
bounds: the theory of Pegasos, measured. stochastic: PegasosClassifier against SGDClassifier.
many: one-vs-all, a path of C, folds against LIBLINEAR. growth: synthetic text up to 4 million
rows. passes: an epoch and a prediction in units of X @ w. threads: two against one. kernels: SVC
against LIBSVM and scikit-learn-intelex. kernel_online: kernel Pegasos on a budget. polynomial:
linear, degree 2 and the Gaussian kernel at the parameters of Chang et al. cells: CellSVC on all of
covtype.
multiclass: several classes beside scikit-learn, --sets and --modes for some of them.
fixed_size: the tables of the pinball paper with its map. selection, mapping, covtype_map:
prototypes, speed and all of covtype. transfer: a few labels and a related model. probability:
log-loss beside CalibratedClassifierCV. imbalance: one row in a hundred, with and without a chosen
threshold. Each rewrites its tables under benchmarks/results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from benchmarks import (
    bounds,
    cells,
    certify,
    files,
    fixed_size,
    growth,
    imbalance,
    kernel_online,
    kernel_race,
    kernel_sets,
    many,
    maps,
    multiclass,
    passes,
    polynomial,
    probability,
    race,
    shuttle,
    startup,
    stochastic,
    threads,
    transfer,
    uci,
)
from benchmarks.datasets import ALL, TALL
from benchmarks.objective import LOSSES
from benchmarks.rivals.entrants import RIVALS


def main() -> None:
    given = _parser().parse_args()
    if given.what == "race":
        plan = race.FULL if given.full else race.Plan()
        options = {k: v for k in plan._fields if (v := getattr(given, k)) is not None}
        race.run(plan._replace(**options))
    elif given.what == "certify":
        certify.run(given.sets or TALL, given.Cs or (0.01, 1.0, 100.0), given.alone)
    elif given.what == "kernels":
        kernel_race.run(given.sets or kernel_sets.SETS)
    elif given.what == "polynomial":
        polynomial.run(given.sets or polynomial.SETS)
    elif given.what == "uci":
        uci.run(given.sets or uci.SETS)
    elif given.what == "fixed_size":
        fixed_size.run(given.sets or fixed_size.SETS)
    elif given.what == "multiclass":
        multiclass.run(given.sets, given.modes, given.Cs)
    elif given.what == "probability":
        probability.run(given.sets or probability.SETS)
    elif given.what == "many":
        many.run(given.sets or many.SETS)
    elif given.what == "selection":
        maps.selection(given.sets or maps.SETS)
    else:
        {
            "startup": startup.run,
            "files": files.run,
            "shuttle": shuttle.run,
            "bounds": bounds.run,
            "stochastic": stochastic.run,
            "growth": growth.run,
            "passes": passes.run,
            "threads": threads.run,
            "kernel_online": kernel_online.run,
            "cells": cells.run,
            "imbalance": imbalance.run,
            "mapping": maps.mapping,
            "covtype_map": maps.covtype,
            "transfer": transfer.run,
        }[given.what]()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = ("race", "certify", "startup", "files", "shuttle", "bounds", "uci", "stochastic")
    what += ("many", "growth", "passes", "kernels", "kernel_online", "polynomial", "cells")
    what += ("fixed_size", "selection", "mapping", "covtype_map", "multiclass", "transfer")
    what += ("probability", "imbalance", "threads")
    known = (*ALL, *fixed_size.SETS, *kernel_sets.SETS, *multiclass.SETS, *probability.SETS)
    parser.add_argument("what", nargs="?", default="race", choices=what)
    parser.add_argument(
        "--sets",
        type=_names(known),
        help=f"some of {','.join(ALL)}",
    )
    parser.add_argument("--C", dest="Cs", type=_numbers, help="values of C, as in 0.1,1")
    modes = tuple(multiclass.MODES)
    parser.add_argument(
        "--modes", type=_names(modes), help=f"multiclass: some of {','.join(modes)}"
    )
    parser.add_argument("--full", action="store_true", help="race: all sets, C and losses")
    parser.add_argument(
        "--loss", dest="losses", type=_names(tuple(LOSSES)), help=f"some of {','.join(LOSSES)}"
    )
    parser.add_argument("--eps", type=_positive, help="race: distance to the optimum, as a share")
    parser.add_argument("--rivals", type=_names(RIVALS), help=f"some of {','.join(RIVALS)}")
    parser.add_argument("--repeats", type=int, help="race: runs at the setting that gets there")
    parser.add_argument("--patience", type=_positive, help="race: seconds for a way to get there")
    parser.add_argument("--alone", action="store_true", help="certify without LIBLINEAR")
    return parser


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def some(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return some


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_positive(part) for part in text.split(","))


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


if __name__ == "__main__":
    main()
