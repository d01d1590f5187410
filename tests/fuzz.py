"""Random damage to text lines and model files, and what must hold for whatever comes out of it.

    python tests/fuzz.py parser 1000000 --seed 7
    python tests/fuzz.py model 1000000

A parser input is one line: the fast reader must agree with the grammar, number by number. A model
input is one file: it is refused in one line that names it, or gives a model that is sound. What
breaks a law is kept in tests/finds, which the ordinary tests replay.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path

from fuzz_files import fuzz_model
from fuzz_text import fuzz_parser

FINDS = Path(__file__).parent / "finds"
WORK = {"parser": fuzz_parser, "model": fuzz_model}


def main() -> None:
    parser = argparse.ArgumentParser(description="Look for inputs that break a law.")
    parser.add_argument("what", choices=list(WORK))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    done, refused, found, begin, shown = 0, 0, 0, time.perf_counter(), 0.0
    for n, bad, finds in WORK[args.what](random.Random(args.seed), args.count):
        done, refused, found = done + n, refused + bad, found + len(finds)
        for raw in finds:
            (FINDS / f"{args.what}-{hashlib.sha256(raw).hexdigest()[:12]}").write_bytes(raw)
        seconds = time.perf_counter() - begin
        if seconds > shown + 5 or done >= args.count:
            shown = seconds
            line = f"{done} inputs, {refused} refused, {found} finds, {seconds:.0f} s"
            print(line, file=sys.stderr, flush=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
