"""A log (or a state) as it is searched: chunks of rows, each with its group, its bucket and its features as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mlmetrics.engine.folds import merge
from polars_mlmetrics.engine.partials import Partial
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.slice_search.contrasts import UNIT, Contrasts, PartialKind
from polars_mlmetrics.slice_search.features import Feature

GROUP, SAMPLE, CLUSTER, N_ROWS, N_SAMPLES = (
    f"{INTERNAL}{name}" for name in ("group", "sample", "cluster", "n_rows", "n_samples")
)


def code_column(place: int) -> str:
    """The column that says which condition of a feature a row meets."""
    return f"{INTERNAL}code_{place}"


class Wanted(NamedTuple):
    """A part of the rows: of which buckets (None: all), and with which codes."""

    samples: bool = False
    """How many samples there are, beside the rows."""
    tables: bool = False
    """The tables that the metric needs."""
    clusters: bool = False
    buckets: Sequence[int] | None = None
    where: pl.Expr | None = None
    hint: pl.Expr | None = None
    """A condition on columns of the log that holds wherever `where` holds of the codes: no other row is needed."""

    @property
    def condition(self) -> pl.Expr:
        """Which rows these are, by their codes."""
        of_buckets = pl.lit(True) if self.buckets is None else pl.col(WITHOUT).is_in(self.buckets)
        return of_buckets if self.where is None else of_buckets & self.where


class Chunk(NamedTuple):
    """Rows of whole samples."""

    counts: pl.DataFrame
    """How many rows and samples have the same codes; with SAMPLE where a sample has several."""
    tables: dict[PartialKind, pl.DataFrame]
    """Their table for each partial of the plan: statistics, with the UNIT that they are of. With N_ROWS where
    there is a row for each row of the log."""
    clusters: pl.DataFrame | None = None
    """The clusters with the same codes, where these are no samples."""

    def each(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Chunk:
        """The same of changed frames."""
        clusters = None if self.clusters is None else change(self.clusters)
        return Chunk(change(self.counts), {kind: change(table) for kind, table in self.tables.items()}, clusters)

    def filter(self, condition: pl.Expr) -> Chunk:
        """Some of the rows."""
        return self.each(lambda frame: frame.filter(condition))

    def samples(self) -> pl.Expr:
        """How many samples some of the counts stand for."""
        several = SAMPLE in self.counts.columns
        samples = pl.col(SAMPLE).drop_nulls().n_unique() if several else pl.col(N_SAMPLES).sum()
        return samples.cast(pl.Int64).alias(N_SAMPLES)


class Layout(NamedTuple):
    """The columns of the tables of one partial."""

    statistics: list[Statistic]
    units: pl.DataFrame
    """The keys of each UNIT."""
    schema: pl.Schema

    @property
    def types(self) -> dict[str, type[int] | type[float]]:
        """The columns of the statistics: whole numbers or others."""
        return {name: float if self.schema[name].is_float() else int for name in self.names}

    @property
    def is_of_sums(self) -> bool:
        """Whether what a part of the rows tells can be taken off the whole."""
        return all(each.monoid == "sum" and each.moment is None for each in self.statistics)

    @property
    def n_units(self) -> int:
        """How many units there are: 1 where the group is the unit."""
        return max(1, self.units.height)

    @property
    def names(self) -> list[str]:
        """The columns of the statistics."""
        return [each.name for each in self.statistics]

    def folded(self, tables: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
        """Tables as one, at other keys (beside the unit)."""
        keys = [*keys, UNIT] if self.units.width else [*keys]
        columns = [*keys, *self.names]
        rows = pl.concat([each.select(columns) for each in tables], how="vertical_relaxed")
        return merge(rows.lazy(), keys, self.statistics).collect()


class Totals:
    """The sums of all rows, added up chunk by chunk."""

    def __init__(
        self, groups: int, buckets: int, sizes: Sequence[int], statistics: Mapping[PartialKind, list[Statistic]]
    ) -> None:
        self.rows = np.zeros((groups, buckets), dtype=np.int64)
        """The rows of each group and bucket."""
        self.samples = np.zeros(groups, dtype=np.int64)
        """The samples of each group."""
        self.by_code = [np.zeros(size, dtype=np.int64) for size in sizes]
        """The rows of each code of each feature."""
        self.tables: dict[PartialKind, pl.DataFrame] = {}
        """The tables of whole groups, with the keys of their units."""
        self.samples_vary = False
        """Whether a sample has several codes of a feature."""
        self._statistics = statistics

    def add(self, chunk: Chunk) -> None:
        """Take in more rows."""
        counts = chunk.counts
        by_bucket = counts.group_by(GROUP, WITHOUT).agg(pl.col(N_ROWS).sum())
        self.rows[by_bucket[GROUP].to_numpy(), by_bucket[WITHOUT].to_numpy()] += by_bucket[N_ROWS].to_numpy()
        samples = counts.group_by(GROUP).agg(chunk.samples())
        self.samples[samples[GROUP].to_numpy()] += samples[N_SAMPLES].to_numpy()
        for place, found in enumerate(self.by_code):
            by_code = counts.group_by(code_column(place)).agg(pl.col(N_ROWS).sum())
            found[by_code[code_column(place)].to_numpy()] += by_code[N_ROWS].to_numpy()
        self.samples_vary |= SAMPLE in counts.columns
        for kind, table in chunk.tables.items():
            keys, statistics = [GROUP, *kind.units], self._statistics[kind]
            more = table.select(*keys, *(each.name for each in statistics))
            rows = pl.concat([self.tables[kind], more], how="vertical_relaxed") if kind in self.tables else more
            self.tables[kind] = merge(rows.lazy(), keys, statistics).collect()

    def units(self, kind: PartialKind) -> pl.DataFrame:
        """The units of a partial, by number."""
        if not kind.units:
            return pl.DataFrame()
        return (
            self.tables[kind].select(kind.units).unique().sort(kind.units).with_row_index(UNIT).cast({UNIT: pl.Int32})
        )


Read = Callable[[Wanted], Iterable[Chunk]]
"""A function that reads the rows, as often as it is called. Tables have the keys of their units."""


@dataclass(eq=False)
class Coded:
    """A log as it is searched."""

    read: Read
    groups: pl.DataFrame
    """The by columns of each group, by its number."""
    features: list[Feature]
    statistics: Mapping[PartialKind, list[Statistic]]
    plan: Plan
    metric: Node
    buckets: int

    def __post_init__(self) -> None:
        sizes = [each.size for each in self.features]
        self.totals = Totals(self.groups.height, self.buckets, sizes, self.statistics)
        for chunk in self.read(Wanted(samples=True, tables=True)):
            self.totals.add(chunk)
        self.layouts = {
            kind: Layout(each, self.totals.units(kind), self.totals.tables[kind].schema)
            for kind, each in self.statistics.items()
        }

    @property
    def is_of_sums(self) -> bool:
        """Whether what some rows tell can be taken off what all tell."""
        return all(layout.is_of_sums for layout in self.layouts.values())

    def contrasts(self, sign: int) -> Contrasts:
        """The keys that tell cells from the rest of their groups."""
        return Contrasts(self.plan, self.metric, {kind: layout.units for kind, layout in self.layouts.items()}, sign)

    def chunks(self, wanted: Wanted) -> Iterator[Chunk]:
        """The rows, chunk by chunk."""
        n_rows = 0
        for chunk in self.read(wanted):
            n_rows += int(chunk.counts[N_ROWS].sum())
            yield chunk._replace(tables={kind: self._with_units(kind, table) for kind, table in chunk.tables.items()})
        rows = self.totals.rows if wanted.buckets is None else self.totals.rows[:, list(wanted.buckets)]
        if wanted.where is None and n_rows != rows.sum():
            raise ParameterError(
                f"the log had {rows.sum():,} rows when it was read first, and then {n_rows:,}: find_slices reads it "
                "several times. Collect it first, or run it again when its files no longer change."
            )

    def _with_units(self, kind: PartialKind, table: pl.DataFrame) -> pl.DataFrame:
        if not kind.units:
            return table
        units = self.layouts[kind].units
        return table.join(units, on=list(kind.units), how="left", nulls_equal=True).drop(kind.units)


def numbered(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The groups of a table, by number."""
    groups = table.select(by).unique().sort(by, nulls_last=False) if by else pl.DataFrame([{}])
    return groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias(GROUP))


def in_groups(rows: pl.LazyFrame, groups: pl.DataFrame, by: Sequence[str]) -> pl.LazyFrame:
    """Rows with the numbers of their groups."""
    if not by:
        return rows.with_columns(pl.lit(0, dtype=pl.Int32).alias(GROUP))
    return rows.join(groups.lazy(), on=by, how="left", nulls_equal=True, maintain_order="left")


def again(held: Sequence[Chunk]) -> Read:
    """Rows that are held, read as others are."""
    return lambda wanted: (chunk.filter(wanted.condition) for chunk in held)


def statistics_of(asked: Partial) -> list[Statistic]:
    """The statistics in the table of a partial: of samples, the sums of their values."""
    if asked.grain != "sample":
        return list(asked.fold.statistics.values())
    return [Statistic(name, pl.col(name), "sum") for name in asked.values.stored_sums().values()]


def with_sums(table: pl.DataFrame, statistics: Sequence[Statistic]) -> pl.DataFrame:
    """A table in which the sum of nothing is 0."""
    return table.with_columns(pl.col(each.name).fill_null(0) for each in statistics if each.monoid == "sum")
