"""Passes that are asked for: checked before any work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import polars as pl

from polars_mlmetrics.data.bare_scan import FileByFile
from polars_mlmetrics.engine.memory import memory_budget
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.sources import Rows, RowsInPasses
from polars_mlmetrics.errors import ColumnError, MetricError, ParameterError
from polars_mlmetrics.query.query import Query


def passes_of(
    query: Query, count: int | Literal["auto", "files"] | None, memory: int | str | None, *, progress: bool
) -> Passes | None:
    """The passes in which a query is answered; None where all is read at once."""
    if count is not None and query.plain:
        raise MetricError(f"{query.plain_names[0]!r} is a plain expression: it cannot be computed in passes.")
    sample = () if count is None else _sample(query)
    return passes_over(query.frame, query.with_keys, sample, count, memory, progress=progress)


def source_of(query: Query, passes: Passes | None) -> Rows:
    """The rows of a query, at once or in passes."""
    label, schema = query.roles.label, query.schema
    return RowsInPasses(passes, label, schema) if passes else Rows(query.rows, label, schema)


def passes_over(
    frame: pl.LazyFrame,
    prepared: Callable[[pl.LazyFrame], pl.LazyFrame],
    sample: Sequence[str],
    count: int | Literal["auto", "files"] | None,
    memory: int | str | None,
    *,
    progress: bool,
) -> Passes | None:
    """The passes over a log of these samples, whose rows are prepared first; None where all is read at once."""
    if memory is not None and count != "auto":
        raise ParameterError(f"memory= works only with passes='auto', and passes is {count!r}.")
    if count is None:
        return None
    whole = isinstance(count, int) and not isinstance(count, bool) and count > 0
    if not (whole or count in ("auto", "files")):
        raise ParameterError(f"passes must be a whole number of at least 1, 'auto' or 'files', not {count!r}.")
    files = FileByFile(frame, prepared) if count == "files" else None
    return Passes(prepared(frame), sample, count, files, memory_budget(memory), progress)


def _sample(query: Query) -> tuple[str, ...]:
    """The columns that say which rows belong together."""
    measures = [measure for metric in query.metrics for measure in metric.measures()]
    needed = {m.table.sample: m for m in measures if "sample" in (m.grain, *m.probe.looks_into)}
    if len(needed) > 1:
        first, other = (f"{m.output_name} has {list(sample)}" for sample, m in list(needed.items())[:2])
        raise MetricError(f"passes need one sample column for all metrics, and {first}, {other}.")
    sample = next(iter(needed), query.roles.sample)
    for column in sample if needed else ():
        if query.schema[column].is_nested():
            raise ColumnError(f"passes split the rows by sample, but {column!r} is {query.schema[column]}.")
    return sample
