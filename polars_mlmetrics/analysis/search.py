"""The search: every slice of some buckets, scored; and scored again without the rows that are set aside."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_mlmetrics.analysis.coded import GROUP, N_ROWS, N_SAMPLES
from polars_mlmetrics.analysis.contrasts import CELL, Contrasts, Numbers
from polars_mlmetrics.analysis.intervals import FEW_BUCKETS
from polars_mlmetrics.analysis.lattice import PLACE, Lattice
from polars_mlmetrics.analysis.merged import Merged, Tables, t_of
from polars_mlmetrics.analysis.summed import Part, Sizes, Summed
from polars_mlmetrics.engine.packing import place_in
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.formula.arithmetic import ratio

MOST_SUMS = 60_000_000
"""How many sums of slices, buckets and units are held at once."""

SCORES: dict[str, pl.DataType] = {
    PLACE: pl.Int64(),
    GROUP: pl.Int32(),
    "n_samples": pl.Int64(),
    **dict.fromkeys(("value", "rest", "gap", "se", "t"), pl.Float64()),
}
"""What is known of a slice in some rows."""

WHOLE = f"{INTERNAL}whole"


class Search:
    """The slices of a part of the log. `least` is how many samples a slice must have, by group."""

    def __init__(self, lattice: Lattice, part: Part, contrasts: Contrasts, merged: Merged, least: Numbers) -> None:
        self._lattice = lattice
        self._part = part
        self._contrasts = contrasts
        self._merged = merged
        self._least = pl.lit(pl.Series(least)).gather(pl.col(GROUP))
        self._is_of_sums = lattice.coded.is_of_sums
        self._sizes = Sizes(lattice)
        for chunk in part.chunks(samples=True):
            self._sizes.add(chunk)
        self._keep_sizes(self._large())
        self._check_size()
        self._summed = Summed(lattice, self._sizes.places)
        for chunk in part.chunks(tables=self._is_of_sums):
            self._summed.add(chunk)
        self.scores = self._scored(self._in_buckets(self._large()))
        """Every slice that was searched."""
        kept = self._keep_sizes(self.scores.filter(pl.col("t") > 0))
        self._summed = self._summed.of(kept)

    def again(self, aside: pl.Expr, hint: pl.Expr | None) -> pl.DataFrame:
        """The slices that are worse than the rest, scored without these rows. See `Part.filter` for the hint."""
        head, self._part = self._part.filter(aside, hint), self._part.filter(~aside)
        sizes, summed = Sizes(self._lattice, self._sizes.places), Summed(self._lattice, self._sizes.places)
        for chunk in head.chunks(samples=True, tables=self._is_of_sums):
            sizes.add(chunk)
            summed.add(chunk)
        self._sizes, self._summed = self._sizes.without(sizes), self._summed.without(summed)
        if self._lattice.coded.totals.samples_vary:
            self._count_again()
        return self._scored(self._in_buckets(self._large()))

    def _count_again(self) -> None:
        """Count the samples that are left: one may have rows that are left, and others that are not."""
        self._sizes = Sizes(self._lattice, self._sizes.places)
        for chunk in self._part.chunks(samples=True):
            self._sizes.add(chunk)

    def _keep_sizes(self, slices: pl.DataFrame) -> Numbers:
        """Go on with some of the slices; which of them these are."""
        is_kept: Numbers = np.isin(self._sizes.places, slices[PLACE].to_numpy())
        self._sizes = self._sizes.of(is_kept)
        return is_kept

    def _check_size(self) -> None:
        units = sum(layout.n_units * len(layout.names) for layout in self._lattice.coded.layouts.values())
        n_slices = len(self._sizes.places)
        size = n_slices * self._lattice.buckets * units
        if size > MOST_SUMS:
            raise ParameterError(
                f"{n_slices:,} slices have {size:,} sums by bucket and label, which is too many: look at "
                "fewer features, or pass a smaller depth= or a larger min_samples=."
            )

    def _large(self) -> pl.DataFrame:
        """The slices that have enough samples, as has the rest."""
        sizes = self._sizes
        slices = pl.DataFrame({PLACE: sizes.places, N_ROWS: sizes.rows, N_SAMPLES: sizes.samples})
        group = place_in(pl.col(PLACE), 1, self._lattice.n_groups).cast(pl.Int32).alias(GROUP)
        samples, rows = (pl.lit(pl.Series(of)) for of in (sizes.samples_of_groups, sizes.rows_of_groups))
        slices = slices.with_columns(group).with_columns(samples.gather(pl.col(GROUP)).alias(WHOLE))
        # A sample may have rows in a slice and in the rest: rows are what can be taken off.
        all_rows = rows.gather(pl.col(GROUP))
        rest = ratio(all_rows - pl.col(N_ROWS), all_rows) * pl.col(WHOLE)
        return slices.filter(pl.min_horizontal(pl.col(N_SAMPLES), rest) >= self._least)

    def _in_buckets(self, slices: pl.DataFrame) -> pl.DataFrame:
        """The slices that have rows in enough buckets."""
        n_buckets = (self._summed.rows > 0).sum(axis=1)[np.searchsorted(self._sizes.places, slices[PLACE].to_numpy())]
        return slices.filter(pl.Series(n_buckets >= FEW_BUCKETS))

    def _scored(self, slices: pl.DataFrame) -> pl.DataFrame:
        if not slices.height:
            return pl.DataFrame(schema=SCORES)
        if not self._is_of_sums:
            said = self._of_merged(slices)
        else:
            at = np.searchsorted(self._sizes.places, slices[PLACE].to_numpy())
            buckets = (self._summed.rows_of_groups > 0).sum(axis=1)
            own, groups = self._summed.own.of(at), slices[GROUP].to_numpy()
            found = self._contrasts.of(own, self._summed.whole, groups, buckets)
            said = slices.hstack(found.table)
            if not found.is_right.all():
                lost = pl.Series(~found.is_right)
                said = pl.concat([said.filter(~lost), self._of_merged(slices.filter(lost)).select(said.columns)])
        said = said.with_columns(t_of(pl.col("gap"), pl.col("se")).alias("t"), pl.col(N_SAMPLES).alias("n_samples"))
        return said.select(*SCORES).cast(pl.Schema(SCORES)).sort(PLACE)

    def _of_merged(self, slices: pl.DataFrame) -> pl.DataFrame:
        """What slices are, from the other parts put together."""
        starts = pl.Series([each.start for each in self._lattice.combinations])
        number = starts.search_sorted(slices[PLACE], side="right") - 1
        asked = {
            int(str(at)): some.drop(CELL)
            for (at,), some in slices.with_columns(number.alias(CELL)).group_by(CELL, maintain_order=True)
        }
        kept = {at: some.select(GROUP, pl.col(PLACE).alias(CELL)) for at, some in asked.items()}
        tables: dict[int, Tables] = {at: {} for at in asked}
        for chunk in self._part.chunks(tables=True):
            for at, cells in kept.items():
                cell = self._lattice.combinations[at].cell(self._lattice.n_groups).alias(CELL)
                more = {kind: table.with_columns(cell) for kind, table in chunk.tables.items()}
                tables[at] = self._merged.added(tables[at], more, cells)
        found = []
        for at, some in asked.items():
            said = self._merged.of(tables[at], kept[at])
            found.append(some.join(said.rename({CELL: PLACE}), on=[GROUP, PLACE]))
        return pl.concat(found)
