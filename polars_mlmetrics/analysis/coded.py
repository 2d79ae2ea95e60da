"""A log (or a state) as it is searched: what each row tells, with its group, its bucket and its features as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import polars as pl

from polars_mlmetrics.analysis import contrasts
from polars_mlmetrics.analysis.contrasts import UNIT, Contrasts, Kind
from polars_mlmetrics.analysis.features import Feature
from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.packing import place_in
from polars_mlmetrics.engine.partials import Partial
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Rows, RowsInPasses
from polars_mlmetrics.errors import INTERNAL, ColumnError
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.source import passes_of, source_of

GROUP, SAMPLE, CLUSTER, N_ROWS, N_SAMPLES, VARIES = (
    f"{INTERNAL}{name}" for name in ("group", "sample", "cluster", "n_rows", "n_samples", "varies")
)

BYTES = 60
"""What a row takes, about, while its sample is counted."""

Asked = tuple[int | Literal["auto", "files"] | None, int | str | None, bool]
"""The passes that are asked for, the memory that they aim at, and whether they say how far they are."""

ROOM = 2**62
"""What a packed number of codes stays below."""

SHRINKS = 10
"""Rows are folded by all codes at once where there are so many rows for each combination of these, or more."""


def code_column(place: int) -> str:
    """The column that says which condition of a feature a row meets."""
    return f"{INTERNAL}code_{place}"


class Told(NamedTuple):
    """What is known of the rows for one partial of the plan: statistics with codes, and the units they are of."""

    frame: pl.DataFrame
    units: pl.DataFrame
    statistics: list[Statistic]

    @property
    def is_of_sums(self) -> bool:
        """Whether what a part of it tells can be taken off the whole."""
        return all(each.monoid == "sum" and each.moment is None for each in self.statistics)


@dataclass
class Coded:
    """A log as it is searched."""

    groups: pl.DataFrame
    """The by columns of each group, by their number."""
    features: list[Feature]
    told: dict[Kind, Told]
    counts: pl.DataFrame
    """How many rows and samples there are with the same codes; with SAMPLE where samples lie in several slices."""
    clusters: pl.DataFrame | None
    """The clusters by code, where these are no samples."""
    plan: Plan
    metric: Node
    said: str
    """How it was read, in words."""

    @property
    def codes(self) -> list[str]:
        """The columns of codes."""
        return [code_column(place) for place in range(len(self.features))]

    def contrasts(self, sign: int) -> Contrasts:
        """What tells cells from the rest of their groups."""
        return Contrasts(self.plan, self.metric, {kind: told.units for kind, told in self.told.items()}, sign)


class Packs:
    """Codes in few whole numbers."""

    def __init__(self, sizes: Sequence[tuple[str, int]]) -> None:
        self.places: list[tuple[str, str, int, int]] = []
        self.keys: list[str] = []
        step = ROOM
        for name, size in sizes:
            if step * size >= ROOM:
                self.keys.append(f"{INTERNAL}packed_{len(self.keys)}")
                step = 1
            self.places.append((name, self.keys[-1], step, size))
            step *= size

    @property
    def cells(self) -> int:
        """How many combinations of codes there can be."""
        cells = 1
        for *_, size in self.places:
            cells *= size
        return cells

    def packed(self, codes: dict[str, pl.Expr]) -> list[pl.Expr]:
        """The numbers, from the codes."""
        terms: dict[str, pl.Expr] = {}
        for name, key, step, _ in self.places:
            term = codes[name].cast(pl.Int64) * step
            terms[key] = terms[key] + term if key in terms else term
        return [term.alias(key) for key, term in terms.items()]

    def codes(self) -> list[pl.Expr]:
        """The codes again."""
        return [place_in(pl.col(key), step, size).cast(pl.Int32).alias(name) for name, key, step, size in self.places]


class Reader:
    """Reads a log into codes."""

    def __init__(self, query: Query, features: list[Feature], passes: Asked, buckets: int) -> None:
        bucket = next(column for column in query.added if column.meta.output_name() == WITHOUT)
        sizes = [(WITHOUT, buckets), *((code_column(place), each.size) for place, each in enumerate(features))]
        self._packs = Packs(sizes)
        codes = {WITHOUT: bucket, **{code_column(place): each.code() for place, each in enumerate(features)}}
        added = self._packs.packed(codes)
        schema = pl.Schema({**query.schema, **{key: pl.Int64() for key in self._packs.keys}})
        self._query = replace(query, added=[*query.added, *added], schema=schema)
        count, memory, progress = passes
        self._passes = passes_of(self._query, count, memory, progress=progress)
        self._features = features
        self._by = [key.column for key in query.by]
        self._keys = [*self._by, *self._packs.keys]

    def read(self, cluster: Names) -> Coded:
        """The log, read now."""
        source, (metric,) = source_of(self._query, self._passes), self._query.metrics
        as_rows = not self._passes and self._n_rows() < SHRINKS * self._packs.cells
        # Of no source yet: rows would have one number for several keys, which are needed here.
        plan = Plan(contrasts.Told({}, self._keys, self._query.schema), self._keys, self._query.readings)
        plan.value(metric)
        asked = {Kind.of(each, self._keys): each for each in plan.asked}
        tables = [self._table(source, each, as_rows=as_rows) for each in asked.values()]
        counts, clusters = self._counts(source), self._clusters(source, column_names("cluster", cluster))
        found = pl.collect_all([*tables, counts, *clusters])
        groups = numbered(found[len(tables)], self._by)
        coded = [self._coded(table, groups) for table in found]
        told = {kind: told_of(kind, each, table) for (kind, each), table in zip(asked.items(), coded, strict=False)}
        said = "rows as they are" if as_rows else "rows folded by all features at once"
        if self._passes:
            said += ", in passes"
        of_clusters = coded[-1] if clusters else None
        return Coded(groups, self._features, told, coded[len(tables)], of_clusters, plan, metric, said)

    def _n_rows(self) -> int:
        return int(self._query.frame.select(pl.len()).collect().item())

    def _table(self, source: Rows, asked: Partial, *, as_rows: bool) -> pl.LazyFrame:
        """What the rows tell of a partial."""
        statistics = list(asked.fold.statistics.values())
        is_plain = asked.grain != "sample" and not (asked.rankings or asked.looks_back or asked.windows)
        are_sums = all(each.monoid == "sum" and each.moment is None for each in statistics)
        if as_rows and is_plain and are_sums and not isinstance(source, RowsInPasses):
            rows = asked.fold.with_features(source.rows)
            return rows.select(*asked.fold.keys, *(each.row.alias(each.name) for each in statistics))
        by = [key for key in asked.by if key not in self._keys]
        # A group stays a group, whatever stands for its keys.
        at = asked.at([*self._keys, *by])
        [(table, _)] = source.partials([at], [*self._keys, *by])
        return table

    def _counts(self, source: Rows) -> pl.LazyFrame:
        """How many rows and samples have the same codes."""
        sample = list(self._query.roles.sample)
        is_known = pl.all_horizontal(pl.col(column).is_not_null() for column in sample)
        if self._are_rows(source.rows, sample):
            one = pl.lit(1, dtype=pl.Int64)
            return source.rows.select(*self._keys, one.alias(N_ROWS), is_known.cast(pl.Int64).alias(N_SAMPLES))
        code = pl.when(is_known).then(code_of([*self._by, *sample])).alias(SAMPLE)

        def by_sample(rows: pl.LazyFrame) -> pl.LazyFrame:
            n_rows = pl.len().cast(pl.Int64).alias(N_ROWS)
            return fold(rows.select(*self._keys, code), [*self._keys, SAMPLE], [n_rows])

        def by_codes(rows: pl.LazyFrame) -> pl.LazyFrame:
            varies = pl.col(SAMPLE).is_not_null() & pl.col(SAMPLE).is_duplicated()
            counts = [
                pl.col(N_ROWS).sum(),
                pl.col(SAMPLE).count().cast(pl.Int64).alias(N_SAMPLES),
                pl.col(VARIES).any(),
            ]
            return fold(by_sample(rows).with_columns(varies.alias(VARIES)), self._keys, counts)

        [counts] = source.gathered(BYTES, lambda rows: [by_codes(rows)])
        counted = counts.collect()
        if not counted[VARIES].any():
            return counted.lazy().drop(VARIES)
        [counts] = source.gathered(BYTES, lambda rows: [by_sample(rows)])
        counted = counts.collect()
        self._check_whole(counted)
        return counted.lazy()

    def _are_rows(self, rows: pl.LazyFrame, sample: list[str]) -> bool:
        """Whether each row is a sample."""
        if len(sample) > 1 or self._passes or self._by:
            return False
        column = pl.col(sample[0])
        return bool(rows.select((column.n_unique() == pl.len()) & (column.null_count() == 0)).collect().item())

    def _check_whole(self, by_sample: pl.DataFrame) -> None:
        """Refuse features that part a sample, where the metric looks at whole samples."""
        looking = [measure for measure in self._query.measures if measure.probe.looks_at_samples]
        if not looking:
            return
        known = by_sample.filter(pl.col(SAMPLE).is_not_null()).with_columns(self._packs.codes())
        names = {code_column(place): each.name for place, each in enumerate(self._features)}
        table = known.group_by(SAMPLE).agg((pl.col(code).n_unique() > 1) for code in names)
        parted = [name for code, name in names.items() if table[code].any()]
        if parted:
            raise ColumnError(
                f"feature {parted[0]!r} has several values in one sample, and {looking[0].output_name} looks at whole "
                f"samples: see log.group_by({list(looking[0].table.sample)}).agg(pl.col({parted[0]!r}).n_unique())."
            )

    def _clusters(self, source: Rows, cluster: Sequence[str]) -> list[pl.LazyFrame]:
        """The clusters with each code; none where samples are the clusters."""
        if not cluster or list(cluster) == list(self._query.roles.sample):
            return []
        code = code_of(cluster).alias(CLUSTER)
        return source.gathered(BYTES, lambda rows: [rows.select(*self._keys, code).unique()])

    def _coded(self, table: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
        """A table with the numbers of its groups, and its codes."""
        return in_groups(table.with_columns(self._packs.codes()).drop(self._packs.keys), groups, self._by)


def numbered(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The groups of a table, by number."""
    groups = table.select(by).unique().sort(by, nulls_last=False) if by else pl.DataFrame([{}])
    return groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias(GROUP))


def in_groups(table: pl.DataFrame, groups: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """A table with the numbers of its groups, without their keys."""
    if not by:
        return table.with_columns(pl.lit(0, dtype=pl.Int32).alias(GROUP))
    return table.join(groups, on=by, how="left", nulls_equal=True, maintain_order="left").drop(by)


def told_of(kind: Kind, asked: Partial, table: pl.DataFrame) -> Told:
    """A coded table of a partial, its units as numbers."""
    keys = [name for name in table.columns if name in (GROUP, WITHOUT) or name.startswith(f"{INTERNAL}code_")]
    told = table.drop(keys, *kind.units) if kind.units else table.drop(keys)
    if asked.grain == "sample":
        statistics = [Statistic(name, pl.col(name), "sum") for name in told.columns]
    else:
        statistics = list(asked.fold.statistics.values())
    names = [each.name for each in statistics]
    table = table.with_columns(pl.col(each.name).fill_null(0) for each in statistics if each.monoid == "sum")
    if not kind.units:
        return Told(table.select(*keys, *names), pl.DataFrame(), statistics)
    units = table.select(kind.units).unique().sort(kind.units).with_row_index(UNIT)
    found = table.join(units, on=list(kind.units), how="left", nulls_equal=True)
    return Told(found.select(*keys, pl.col(UNIT).cast(pl.Int32), *names), units, statistics)
