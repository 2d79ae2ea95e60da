"""`python -m tests.sweep --values 100000 --seed 7`: compare so many values, and show each difference once."""

import argparse
import time

from tests.sweep.sampled import DRAWN
from tests.sweep.swept import Sweep


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("--values", type=int, default=100_000, help="how many values are compared at least")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--verb", action="append", choices=sorted(DRAWN), help="only these verbs")
    parser.add_argument("--show", type=int, default=20, help="how many differences are made small and shown")
    given = parser.parse_args()
    began = time.process_time()
    sweep = Sweep(given.seed, given.verb or list(DRAWN))
    while sweep.cells < given.values:
        sweep.step()
    for verb, cells in sweep.by_verb.items():
        print(f"{verb:>12} {cells:>9,} values, {sweep.differing[verb]:,} calls that differ")
    print(f"{'all':>12} {sweep.cells:>9,} values, in {time.process_time() - began:.0f} s of CPU")
    for text in sweep.shown(given.show):
        print(f"\n{text}")
    return 1 if sweep.differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
