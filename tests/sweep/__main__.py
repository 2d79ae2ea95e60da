"""`python -m tests.sweep --values 100000 --seed 7`: compare so many values, and show each difference once.

`--record DIR` writes what the package answers, as many values of each verb; `--compare DIR` asks the same calls again,
at another commit, and holds each cell against the record.
"""

import argparse
import time
from pathlib import Path

from tests.sweep import recorded
from tests.sweep.sampled import DRAWN
from tests.sweep.swept import Sweep


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument(
        "--values", type=int, help="how many values at least: 100,000 in all, or 20,000 a verb recorded"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--verb", action="append", choices=sorted(DRAWN), help="only these verbs")
    parser.add_argument("--show", type=int, default=20, help="how many differences are made small and shown")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write what the package answers")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="hold what the package answers against a record")
    given = parser.parse_args()
    verbs = given.verb or list(DRAWN)
    if given.record is not None:
        return record(given.record, verbs, given.seed, given.values or 20_000)
    if given.compare is not None:
        return compare(given.compare, verbs, given.show)
    return sweep(verbs, given.seed, given.values or 100_000, given.show)


def sweep(verbs: list[str], seed: int, values: int, show: int) -> int:
    began = time.process_time()
    found = Sweep(seed, verbs)
    while found.cells < values:
        found.step()
    for verb, cells in found.by_verb.items():
        print(f"{verb:>14} {cells:>9,} values, {found.differing[verb]:,} calls that differ")
    print(f"{'all':>14} {found.cells:>9,} values, in {time.process_time() - began:.0f} s of CPU")
    for text in found.shown(show):
        print(f"\n{text}")
    return 1 if found.differences else 0


def record(folder: Path, verbs: list[str], seed: int, values: int) -> int:
    for verb in verbs:
        began = time.process_time()
        cells = recorded.write(verb, seed, values, folder)
        print(f"{verb:>14} {cells:>9,} values, in {time.process_time() - began:.0f} s of CPU", flush=True)
    return 0


def compare(folder: Path, verbs: list[str], show: int) -> int:
    lacking = [verb for verb in verbs if not (folder / f"{verb}.parquet").exists()]
    if lacking == verbs:
        raise SystemExit(f"{folder} has no record of {', '.join(lacking)}: make one with --record.")
    differ = False
    for verb in (verb for verb in verbs if verb not in lacking):
        began = time.process_time()
        found = recorded.held(folder / f"{verb}.parquet")
        counts = f"{found.cells:>9,} values ({found.open_cells:,} open), {len(found.changes):,} differ"
        print(f"{verb:>14} {counts}, in {time.process_time() - began:.0f} s of CPU", flush=True)
        for text in found.shown(show):
            print(f"\n{text}")
        differ |= bool(found.changes)
    if lacking:
        print(f"no record of {', '.join(lacking)}")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
