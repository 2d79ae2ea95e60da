"""Slices: a log that is read once for all groupings of a query, and not once for each.

Statistics of groups, labels and bins are folded at a few covering sets of keys, and merged at the keys of each
grouping. A sample is looked at once, and counts in each slice that holds all its rows. A sample that has rows in
several slices is another, smaller sample in each of them: it is looked at again there. Where most samples have, no
sample is looked up: all are worked out in the slices, from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import polars as pl

from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.engine.folds import bounds_of, changes, fold, has_several, matched, rows_of_few
from polars_mlmetrics.engine.partials import Mergeable, Partial, PartialTable, has_many_bins
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.sources import CachedSource, LogSource, bytes_of, following, units_of
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.measure import Measure

_CODE, _PARTS = f"{INTERNAL}code_of_slices", f"{INTERNAL}parts_of_sample"

BYTES = 30
"""Bytes that a row takes, about, for each column of slices while samples are assigned to slices."""

Slicing = tuple[str, ...]
"""The columns of a grouping beyond the by columns: none for the whole."""


class Slices(LogSource):
    """The rows of a log, for all groupings of a query.

    `added` are the columns of keys that are worked out of others. `varied` are those of which most samples have several
    values, as far as is known, by the columns of the sample: to know them changes the time alone. Many bins are folded
    by a `coarser` column in place of a key, unless it is asked for.
    """

    def __init__(
        self,
        source: LogSource,
        by: Sequence[str],
        slicings: Sequence[Sequence[str]],
        covers: Covers,
        added: Sequence[pl.Expr],
        varied: Mapping[tuple[str, ...], Sequence[str]],
        coarser: Mapping[str, str],
    ) -> None:
        super().__init__(source.rows, source.label, source.schema, added)
        self.source = source
        self._by = list(by)
        self._slicings: list[Slicing] = [tuple(slicing) for slicing in slicings]
        self._columns = list(dict.fromkeys(column for slicing in slicings for column in slicing))
        self._covers = covers
        self._varied = varied
        self._coarser = coarser
        self._cells: dict[tuple[object, ...], pl.LazyFrame] = {}
        """The statistics of each partial at a covering set of keys."""
        self._units: dict[tuple[object, ...], list[pl.LazyFrame]] = {}
        """The samples in the groups of each slicing, by the partials that have their values."""
        self._sums: dict[tuple[object, ...], list[dict[Slicing, pl.LazyFrame]]] = {}
        """The sums over samples of each partial, by the partials that are worked out together."""
        self._split: dict[tuple[str, ...], dict[Slicing, pl.LazyFrame]] = {}
        """How many samples of each group lie in other slices too, by the columns of the sample."""
        self._wanted: dict[tuple[str, ...], None] = {}

    def group_keys(self, measure: Measure, by: list[str]) -> list[str]:
        # Samples are told by the by columns themselves: the columns of slices come beside them.
        return by

    def n_split(self, sample: Sequence[str]) -> pl.Expr:
        self._wanted[tuple(sample)] = None
        return pl.col(_n_split(sample))

    def held(self, table: pl.LazyFrame) -> pl.LazyFrame:
        return self.source.held(table)

    def joined(self, tables: Sequence[pl.LazyFrame], coded: Sequence[pl.LazyFrame], by: list[str]) -> pl.LazyFrame:
        table, slicing = super().joined(tables, coded, by), self._slicing_of(by)
        if slicing is None:  # of targets
            return table
        for sample in self._wanted:
            count = pl.lit(None if sample not in self._split else 0, dtype=pl.Int64)
            if slicing in self._split.get(sample, {}):
                table = matched(table, self._split[sample][slicing], by, how="left")
                count = pl.col(_n_split(sample)).fill_null(0)
            table = table.with_columns(count.alias(_n_split(sample)))
        return table

    def units(self, partials: Sequence[Partial], by: list[str]) -> pl.LazyFrame:
        if all(map(self._merges, partials)):
            return units_of(partials, [table for table, _ in self.partials(partials, by)])
        slicing = self._slicing_of(by)
        if slicing is None or not all(map(_is_placed, partials)):
            return self.source.units(partials, by)
        return self._units_of_samples(partials, slicing)

    def partials(self, partials: Sequence[Mergeable], by: list[str]) -> list[PartialTable]:
        given: dict[Mergeable, PartialTable] = {}
        mergeable = [each for each in partials if isinstance(each, Partial)]
        for kind in self._folded_together(mergeable):
            given |= {each: (table, by) for each, table in zip(kind, self._of_cells(kind, by), strict=True)}
        slicing = self._slicing_of(by)
        if slicing is not None:
            samples = self._of_samples([each for each in mergeable if _is_placed(each)], slicing)
            given |= {each: (sums, by) for each, sums in samples}
        rest = [each for each in partials if each not in given]
        given |= zip(rest, self.source.partials(rest, by), strict=True)
        return [given[each] for each in partials]

    def _slicing_of(self, by: list[str]) -> Slicing | None:
        """The slicing of which these are all keys; None where there are others, as of targets."""
        return next((slicing for slicing in self._slicings if [*self._by, *slicing] == by), None)

    def _folded_together(self, partials: Sequence[Partial]) -> list[list[Partial]]:
        """The partials that merge over keys. Beside slices bins are folded by themselves: their cells are many."""
        able = [each for each in partials if self._merges(each)]
        apart = [each for each in able if each.run is not None and self._covers.has_slices]
        together = [each for each in able if each not in apart]
        coarse = [each for each in together if self._coarser and has_many_bins(each)]
        fine = [each for each in together if each not in coarse]
        return [kind for kind in (fine, coarse, *([each] for each in apart)) if kind]

    def _merges(self, partial: Partial) -> bool:
        """Whether its statistics merge over the columns of slices; one that looks into samples needs whole ones."""
        samples = {tuple(reader.measure.table.sample) for reader, _ in partial.values.measures}
        return partial.merges and not (partial.windows and any(map(self._columns_of, samples)))

    def _of_cells(self, partials: Sequence[Partial], by: list[str]) -> list[pl.LazyFrame]:
        """Partials at the keys of one grouping, from their statistics at a covering set of keys."""
        finer = dict.fromkeys(key for each in partials for key in each.keys if key not in by)
        cells = prod(each.cells or 1 for each in partials)
        cover = self._covers.of([key for key in by if key in self._columns], [*finer], cells)
        keys = list(dict.fromkeys([*cover, *by]))
        if self._coarser.keys().isdisjoint(by) and all(map(has_many_bins, partials)):
            keys = list(dict.fromkeys(self._coarser.get(key, key) for key in keys))
        names = [(_name_of(each), *keys) for each in partials]
        if not all(name in self._cells for name in names):
            found = self.source.partials([each.at(keys) for each in partials], keys)
            self._cells |= {name: table.cache() for name, (table, _) in zip(names, found, strict=True)}
        cached = [self._cells[name] for name in names]
        return cached if keys == by else [each.merged(table) for each, table in zip(partials, cached, strict=True)]

    def _of_samples(self, partials: Sequence[Partial], slicing: Slicing) -> Iterator[tuple[Partial, pl.LazyFrame]]:
        """The sums over samples of each partial, in the groups of a slicing."""
        for sample in _samples_of(partials):
            yield from self._of_one_sample(sample, [each for each in partials if tuple(each.keys) == sample], slicing)

    def _of_one_sample(
        self, sample: tuple[str, ...], partials: Sequence[Partial], slicing: Slicing
    ) -> Iterator[tuple[Partial, pl.LazyFrame]]:
        """The sums of each partial over the samples of these columns, in the groups of a slicing."""
        name = tuple(map(_name_of, partials))
        if name not in self._sums:
            bytes_a_row, splitting = self._bytes_of(partials), self._splitting(self._columns_of(sample))
            tables = iter(self.source.gathered(bytes_a_row, sample, lambda rows: self._sums_of(sample, partials, rows)))
            self._sums[name] = [{sliced: next(tables) for sliced in self._slicings} for _ in partials]
            self._split[sample] = {sliced: self._summed(next(tables), sliced) for sliced in splitting}
        for each, sums in zip(partials, self._sums[name], strict=True):
            yield each, self._summed(sums[slicing], slicing)

    def _summed(self, parts: pl.LazyFrame, slicing: Slicing) -> pl.LazyFrame:
        """One row a group of a slicing, from its parts."""
        keys = [*self._by, *slicing]
        return fold(parts, keys, [pl.exclude(keys).sum()])

    def _sums_of(self, sample: Sequence[str], partials: Sequence[Partial], rows: pl.LazyFrame) -> list[pl.LazyFrame]:
        """In the groups of each slicing: the sums over samples of each partial, and how many samples are split."""
        placed = self._placed(rows, sample)
        sums = [each for partial in partials for each in placed.sums(partial, self._slicings)]
        return [*sums, *(placed.n_split(slicing) for slicing in self._splitting(placed.columns))]

    def _units_of_samples(self, partials: Sequence[Partial], slicing: Slicing) -> pl.LazyFrame:
        """One row a sample of each group of a slicing, with the values of all partials."""
        name = tuple(map(_name_of, partials))
        if name not in self._units:
            [sample] = _samples_of(partials)

            def units_of_all(rows: pl.LazyFrame) -> list[pl.LazyFrame]:
                return list(self._placed(rows, sample).units(partials, self._slicings))

            self._units[name] = self.source.gathered(self._bytes_of(partials), sample, units_of_all)
        return self._units[name][self._slicings.index(slicing)]

    def _bytes_of(self, partials: Sequence[Partial]) -> int:
        return bytes_of(partials) + BYTES * len(self._columns)

    def _placed(self, rows: pl.LazyFrame, sample: Sequence[str]) -> PlacedSamples:
        columns = self._columns_of(sample)
        known = [self.added[column] for column in self._columns if column in self.added and column not in columns]
        varied = [column for column in self._varied.get(tuple(sample), ()) if column in columns]
        return PlacedSamples(rows, self.label, self.schema, self._by, sample, columns, known, varied)

    def _columns_of(self, sample: Sequence[str]) -> list[str]:
        """The columns of slices of which a sample may have several values: they do not follow from what it is."""
        keys = [*self._by, *sample]
        known = {*keys, *following(self._columns, keys, self.added)}
        return [column for column in self._columns if column not in known]

    def _splitting(self, columns: Sequence[str]) -> list[Slicing]:
        """The slicings that may cut through a sample."""
        return [slicing for slicing in self._slicings if not set(slicing).isdisjoint(columns)]


def _is_placed(partial: Partial) -> bool:
    """Whether it is of samples, each worked out of its own rows."""
    return partial.grain == "sample" and partial.windows <= {"sample"}


def _samples_of(partials: Sequence[Partial]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(each.keys) for each in partials))


def _n_split(sample: Sequence[str]) -> str:
    """The column that counts samples which lie in other slices too."""
    return f"{INTERNAL}n_split:{'+'.join(sample)}"


def _name_of(partial: Partial) -> tuple[object, ...]:
    """A key that tells a partial from others, whatever its groups."""
    values = partial.values
    measures = ((reader.measure.key, columns.value) for reader, columns in values.measures)
    return (partial.grain, *partial.keys, values.run, *measures)


@dataclass
class PlacedSamples:
    """The samples of some rows, each with the slices in which it lies.

    Those that are `known` follow from what a sample is. The others of the `columns` are looked up for every sample, but
    for those that are `varied`: of these most samples have several values.
    """

    rows: pl.LazyFrame
    label: str
    schema: pl.Schema
    by: list[str]
    sample: Sequence[str]
    columns: list[str]
    known: list[pl.Expr]
    varied: Sequence[str]

    def __post_init__(self) -> None:
        self._placed = [column for column in self.columns if column not in self.varied]
        self._all_rows = self.rows.cache()
        self._keys = list(dict.fromkeys([*self.by, *self.sample]))
        self._texts = [column for column in self._placed if self.schema[column] == pl.String]
        if self._placed:
            self._places, self._split_rows = self._looked_up()

    def _looked_up(self) -> tuple[pl.LazyFrame, pl.LazyFrame]:
        """The slices of each sample, and the rows of those that lie in several."""
        places = self._placed_rows().cache()
        # Samples that lie in several slices are few, as a rule: all that is asked of their rows is asked of these.
        several = places.filter(has_several()).select(self._keys)
        # Held as numbers too, beside the texts, which are then left out where nothing else reads them.
        numbers = (pl.col(column).cast(pl.Categorical).alias(_number(column)) for column in self._texts)
        split_rows = rows_of_few(self.rows, several, self._keys).with_columns(numbers).cache()
        varies = [self._varies(column).alias(_split(column)) for column in self._placed]
        flags = fold(split_rows, self._keys, varies).cache()
        placed = matched(places.select(*self._keys, *self._placed), flags, self._keys, how="left")
        placed = placed.with_columns(pl.col(_split(column)).fill_null(False) for column in self._placed)
        return placed, matched(split_rows, flags, self._keys).cache()

    def _varies(self, column: str) -> pl.Expr:
        """Whether a sample has several values of a column: null is one."""
        if column not in self._texts:
            return pl.col(column).n_unique() > 1
        number = pl.col(_number(column)).to_physical().cast(pl.Int64).fill_null(-1)
        return number.min() != number.max()

    def sums(self, partial: Partial, slicings: Sequence[Slicing]) -> Iterator[pl.LazyFrame]:
        """The sums over samples in the groups of each slicing; two rows of a group may have a part of them each."""
        base = partial.at(self.by)
        units = self._in_places(base.values.of_units(base.units(self.rows)))

        def of_rows(rows: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
            cached = CachedSource(rows, self.label, rows.collect_schema())
            [(sums, _)] = cached.partials([partial.at(keys)], keys)
            return sums

        return self._in_each(slicings, of_rows, lambda keys, whole: partial.values.sums(whole, keys), units)

    def units(self, partials: Sequence[Partial], slicings: Sequence[Slicing]) -> Iterator[pl.LazyFrame]:
        """One row a sample in the groups of each slicing, with the values of all partials."""

        def of_rows(rows: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
            at_keys = [each.at(keys) for each in partials]
            return units_of(at_keys, [each.units(rows) for each in at_keys])

        units = self._in_places(of_rows(self.rows, self.by))
        return self._in_each(slicings, of_rows, lambda keys, whole: whole, units)

    def _in_each(
        self,
        slicings: Sequence[Slicing],
        of_rows: Callable[[pl.LazyFrame, list[str]], pl.LazyFrame],
        of_whole: Callable[[list[str], pl.LazyFrame], pl.LazyFrame],
        units: pl.LazyFrame,
    ) -> Iterator[pl.LazyFrame]:
        """A table of each slicing: of the samples that lie in one slice of it, and of the rows of the others."""
        for slicing in slicings:
            keys, split = [*self.by, *slicing], self._split_in(slicing)
            again = None if split is None else of_rows(split, keys)
            if again is not None and self._cuts_most(slicing):
                yield again
                continue
            whole = self._with_texts(of_whole(keys, self._whole(units, slicing)), slicing)
            yield whole if again is None else _together(again, whole)

    def _in_places(self, units: pl.LazyFrame) -> pl.LazyFrame:
        """Samples with the slices in which they lie."""
        units = units.with_columns(self.known)
        return (matched(units, self._places, self._keys) if self._placed else units).cache()

    def _flags(self, slicing: Slicing) -> list[pl.Expr]:
        return [pl.col(_split(column)) for column in slicing if column in self._placed]

    def _whole(self, units: pl.LazyFrame, slicing: Slicing) -> pl.LazyFrame:
        """The samples that lie in one slice."""
        flags = self._flags(slicing)
        return units.filter(~any_of(flags)) if flags else units

    def _with_texts(self, table: pl.LazyFrame, slicing: Slicing) -> pl.LazyFrame:
        return table.with_columns(pl.col(column).cast(pl.String) for column in slicing if column in self._texts)

    def _cuts_most(self, slicing: Slicing) -> bool:
        """Whether most samples lie in several slices, so that none is looked up."""
        return any(column in self.varied for column in slicing)

    def _split_in(self, slicing: Slicing) -> pl.LazyFrame | None:
        """The rows of samples that lie in several slices, or of all; None where none can."""
        if self._cuts_most(slicing):
            return self._all_rows
        flags = self._flags(slicing)
        if not flags:
            return None
        texts = (pl.col(_number(c)).cast(pl.String).alias(c) for c in slicing if c in self._texts)
        return self._split_rows.filter(any_of(flags)).with_columns(texts)

    def n_split(self, slicing: Slicing) -> pl.LazyFrame:
        """How many samples of each group of a slicing lie in other slices too; no row for a group without such."""
        keys, is_known = [*self.by, *slicing], [pl.col(column).is_not_null() for column in self.sample]
        rows = self._split_in(slicing)
        assert rows is not None  # it is asked where a slicing may cut through a sample
        parts = rows.filter(is_known).select(list(dict.fromkeys([*keys, *self.sample]))).unique()
        if self._cuts_most(slicing):
            parts = parts.cache()
            several = fold(parts, self._keys, [pl.len().alias(_PARTS)]).filter(pl.col(_PARTS) > 1)
            parts = matched(parts, several, self._keys)
        return fold(parts, keys, [pl.len().cast(pl.Int64).alias(_n_split(self.sample))])

    def _placed_rows(self) -> pl.LazyFrame:
        """One row a sample: a value of each column of slices, and the bounds of a code of them all."""
        code, columns = pl.col(_CODE), self._placed
        rows = self.rows.select(*self._keys, *columns, code_of(columns).alias(_CODE))
        # Of rows that lie together and are in one place, the first is enough.
        rows = rows.filter(pl.any_horizontal(changes(pl.col(key)) for key in [*self._keys, _CODE]))
        # There is a value for every sample: texts are held, matched and grouped by as numbers.
        rows = rows.with_columns(pl.col(column).cast(pl.Categorical) for column in self._texts)
        return fold(rows, self._keys, [*(pl.col(column).first() for column in columns), *bounds_of(code)])


def _together(table: pl.LazyFrame, more: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of two tables, in the columns of the first."""
    return pl.concat([table, more.select(table.collect_schema().names())])


def _number(column: str) -> str:
    """The column that has the texts of another as numbers."""
    return f"{INTERNAL}number:{column}"


def _split(column: str) -> str:
    """The column that says whether a sample has several values of another."""
    return f"{INTERNAL}split:{column}"
