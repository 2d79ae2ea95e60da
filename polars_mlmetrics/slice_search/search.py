"""The search: what the rows of slices add up to, chunk by chunk, and every slice scored from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_mlmetrics.engine.packing import place_in
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.intervals import FEW_BUCKETS
from polars_mlmetrics.slice_search.coded import GROUP, N_ROWS, N_SAMPLES, SAMPLE, Chunk, Coded, Wanted
from polars_mlmetrics.slice_search.contrasts import CELL, UNIT, Contrasts, Grid, Numbers
from polars_mlmetrics.slice_search.lattice import BUCKET, PLACE, CellSums, Lattice
from polars_mlmetrics.slice_search.merged import Merged, Tables, t_of

MOST_SUMS = 60_000_000
"""How many sums of slices, buckets and units are held at once."""

SCORES: dict[str, pl.DataType] = {
    PLACE: pl.Int64(),
    GROUP: pl.Int32(),
    "n_samples": pl.Int64(),
    **dict.fromkeys(("value", "rest", "gap", "se", "t"), pl.Float64()),
}
"""The columns that the search has of a slice."""

WHOLE = f"{INTERNAL}whole"


@dataclass(frozen=True)
class SearchPart:
    """The rows of every second bucket of a log, without those that are set aside."""

    coded: Coded
    buckets: list[int]
    where: pl.Expr | None = None
    hint: pl.Expr | None = None

    def filter(self, condition: pl.Expr, hint: pl.Expr | None = None) -> SearchPart:
        """Some of the rows. What holds of the log's own columns too may be a `hint`."""
        return replace(self, where=condition if self.where is None else self.where & condition, hint=hint)

    def chunks(self, *, samples: bool = False, tables: bool = False) -> Iterator[Chunk]:
        """The rows, chunk by chunk, their buckets numbered from 0."""
        wanted = Wanted(samples, tables, False, self.buckets, self.where, self.hint)
        return map(self._numbered, self.coded.chunks(wanted))

    def of(self, chunk: Chunk) -> Chunk:
        """The same of a chunk of all rows."""
        return self._numbered(chunk.filter(pl.col(WITHOUT).is_in(self.buckets)))

    def _numbered(self, chunk: Chunk) -> Chunk:
        bucket = place_in(pl.col(WITHOUT), 2, 2**20)
        return chunk.each(lambda frame: frame.with_columns(bucket.alias(BUCKET)))


class Sizes:
    """How many rows and samples slices have, and whole groups: of given slices, or of all that have rows."""

    def __init__(self, lattice: Lattice, places: Numbers | None = None) -> None:
        self._lattice = lattice
        self._are_given = places is not None
        self.places: Numbers = np.zeros(0, dtype=np.int64) if places is None else places
        self.rows, self.samples = np.zeros((2, len(self.places)), dtype=np.int64)
        self.rows_of_groups, self.samples_of_groups = np.zeros((2, lattice.n_groups), dtype=np.int64)

    def add(self, chunk: Chunk) -> None:
        """Take in more rows."""
        counts = chunk.counts
        several = SAMPLE in counts.columns
        names = [N_ROWS] if several else [N_ROWS, N_SAMPLES]
        cells = list(self._lattice.cells(counts, names, None, 1, self.places if self._are_given else None))
        places = np.concatenate([each.places for each in cells])
        rows = np.concatenate([each.sums[N_ROWS][:, 0] for each in cells])
        if not self._are_given:
            self._take_places(places[rows > 0])
        is_asked = np.isin(places, self.places)
        self.rows[np.searchsorted(self.places, places[is_asked])] += rows[is_asked]
        if several:
            places, samples = self._samples(counts)
            is_asked = np.isin(places, self.places)
        else:
            samples = np.concatenate([each.sums[N_SAMPLES][:, 0] for each in cells])
        self.samples[np.searchsorted(self.places, places[is_asked])] += samples[is_asked]
        of_groups = counts.group_by(GROUP).agg(pl.col(N_ROWS).sum(), chunk.samples())
        groups = of_groups[GROUP].to_numpy()
        self.rows_of_groups[groups] += of_groups[N_ROWS].to_numpy()
        self.samples_of_groups[groups] += of_groups[N_SAMPLES].to_numpy()

    def of(self, is_kept: Numbers) -> Sizes:
        """Those of some of the slices, which are then given."""
        found = Sizes(self._lattice, self.places[is_kept])
        found.rows, found.samples = self.rows[is_kept], self.samples[is_kept]
        found.rows_of_groups, found.samples_of_groups = self.rows_of_groups, self.samples_of_groups
        return found

    def without(self, other: Sizes) -> Sizes:
        """Those without some of the rows, of the same slices."""
        found = Sizes(self._lattice, self.places)
        found.rows, found.samples = self.rows - other.rows, self.samples - other.samples
        found.rows_of_groups = self.rows_of_groups - other.rows_of_groups
        found.samples_of_groups = self.samples_of_groups - other.samples_of_groups
        return found

    def _take_places(self, places: Numbers) -> None:
        """Make room for more slices."""
        every = np.union1d(self.places, places)
        every = every[self._lattice.is_real(every)]
        at = np.searchsorted(every, self.places)
        rows, samples = np.zeros((2, len(every)), dtype=np.int64)
        rows[at], samples[at] = self.rows, self.samples
        self.places, self.rows, self.samples = every, rows, samples

    def _samples(self, counts: pl.DataFrame) -> tuple[Numbers, Numbers]:
        """How many samples there are in cells, where a sample may be in several."""
        one = pl.col(SAMPLE).drop_nulls().n_unique().cast(pl.Int64)
        cells = [each.cell(self._lattice.n_groups).alias(PLACE) for each in self._lattice.combinations]
        found = pl.concat([counts.lazy().group_by(cell).agg(one) for cell in cells]).collect()
        return found[PLACE].to_numpy(), found[SAMPLE].to_numpy()


class Summed:
    """Sums of rows by bucket, in the cells of given slices and in whole groups."""

    def __init__(self, lattice: Lattice, places: Numbers) -> None:
        self._lattice = lattice
        self._places = places
        self.rows = np.zeros((len(places), lattice.buckets), dtype=np.int64)
        """The rows of each slice and bucket."""
        self.rows_of_groups = np.zeros((lattice.n_groups, lattice.buckets), dtype=np.int64)
        self.own = zeros(lattice, len(places))
        self.whole = zeros(lattice, lattice.n_groups)

    def add(self, chunk: Chunk) -> None:
        """Take in more rows."""
        self.rows_of_groups += rows_by_bucket(self._lattice, chunk)
        tables = chunk.tables if self._lattice.coded.is_of_sums else {}
        if not any(N_ROWS in table.columns for table in tables.values()):
            self._add(chunk.counts, 1, {N_ROWS: self.rows[:, :, None]})
        if not tables:
            return
        self.whole = self.whole + whole_of(self._lattice, chunk)
        for (kind, layout), sums in zip(self._lattice.coded.layouts.items(), self.own.sums, strict=True):
            table = tables[kind]
            # The rows are counted with what else is known of them, in one look.
            counted = {N_ROWS: self.rows[:, :, None]} if N_ROWS in table.columns else {}
            self._add(table, layout.n_units, {**sums, **counted})

    def _add(self, table: pl.DataFrame, units: int, sums: Mapping[str, Numbers]) -> None:
        """Add the columns of a table to the sums of these names."""
        buckets = self._lattice.buckets
        for cells in self._lattice.cells(table, [*sums], _parts(table, units), buckets * units, self._places):
            for name, array in cells.sums.items():
                sums[name][self._at(cells)] += array.reshape(-1, buckets, units)

    def _at(self, cells: CellSums) -> slice:
        start = int(np.searchsorted(self._places, cells.places[0])) if len(cells.places) else 0
        return slice(start, start + len(cells.places))

    def of(self, is_kept: Numbers) -> Summed:
        """The same of some of the slices."""
        found = Summed(self._lattice, self._places[is_kept])
        found.rows, found.own = self.rows[is_kept], self.own.of(is_kept)
        found.rows_of_groups, found.whole = self.rows_of_groups, self.whole
        return found

    def without(self, other: Summed) -> Summed:
        """The sums without some of the rows."""
        found = Summed(self._lattice, self._places)
        found.rows, found.own = self.rows - other.rows, self.own - other.own
        found.rows_of_groups, found.whole = self.rows_of_groups - other.rows_of_groups, self.whole - other.whole
        return found


def zeros(lattice: Lattice, height: int) -> Grid:
    """The sums of no rows."""
    shapes = [(each, (height, lattice.buckets, each.n_units)) for each in lattice.coded.layouts.values()]
    return Grid([{name: np.zeros(shape, dtype) for name, dtype in each.types.items()} for each, shape in shapes])


def rows_by_bucket(lattice: Lattice, chunk: Chunk) -> Numbers:
    """How many rows each group and bucket has."""
    found = np.zeros((lattice.n_groups, lattice.buckets), dtype=np.int64)
    counts = chunk.counts.group_by(GROUP, BUCKET).agg(pl.col(N_ROWS).sum())
    found[counts[GROUP].to_numpy(), counts[BUCKET].to_numpy()] = counts[N_ROWS].to_numpy()
    return found


def whole_of(lattice: Lattice, chunk: Chunk) -> Grid:
    """The sums of whole groups."""
    found = zeros(lattice, lattice.n_groups)
    for (kind, layout), sums in zip(lattice.coded.layouts.items(), found.sums, strict=True):
        keys = [GROUP, BUCKET, *([UNIT] if kind.units else [])]
        table = chunk.tables[kind].group_by(keys).agg(pl.col(layout.names).sum())
        unit = table[UNIT].to_numpy() if kind.units else np.zeros(table.height, dtype=np.intp)
        for name, array in sums.items():
            array[table[GROUP].to_numpy(), table[BUCKET].to_numpy(), unit] = table[name].to_numpy()
    return found


def _parts(table: pl.DataFrame, units: int) -> Numbers:
    """The bucket and the unit of each row, as one number."""
    bucket = table[BUCKET].to_numpy().astype(np.intp)
    return bucket if units == 1 else bucket * units + table[UNIT].to_numpy()


class SliceSearch:
    """The slices of a part of the log. `least` is how many samples a slice must have, by group."""

    def __init__(
        self, lattice: Lattice, part: SearchPart, contrasts: Contrasts, merged: Merged, least: Numbers
    ) -> None:
        self._lattice = lattice
        self._part = part
        self._contrasts = contrasts
        self._merged = merged
        self._least = pl.lit(pl.Series(least)).gather(pl.col(GROUP))
        self._is_of_sums = lattice.coded.is_of_sums
        self._sizes = self._counted()
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
            # One may have rows that are left, and others that are not.
            self._sizes = self._counted(self._sizes.places)
        return self._scored(self._in_buckets(self._large()))

    def _counted(self, places: Numbers | None = None) -> Sizes:
        """How many rows and samples the slices of the part have."""
        sizes = Sizes(self._lattice, places)
        for chunk in self._part.chunks(samples=True):
            sizes.add(chunk)
        return sizes

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
            said = self._contrasts.of(slices, own, self._summed.whole, groups, buckets, self._of_merged)
        said = said.with_columns(t_of(pl.col("gap"), pl.col("se")).alias("t"), pl.col(N_SAMPLES).alias("n_samples"))
        return said.select(*SCORES).cast(pl.Schema(SCORES)).sort(PLACE)

    def _of_merged(self, slices: pl.DataFrame) -> pl.DataFrame:
        """Measure slices on all other parts together."""
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
