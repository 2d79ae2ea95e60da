"""Marked rows: in which of some chosen slices each row is, as bits of one number, and what each slice is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from polars_mlmetrics.analysis.coded import CLUSTER, GROUP, N_ROWS, N_SAMPLES, SAMPLE, code_column
from polars_mlmetrics.analysis.contrasts import CELL, UNIT, Contrasts, Grid, Kind
from polars_mlmetrics.analysis.lattice import BUCKET, PLACE, Lattice
from polars_mlmetrics.analysis.merged import Merged
from polars_mlmetrics.analysis.search import Part, whole_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio

if TYPE_CHECKING:
    from polars_mlmetrics.analysis.contrasts import Numbers

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

    def __init__(self, lattice: Lattice, part: Part, marks: pl.Expr) -> None:
        self._lattice = lattice
        counts = part.counts.with_columns(marks)
        more = [SAMPLE] if SAMPLE in counts.columns else []
        sums = [pl.col(N_ROWS).sum(), *([] if more else [pl.col(N_SAMPLES).sum()])]
        self.counts = counts.group_by(GROUP, BUCKET, MARKS, *more).agg(sums)
        self.told = {kind: self._folded(kind, frame.with_columns(marks)) for kind, frame in part.told.items()}

    def _folded(self, kind: Kind, frame: pl.DataFrame) -> pl.DataFrame:
        told = self._lattice.coded.told[kind]
        if not told.is_of_sums:
            return frame
        keys = [GROUP, BUCKET, MARKS, *([UNIT] if kind.units else [])]
        return frame.group_by(keys).agg(pl.col(each.name).sum() for each in told.statistics)

    @property
    def part(self) -> Part:
        """As rows."""
        return Part(self.counts, self.told)

    def contrasts(
        self, contrasts: Contrasts, merged: Merged, slices: pl.DataFrame, aside: pl.Expr | None = None
    ) -> tuple[pl.DataFrame, Numbers | None]:
        """What slices, by GROUP and BIT, are without the rows set aside; and how far each bucket moves their gaps."""
        import numpy as np

        part = self.part if aside is None else self.part.filter(~aside)
        if not all(told.is_of_sums for told in self._lattice.coded.told.values()):
            return self._merged(merged, part, slices), None
        whole, buckets = whole_of(part, self._lattice)
        groups, bits = slices[GROUP].to_numpy(), slices[BIT].to_numpy()
        own = [
            whole_of(part.filter(has(int(bit))), self._lattice)[0].of(groups[bits == bit]) for bit in np.unique(bits)
        ]
        order = np.argsort(np.argsort(bits, kind="stable"), kind="stable")
        grid = Grid([
            {name: np.concatenate([each.sums[i][name] for each in own])[order] for name in sums}
            for i, sums in enumerate(own[0].sums)
        ])  # fmt: skip
        found = contrasts.of(grid, whole, groups, buckets)
        table = slices.hstack(found.table)
        if not found.is_right.all():
            lost = pl.Series(~found.is_right)
            again = self._merged(merged, part, slices.filter(lost)).select(table.columns)
            table = pl.concat([table.filter(~lost), again])
            table = slices.select(GROUP, BIT).join(table, on=[GROUP, BIT], how="left", maintain_order="left")
        return table.select(*slices.columns, "value", "rest", "gap", "se"), found.moved

    def _merged(self, merged: Merged, part: Part, slices: pl.DataFrame) -> pl.DataFrame:
        found = []
        for bit in slices[BIT].unique():
            frames = {
                kind: frame.with_columns(has(bit).cast(pl.Int64).alias(CELL)) for kind, frame in part.told.items()
            }
            frames = {kind: self._with_bucket(frame) for kind, frame in frames.items()}
            some = slices.filter(pl.col(BIT) == bit)
            said = merged.of(frames, some.select(GROUP, pl.lit(1, dtype=pl.Int64).alias(CELL))).drop(CELL)
            found.append(some.join(said, on=GROUP))
        table = pl.concat(found)
        return slices.select(GROUP, BIT).join(table, on=[GROUP, BIT], how="left", maintain_order="left").select(
            *slices.columns, "value", "rest", "gap", "se"
        )  # fmt: skip

    def _with_bucket(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col(BUCKET).alias(WITHOUT))

    def sizes(self, bits: Sequence[int]) -> pl.DataFrame:
        """How many buckets, samples and rows each slice has, and the largest share of them in one bucket."""
        found = []
        for bit in bits:
            rows = self.counts.filter(has(bit))
            samples = pl.col(SAMPLE).drop_nulls().n_unique() if SAMPLE in rows.columns else pl.col(N_SAMPLES).sum()
            by_bucket = rows.group_by(GROUP, BUCKET).agg(pl.col(N_ROWS).sum(), samples.cast(pl.Int64).alias(N_SAMPLES))
            share = ratio(pl.col(N_ROWS).max(), pl.col(N_ROWS).sum()).alias(SHARE)
            n_buckets = pl.len().cast(pl.Int64).alias("n_buckets")
            counted = by_bucket.group_by(GROUP).agg(n_buckets, pl.col(N_SAMPLES, N_ROWS).sum(), share)
            found.append(counted.with_columns(pl.lit(bit, dtype=pl.Int64).alias(BIT)))
        return pl.concat(found)

    def rows_in(self, bit: int, aside: pl.Expr | None = None) -> dict[int, int]:
        """How many rows of a slice there are in each group, of those set aside."""
        rows = self.counts.filter(has(bit)) if aside is None else self.counts.filter(has(bit), aside)
        return dict(rows.group_by(GROUP).agg(pl.col(N_ROWS).sum()).iter_rows())


def clusters_in(clusters: pl.DataFrame, marks: pl.Expr, bits: Sequence[int]) -> pl.DataFrame:
    """How many clusters each slice has."""
    marked = clusters.with_columns(marks)
    counts = [
        marked.filter(has(bit)).group_by(GROUP).agg(pl.col(CLUSTER).n_unique().cast(pl.Int64).alias("n_clusters"))
        .with_columns(pl.lit(bit, dtype=pl.Int64).alias(BIT))
        for bit in bits
    ]  # fmt: skip
    return pl.concat(counts)
