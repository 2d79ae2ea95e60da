"""Count: sums of rows by cell, bucket and unit, for every combination of features, from one reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
import polars as pl

from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.slice_search.encode import (
    GROUP,
    N_ROWS,
    N_SAMPLES,
    SAMPLE,
    Encoded,
    Numbers,
    Part,
    PartialKind,
    Wanted,
    code_column,
)
from polars_mlmetrics.slice_search.features import Feature

PLACE, UNIT = f"{INTERNAL}place", f"{INTERNAL}unit"

BLOCK = 4096 * 64
"""So many sums are found together, for several combinations at once: they fit the cache."""

DENSE = 2_000_000
"""Up to so many sums of one combination are an array; of more only those of wanted cells are found."""

AT_ONCE = 150_000_000
"""So many bytes of sums are found without looking for the large cells first."""

MOST_SUMS = 60_000_000
"""How many sums of cells, buckets and units a half of the buckets may have."""

Sums = list[dict[str, Numbers]]
"""The statistics of each partial: arrays of cells x buckets x units."""

Inside = tuple[int, tuple[int, ...], Numbers | slice]
"""A combination, the axes of a block that it lacks, and which of the cells that are left then are wanted."""

Block = tuple[Numbers, Numbers | slice, tuple[int, ...], list[Inside]]
"""Numbers of cells and parts of cells, the rows that have them, how many cells there are, and what comes of these."""


class Lattice:
    """Every combination of features, first that of none, and a number for each cell and group: its place.

    The first places are whole groups.
    """

    def __init__(self, features: Sequence[Feature], n_groups: int, depth: int) -> None:
        self.features = features
        self.n_groups = n_groups
        self.sizes = [each.size for each in features]
        depth = min(depth, len({each.name for each in features}))
        every = [some for size in range(depth + 1) for some in combinations(range(len(features)), size)]
        # Of one list a slice asks one thing.
        self.combinations = [some for some in every if len({features[i].name for i in some}) == len(some)]
        heights = [prod(self.sizes[i] for i in some) * n_groups for some in self.combinations]
        self.starts = np.concatenate([[0], np.cumsum(heights, dtype=np.int64)])
        self._numbers = {some: at for at, some in enumerate(self.combinations)}

    def at(self, places: Numbers) -> Numbers:
        """The combinations of places, by number."""
        found: Numbers = np.searchsorted(self.starts, places, side="right") - 1
        return found

    def groups(self, places: Numbers) -> Numbers:
        """The groups of places."""
        found: Numbers = (places - self.starts[self.at(places)]) % self.n_groups
        return found

    def codes_of(self, place: int) -> tuple[int, dict[int, int]]:
        """The group of a slice, and the code that it wants of each of its features."""
        at = int(self.at(np.array(place)))
        cell, group = divmod(place - int(self.starts[at]), self.n_groups)
        codes = {}
        for feature in self.combinations[at]:
            cell, codes[feature] = divmod(cell, self.sizes[feature])
        return group, codes

    def place_of(self, group: int, codes: Mapping[int, int]) -> int:
        """The place of the slice with these codes."""
        cell = 0
        for feature in sorted(codes, reverse=True):
            cell = cell * self.sizes[feature] + codes[feature]
        return int(self.starts[self._numbers[tuple(sorted(codes))]]) + cell * self.n_groups + group

    def place(self, at: int) -> pl.Expr:
        """The place of a row's cell in a combination."""
        cell = pl.lit(0, dtype=pl.Int64)
        for feature in reversed(self.combinations[at]):
            cell = cell * self.sizes[feature] + pl.col(code_column(feature)).cast(pl.Int64)
        return (cell * self.n_groups + pl.col(GROUP) + int(self.starts[at])).alias(PLACE)

    def are_slices(self, places: Numbers) -> Numbers:
        """Where each feature has a condition: a list may lack the value of a feature."""
        found: Numbers = places >= self.n_groups
        for at, (start, end) in enumerate(pairwise(np.searchsorted(places, self.starts))):
            cell = (places[start:end] - self.starts[at]) // self.n_groups
            for feature in self.combinations[at]:
                cell, code = np.divmod(cell, self.sizes[feature])
                found[start:end] &= code < len(self.features[feature].conditions)
        return found


class CellSums:
    """Sums of all rows in the cells of a lattice: of all cells, or of those that may be large where these are many."""

    def __init__(self, encoded: Encoded, lattice: Lattice, least: float) -> None:
        self.encoded = encoded
        self.lattice = lattice
        self._statistics = encoded.statistics if encoded.is_of_sums else {}
        self.units: dict[PartialKind, pl.DataFrame] = {}
        """The keys of each unit of a partial, by its number."""
        n_sums = 2 + sum(map(len, self._statistics.values()))
        size = int(lattice.starts[-1]) * encoded.buckets * n_sums * np.dtype(np.int32).itemsize
        is_at_once = size <= AT_ONCE and not any(kind.units for kind in self._statistics)
        self.places = np.arange(lattice.starts[-1]) if is_at_once else self._large(least)
        self._ends = np.searchsorted(self.places, lattice.starts)
        self.rows, self.samples = self._zeros(1, np.int32), self._zeros(1, np.int32)
        self.sums = self._no_sums()
        self.wholes: dict[PartialKind, pl.DataFrame] = {}
        """The tables of whole groups."""
        names = [code_column(i) for i in range(len(lattice.sizes))]
        self._slicings = [[names[i] for i in some] for some in lattice.combinations]
        self._covers = Covers([], self._slicings, dict(zip(names, lattice.sizes, strict=True)), most=BLOCK)
        for part in encoded.parts(Wanted(samples=True)):
            self._add_part(part)

    @property
    def of_groups(self) -> slice:
        """Where the whole groups are."""
        return slice(0, self.lattice.n_groups)

    def find(self, places: Numbers) -> Numbers:
        """Where the sums of places are."""
        found: Numbers = np.searchsorted(self.places, places)
        return found

    @property
    def units_of(self) -> dict[PartialKind, pl.DataFrame]:
        """The keys of the units of each partial."""
        return {kind: self.units.get(kind, pl.DataFrame()) for kind in self._statistics}

    def n_units(self, kind: PartialKind) -> int:
        """How many units a partial has: 1 where the group is the unit."""
        return max(1, self.units[kind].height) if kind.units else 1

    def unit_of(self, kind: PartialKind, table: pl.DataFrame) -> Numbers | None:
        """The number of the unit of each row; None where the group is the unit."""
        if not kind.units:
            return None
        how: Any = {"how": "left", "nulls_equal": True, "maintain_order": "left"}
        found: Numbers = table.select(kind.units).join(self.units[kind], on=kind.units, **how)[UNIT].to_numpy()
        return found

    def _zeros(self, n_units: int, dtype: Any) -> Numbers:
        return np.zeros((len(self.places), self.encoded.buckets, n_units), dtype)

    def _no_sums(self) -> Sums:
        n_sums = sum(self.n_units(kind) * len(each) for kind, each in self._statistics.items())
        n_cells = len(self.places) - self.lattice.n_groups
        if self.units and (size := n_cells * (self.encoded.buckets // 2) * n_sums) > MOST_SUMS:
            raise ParameterError(
                f"{n_cells:,} slices have {size:,} sums by bucket and label, which is too many: look at fewer "
                "features, or pass a smaller depth= or a larger min_samples=."
            )
        types = {True: np.int32 if self.encoded.n_rows < 2**31 else np.int64, False: np.float64}
        return [
            {each.name: self._zeros(self.n_units(kind), types[each.is_count]) for each in statistics}
            for kind, statistics in self._statistics.items()
        ]

    def _large(self, least: float) -> Numbers:
        """The places with enough rows, of very many, from a reading of its own; and all units."""
        places = [self.lattice.place(at) for at in range(len(self.lattice.combinations))]
        found = pl.DataFrame(schema={PLACE: pl.Int64, N_ROWS: pl.Int64})
        for part in self.encoded.parts(Wanted(tables=self.encoded.is_of_sums)):
            rows, count = part.rows.lazy(), pl.col(N_ROWS).sum().cast(pl.Int64)
            cells = pl.concat([rows.group_by(place).agg(count) for place in places]).collect()
            found = pl.concat([found, cells]).group_by(PLACE).agg(pl.col(N_ROWS).sum())
            for kind in filter(lambda kind: kind.units, self._statistics):
                known = [self.units[kind].drop(UNIT)] if kind in self.units else []
                seen = pl.concat([*known, part.tables[kind].select(kind.units).unique()]).unique()
                self.units[kind] = seen.sort(kind.units).with_row_index(UNIT)
        is_large = (pl.col(N_ROWS) >= least) | (pl.col(PLACE) < self.lattice.n_groups)
        large: Numbers = found.filter(is_large)[PLACE].sort().to_numpy()
        return large

    def _add_part(self, part: Part) -> None:
        """Add a part of the rows."""
        for kind, table in part.tables.items():
            known = [self.wholes[kind]] if kind in self.wholes else []
            self.wholes[kind] = self.encoded.folded(kind, [*known, table], [GROUP])
        counts = {N_ROWS: self.rows, N_SAMPLES: self.samples}
        for kind, sums in zip(self._statistics, self.sums, strict=True):
            table = part.tables[kind]
            # The rows are counted with what else is known of them, in one look.
            is_shared = table is part.rows and not kind.units
            self._add(table, {**sums, **(counts if is_shared else {})}, self.unit_of(kind, table))
            counts = {} if is_shared else counts
        if counts:
            self._add(part.rows, counts, None)
        if part.varied is not None:
            self._add_samples(part.varied)

    def _add(self, table: pl.DataFrame, into: Mapping[str, Numbers], unit: Numbers | None) -> None:
        """Add columns of a table to the sums of these names."""
        _, buckets, n_units = next(iter(into.values())).shape
        part = table[WITHOUT].to_numpy().astype(np.int32)
        part = part if unit is None else part * n_units + unit.astype(np.int32)
        columns = _columns(table, [*into])
        for number, rows, shape, inside in self._blocks(table, part, buckets * n_units):
            for names, weights in columns.items():
                some = None if weights is None else weights[rows]
                block = np.bincount(number, some, prod(shape) * buckets * n_units).reshape(*shape, buckets, n_units)
                for at, others, cells in inside:
                    sums = block.sum(axis=others).reshape(-1, buckets, n_units)[cells]
                    for name in names:
                        own = into[name][self._ends[at] : self._ends[at + 1]]
                        own += sums.astype(own.dtype, copy=False)

    def _blocks(self, table: pl.DataFrame, part: Numbers, width: int) -> Iterator[Block]:
        """Numbers of cells and parts of cells, for sets of features that hold all combinations between them.

        One look at the rows is then enough for many combinations.
        """
        lattice, codes = self.lattice, [table[code_column(i)].to_numpy() for i in range(len(self.lattice.sizes))]
        covers: dict[tuple[int, ...], list[int]] = {}
        for at, slicing in enumerate(self._slicings):
            cover = {*self._covers.of(slicing, width * lattice.n_groups)}
            covers.setdefault(tuple(i for i in range(len(codes)) if code_column(i) in cover), []).append(at)
        for features, inside in covers.items():
            shape = (*(lattice.sizes[i] for i in reversed(features)), lattice.n_groups)
            if prod(shape) * width > DENSE:
                yield from (
                    self._of_wanted(table, part, width, at) for at in inside if self._ends[at + 1] > self._ends[at]
                )
                continue
            number = np.zeros(table.height, dtype=np.int32)
            for i in reversed(features):
                number = number * lattice.sizes[i] + codes[i]
            if lattice.n_groups > 1:
                number = number * lattice.n_groups + table[GROUP].to_numpy()
            yield number * width + part, slice(None), shape, [self._inside(at, features) for at in inside]

    def _inside(self, at: int, features: Sequence[int]) -> Inside:
        """How the cells of a combination come from those of more features: added up over the others."""
        others = tuple(axis for axis, i in enumerate(reversed(features)) if i not in self.lattice.combinations[at])
        own = self.places[self._ends[at] : self._ends[at + 1]] - self.lattice.starts[at]
        is_all = len(own) == self.lattice.starts[at + 1] - self.lattice.starts[at]
        return at, others, slice(None) if is_all else own

    def _of_wanted(self, table: pl.DataFrame, part: Numbers, width: int, at: int) -> Block:
        """Numbers of the wanted cells of a combination, which has very many."""
        own = self.places[self._ends[at] : self._ends[at + 1]]
        place = table.select(self.lattice.place(at)).to_series().to_numpy()
        where = np.searchsorted(own, place).clip(max=len(own) - 1)
        rows = np.flatnonzero(own[where] == place)
        return where[rows] * width + part[rows], rows, (len(own),), [(at, (), slice(None))]

    def _add_samples(self, varied: pl.DataFrame) -> None:
        """Count samples that may be in several cells: each once in a cell and a half of the buckets."""
        half, wanted = (pl.col(WITHOUT) % 2).alias(UNIT), pl.Series(self.places).implode()
        for at in range(len(self.lattice.combinations)):
            rows = varied.lazy().group_by(self.lattice.place(at), SAMPLE, half).agg(pl.col(WITHOUT).first())
            counts = rows.group_by(PLACE, WITHOUT).len().filter(pl.col(PLACE).is_in(wanted)).collect()
            self.samples[self.find(counts[PLACE].to_numpy()), counts[WITHOUT].to_numpy(), 0] += counts["len"].to_numpy()


def _columns(table: pl.DataFrame, names: Sequence[str]) -> dict[tuple[str, ...], Numbers | None]:
    """Columns as weights; None for those that are 1 in every row, which are many. Those of zeros are left out."""
    values = {name: table[name].to_numpy() for name in names}
    ones = tuple(name for name, value in values.items() if value.dtype.kind != "f" and (value == 1).all())
    weights = {(name,): value.astype(np.float64) for name, value in values.items() if name not in ones and value.any()}
    return {ones: None, **weights} if ones else weights
