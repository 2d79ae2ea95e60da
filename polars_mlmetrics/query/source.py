"""The source that answers a query: its rows, at once or in passes, for one grouping or for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import polars as pl

from polars_mlmetrics.data.frames import parquet_paths
from polars_mlmetrics.engine.buckets import OF_LOG
from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.engine.list_slices import ListSlices
from polars_mlmetrics.engine.memory import free_memory, memory_budget
from polars_mlmetrics.engine.passes import FileByFile, Passes
from polars_mlmetrics.engine.replicates import WITHOUT, WITHOUT_COARSE
from polars_mlmetrics.engine.slices import Slices
from polars_mlmetrics.engine.sources import LogSource, PassesSource, Source
from polars_mlmetrics.errors import INTERNAL, ColumnError, MetricError, ParameterError, typed, warn_at_callers_line
from polars_mlmetrics.formula.arithmetic import cuts
from polars_mlmetrics.places.place import is_url
from polars_mlmetrics.query.query import Query

_N = f"{INTERNAL}n"

LOOK, PLACES = 25_000, 4
"""How many rows are looked at to plan slices, in each of how many places."""

BYTES_A_ROW = 60
"""Bytes that a row takes, about, while all rows are at once put in order by sample."""

MOST = 0.5
"""Of how many samples several values are known, as a share, where all are worked out in the slices at once."""


def passes_of(
    query: Query, count: int | Literal["auto", "files"] | None, memory: int | str | None, *, progress: bool
) -> Passes | None:
    """The passes in which a query is answered; None where all is read at once."""
    if count is not None and query.plain:
        raise MetricError(f"{query.plain_names[0]!r} is a plain expression: it cannot be computed in passes.")
    sample = () if count is None else _sample(query)
    if count is None:
        _warn_of_samples(query)
    return passes_over(query.frame, query.with_keys, sample, count, memory, progress=progress)


def _warn_of_samples(query: Query) -> None:
    """Warn before samples are looked into of more rows than fit."""
    looking = next((measure for measure in query.measures if measure.probe.looks_at_samples), None)
    if looking is not None:
        why, remedy = (
            f"{looking.output_name} looks into samples",
            f"Pass {typed('passes', 'auto')} to read them in parts.",
        )
        warn_of_many_rows(query, BYTES_A_ROW, why, remedy)


def warn_of_many_rows(query: Query, bytes_a_row: int, why: str, remedy: str) -> None:
    """Warn before rows are read at once that would not fit, as the footers of parquet files here tell."""
    paths = parquet_paths(query.frame)
    if not paths or any(map(is_url, paths)):
        return
    n_rows: int = query.frame.select(pl.len()).collect().item()
    needed, free = n_rows * bytes_a_row, free_memory()
    if needed > free:
        warn_at_callers_line(
            f"{why}: of these {n_rows:,} rows at once it needs about {needed * 1e-9:,.1f} GB, and {free * 1e-9:,.1f} "
            f"GB are free. {remedy}"
        )


def planned(query: Query, plan: Callable[[Query], pl.LazyFrame]) -> pl.LazyFrame:
    """Plan a query. Rows that it reads only once are not cached.

    Where Polars holds rows, it works a filter of them out row by row: no file and no part of a file is left out for it.
    """
    table = plan(query)
    if query.is_at_hand:
        return table
    held, *_ = query.rows.explain(optimized=False).splitlines()
    is_read_once = table.explain(optimized=False).count(held) == 1
    return plan(replace(query, holds_rows=False)) if is_read_once else table


def source_of(query: Query, passes: Passes | None) -> LogSource:
    """The rows of a query, at once or in passes."""
    known = query.roles.label, query.schema, query.added
    return PassesSource(passes, *known) if passes else LogSource(query.rows, *known, query.n_rows)


def slices_of(query: Query, source: LogSource, more: Sequence[str] = (), *, is_collected: bool = False) -> Source:
    """The rows of a query, for all its groupings, and for each of them once `more` by other columns.

    A call on a LazyFrame reads no row: sizes are seen of a DataFrame, or where the answer `is_collected` already.
    """
    slicings = [[key.column for key in keys] for keys in query.groupings]
    if query.lists:
        plain = [keys for keys in query.slices or () if query.lists.keys().isdisjoint(key.column for key in keys)]
        whole = slices_of(replace(query, slices=plain, lists={}), source, more, is_collected=is_collected)
        return ListSlices(whole, source, query.lists)
    by = [key.column for key in query.by]
    finer = [[*slicing, column] for column in more for slicing in slicings]
    if not slicings[1:] and not finer:
        return source
    coarser = {WITHOUT: WITHOUT_COARSE} if WITHOUT_COARSE in query.schema else {}
    # Intervals do not add to the readings of the log: what is folded for a slice is folded by bucket at once.
    looks = query.n_rows is not None or (is_collected and query.is_at_hand)
    # Of many cells Polars holds the more, the more rows it reads: so there are few where memory is bounded.
    buckets = OF_LOG if more and isinstance(source, PassesSource) else 1
    if not (slicings[1:] and looks):
        covers = Covers(by, slicings, None, more, buckets=buckets)
        return Slices(source, by, [*slicings, *finer], covers, query.added, {}, coarser)
    look = SeenSizes.at(query)
    covers = Covers(by, slicings, look.sizes, more, look.n_rows, buckets=buckets)
    return Slices(source, by, [*slicings, *finer], covers, query.added, look.varied, coarser)


class SeenSizes(NamedTuple):
    """Sizes seen in some rows of a log at hand. They decide how fast the answer comes, and nothing else."""

    n_rows: int
    """How many rows the log has."""
    sizes: dict[str, int]
    """How many values keys and labels have."""
    varied: dict[tuple[str, ...], list[str]]
    """The columns of slices of which most samples have several values, by the columns of the sample."""

    @classmethod
    def at(cls, query: Query) -> SeenSizes:
        """Look at some rows of the log of a query."""
        by, slices = ([key.column for key in keys] for keys in (query.by, query.slice_keys))
        names = {measure.table.sample for measure in query.measures if slices and measure.grain == "sample"}
        samples = {sample: list(dict.fromkeys([*by, *sample])) for sample in names}
        sized = _plain(query, [*by, *slices, *(measure.table.label for measure in query.measures)])
        looked_at = _plain(query, [*sized, *(column for keys in samples.values() for column in keys)])
        n_rows: int = query.frame.select(pl.len()).collect().item()
        if not sized:
            return cls(n_rows, {}, {})
        some = [query.frame.slice(start, LOOK) for start in (0, *cuts(n_rows, PLACES))]
        rows = query.with_keys(pl.concat(some)).select(looked_at).collect()
        sizes = dict(zip(sized, rows.select(pl.col(sized).n_unique()).row(0), strict=True))
        varied = {
            sample: _varied(rows, keys, [column for column in slices if column in sized and column not in keys])
            for sample, keys in samples.items()
            if set(keys) <= set(looked_at)
        }
        return cls(n_rows, sizes, varied)


def _plain(query: Query, columns: Sequence[str]) -> list[str]:
    """The columns that the log has, each once, but for lists and structs."""
    return [name for name in dict.fromkeys(columns) if name in query.schema and not query.schema[name].is_nested()]


def _varied(rows: pl.DataFrame, sample: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns of which most samples have several values, of those samples that have several rows."""
    if not columns:
        return []
    value = pl.col(columns).hash()
    varies = rows.lazy().group_by(sample).agg(value.min() != value.max(), pl.len().alias(_N)).filter(pl.col(_N) > 1)
    [shares] = varies.select(pl.col(columns).mean()).collect().rows(named=True)
    return [column for column, share in shares.items() if share is not None and share >= MOST]


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
        raise ParameterError(f"{typed('memory')} works only with {typed('passes', 'auto')}, and passes is {count!r}.")
    if count is None:
        return None
    whole = isinstance(count, int) and not isinstance(count, bool) and count > 0
    if not (whole or count in ("auto", "files")):
        raise ParameterError(f"passes must be a whole number of at least 1, 'auto' or 'files', not {count!r}.")
    files = FileByFile(frame, prepared) if count == "files" else None
    return Passes(prepared(frame), sample, count, files, memory_budget(memory), progress)


def _sample(query: Query) -> tuple[str, ...]:
    """The columns that say which rows belong together."""
    needed = {measure.table.sample: measure for measure in query.measures if measure.probe.looks_at_samples}
    if len(needed) > 1:
        first, other = (f"{m.output_name} has {list(sample)}" for sample, m in list(needed.items())[:2])
        raise MetricError(f"passes need one sample column for all metrics, and {first}, {other}.")
    sample = next(iter(needed), query.roles.sample)
    for column in sample if needed else ():
        if query.schema[column].is_nested():
            raise ColumnError(f"passes split the rows by sample, but {column!r} is {query.schema[column]}.")
    return sample
