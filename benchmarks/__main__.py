"""python -m benchmarks [WHAT] [--sets a9a,imdb] [--C 0.1,1]

WHAT: speed, certify, startup, files, shuttle, bounds, uci or all.
"""

from __future__ import annotations

import argparse

from benchmarks import bounds, certify, files, shuttle, speed, startup, uci
from benchmarks.datasets import TALL, TEXT


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="speed", help="which to run (default: speed)")
    parser.add_argument("--sets", help="comma-separated data sets")
    parser.add_argument("--C", help="comma-separated values of C")
    parser.add_argument("--alone", action="store_true", help="certify without LIBLINEAR")
    given = parser.parse_args()
    sets = tuple(given.sets.split(",")) if given.sets else None
    Cs = tuple(float(c) for c in given.C.split(",")) if given.C else None
    if given.what in ("speed", "all"):
        speed.run(sets or TALL + TEXT, Cs or speed.CS)
    if given.what in ("certify", "all"):
        certify.run(sets or TALL, Cs or (0.01, 1.0, 100.0), given.alone)
    if given.what in ("startup", "all"):
        startup.run()
    if given.what in ("files", "all"):
        files.run()
    if given.what in ("shuttle", "all"):
        shuttle.run()
    if given.what in ("bounds", "all"):
        bounds.run()
    if given.what in ("uci", "all"):
        uci.run(sets if sets and given.what == "uci" else uci.SETS)


if __name__ == "__main__":
    main()
