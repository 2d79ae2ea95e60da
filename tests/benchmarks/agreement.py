"""Before anything is timed: every peer must give the library's numbers, on a small log of the same kind."""

import tempfile
from dataclasses import replace
from pathlib import Path

import polars as pl

from tests.benchmarks.comparison import Comparison, Row
from tests.benchmarks.data import Recipe, stored
from tests.benchmarks.process import one_run, worked_out
from tests.benchmarks.work import SUITES, asked, names

ROWS = 20_000
RELATIVE = 1e-6
"""Peers add up in other orders, and some take one logarithm for another."""


class DisagreementError(Exception):
    """A peer gives other numbers."""


def failures(comparison: Comparison, folder: Path) -> dict[Row, str]:
    """The rows that do not run, and why; a row that runs and gives other numbers is an error."""
    found = {}
    for row in comparison.rows:
        if row.has_answer:
            reason = _failure(replace(row, log=small(row.log)), folder)
            if reason is not None:
                found[row] = reason
    return found


def small(log: Recipe) -> Recipe:
    """A log of the same kind with few rows."""
    # Groups of some size: in one of a few rows a metric is undefined, which others say in their own ways.
    segments, largest = min(log.segments, ROWS // 1000), min(log.largest, ROWS // 10)
    return replace(log, rows=min(log.rows, ROWS), files=min(log.files, 2), segments=segments, largest=largest)


def _failure(row: Row, folder: Path) -> str | None:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "answer.parquet")
        outcome = one_run(row, folder, file)
        if isinstance(outcome, str):
            return outcome
        theirs = pl.read_parquet(file)
    ours = worked_out(asked(stored(row.log, folder), row.work))
    by = list(SUITES[row.work].by)
    told = difference(ours.sort(by), theirs.sort(by), by, names(row.work))
    if told:
        raise DisagreementError(f"{row.name}, {row.key}: {told}")
    return None


def difference(ours: pl.DataFrame, theirs: pl.DataFrame, by: list[str], values: list[str]) -> str:
    """What differs between two tables in order, in words; nothing where all agrees."""
    if not ours.select(by).equals(theirs.select(by)):
        return f"other groups:\n{ours}\n{theirs}"
    for name in values:
        mine, other = ours[name].cast(pl.Float64), theirs[name].cast(pl.Float64)
        near = ((mine - other).abs() <= RELATIVE * mine.abs()).fill_null(False)
        if not (near | (mine.is_null() & other.is_null())).all():
            return f"other values of {name}:\n{pl.DataFrame({'polars_mlmetrics': mine, 'other': other})}"
    return ""
