"""What waiting for `mlm` costs before it has read a row: a process that shows help, and one that computes a little."""

import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial

from tests.benchmarks.comparison import Comparison, Figures, Row
from tests.benchmarks.data import Log, Recipe
from tests.benchmarks.process import mean

PROCESSES = 20
"""One takes too little time to be timed alone."""

LOG = Recipe(1000)


def processes(*given: str) -> Callable[[Log], Figures]:
    """The time of a process of Python with these arguments, the mean of several; {log} is the file of a log."""

    def figures(log: Log) -> Figures:
        command = [sys.executable, *(part.format(log=log.files[0]) for part in given)]
        run = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
        return mean(run, PROCESSES, resource.RUSAGE_CHILDREN) | {"peak": 0.0}

    return figures


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
