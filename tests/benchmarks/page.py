"""What the figures look like: on a terminal of 80 columns, and on the page of the documentation."""

import os
import platform
import re
import textwrap
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import polars as pl

import polars_mlmetrics as mlm
from tests.benchmarks.comparison import Comparison, Figures, Outcome, Part
from tests.benchmarks.peers import DISTRIBUTIONS

HEADINGS = ("wall s", "cpu s", "MB", "x wall", "x cpu", "x MB")
NOTHING = "-"
WIDTH, COLUMNS = 120, 80
"""Of a line of the page, and of the terminal."""

INTRODUCTION = """\
<!-- Written by `make bench`: do not edit. A part that is run again replaces its own section. -->
# Benchmarks

How long the library takes, and in how much memory, compared with other ways to the same numbers.

Every row of a table is work that a process of its own does, from the files to the last number. The rows of a table take
turns, and a figure is the median of the runs. Before that, each row that is compared with the library has given the
library's numbers on a small log of the same kind. A row without figures says why it has none.

| column | what it is |
|---|---|
| `wall s` | seconds from the call to the table of results; imports are not in it |
| `cpu s` | processor seconds of all threads in that time |
| `MB` | the most memory that the process has held, with the interpreter and all that it has imported |
| `x wall`, `x cpu`, `x MB` | these figures as multiples of those of the row that the table names |

| row | what it is |
|---|---|
| floor | Polars reads the log and adds up three columns by model and fold |
| by hand | a Polars plan for this one log, written by someone who knows that nothing in it is null or broken |
| DuckDB | SQL over the same files, which knows the same |
| group_by | a Polars `group_by` for each combination of features, and nothing else |
| scikit-learn, fairlearn, polars-ds, polarbearings, sliceline | their own functions by group, on arrays or frames |

The logs are made by a seeded generator. A plain one has samples of ten labels whose rows lie together, two models, five
folds, scores in [0, 1] without ties, and truths that follow the scores. The rows of a sample are of one model and one
fold. All metrics are by model and fold where a table does not say otherwise.

`make bench` writes this page; `make bench ARGS="suites --rows 1000000 --runs 3"` does one part of it with fewer rows.
"""


def environment() -> str:
    """The machine and the versions, in words."""
    cores = len(os.sched_getaffinity(0))
    machine = f"{_processor()}, {cores} cores, {_memory():.0f} GB of memory"
    mine = f"Python {platform.python_version()}, polars {pl.__version__}, polars_mlmetrics {mlm.__version__}"
    threads = pl.thread_pool_size()
    few = "" if threads == cores else f" Polars has {threads} of {cores} threads."
    return f"{machine}. {mine}, {', '.join(map(_distribution, DISTRIBUTIONS))}.{few}"


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _memory() -> float:
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(text.partition("MemTotal:")[2].split()[0]) / 2**20


def _distribution(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


def cells(comparison: Comparison, outcomes: dict[str, Outcome]) -> list[tuple[str, list[str]]]:
    """The rows of a table: their names, and what stands in their columns. What has no figures has its reason alone."""
    base = outcomes[comparison.against]
    told = [(row.name, outcomes[row.name]) for row in comparison.rows]
    return [(name, [outcome] if isinstance(outcome, str) else _figures(outcome, base)) for name, outcome in told]


def _figures(outcome: Figures, base: Outcome) -> list[str]:
    figures = [_seconds(outcome["wall"]), _seconds(outcome["cpu"]), _megabytes(outcome["peak"])]
    if isinstance(base, str):
        return figures + [NOTHING] * 3
    return figures + [f"{value / base[name]:.2f}" if base[name] else NOTHING for name, value in outcome.items()]


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _megabytes(value: float) -> str:
    return f"{value:,.0f}" if value else NOTHING


def shown(comparison: Comparison, outcomes: dict[str, Outcome]) -> str:
    """A table for the terminal."""
    rows = cells(comparison, outcomes)
    width = max(len(name) for name, _ in rows)
    lines = [comparison.title, _line("", list(HEADINGS), width)]
    lines += [_line(name, columns, width) for name, columns in rows]
    return "\n".join([*lines, f"  x: multiples of {comparison.against}"])


def _line(name: str, columns: list[str], width: int) -> str:
    if len(columns) == 1:
        return f"  {name:{width}}  {columns[0]}"[:COLUMNS]
    return f"  {name:{width}}" + "".join(f"{column:>8}" for column in columns)


def section(name: str, part: Part, done: list[tuple[Comparison, dict[str, Outcome]]], command: str) -> str:
    """The section of a part, between the marks by which it is found again."""
    tables = [_table(comparison, outcomes) for comparison, outcomes in done]
    made = f"{textwrap.fill(environment(), WIDTH)}\n\n```console\n$ {command}\n```"
    return "\n\n".join(
        [_mark(name), f"## {part.title}", textwrap.fill(part.prose, WIDTH), made, *tables, _mark(name, end=True)]
    )


def _table(comparison: Comparison, outcomes: dict[str, Outcome]) -> str:
    lines = [f"### {comparison.title}", "", f"Multiples are of the row `{comparison.against}`.", ""]
    lines += [f"| | {' | '.join(HEADINGS)} |", "|---" + "|---:" * len(HEADINGS) + "|"]
    for name, columns in cells(comparison, outcomes):
        filled = [column.replace("|", "\\|") for column in columns] + [""] * (len(HEADINGS) - len(columns))
        lines.append(f"| {name} | {' | '.join(filled)} |")
    return "\n".join(lines)


def _mark(name: str, *, end: bool = False) -> str:
    return f"<!-- {'end of ' if end else ''}part: {name} -->"


def written(page: str, sections: dict[str, str], order: list[str]) -> str:
    """The page with these sections in place of its own; those of other parts stay as they are."""
    kept = {name: _found(page, name) for name in order}
    all_sections = [sections.get(name) or kept[name] for name in order]
    return "\n".join([INTRODUCTION, *(f"{text}\n" for text in all_sections if text)])


def _found(page: str, name: str) -> str:
    start, end = _mark(name), _mark(name, end=True)
    return page[page.index(start) : page.index(end) + len(end)] if start in page and end in page else ""
