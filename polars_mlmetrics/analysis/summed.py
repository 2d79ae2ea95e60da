"""What some rows of a log add up to: in whole groups and in the cells of slices, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_mlmetrics.analysis.coded import GROUP, N_ROWS, N_SAMPLES, SAMPLE, Chunk, Coded, Wanted
from polars_mlmetrics.analysis.contrasts import UNIT, Grid, Numbers
from polars_mlmetrics.analysis.lattice import BUCKET, PLACE, Cells, Lattice
from polars_mlmetrics.engine.packing import place_in
from polars_mlmetrics.engine.replicates import WITHOUT


@dataclass(frozen=True)
class Part:
    """The rows of every second bucket of a log, without those that are set aside."""

    coded: Coded
    buckets: list[int]
    where: pl.Expr | None = None
    hint: pl.Expr | None = None

    def filter(self, condition: pl.Expr, hint: pl.Expr | None = None) -> Part:
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
    """What rows add up to by bucket, in the cells of given slices and in whole groups."""

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

    def _at(self, cells: Cells) -> slice:
        start = int(np.searchsorted(self._places, cells.places[0])) if len(cells.places) else 0
        return slice(start, start + len(cells.places))

    def of(self, is_kept: Numbers) -> Summed:
        """The same of some of the slices."""
        found = Summed(self._lattice, self._places[is_kept])
        found.rows, found.own = self.rows[is_kept], self.own.of(is_kept)
        found.rows_of_groups, found.whole = self.rows_of_groups, self.whole
        return found

    def without(self, other: Summed) -> Summed:
        """What is left without some of the rows."""
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
