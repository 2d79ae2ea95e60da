"""A piece of work in a fresh process: what it took, and what it gave.

The parent starts a process for every run, one at a time; the child imports its peer, and only then looks at the clock.
"""

import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import polars as pl

from tests.benchmarks.comparison import Comparison, Figures, Outcome, Row
from tests.benchmarks.data import Log, Recipe, stored
from tests.benchmarks.peers import PEERS

BLOCK = 1 << 24


def measured(comparison: Comparison, failures: dict[Row, str], folder: Path, runs: int) -> dict[str, Outcome]:
    """The medians of several runs by the names of the rows, which take turns: a mood of the machine meets all alike."""
    outcomes: dict[str, Outcome] = {row.name: failures[row] for row in comparison.rows if row in failures}
    told: dict[str, list[Figures]] = {}
    for row in comparison.rows:
        _into_cache(stored(row.log, folder))
    for _ in range(runs):
        for row in comparison.rows:
            if row.name not in outcomes:
                run = one_run(row, folder)
                if isinstance(run, str):
                    outcomes[row.name] = run
                else:
                    told.setdefault(row.name, []).append(run)
    for name, figures in told.items():
        if name not in outcomes:
            outcomes[name] = {figure: statistics.median(run[figure] for run in figures) for figure in figures[0]}
    return outcomes


def _into_cache(log: Log) -> None:
    """Read the files once, so that the first to work on them does not pay for the disk."""
    for file in log.files:
        with Path(file).open("rb") as opened:
            while opened.read(BLOCK):
                pass


def one_run(row: Row, folder: Path, answer: Path | None = None) -> Outcome:
    """Run a piece of work in a process of its own; with a file for the answer, its table is written there."""
    told = json.dumps({"row": asdict(row), "folder": str(folder), "answer": str(answer) if answer else None})
    command = [sys.executable, "-m", "tests.benchmarks", "--one", told]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    if done.returncode:
        return _reason(done.stderr)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _reason(said: str) -> str:
    """Why a process ended, from its last word."""
    errors = re.findall(r"^[\w.]*(?:Error|Exception|Interrupt)\b.*", said, re.MULTILINE)
    last = errors[-1] if errors else "without a word"
    if last.startswith("ModuleNotFoundError"):
        return f"is not installed ({last.partition(': ')[2]})"
    return f"does not run with polars {pl.__version__} ({last})"


def run_here(told: str) -> None:
    """Do what `one_run` has asked for, in this process, and print the figures."""
    asked = json.loads(told)
    row = Row(**(asked["row"] | {"log": Recipe(**asked["row"]["log"])}))
    work = import_module(PEERS[row.peer]).WORK[row.key]
    log = stored(row.log, Path(asked["folder"]))
    given: list[Any] = []
    if row.times:
        log = log.in_memory()
        figures = mean(lambda: given.append(worked_out(work(log), engine="auto")), row.times)
    else:
        figures = timed(lambda: given.append(worked_out(work(log))))
    if asked["answer"]:
        given[0].write_parquet(asked["answer"])
    # What times itself gives figures instead of a table.
    print(json.dumps(given[0] if isinstance(given[0], dict) else figures))


def worked_out(answer: Any, engine: Literal["auto", "streaming"] = "streaming") -> Any:
    """The table, of a plan too."""
    return answer.collect(engine=engine) if isinstance(answer, pl.LazyFrame) else answer


def mean(task: Callable[[], object], times: int, whose: int = resource.RUSAGE_SELF) -> Figures:
    """What a task takes in the mean of so many times, after a first one."""
    task()
    figures = timed(lambda: [task() for _ in range(times)], whose)
    return figures | {name: figures[name] / times for name in ("wall", "cpu")}


def timed(task: Callable[[], object], whose: int = resource.RUSAGE_SELF) -> Figures:
    """Wall seconds, processor seconds of all threads, and the peak memory of the whole process."""
    before, start = _processor_seconds(whose), time.perf_counter()
    task()
    wall = time.perf_counter() - start
    return {"wall": wall, "cpu": _processor_seconds(whose) - before, "peak": _peak_memory()}


def _peak_memory() -> float:
    """The most memory this process has held, in MB, as Linux tells it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _processor_seconds(whose: int) -> float:
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime
