"""Marked rows: in which of some chosen slices each row is, as bits of one number, and what each slice is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_mlmetrics.analysis.coded import CLUSTER, GROUP, N_ROWS, N_SAMPLES, Chunk, code_column
from polars_mlmetrics.analysis.contrasts import CELL, CONTRAST, Contrasts
from polars_mlmetrics.analysis.lattice import BUCKET, PLACE, Lattice
from polars_mlmetrics.analysis.merged import Merged
from polars_mlmetrics.analysis.summed import Part, rows_by_bucket, whole_of, zeros
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio

MARKS, BIT = f"{INTERNAL}marks", f"{INTERNAL}bit"
"""The slices that a row is in: a bit each, of the slices of its own group."""

SHARE = f"{INTERNAL}largest_share"


def is_in(lattice: Lattice, slices: pl.DataFrame) -> pl.Expr:
    """Whether a row is in the slice of its group; at most one slice a group."""
    asked: list[dict[int, int]] = [{-1: -1}] * lattice.n_groups
    for place in slices[PLACE]:
        number, codes = lattice.codes_of(place)
        asked[number] = codes
    if not slices.height:
        return pl.lit(False)
    if lattice.n_groups == 1:
        return pl.all_horizontal(pl.col(code_column(place)) == code for place, code in asked[0].items())
    group = pl.col(GROUP)
    conditions = [pl.lit(pl.Series([-1 not in codes for codes in asked])).gather(group)]
    for feature in {feature for codes in asked for feature in codes if feature >= 0}:
        wanted = pl.Series([codes.get(feature) for codes in asked], dtype=pl.Int32)
        code = pl.lit(wanted).gather(group)
        conditions.append(code.is_null() | (code == pl.col(code_column(feature))))
    return pl.all_horizontal(conditions)


def hint_of(lattice: Lattice, slices: pl.DataFrame) -> pl.Expr | None:
    """What holds of the columns of a log where a row is in the slice of its group; None where that is much to ask."""
    if lattice.n_groups > 1 or not slices.height:
        return None
    _, codes = lattice.codes_of(slices[PLACE][0])
    return all_of([lattice.coded.features[place].conditions[code].holds() for place, code in codes.items()])


def marks_of(lattice: Lattice, slices: pl.DataFrame) -> pl.Expr:
    """The bits of the slices that a row is in. Each slice has a BIT, and is the only one of its group that has it."""
    by_bit = slices.partition_by(BIT, as_dict=True)
    bits = [pl.when(is_in(lattice, some)).then(2 ** int(str(bit))).otherwise(0) for (bit,), some in by_bit.items()]
    return pl.sum_horizontal(bits).cast(pl.Int64).alias(MARKS)


def has(bit: int) -> pl.Expr:
    """Whether a row is in the slice of this bit."""
    return (pl.col(MARKS) & pl.lit(2**bit, dtype=pl.Int64)) != 0


class Marked:
    """The rows of a part, folded by the slices that they are in."""

    def __init__(self, lattice: Lattice, part: Part, marks: pl.Expr, bits: Sequence[int]) -> None:
        self._lattice = lattice
        self._part = part
        self._marks = marks
        self._bits = bits
        self._sizes: list[pl.DataFrame] = []
        self._clusters: list[pl.DataFrame] = []
        self._folded: Chunk | None = None

    def add(self, chunk: Chunk) -> None:
        """Take in those of some rows that are of the part."""
        chunk = self._part.of(chunk).each(lambda frame: frame.with_columns(self._marks))
        self._sizes += [self._sizes_in(chunk, bit) for bit in self._bits]
        if chunk.clusters is not None:
            clusters = [chunk.clusters.filter(has(bit)).select(GROUP, _number(bit), CLUSTER) for bit in self._bits]
            self._clusters = [pl.concat([*self._clusters, *clusters]).unique()]
        of_counts = chunk.counts.group_by(GROUP, BUCKET, MARKS).agg(pl.col(N_ROWS).sum())
        layouts, keys = self._lattice.coded.layouts, [GROUP, BUCKET, MARKS]
        tables = {kind: layouts[kind].folded([table], keys) for kind, table in chunk.tables.items()}
        if self._folded is not None:
            of_counts = pl.concat([self._folded.counts, of_counts]).group_by(GROUP, BUCKET, MARKS).sum()
            known = self._folded.tables
            tables = {kind: layouts[kind].folded([known[kind], table], keys) for kind, table in tables.items()}
        self._folded = Chunk(of_counts, tables)

    @property
    def counts(self) -> pl.DataFrame:
        """How many rows there are in the same slices."""
        return self._whole.counts

    @property
    def _whole(self) -> Chunk:
        assert self._folded is not None
        return self._folded

    def contrasts(
        self, contrasts: Contrasts, merged: Merged, slices: pl.DataFrame, aside: pl.Expr | None = None
    ) -> pl.DataFrame:
        """What slices, by GROUP and BIT, are without the rows set aside."""
        rows = self._whole if aside is None else self._whole.filter(~aside)
        if not self._lattice.coded.is_of_sums:
            return self._merged(merged, rows, slices)
        groups, bits = slices[GROUP].to_numpy(), slices[BIT].to_numpy()
        grid = zeros(self._lattice, slices.height)
        for bit in np.unique(bits):
            own = whole_of(self._lattice, rows.filter(has(int(bit)))).of(groups[bits == bit])
            for sums, more in zip(grid.sums, own.sums, strict=True):
                for name, array in more.items():
                    sums[name][bits == bit] = array
        buckets = (rows_by_bucket(self._lattice, rows) > 0).sum(axis=1)
        found = contrasts.of(grid, whole_of(self._lattice, rows), groups, buckets)
        table = slices.hstack(found.table)
        if not found.is_right.all():
            lost = pl.Series(~found.is_right)
            again = self._merged(merged, rows, slices.filter(lost)).select(table.columns)
            table = in_order_of(slices, pl.concat([table.filter(~lost), again]))
        return table.select(*slices.columns, *CONTRAST)

    def _merged(self, merged: Merged, rows: Chunk, slices: pl.DataFrame) -> pl.DataFrame:
        """The same, put together from the other parts."""
        found = []
        for bit in slices[BIT].unique():
            columns = [has(bit).cast(pl.Int64).alias(CELL), pl.col(BUCKET).alias(WITHOUT)]
            tables = {kind: table.with_columns(columns) for kind, table in rows.tables.items()}
            some = slices.filter(pl.col(BIT) == bit)
            kept = some.select(GROUP, pl.lit(1, dtype=pl.Int64).alias(CELL))
            said = merged.of(merged.added({}, tables, kept), kept).drop(CELL)
            found.append(some.join(said, on=GROUP))
        return in_order_of(slices, pl.concat(found)).select(*slices.columns, *CONTRAST)

    def sizes(self) -> pl.DataFrame:
        """How many buckets, samples, rows and clusters a slice has, and the largest share of its rows in one bucket."""
        by_bucket = pl.concat(self._sizes).group_by(GROUP, BIT, BUCKET).agg(pl.col(N_SAMPLES, N_ROWS).sum())
        share = ratio(pl.col(N_ROWS).max(), pl.col(N_ROWS).sum()).alias(SHARE)
        n_buckets = pl.len().cast(pl.Int64).alias("n_buckets")
        sizes = by_bucket.group_by(GROUP, BIT).agg(n_buckets, pl.col(N_SAMPLES, N_ROWS).sum(), share)
        if not self._clusters:
            return sizes.with_columns(pl.col(N_SAMPLES).alias("n_clusters"))
        clusters = self._clusters[0].group_by(GROUP, BIT).agg(pl.len().cast(pl.Int64).alias("n_clusters"))
        return sizes.join(clusters, on=[GROUP, BIT], how="left")

    def _sizes_in(self, chunk: Chunk, bit: int) -> pl.DataFrame:
        """How many rows and samples of a slice each bucket has."""
        rows = chunk.counts.filter(has(bit)).group_by(GROUP, BUCKET).agg(pl.col(N_ROWS).sum(), chunk.samples())
        return rows.with_columns(_number(bit))


def _number(bit: int) -> pl.Expr:
    return pl.lit(bit, dtype=pl.Int64).alias(BIT)


def in_order_of(slices: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """What is known of slices, in their order."""
    return slices.select(GROUP, BIT).join(table, on=[GROUP, BIT], how="left", maintain_order="left")
