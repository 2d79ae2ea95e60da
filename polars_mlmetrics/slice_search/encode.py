"""Encode: rows with the number of their group, and for each feature the number of the condition that they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Literal, NamedTuple

import polars as pl

from polars_mlmetrics.contrasts.paired_log import Change
from polars_mlmetrics.contrasts.rest import values_by
from polars_mlmetrics.contrasts.sides import IS_BASELINE, PairPlan
from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.folds import merge
from polars_mlmetrics.engine.packing import modulo, part_of
from polars_mlmetrics.engine.partials import Partial, PartialKind, statistics_of
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import FoldedTables, LogSource, Source
from polars_mlmetrics.engine.unnamed_clusters import UnnamedCluster, unnamed_clusters
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError, StateError
from polars_mlmetrics.formula.arithmetic import whole_times
from polars_mlmetrics.metrics.decisions import n_rows, n_samples
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.source import passes_of, source_of
from polars_mlmetrics.slice_search.features import Feature, counts_of, features_of, values_of

NAMES = ("group", "sample", "cluster", "n_rows", "n_samples")
GROUP, SAMPLE, CLUSTER, N_ROWS, N_SAMPLES = (f"{INTERNAL}{name}" for name in NAMES)

EVEN, ODD, EVERY = slice(0, None, 2), slice(1, None, 2), slice(0, None, 1)
"""The buckets of the search, those that confirm, and all."""

BYTES = 200
"""Bytes that a row takes, about, while its part of the log is searched."""

AT_ONCE, PART = 1_000_000, 500_000
"""A log of more rows is read in parts of about so many, where passes= says nothing else."""


def code_column(place: int) -> str:
    """The column with the codes of a feature."""
    return f"{INTERNAL}code_{place}"


def in_buckets(buckets: slice) -> pl.Expr:
    """Whether a row is in some of the buckets."""
    return modulo(pl.col(WITHOUT), buckets.step) == pl.lit(buckets.start)


class Search(NamedTuple):
    """A log or a state that is searched for slices in which a metric is worse, or became worse."""

    question: Question
    sign: int
    """1 where low values are bad, -1 where high ones are."""
    change: Change | None = None
    """The two sides of a change."""

    @property
    def sides(self) -> list[str]:
        """The key that says which side of a change rows are of."""
        return [IS_BASELINE] if self.change else []

    @property
    def plan_type(self) -> type[Plan]:
        """The plan of its values, or of their changes."""
        return PairPlan if self.change else Plan

    @property
    def source(self) -> Source:
        """The rows of both sides, or of a state."""
        of_state = self.change.source if self.change else self.question.state
        return of_state or source_of(self.question.query, None)


Tables = Mapping[PartialKind, pl.DataFrame]
"""A table of statistics for each partial of a plan, with the keys of its units."""


class Part(NamedTuple):
    """Encoded rows of whole samples."""

    rows: pl.DataFrame
    """The rows, with N_ROWS (how many rows of the log each stands for) and N_SAMPLES (1 in the first of a sample)."""
    tables: Tables
    """What the metric needs of them. A table may be the rows themselves, with more columns."""
    varied: pl.DataFrame | None = None
    """The rows of samples with several codes, with their SAMPLE. N_SAMPLES does not count these."""

    def half(self, buckets: slice) -> Part:
        """The rows in some of the buckets, which are numbered anew from 0. Of samples nothing is counted."""
        number = part_of(pl.col(WITHOUT).cast(pl.Int64) - buckets.start, buckets.step)
        return self.changed(lambda table: table.filter(in_buckets(buckets)).with_columns(number))

    def changed(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Part:
        """The same with each table changed. One that is the rows stays so."""
        rows = change(self.rows)
        tables = {kind: rows if table is self.rows else change(table) for kind, table in self.tables.items()}
        return Part(rows, tables)


class Encoded:
    """A log or a state in codes, which is read as often as needed."""

    how: str
    """How it is read, in words."""
    n_rows: int
    cluster: Sequence[str] = ()
    """The columns of clusters, where samples are not the clusters: later readings have the CLUSTER of each row."""

    def __init__(self, search: Search, plan: Plan, rows: pl.DataFrame, features: list[Feature]) -> None:
        question = search.question
        assert question.confidence is not None
        self.search = search
        self.question, self.query, self.confidence = question, question.query, question.confidence
        self.by = [key.column for key in self.query.by]
        groups = rows.select(self.by).unique().sort(self.by, nulls_last=False) if self.by else pl.DataFrame([{}])
        self.groups = groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias(GROUP))
        """The by columns of each group, by its number."""
        self.features = features
        self.buckets = self.confidence.buckets
        self.n_searched = len(range(self.buckets)[EVEN])
        """How many buckets the search sees."""
        (self.metric,) = self.query.metrics
        self.plan = plan
        plan.value(self.metric)
        self.partials = {PartialKind.of(each, plan.by): each for each in plan.all_partials}
        self.statistics = {kind: statistics_of(partial) for kind, partial in self.partials.items()}
        self.is_of_sums = all(map(_are_sums, self.partials.values()))
        """Whether the statistics of some rows can be taken off those of all."""
        self.codes = [each.code().alias(code_column(i)) for i, each in enumerate(features)]
        self._known: Numbers | None = None
        """How many rows each bucket had when they were read first."""
        self._whole: Part | None = None
        """All rows, where they are kept."""

    def _in_groups(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the numbers of their groups."""
        if not self.by:
            # A cross join would copy the rows.
            return rows.with_columns(pl.lit(0, dtype=pl.Int32).alias(GROUP))
        return rows.join(self.groups.lazy(), on=self.by, how="left", nulls_equal=True, maintain_order="left")

    def _read(self, buckets: slice, *, samples: bool) -> Iterable[Part]:
        """The rows that are not kept, part by part. The first reading counts their samples."""
        return ()

    def unnamed_clusters(self) -> list[UnnamedCluster]:
        """The columns that may be clusters, where none is named. A state does not know them."""
        return []

    def parts(self, buckets: slice = EVERY, *, samples: bool = False) -> Iterator[Part]:
        """The rows, part by part: all, or half of them. Raise where these are not as many as before."""
        rows = np.zeros(self.buckets, dtype=np.int64)
        for part in [self._whole] if self._whole else self._read(buckets, samples=samples):
            rows += np.bincount(part.rows[WITHOUT], part.rows[N_ROWS], self.buckets).astype(np.int64)
            yield part if buckets == EVERY else part.half(buckets)
        before = self.n_rows if self._known is None else self._known[buckets].sum()
        if rows[buckets].sum() != before:
            raise ParameterError(
                f"the log had {before:,} rows when it was read first, and then {rows[buckets].sum():,}: find_slices "
                "reads it several times. Collect it first, or run it again when its files no longer change."
            )
        self._known = rows if self._known is None else self._known

    def folded(self, tables: Sequence[Tables], keys: Sequence[str]) -> dict[PartialKind, pl.DataFrame]:
        """Tables as one, at other keys beside those of their units."""
        found = {}
        for kind, statistics in self.statistics.items():
            units = [*keys, *self.search.sides, *kind.units]
            columns = [*units, *(each.name for each in statistics)]
            rows = pl.concat([each[kind].select(columns) for each in tables if kind in each], how="vertical_relaxed")
            found[kind] = merge(rows.lazy(), units, statistics).collect()
        return found

    def values(self, tables: Tables, by: Sequence[str]) -> pl.LazyFrame:
        """The `value` of the metric at the keys of tables, and the bound of how far bins may put it off."""
        return values_by(self.plan, self.metric, self.source_of(tables, by), by)

    def source_of(self, tables: Tables, by: Sequence[str]) -> FoldedTables:
        """A source of tables that are folded at some keys."""
        return FoldedTables(tables, [*by, *self.search.sides], self.plan.schema)


def _are_sums(partial: Partial) -> bool:
    return all(each.monoid == "sum" and each.moment is None for each in statistics_of(partial))


def passes_for(
    query: Query, count: int | Literal["auto", "files"] | None, memory: int | str | None, *, progress: bool
) -> Passes | None:
    """The passes in which a log is searched: also where none are wanted, if it is long."""
    n_rows = query.frame.select(pl.len()).collect().item()
    if count is None and memory is None and n_rows > AT_ONCE:
        count = whole_times(PART, n_rows)
    return passes_of(query, count, memory, progress=progress)


class EncodedLog(Encoded):
    """A log in codes: read at once and kept, or part by part."""

    def __init__(self, search: Search, names: Sequence[str], top: int, bins: int) -> None:
        question, query = search.question, search.question.query
        # One by one: together they would hold all these columns.
        values = {name: values_of(query, name).collect(engine="streaming") for name in names}
        features = features_of(query.schema, values, top, bins)
        keys = [GROUP, WITHOUT, *map(code_column, range(len(features))), *search.sides]
        groups = query.rows.select(key.column for key in query.by).unique().collect()
        plan = search.plan_type(FoldedTables({}, keys, query.schema), keys, query.readings)
        super().__init__(search, plan, groups, features)
        self._plain = [kind for kind, each in self.partials.items() if _is_plain(each)]
        cluster = list(self.confidence.cluster)
        self.cluster = [] if cluster == list(query.roles.sample) else cluster
        self.n_rows = int(query.with_keys(query.frame).select(pl.len()).collect().item())
        parts = question.passes.how_many(BYTES, self.n_rows) if question.passes else 1
        self.how = f"rows read in {parts} passes for each step" if parts > 1 else "rows as they are"
        if parts == 1:
            [self._whole] = self._read(EVERY, samples=True)

    def unnamed_clusters(self) -> list[UnnamedCluster]:
        query, features = self.query, list(dict.fromkeys(each.name for each in self.features))
        tables = [query.roles, *(measure.table for measure in query.measures)]
        roles = {
            name for each in tables for read in each.read_by(("sample", "label")) for name in read.meta.root_names()
        }
        free = {*query.schema} - roles - {MODEL, *query.columns_of_keys}
        if self.cluster:
            return []
        rows = query.with_keys(query.frame)
        return unnamed_clusters(rows, self.n_rows, self.by, query.roles.sample, features, free)

    def _read(self, buckets: slice, *, samples: bool) -> Iterator[Part]:
        if not self.question.passes:
            yield self._part(self.query.rows, buckets, samples=samples)
        else:
            # To be closed where a pass fails: a bar would stay on the screen.
            with closing(self.question.passes.parts(BYTES, self.n_rows)) as parts:
                for rows in parts:
                    yield self._part(rows, buckets, samples=samples)

    def _part(self, rows: pl.LazyFrame, buckets: slice, *, samples: bool) -> Part:
        """Some rows, with what each adds to the partials; or folded, where a row alone does not say that."""
        bucket = pl.col(WITHOUT).cast(pl.UInt8 if self.buckets <= 2**8 else pl.Int32)
        rows = self._in_groups(rows.filter(in_buckets(buckets))).with_columns(bucket, *self.codes)
        source, keys = LogSource(rows, self.query.roles.label, self.plan.schema), self.plan.by
        others = {kind: each for kind, each in self.partials.items() if kind not in self._plain}
        # Each by itself: what they share is not worth a fold at the keys of all.
        folded = [source.partials([each], keys)[0][0] for each in others.values()]
        columns = [code_of(self.cluster).alias(CLUSTER)] if self.cluster else []
        if samples:
            is_known = pl.all_horizontal(pl.col(column).is_not_null() for column in self.query.roles.sample)
            own = code_of([*self.by, *self.search.sides, *self.query.roles.sample])
            columns.append(pl.when(is_known).then(own).alias(SAMPLE))
        for kind in self._plain:
            rows = self.partials[kind].fold.with_features(rows)
        added = {each.name: each.row.alias(each.name) for kind in self._plain for each in self.statistics[kind]}
        units = dict.fromkeys(unit for kind in self._plain for unit in kind.units)
        found, *tables = pl.collect_all([rows.select(*keys, *units, *columns, *added.values()), *folded])
        found = found.with_columns(pl.lit(1, dtype=pl.Int8).alias(name) for name in (N_ROWS, N_SAMPLES))
        found, varied = self._with_samples(found, samples=samples)
        return Part(found, dict.fromkeys(self._plain, found) | dict(zip(others, tables, strict=True)), varied)

    def _with_samples(self, rows: pl.DataFrame, *, samples: bool) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Rows that count their samples, each in its first row; and those of samples with several codes."""
        if not samples or (not rows[SAMPLE].null_count() and rows[SAMPLE].n_unique() == rows.height):
            return rows, None
        is_known, codes = pl.col(SAMPLE).is_not_null(), pl.col(self.plan.by[1:])
        ends = rows.lazy().filter(is_known).group_by(SAMPLE).agg(codes.min() != codes.max())
        varies = ends.filter(pl.any_horizontal(codes)).collect()
        self._check_whole(varies)
        is_varied = pl.col(SAMPLE).is_in(varies[SAMPLE].implode())
        is_first = pl.col(SAMPLE).is_first_distinct() & is_known & ~is_varied
        found = rows.with_columns(is_first.cast(pl.Int8).alias(N_SAMPLES))
        return found, rows.filter(is_varied) if varies.height else None

    def _check_whole(self, varies: pl.DataFrame) -> None:
        """Refuse features that part a sample, where the metric looks at whole samples."""
        looking = [measure for measure in self.query.measures if measure.probe.looks_at_samples]
        parted = [each.name for i, each in enumerate(self.features) if looking and varies[code_column(i)].any()]
        if parted:
            raise ColumnError(
                f"feature {parted[0]!r} has several values in one sample, and {looking[0].output_name} looks at whole "
                f"samples: see log.group_by({list(looking[0].table.sample)}).agg(pl.col({parted[0]!r}).n_unique())."
            )


def _is_plain(partial: Partial) -> bool:
    """Whether what each row adds to a partial is known from that row alone."""
    is_of_rows = partial.grain != "sample" and not (partial.rankings or partial.looks_back or partial.windows)
    return is_of_rows and _are_sums(partial)


class EncodedState(Encoded):
    """A state in codes."""

    how = "a state"

    def __init__(self, search: Search, names: Sequence[str], top: int, bins: int) -> None:
        query, source = search.question.query, search.source
        by, columns = [key.column for key in query.by], {key.column: key.name for key in query.slice_keys}
        keys = [*by, *columns, WITHOUT, *search.sides]
        counts = _counts_of_state(query, source, [*by, *search.sides], keys).rename(columns)
        values = {name: counts_of(counts.lazy(), name, pl.col(N_ROWS)).collect() for name in names}
        features = features_of(counts.schema, values, top, bins)
        super().__init__(search, search.plan_type(source, keys, query.readings), counts, features)
        self.n_rows = int(counts[N_ROWS].sum())

        def encoded(table: pl.DataFrame) -> pl.DataFrame:
            return self._in_groups(table.rename(columns, strict=False).lazy()).with_columns(self.codes).collect()

        found = pl.collect_all([table for table, _ in source.partials(list(self.partials.values()), keys)])
        self._whole = Part(encoded(counts), dict(zip(self.partials, map(encoded, found), strict=True)))


def _counts_of_state(query: Query, source: Source, by: list[str], keys: list[str]) -> pl.DataFrame:
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
