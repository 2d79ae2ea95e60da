"""`python -m tests.benchmarks`: each piece of work in a fresh process, in turn, the median of several runs.

Figures are of the work alone: processor time of all threads, wall time, and the peak memory of the whole process.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

import polars_mlmetrics as mlm
from tests.benchmarks.data import write_log
from tests.benchmarks.work import INLINE, QUERIES, forty_metrics

Figures = dict[str, float]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large log (default: 10 million)")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each piece of work (default: 5)")
    parser.add_argument("--one", nargs=2, metavar=("WORK", "LOG"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure_here(*asked.one)))
    else:
        compare(asked.rows, asked.runs)


def compare(rows: int, runs: int) -> None:
    """Print every comparison as a table."""
    print(f"polars {pl.__version__}, Python {platform.python_version()}, {pl.thread_pool_size()} threads")
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large.parquet"), Path(folder, "small.parquet")
        write_log(large, rows)
        write_log(small, rows // 10)
        print(f"\n{rows:,} rows by model and fold, from parquet, median of {runs}")
        show(measured(["floor", "fused"], large, runs), against="floor")
        print(f"\n{rows // 10:,} rows in 10 groups, inside agg, median of {runs}")
        show(measured([f"inline {name}" for name in INLINE], small, runs))
        print(f"\nseconds to import and to plan, median of {runs}")
        show(measured(["import polars", "import polars_mlmetrics", "plan 40 metrics"], small, runs))


def measured(works: list[str], log: Path, runs: int) -> dict[str, Figures]:
    """The medians of several runs, the pieces of work taking turns so that the machine's moods meet all alike."""
    told: dict[str, list[Figures]] = {work: [] for work in works}
    for _ in range(runs + 1):
        for work in works:
            command = [sys.executable, "-m", "tests.benchmarks", "--one", work, str(log)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            told[work].append(json.loads(done.stdout))
    # The first round warms the file cache and does not count.
    return {
        work: {figure: statistics.median(run[figure] for run in figures[1:]) for figure in figures[0]}
        for work, figures in told.items()
    }


def show(table: dict[str, Figures], against: str | None = None) -> None:
    """Print medians, and the ratio of processor time to a named row's."""
    for work, figures in table.items():
        ratio = f"  {figures['cpu'] / table[against]['cpu']:5.2f} x cpu" if against else ""
        print(
            f"  {work:26} cpu {figures['cpu']:6.3f} s  wall {figures['wall']:6.3f} s  {figures['peak']:6.0f} MB{ratio}"
        )


def measure_here(work: str, log: str) -> Figures:
    """Time one piece of work in this process."""
    if work.startswith("import "):
        return seconds_to_import(work.removeprefix("import "))
    task = planning() if work == "plan 40 metrics" else QUERIES[work](Path(log)).collect
    return timed(task)


def planning() -> Callable[[], object]:
    """Planning forty metrics on a small frame."""
    frame = pl.LazyFrame({"sample": [1], "label": ["a"], "score": [0.5], "truth": [True], "model": ["m"]})
    return lambda: mlm.evaluate(frame, *[metric.alias(str(i)) for i, metric in enumerate(forty_metrics())], by="model")


def timed(task: Callable[[], object]) -> Figures:
    """Processor seconds, wall seconds and peak memory of a task."""
    before, start = processor_seconds(), time.perf_counter()
    task()
    wall = time.perf_counter() - start
    return {"cpu": processor_seconds() - before, "wall": wall, "peak": peak_memory()}


def peak_memory() -> float:
    """The most memory this process has held, in MB, as Linux tells it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def processor_seconds() -> float:
    """What all threads of this process have used so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def seconds_to_import(module: str) -> Figures:
    """The time an import takes in a new interpreter; polars is imported before it, where it is not itself asked for."""
    first = "" if module == "polars" else "import polars;"
    code = f"{first}import time; t=time.perf_counter(); c=time.process_time(); import {module}; "
    code += "print(time.process_time()-c, time.perf_counter()-t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    cpu, wall = map(float, done.stdout.split())
    return {"cpu": cpu, "wall": wall, "peak": 0.0}


if __name__ == "__main__":
    main()
