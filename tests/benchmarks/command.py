"""What waiting for `mlm` costs before it has read a row: a process that shows help, and one that computes a little."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from tests.benchmarks.comparison import Comparison, Figures, Row
from tests.benchmarks.data import Log, Recipe

PROCESSES = 20
"""One takes too little time to be timed alone."""

LOG = Recipe(1000)


def processes(*given: str) -> Callable[[Log], Figures]:
    """The time of a process of Python with these arguments, the mean of several; {log} is the file of a log."""

    def figures(log: Log) -> Figures:
        command = [sys.executable, *(part.format(log=log.files[0]) for part in given)]
        wall, cpu = time.perf_counter(), _of_children()
        for _ in range(PROCESSES):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall, cpu = time.perf_counter() - wall, _of_children() - cpu
        return {"wall": wall / PROCESSES, "cpu": cpu / PROCESSES, "peak": 0.0}

    return figures


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


MLM = ("-m", "mlm_command")
COMMANDS: dict[str, Sequence[str]] = {
    "python -c pass": ("-c", "pass"),
    "mlm --help": (*MLM, "--help"),
    "mlm evaluate --help": (*MLM, "evaluate", "--help"),
    "python -c 'import polars'": ("-c", "import polars"),
    "mlm evaluate": (*MLM, "evaluate", "{log}", "-m", "f1", "--by", "model"),
}
WORK = {name: processes(*given) for name, given in COMMANDS.items()}


def command(rows: int) -> list[Comparison]:
    """All of them side by side, whatever the number of rows."""
    ours = [Row("command line", name, LOG, called=name) for name in COMMANDS]
    return [Comparison("One process", ours, against=ours[0].name)]
