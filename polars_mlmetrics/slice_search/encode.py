"""Encode: rows with the number of their group, and for each feature the number of the condition that they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.engine.folds import merge
from polars_mlmetrics.engine.partials import Partial, PartialTable
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource, Source
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError, StateError
from polars_mlmetrics.formula.arithmetic import whole_times
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.metrics.decisions import n_rows, n_samples
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.source import passes_of
from polars_mlmetrics.slice_search.features import Feature, counts_of, features_of

Numbers: TypeAlias = NDArray[Any]

GROUP, SAMPLE, CLUSTER, N_ROWS, N_SAMPLES = (
    f"{INTERNAL}{name}" for name in ("group", "sample", "cluster", "n_rows", "n_samples")
)

BYTES = 200
"""Bytes that a row takes, about, while its part of the log is searched."""

AT_ONCE, PART = 1_000_000, 500_000
"""A log of more rows is read in parts of about so many, where passes= says nothing else."""

Passing = tuple[int | Literal["auto", "files"] | None, int | str | None, bool]
"""The wanted passes, the memory that they aim at, and whether they show their progress."""


def code_column(place: int) -> str:
    """The column with the codes of a feature."""
    return f"{INTERNAL}code_{place}"


class PartialKind(NamedTuple):
    """A key that tells one partial of a plan from the others."""

    grain: str
    run: str | None
    whole_samples: bool
    units: tuple[str, ...]

    @classmethod
    def of(cls, partial: Partial, by: Sequence[str]) -> PartialKind:
        """The kind of a partial by these keys, whatever they are."""
        keys = partial.by if partial.grain == "sample" else partial.fold.keys
        return cls(partial.grain, partial.values.run, partial.whole_samples, tuple(k for k in keys if k not in by))


Tables = Mapping[PartialKind, pl.DataFrame]
"""A table of statistics for each partial of a plan, with the keys of its units."""


class FoldedTables(Source):
    """A source of tables that are folded already."""

    def __init__(self, tables: Mapping[PartialKind, pl.LazyFrame], by: Sequence[str], schema: pl.Schema) -> None:
        self.tables = tables
        self.by = list(by)
        self.schema = pl.Schema({**schema, **{key: pl.Int64() for key in by}})

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [(self.tables[PartialKind.of(each, self.by)], by) for each in partials]


class Part(NamedTuple):
    """Encoded rows of whole samples."""

    rows: pl.DataFrame
    """The rows, with N_ROWS (how many rows of the log each stands for) and N_SAMPLES (1 in the first of a sample)."""
    tables: Tables
    """What the metric needs of them. A table may be the rows themselves, with more columns."""
    varied: pl.DataFrame | None = None
    """The rows of samples with several codes, with their SAMPLE. N_SAMPLES does not count these."""
    clusters: pl.DataFrame | None = None
    """The clusters of the rows, where these are no samples."""


class Wanted(NamedTuple):
    """A choice of what is read of the rows: with samples, tables and clusters or without, and of which buckets."""

    samples: bool = False
    tables: bool = True
    clusters: bool = False
    buckets: slice = slice(None)


@dataclass
class Encoded:
    """A log or a state that is ready to be searched."""

    read: Callable[[Wanted], Iterator[Part]]
    groups: pl.DataFrame
    """The by columns of each group, by its number."""
    features: list[Feature]
    partials: Mapping[PartialKind, Partial]
    plan: Plan
    query: Query
    buckets: int
    n_rows: int
    how: str
    """How it is read, in words."""

    def __post_init__(self) -> None:
        self.metric = self.query.metrics[0]
        self.statistics = {kind: statistics_of(partial) for kind, partial in self.partials.items()}
        every = [each for statistics in self.statistics.values() for each in statistics]
        self.is_of_sums = all(each.monoid == "sum" and each.moment is None for each in every)
        """Whether the statistics of some rows can be taken off those of all."""
        self.known_rows: Numbers | None = None
        """How many rows each bucket had when they were read first."""

    def parts(self, wanted: Wanted) -> Iterator[Part]:
        """The rows, part by part. Raise where these are not as many as before."""
        rows = np.zeros(self.buckets, dtype=np.int64)
        for part in self.read(wanted):
            counts = part.rows.group_by(WITHOUT).agg(pl.col(N_ROWS).sum().cast(pl.Int64))
            rows[counts[WITHOUT].to_numpy()] += counts[N_ROWS].to_numpy()
            yield part
        before = self.n_rows if self.known_rows is None else self.known_rows[wanted.buckets].sum()
        if rows[wanted.buckets].sum() != before:
            raise ParameterError(
                f"the log had {before:,} rows when it was read first, and then {rows.sum():,}: find_slices reads it "
                "several times. Collect it first, or run it again when its files no longer change."
            )
        self.known_rows = rows if self.known_rows is None else self.known_rows

    def folded(self, kind: PartialKind, tables: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
        """Tables of a partial as one, at other keys beside those of its units."""
        keys, statistics = [*keys, *kind.units], self.statistics[kind]
        rows = pl.concat([each.select(*keys, *(s.name for s in statistics)) for each in tables], how="vertical_relaxed")
        return merge(rows.lazy(), keys, statistics).collect()


def statistics_of(partial: Partial) -> list[Statistic]:
    """The statistics in the table of a partial: of samples, the sums of their values."""
    if partial.grain != "sample":
        return list(partial.fold.statistics.values())
    return [Statistic(name, pl.col(name), "sum") for name in partial.values.stored_sums().values()]


def whole_type(size: int) -> pl.DataType:
    """The smallest type for so many codes: there is one of each feature in every row."""
    return pl.UInt8() if size <= 2**8 else pl.Int32()


class LogReader:
    """Reads a log in codes, at once or part by part."""

    def __init__(self, query: Query, features: list[Feature], buckets: int, cluster: Names, passes: Passing) -> None:
        clusters = list(column_names("cluster", cluster))
        self._query = query
        self._by = [key.column for key in query.by]
        self._cluster = [] if clusters == list(query.roles.sample) else clusters
        self._features = features
        self._codes = [each.code().cast(whole_type(each.size)).alias(code_column(i)) for i, each in enumerate(features)]
        self._keys = [GROUP, WITHOUT, *(code.meta.output_name() for code in self._codes)]
        self._bucket = pl.col(WITHOUT).cast(whole_type(buckets))
        self._groups = numbered(query.rows.select(self._by).unique().collect(), self._by)
        n_rows, (count, memory, progress) = int(query.frame.select(pl.len()).collect().item()), passes
        if count is None and memory is None and n_rows > AT_ONCE:
            count = whole_times(PART, n_rows)
        self._passes, self._n_rows = passes_of(query, count, memory, progress=progress), n_rows
        self._schema = pl.Schema({**query.schema, **dict.fromkeys(self._keys, pl.Int32())})
        plan = Plan(FoldedTables({}, self._keys, self._schema), self._keys, query.readings)
        plan.value(query.metrics[0])
        self._partials = {PartialKind.of(each, self._keys): each for each in plan.all_partials}
        self._plain = [kind for kind, each in self._partials.items() if _is_plain(each)]
        parts = self._passes.how_many(BYTES, n_rows) if self._passes else 1
        how = f"rows read in {parts} passes for each step" if parts > 1 else "rows as they are"
        self._whole = next(self._read(Wanted(samples=True, clusters=True))) if parts == 1 else None
        self.log = Encoded(self._again, self._groups, features, self._partials, plan, query, buckets, n_rows, how)
        """The log, in codes."""

    def _again(self, wanted: Wanted) -> Iterator[Part]:
        """The rows: those of a log that is read at once are kept."""
        return self._read(wanted) if self._whole is None else iter([self._whole])

    def _read(self, wanted: Wanted) -> Iterator[Part]:
        if not self._passes:
            yield self._part(self._query.rows, wanted)
            return
        # To be closed where a pass fails: a bar would stay on the screen.
        with closing(self._passes.parts(BYTES, self._n_rows)) as parts:
            for rows in parts:
                yield self._part(rows, wanted)

    def _part(self, rows: pl.LazyFrame, wanted: Wanted) -> Part:
        """Some rows, with what each adds to the partials; or folded, where a row alone does not say that."""
        if wanted.buckets != slice(None):
            rows = rows.filter(pl.col(WITHOUT) % wanted.buckets.step == wanted.buckets.start)
        rows = in_groups(rows, self._groups, self._by).with_columns(self._bucket, *self._codes)
        kinds = self._partials if wanted.tables else {}
        plain = [kind for kind in self._plain if kind in kinds]
        folded = {kind: self._folded(rows, each) for kind, each in kinds.items() if kind not in plain}
        cluster = [code_of(self._cluster).alias(CLUSTER)] if self._cluster and wanted.clusters else []
        is_known = pl.all_horizontal(pl.col(column).is_not_null() for column in self._query.roles.sample)
        sample = pl.when(is_known).then(code_of([*self._by, *self._query.roles.sample])).alias(SAMPLE)
        columns = self._columns(rows, plain, [*cluster, *([sample] if wanted.samples else [])])
        found, *tables = pl.collect_all([columns, *folded.values()])
        found = found.with_columns(pl.lit(1, dtype=pl.Int8).alias(name) for name in (N_ROWS, N_SAMPLES))
        varied = None
        if wanted.samples:
            found, varied = self._with_samples(found)
        filled = {kind: without_nulls(each, self._partials[kind]) for kind, each in zip(folded, tables, strict=True)}
        clusters = found.select(*self._keys, CLUSTER).unique() if cluster else None
        return Part(found, {**dict.fromkeys(plain, found), **filled}, varied, clusters)

    def _columns(self, rows: pl.LazyFrame, kinds: Sequence[PartialKind], more: Sequence[pl.Expr]) -> pl.LazyFrame:
        """Rows with what each of them adds to some partials."""
        partials = [self._partials[kind] for kind in kinds]
        for each in partials:
            rows = each.fold.with_features(rows)
        added = {s.name: s.row.fill_null(0).alias(s.name) for each in partials for s in each.fold.statistics.values()}
        units = dict.fromkeys(unit for kind in kinds for unit in kind.units)
        return rows.select(*self._keys, *units, *more, *added.values())

    def _folded(self, rows: pl.LazyFrame, partial: Partial) -> pl.LazyFrame:
        """The table of a partial, at the codes of the rows."""
        [(table, _)] = LogSource(rows, self._query.roles.label, self._schema).partials([partial], list(partial.by))
        return table

    def _with_samples(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Rows that count their samples, each in its first row; and those of samples with several codes."""
        sample, is_known = rows[SAMPLE], pl.col(SAMPLE).is_not_null()
        if not sample.null_count() and sample.n_unique() == rows.height:
            return rows.drop(SAMPLE), None
        ends = [pl.col(name).min() != pl.col(name).max() for name in self._keys[1:]]
        varying = rows.lazy().filter(is_known).group_by(SAMPLE).agg(ends).filter(pl.any_horizontal(self._keys[1:]))
        varies = varying.collect()
        self._check_whole(varies)
        counts = pl.col(SAMPLE).is_first_distinct() & is_known & ~pl.col(SAMPLE).is_in(varies[SAMPLE].implode())
        varied = rows.lazy().select(*self._keys, SAMPLE).join(varies.lazy(), on=SAMPLE, how="semi").unique()
        found = rows.with_columns(counts.cast(pl.Int8).alias(N_SAMPLES)).drop(SAMPLE)
        return found, varied.collect() if varies.height else None

    def _check_whole(self, varies: pl.DataFrame) -> None:
        """Refuse features that part a sample, where the metric looks at whole samples."""
        looking = [measure for measure in self._query.measures if measure.probe.looks_at_samples]
        codes = zip(self._keys[2:], self._features, strict=True)
        parted = [each.name for code, each in codes if looking and varies[code].any()]
        if parted:
            raise ColumnError(
                f"feature {parted[0]!r} has several values in one sample, and {looking[0].output_name} looks at whole "
                f"samples: see log.group_by({list(looking[0].table.sample)}).agg(pl.col({parted[0]!r}).n_unique())."
            )


def _is_plain(partial: Partial) -> bool:
    """Whether what each row adds to a partial is known from that row alone."""
    is_of_rows = partial.grain != "sample" and not (partial.rankings or partial.looks_back or partial.windows)
    return is_of_rows and all(each.monoid == "sum" and each.moment is None for each in statistics_of(partial))


def without_nulls(table: pl.DataFrame, partial: Partial) -> pl.DataFrame:
    """A table in which the sum of nothing is 0."""
    return table.with_columns(pl.col(each.name).fill_null(0) for each in statistics_of(partial) if each.monoid == "sum")


def numbered(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The groups of a table, by number."""
    groups = table.select(by).unique().sort(by, nulls_last=False) if by else pl.DataFrame([{}])
    return groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias(GROUP))


def in_groups(rows: pl.LazyFrame, groups: pl.DataFrame, by: Sequence[str]) -> pl.LazyFrame:
    """Rows with the numbers of their groups."""
    if not by:
        return rows.with_columns(pl.lit(0, dtype=pl.Int32).alias(GROUP))
    return rows.join(groups.lazy(), on=by, how="left", nulls_equal=True, maintain_order="left")


def encode_state(query: Query, source: StateSource, names: Sequence[str], top: int, bins: int, buckets: int) -> Encoded:
    """A state in codes."""
    by, columns = [key.column for key in query.by], {key.column: key.name for key in query.slice_keys}
    keys = [*by, *columns, WITHOUT]
    counts = _counts_of_state(query, source, by, keys).rename(columns)
    plan = Plan(source, keys, query.readings)
    plan.value(query.metrics[0])
    partials = {PartialKind.of(each, keys): each for each in plan.all_partials}
    tables = pl.collect_all([table for table, _ in source.partials(list(partials.values()), keys)])
    values = {name: counts_of(counts.lazy(), name, pl.col(N_ROWS)).collect() for name in names}
    features, groups = features_of(counts.schema, values, top, bins), numbered(counts, by)
    codes = [each.code().cast(whole_type(each.size)).alias(code_column(i)) for i, each in enumerate(features)]

    def encoded(table: pl.DataFrame) -> pl.DataFrame:
        return in_groups(table.lazy(), groups, by).with_columns(codes).drop(*names, *by).collect()

    found = zip(partials.items(), tables, strict=True)
    filled = {kind: without_nulls(encoded(table.rename(columns)), each) for (kind, each), table in found}
    part, n_rows = Part(encoded(counts), filled), int(counts[N_ROWS].sum())
    return Encoded(lambda _: iter([part]), groups, features, partials, plan, query, buckets, n_rows, "a state")


def _counts_of_state(query: Query, source: StateSource, by: list[str], keys: list[str]) -> pl.DataFrame:
    """How many rows and samples a state has at its keys. Samples must be whole in every group, so in every slice."""
    (metric,) = query.metrics
    samples, rows = (each.tree.on_the_rest(query.bound) for each in (n_samples(), n_rows()))
    whole = Plan(source, by, query.readings)
    reasons = whole.reasons_of([whole.add(measure) for node in (metric, samples) for measure in node.measures()])
    if reasons:
        why = whole.groups().select(pl.coalesce(reasons).drop_nulls().first()).collect().item()
        if why is not None:
            raise StateError(f"{why}: a slice of this state may hold a part of a sample. Use find_slices on the log.")
    plan = Plan(source, keys, query.readings)
    sizes = [plan.value(samples).alias(N_SAMPLES), plan.value(rows).alias(N_ROWS)]
    return plan.groups().select(*keys, *sizes).collect()
