"""Count: sums of rows by cell, bucket and unit, for every combination of features, from one reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, cast

import polars as pl

from polars_mlmetrics.contrasts.sides import IS_BASELINE
from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.engine.packing import modulo
from polars_mlmetrics.engine.partials import PartialKind
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.intervals.interval import FEW_BUCKETS
from polars_mlmetrics.slice_search import encode
from polars_mlmetrics.slice_search.encode import EVEN, GROUP, N_ROWS, N_SAMPLES, Encoded, Part, Tables
from polars_mlmetrics.slice_search.features import Feature

PLACE, UNIT, PIECE, _HALF = (f"{INTERNAL}{name}" for name in ("place", "unit", "piece", "half_of_sample"))
"""The numbers of a cell and group, of a unit of a partial, of a bucket and unit, and of a sample in a half of these."""

BLOCK = 4096 * 64
"""So many sums are found together, for several combinations at once: they fit the cache."""

DENSE = 2_000_000
"""Up to so many sums of one combination are an array; of more only those of wanted cells are found."""

AT_ONCE = 150_000_000
"""So many bytes of sums are found without looking for the large cells first."""

MOST_SUMS = 60_000_000
"""How many sums of cells, buckets and units a half of the buckets may have."""

FEWEST, THOUSANDTH = 60, 0.001
"""How many samples a slice has at least, where min_samples= says nothing: so many, or this share of its group."""

Sums = dict[tuple[PartialKind, str], Numbers]
"""The statistics of each partial, by name: arrays of cells x buckets x units."""


class Lattice:
    """Every combination of features, first that of none, and a number for each cell and group: its place.

    The first places are whole groups. A place is the start of its combination, plus the group, plus the code of each
    feature times its stride.
    """

    def __init__(self, features: Sequence[Feature], n_groups: int, depth: int) -> None:
        self.features = features
        self.n_groups = n_groups
        self.sizes = [each.size for each in features]
        depth = min(depth, len({each.name for each in features}))
        every = [some for size in range(depth + 1) for some in combinations(range(len(features)), size)]
        # Of one list a slice asks one thing.
        self.combinations = [some for some in every if len({features[i].name for i in some}) == len(some)]
        self._strides = np.zeros((len(self.combinations), len(features)), dtype=np.int64)
        self.starts = np.zeros(len(self.combinations) + 1, dtype=np.int64)
        for at, some in enumerate(self.combinations):
            *strides, height = np.cumprod([n_groups, *(self.sizes[i] for i in some)])
            self._strides[at, some] = strides
            self.starts[at + 1] = self.starts[at] + height

    @property
    def n_slices(self) -> int:
        """How many slices there may be in all groups."""
        sizes = [prod(len(self.features[i].conditions) for i in some) for some in self.combinations[1:]]
        return self.n_groups * sum(sizes)

    def at(self, places: Numbers) -> Numbers:
        """The combinations of places, by number."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def groups(self, places: Numbers) -> Numbers:
        """The groups of places."""
        _, found = np.divmod(places - self.starts[self.at(places)], self.n_groups)
        return found

    def codes(self, places: Numbers, feature: int) -> Numbers:
        """The codes of a feature that slices want; -1 where they want none of it."""
        at = self.at(places)
        strides = self._strides[at, feature]
        cells, _ = np.divmod(places - self.starts[at], np.maximum(strides, 1))
        _, codes = np.divmod(cells, self.sizes[feature])
        return np.where(strides, codes, -1)

    def codes_of(self, place: int) -> dict[int, int]:
        """The code that a slice wants of each of its features."""
        wanted = self.combinations[int(self.at(np.array(place)))]
        return {feature: int(self.codes(np.array(place), feature)) for feature in wanted}

    def place_of(self, group: int, codes: Mapping[int, int]) -> int:
        """The place of the slice with these codes, the first feature first."""
        at = self.combinations.index(tuple(codes))
        return int(self.starts[at]) + group + sum(int(self._strides[at, i]) * code for i, code in codes.items())

    def place(self, at: int) -> pl.Expr:
        """The place of a row's cell in a combination."""
        place = pl.col(GROUP).cast(pl.Int64) + int(self.starts[at])
        for i in self.combinations[at]:
            place += pl.col(encode.code_column(i)).cast(pl.Int64) * int(self._strides[at, i])
        return place.alias(PLACE)


def least_of(samples: Numbers, min_samples: int | None) -> Numbers:
    """How many samples a slice must have, of groups with so many."""
    least = np.full(len(samples), float(min_samples or FEWEST))
    return least if min_samples else np.maximum(least, samples * THOUSANDTH)


class CellSums:
    """Sums of all rows in the cells of a lattice: of all cells, or of those that may be large where these are many."""

    def __init__(self, encoded: Encoded, depth: int, min_samples: int | None) -> None:
        self.encoded = encoded
        self.lattice = lattice = Lattice(encoded.features, encoded.groups.height, depth)
        self._statistics = encoded.statistics if encoded.is_of_sums else {}
        sides = {IS_BASELINE: [False, True], UNIT: [0, 1]} if encoded.search.change else {UNIT: [0]}
        self.sides = pl.DataFrame(sides)
        """The sides of a change by their numbers; of values there is one."""
        self.units: dict[PartialKind, pl.DataFrame] = dict.fromkeys(self._statistics, self.sides)
        """The keys of each unit of a partial, by its number. Where the group is the unit, each side is one."""
        n_sums = (2 + sum(map(len, self._statistics.values()))) * self.sides.height
        size = int(lattice.starts[-1]) * encoded.buckets * n_sums * np.dtype(np.int32).itemsize
        is_at_once = size <= AT_ONCE and not any(kind.units for kind in self._statistics)
        self.places = np.arange(lattice.starts[-1]) if is_at_once else self._large(min_samples)
        self._ends = np.searchsorted(self.places, lattice.starts)
        self.of_groups = slice(0, lattice.n_groups)
        """Where the whole groups are."""
        self._check_size()
        self.rows, self.samples = (self._zeros(self.sides.height, is_count=True) for _ in range(2))
        """How many there are on each side: cells x buckets x sides."""
        self.sums: Sums = {
            (kind, each.name): self._zeros(self.units[kind].height, is_count=each.is_count)
            for kind, statistics in self._statistics.items()
            for each in statistics
        }
        self.wholes: Tables = {}
        """The tables of whole groups."""
        sizes = {encode.code_column(i): size for i, size in enumerate(lattice.sizes)}
        slicings = [[encode.code_column(i) for i in some] for some in lattice.combinations]
        self._covers = Covers([], slicings, sizes, most=BLOCK)
        for part in encoded.parts(samples=True):
            self.wholes = encoded.folded([self.wholes, part.tables], [GROUP])
            self._add_part(part)
        self.n_samples = self.samples[self.of_groups].sum(axis=1).min(axis=1)
        """How many there are in each group: of a change, on the side that has fewer."""
        self.n_rows = self.rows[self.of_groups].sum(axis=(1, 2))
        self.least = least_of(self.n_samples, min_samples)
        """How many samples a slice of each group must have."""

    @cached_property
    def large_features(self) -> list[int]:
        """The features with a value that is in enough rows and not in all."""
        found, least, most = [], self.least.min(initial=np.inf), self.n_rows.sum()
        for i, feature in enumerate(self.lattice.features):
            # The whole groups come first, and then the features one by one.
            own = slice(*self._ends[i + 1 : i + 3])
            rows = np.bincount(self.lattice.codes(self.places[own], i), self.rows[own].sum(axis=(1, 2)))
            if any(least <= n_rows < most for n_rows in rows[: len(feature.conditions)]):
                found.append(i)
        return found

    def large_slices(self) -> Numbers:
        """The slices that have enough samples in the even buckets, as has the rest, in enough of these."""
        groups, rows = self.lattice.groups(self.places), self.rows[:, EVEN]
        samples, n_rows = self.samples[:, EVEN].sum(axis=1), rows.sum(axis=1)
        least, all_rows, all_samples = (of[groups] for of in (self.least[:, None] * 0.5, n_rows, samples))
        # A sample may have rows in a slice and in the rest: rows are what can be taken off.
        has_rest = (all_rows - n_rows) * all_samples >= least * all_rows
        is_large = (samples >= least) & has_rest & ((rows > 0).sum(axis=1) >= FEW_BUCKETS)
        large: Numbers = self.places[is_large.all(axis=1)]
        for i, feature in enumerate(self.lattice.features):
            if feature.is_partial:
                # Rows whose list lacks the value are in no slice of it.
                large = large[self.lattice.codes(large, i) < len(feature.conditions)]
        return large

    def find(self, places: Numbers) -> Numbers:
        """Where the sums of places are."""
        return np.searchsorted(self.places, places)

    def piece_of(self, kind: PartialKind, table: pl.DataFrame) -> Numbers:
        """The number of the bucket and unit of each row."""
        if not kind.units:
            return self._side_of(table)
        keys, how = self.unit_keys(kind), {"how": "left", "nulls_equal": True, "maintain_order": "left"}
        units = table.select(keys).join(self.units[kind], on=keys, **cast(Any, how))[UNIT].to_numpy().astype(np.int32)
        found: Numbers = table[WITHOUT].to_numpy().astype(np.int32) * self.units[kind].height + units
        return found

    def unit_keys(self, kind: PartialKind) -> list[str]:
        """The keys of the units of a partial."""
        return [*self.encoded.search.sides, *kind.units]

    def _side_of(self, table: pl.DataFrame) -> Numbers:
        """The number of the bucket and side of each row."""
        number = table[WITHOUT].to_numpy().astype(np.int32)
        for side in self.encoded.search.sides:
            number = number * self.sides.height + table[side].to_numpy()
        return number

    def _large(self, min_samples: int | None) -> Numbers:
        """The places of which the search half may have enough samples, from a reading of its own; and all units."""
        numbers = [self.lattice.place(at) for at in range(len(self.lattice.combinations))]
        sides = self.encoded.search.sides
        keys = {PLACE: pl.Int64, **dict.fromkeys(sides, pl.Boolean)}
        found = pl.DataFrame(schema={**keys, N_SAMPLES: pl.Int64, N_ROWS: pl.Int64})
        units: dict[PartialKind, pl.DataFrame] = {}
        for part in self.encoded.parts(samples=True):
            # Of samples in several cells it is not known here how many there are: no more than rows.
            most = pl.col(N_SAMPLES if part.varied is None else N_ROWS).filter(encode.in_buckets(EVEN)).alias(N_ROWS)
            counts = [count.sum().cast(pl.Int64) for count in (pl.col(N_SAMPLES), most)]
            cells = pl.concat([part.rows.lazy().group_by(place, *sides).agg(counts) for place in numbers]).collect()
            found = pl.concat([found, cells]).group_by(PLACE, *sides).sum()
            for kind in (kind for kind in self._statistics if kind.units):
                seen = part.tables[kind].select(self.unit_keys(kind)).unique()
                units[kind] = pl.concat([units[kind], seen]).unique() if kind in units else seen
        self.units |= {kind: keys.with_row_index(UNIT) for kind, keys in units.items()}
        # A cell that one side has no rows of has none to compare.
        found = found.group_by(PLACE).agg(pl.col(N_SAMPLES, N_ROWS).min() * (pl.len() == self.sides.height)).sort(PLACE)
        places, n_samples, n_rows = (column.to_numpy() for column in found)
        is_group = places < self.lattice.n_groups
        least = least_of(n_samples[is_group], min_samples)[self.lattice.groups(places)]
        return places[is_group | (n_rows >= least * 0.5)]

    def _check_size(self) -> None:
        n_cells = len(self.places) - self.lattice.n_groups
        n_sums = sum(self.units[kind].height * len(each) for kind, each in self._statistics.items())
        size = n_cells * n_sums * self.encoded.n_searched
        if size > MOST_SUMS:
            raise ParameterError(
                f"{n_cells:,} slices have {size:,} sums by bucket and label, which is too many: look at fewer "
                "features, or pass a smaller depth= or a larger min_samples=."
            )

    def _zeros(self, n_units: int, *, is_count: bool) -> Numbers:
        whole = np.int32 if self.encoded.n_rows < 2**31 else np.int64
        return np.zeros((len(self.places), self.encoded.buckets, n_units), whole if is_count else np.float64)

    def _add_part(self, part: Part) -> None:
        """Add a part of the rows."""
        counts = {N_ROWS: self.rows, N_SAMPLES: self.samples}
        for kind, statistics in self._statistics.items():
            table, into = part.tables[kind], {each.name: self.sums[kind, each.name] for each in statistics}
            if table is part.rows and not kind.units:
                # The rows are counted with what else is known of them, in one look.
                into, counts = into | counts, {}
            self._add(table, into, self.piece_of(kind, table))
        if counts:
            self._add(part.rows, counts, self._side_of(part.rows))
        if part.varied is not None:
            # A sample that may be in several cells counts once in a cell and a half of the buckets.
            half = modulo(pl.col(WITHOUT), 2).alias(UNIT)
            varied = part.varied.with_columns(half, pl.Series(PIECE, self._side_of(part.varied)))
            halves = varied.select(encode.SAMPLE, UNIT).unique().with_row_index(_HALF)
            varied = varied.join(halves, on=[encode.SAMPLE, UNIT], maintain_order="left")
            # One number is matched much faster than the place, the sample and the half.
            in_cell = pl.col(PLACE) * halves.height + pl.col(_HALF)
            for at in range(len(self.lattice.combinations)):
                cells = varied.select(self.lattice.place(at), PIECE, _HALF).filter(in_cell.is_first_distinct())
                counted = cells.group_by(PLACE, PIECE).agg(pl.len().alias(N_SAMPLES))
                self._add_cells(counted, {N_SAMPLES: self.samples})

    def _add(self, table: pl.DataFrame, into: Mapping[str, Numbers], piece: Numbers) -> None:
        """Add columns of a table to the sums of these names."""
        lattice, (_, *pieces) = self.lattice, next(iter(into.values())).shape
        columns, number_of = _columns(table, [*into]), {encode.code_column(i): i for i in range(len(lattice.sizes))}
        # One look at the rows is enough for all combinations of some features.
        covers: dict[tuple[int, ...], list[int]] = {}
        for at, slicing in enumerate(self._covers.slicings):
            cover = self._covers.of(slicing, cells=prod(pieces) * lattice.n_groups)
            covers.setdefault(tuple(sorted((number_of[name] for name in cover), reverse=True)), []).append(at)
        for features, inside in covers.items():
            # The first feature comes last, as in the numbers of cells.
            shape = (*(lattice.sizes[i] for i in features), lattice.n_groups, *pieces)
            if prod(shape) > DENSE:
                rows, every = table.lazy().with_columns(pl.Series(PIECE, piece)), pl.col([*into]).sum()
                for cells in pl.collect_all([rows.group_by(lattice.place(at), PIECE).agg(every) for at in inside]):
                    self._add_cells(cells, into)
                continue
            number = np.zeros(table.height, dtype=np.int32)
            for i in features:
                number = number * lattice.sizes[i] + table[encode.code_column(i)].to_numpy()
            if lattice.n_groups > 1:
                number = number * lattice.n_groups + table[GROUP].to_numpy()
            number = number * prod(pieces) + piece
            for same, weights in columns.items():
                block = np.bincount(number, weights, prod(shape)).reshape(shape)
                for at in inside:
                    others = tuple(axis for axis, i in enumerate(features) if i not in lattice.combinations[at])
                    sums, own = block.sum(axis=others).reshape(-1, *pieces), slice(*self._ends[at : at + 2])
                    places = self.places[own] - lattice.starts[at]
                    some = sums if len(places) == len(sums) else sums[places]
                    for name in same:
                        into[name][own] += some.astype(into[name].dtype, copy=False)

    def _add_cells(self, cells: pl.DataFrame, into: Mapping[str, Numbers]) -> None:
        """Add the sums of some cells, by PLACE and PIECE; those of other places are not wanted."""
        cells = cells.filter(pl.col(PLACE).is_in(pl.Series(self.places).implode()))
        where = self.find(cells[PLACE].to_numpy()), cells[PIECE].to_numpy()
        for name, array in into.items():
            array.reshape(len(array), -1)[where] += cells[name].to_numpy().astype(array.dtype)


def _columns(table: pl.DataFrame, names: Sequence[str]) -> dict[tuple[str, ...], Numbers | None]:
    """Columns as weights; None for those that are 1 in every row, which are many. Those of zeros are left out."""
    # The sum of nothing is 0.
    values = {name: table[name].fill_null(0).to_numpy() for name in names}
    ones = tuple(name for name, value in values.items() if value.dtype.kind != "f" and (value == 1).all())
    found: dict[tuple[str, ...], Numbers | None] = {ones: None} if ones else {}
    weights = {name: value for name, value in values.items() if name not in ones and value.any()}
    return found | {(name,): value.astype(np.float64) for name, value in weights.items()}
