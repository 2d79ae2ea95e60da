"""Partials: what rows give to be merged with what other rows give. Rows -> statistics at the keys of units.

Statistics of groups, labels and bins are merged as they are. Of samples there are as many as in the rows: so their
values are summed by group, and these sums are merged. What cannot be merged (exact curves) is told of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import polars as pl

from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.engine.folds import (
    BUCKET,
    CODE,
    KeyedFold,
    fold,
    fold_rows,
    joined,
    matched,
    take_columns,
    two_of_one_name,
)
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.packing import number_of_group
from polars_mlmetrics.engine.placements import RankingByBucket
from polars_mlmetrics.engine.ranking import UNIT, Order, Ranking, take_share
from polars_mlmetrics.engine.ranking_by_id import NUMBER
from polars_mlmetrics.engine.values import Columns, Values
from polars_mlmetrics.formula.parameters import identity
from polars_mlmetrics.formula.statistic import Statistic

FEW = 200
"""How many runs (bins) at most share a fold with the labels: there are as many statistics as both together."""

MANY_CELLS = 10_000
"""More bins than a metric has as a rule."""


class Mergeable(Protocol):
    """A table of statistics that can be folded for parts of the rows, each of whole samples, and merged."""

    by: list[str]
    whole_samples: bool
    """Whether it looks into samples: then all rows at once take much memory, and each part must be of whole ones."""

    @property
    def bytes_a_row(self) -> int: ...

    def of_rows(self, rows: pl.LazyFrame) -> pl.LazyFrame: ...

    def merged(self, parts: pl.LazyFrame) -> pl.LazyFrame: ...


class PartialKind(NamedTuple):
    """A key that tells one partial of a plan from the others, whatever the groups."""

    grain: Grain
    run: str | None
    whole_samples: bool
    units: tuple[str, ...]
    """The keys of its table beside those of the groups."""

    @classmethod
    def of(cls, partial: Partial, by: Sequence[str]) -> PartialKind:
        """The kind of a partial, where these are the keys of the groups."""
        units = tuple(key for key in partial.table_keys if key not in by)
        return cls(partial.grain, partial.values.run, partial.whole_samples, units)


PartialTable = tuple[pl.LazyFrame, list[str]]
"""The answer of a source for a partial: a table, and the columns that tell its groups from one another."""


@dataclass(eq=False)
class Partial:
    """The statistics of measures of one kind of unit."""

    by: list[str]
    grain: Grain
    keys: list[str]
    """The columns that tell one unit of a group from another."""
    run: pl.Expr | None = None
    cells: int | None = field(default=None, kw_only=True)
    """How many runs there can be; None where that is not known."""
    whole_samples: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        run = None if self.run is None else self.run.meta.output_name()
        self.values = Values(self.by, self.keys, run)
        self.fold = KeyedFold(self.values.unit_keys if run is None else [*self.values.unit_keys, run])
        self.looks_back: dict[str, pl.Expr] = {}
        self.windows: set[Grain] = set()
        """The grains whose rows a feature of a row is worked out of."""
        self.rankings: dict[tuple[object, ...], Ranking] = {}

    @property
    def has_few_runs(self) -> bool:
        """Whether its runs can share a fold with the labels."""
        return self.run is not None and self.cells is not None and self.cells <= FEW

    @property
    def runs_by_label(self) -> bool:
        """Whether its runs are the labels."""
        return any(reader.runs_by_label for reader, _ in self.values.measures)

    @property
    def merges(self) -> bool:
        """Whether statistics of several groups may be added up, as long as each holds samples whole."""
        return self.grain != "sample" and all(reader.merges_by is not None for reader, _ in self.values.measures)

    @property
    def table_keys(self) -> list[str]:
        """The keys of its table, which has samples summed up."""
        return self.by if self.grain == "sample" else self.fold.keys

    def at(self, by: list[str]) -> Partial:
        """The same statistics of other groups."""
        partial = replace(self, by=by)
        for reader, columns in self.values.measures:
            partial.add(reader, columns)
        for name, ranking in self.rankings.items():
            if isinstance(ranking, RankingByBucket):
                partial.rankings[name] = RankingByBucket.of(partial.rankings[name], ranking.bucket)
        return partial

    @property
    def unit_keys(self) -> list[str]:
        """The columns that tell one unit from another."""
        return self.values.unit_keys

    def add(self, reader: FormulaReader, columns: Columns) -> None:
        """Take in a measure and whatever its formula asks for."""
        self.take(reader, [*reader.folded, *reader.run_rows])
        for order, statistics, shares, counts in reader.ranked:
            ranking = self.rankings.setdefault(_name_of(order), Ranking(order, self.unit_keys))
            for name, share in shares.items():
                take_share(ranking.shares, name, share)
            if self.grain == "sample":
                ranked = {name for other in self.rankings.values() for name in other.counts}
                ranking.counts.update((name, place) for name, place in counts.items() if name not in ranked)
            for statistic in statistics:
                # One that reads no truth may be told by an order that does.
                known = (other for other in self.rankings.values() if statistic.name in other.statistics)
                next(known, ranking).take(statistic)
        if self.looks_back:
            # A second look at the rows starts from what is known of units before they are ranked.
            for ranking in self.rankings.values():
                ranking.counts.clear()
        self.values.measures.append((reader, columns))

    def place(self, reader: FormulaReader, bucket: str) -> None:
        """Have the pass that ranks the rows of a formula tell how those of each bucket stand."""
        name = _name_of(reader.ranked[0].order)
        ranking = self.rankings[name]
        if not isinstance(ranking, RankingByBucket):
            self.rankings[name] = RankingByBucket.of(ranking, bucket)

    def placements(self, reader: FormulaReader) -> pl.LazyFrame:
        """How the rows of each unit and bucket stand, as the pass has told it."""
        ranking = self.rankings[_name_of(reader.ranked[0].order)]
        assert isinstance(ranking, RankingByBucket)
        return ranking.placements

    def take(self, reader: FormulaReader, statistics: Sequence[Statistic]) -> None:
        """Fold statistics of a formula, with what else they read."""
        run = [] if reader.run_key is None or self.run is None else [reader.run_key]
        self.fold.take(statistics, [*run, *(feature.column(self.by) for feature in reader.features)])
        self.windows |= reader.windows
        take_columns(self.looks_back, reader.looks_back)

    @property
    def bytes_a_row(self) -> int:
        """Bytes that a row takes, about, while it is ranked, or read in windows, or folded."""
        of_cells = 15 if has_many_cells(self) else 0
        return 25 + of_cells + 70 * len(self.rankings) + (75 if self.fold.features else 0)

    def of_rows(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Fold rows: sums over samples, or else the statistics of each unit."""
        if self.grain == "sample":
            return self.values.sums(self.values.of_units(self.units(rows)), self.by)
        return self.units(rows)

    def merged(self, parts: pl.LazyFrame) -> pl.LazyFrame:
        """Merge the tables of several parts of the rows."""
        return fold(parts, self.by, [pl.exclude(self.by).sum()]) if self.grain == "sample" else self.fold.merged(parts)

    def units(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a unit (and run), with all its statistics."""
        rows = self.fold.with_features(rows)
        return self.ranked(self._folded(rows), rows)

    def ranked(self, units: pl.LazyFrame, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a unit, with the statistics of how its rows stand in order too. The rows have their features."""
        names = [*self.fold.statistics, *(name for ranking in self.rankings.values() for name in ranking.statistics)]
        for name in names:
            if names.count(name) > 1:
                raise two_of_one_name(name)
        for ranking in self.rankings.values():
            units = ranking.join_to(units, rows)
        return units

    @property
    def first_fold(self) -> KeyedFold:
        """The statistics that a first reading of the rows folds."""
        first = KeyedFold(self.fold.keys)
        first.take(self._looks()[0], self.fold.features.values())
        return first

    def of_first(self, folded: pl.LazyFrame, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Fold rows after a first reading of them that other partials share."""
        units = self.first_fold.merged(folded)
        return self.ranked(self._looked_again(units, rows) if self.looks_back else units, rows)

    def _folded(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a unit, with the statistics of the rows as they come."""
        if not self.looks_back:
            of_rows = self._not_ranked()
            # Where a ranking has counted the rows, what is left are counts of the broken ones: few, or none.
            sparse = len(of_rows) < len(self.fold.statistics) and all(statistic.is_count for statistic in of_rows)
            return fold_rows(rows, self.fold.keys, of_rows, sparse=sparse)
        return self._looked_again(fold_rows(rows, self.fold.keys, self._looks()[0]), rows)

    def _looked_again(self, folded: pl.LazyFrame, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a unit, from a first look at the rows, with the statistics of a second one."""
        again = self._looks()[1]
        # Held: the second look begins with it, and Polars does not always see that it is the same.
        folded = folded.cache()
        some = pl.any_horizontal(value.is_not_null() for value in self.looks_back.values())
        back = folded.filter(some).select(*self.unit_keys, *self.looks_back.values())
        table = fold_rows(matched(back, rows, self.unit_keys, nulls_equal=self._may_have_null), self.unit_keys, again)
        both = joined([folded, table], self.unit_keys, how="left", nulls_equal=self._may_have_null)
        # Of units that were not looked at again no row counts, whichever those are: the others of a partial decide it.
        return both.with_columns(pl.col(s.name).fill_null(0) for s in again if s.monoid == "sum")

    def _not_ranked(self) -> list[Statistic]:
        """The statistics that no ranking tells."""
        ranked = {name for ranking in self.rankings.values() for name in ranking.counts}
        return [statistic for name, statistic in self.fold.statistics.items() if name not in ranked]

    def _looks(self) -> tuple[list[Statistic], list[Statistic]]:
        """The statistics of a first look at the rows, and of the second."""
        first: list[Statistic] = []
        again: list[Statistic] = []
        for statistic in self._not_ranked():
            reads_back = self.looks_back.keys() & set(statistic.row.meta.root_names())
            (again if reads_back else first).append(statistic)
        return first, again

    @property
    def _may_have_null(self) -> bool:
        # A code is never null, and a sample without an id is never settled. To match nulls takes its time.
        return self.by != [CODE] or self.grain != "sample"

    # -- samples with small ids --------------------------------------------------------------------------------

    @property
    def counting(self) -> Ranking | None:
        """The ranking that tells the rows of every unit, where beside it only rows are counted, and few as a rule."""
        counting = [ranking for ranking in self.rankings.values() if ranking.counts]
        rows = [reader.answer.rows.meta.output_name() for reader, _ in self.values.measures]
        if self.fold.features or len(counting) != 1 or not all(name in counting[0].counts for name in rows):
            return None
        return counting[0] if all(s.is_count and s.counted is not None for s in self._not_ranked()) else None

    def sums_by_code(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        """Sums over samples, by the number of their group. `code` numbers the groups and samples of rows together."""
        of_rows, counting = self._not_ranked(), self.counting
        assert counting is not None
        units = counting.table_with(of_rows, rows, code) if of_rows else counting.table(rows, code)
        for ranking in self.rankings.values():
            if ranking is not counting:
                units = ranking.join_to_coded(units, rows, code)
        # Of a sample nothing is asked any more but whether it has an id, as its code says too.
        [sample] = self.keys
        named = units.with_columns(number_of_group(pl.col(UNIT)).alias(NUMBER)).rename({UNIT: sample})
        return self.values.sums(self.values.of_units(named, [NUMBER, sample]), [NUMBER])


def take_placements(partial: Partial, given: Partial, changed: Callable[[pl.LazyFrame], pl.LazyFrame]) -> None:
    """Take how rows stand from a partial of other groups, whose table was given, and change it as that."""
    for name, ranking in given.rankings.items():
        own = partial.rankings[name]
        if isinstance(ranking, RankingByBucket) and isinstance(own, RankingByBucket):
            own.placements = changed(ranking.placements)


def statistics_of(partial: Partial) -> list[Statistic]:
    """The statistics in the table of a partial: of samples, the sums of their values."""
    if partial.grain != "sample":
        return list(partial.fold.statistics.values())
    return [Statistic(name, pl.col(name), "sum") for name in partial.values.names_of_sums()]


def has_many_bins(partial: Partial) -> bool:
    """Whether a group has many rows of it: of bins, and not of the few that are folded with the labels."""
    return partial.run is not None and not partial.runs_by_label and not partial.has_few_runs


def has_many_cells(partial: Partial) -> bool:
    """Whether a group may have a cell for every few rows: while Polars folds so many, it holds most of the rows."""
    cells = partial.cells or 0
    return has_many_bins(partial) and (cells > MANY_CELLS or (cells > 0 and BUCKET in partial.by))


def table_of(reader: FormulaReader) -> tuple[object, ...]:
    """A key that is equal for formulas of the same units and runs: their statistics stand in one table."""
    measure = reader.measure
    return measure.grain, reader.run_name, reader.merges_by == "samples", *measure.table.keys(measure.grain)


def _name_of(order: Order) -> tuple[object, ...]:
    """A key that tells an order of rows from others."""
    return tuple(identity((order.rows, order.number, order.truth, order.name, list(order.columns))))
